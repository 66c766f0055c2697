//! `run`: an agent carries a task across as many sessions as it takes.
//!
//! Arguments become a run on disk, an agent and the terms by which it is judged; the rest is the
//! runtime's. Ctrl-C ends the agent, not the run.

mod screen;
mod signal;

use std::io::IsTerminal;

use compact_adapters::agent::Launch;
use compact_adapters::config::{Flag, RUN_VARIABLE};
use compact_adapters::run::{Judged, RunFolder, RunFolderError, SavedRun};
use compact_core::policy::Policy;
use compact_core::profile::Profile;
use compact_core::redact::Boundary;
use compact_core::restart::{Limit, Limits};
use compact_core::token::Tokens;
use compact_core::window::WindowSource;
use compact_runtime::port::agent::AgentError;
use compact_runtime::restart::{Next, Patience, RunError, RunState, Runner, Terms};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::answer::{Answer, settings_line};
use crate::args::{Global, Run};
use crate::failure::{Code, Failure};
use crate::input::Source;
use crate::output;
use crate::world::{World, block_on};
use screen::Screen;
use signal::Stop;

/// Runs or resumes.
pub fn run(args: &Run, global: &Global) -> Result<Answer, Failure> {
    let threshold = args
        .threshold
        .map(|ratio| Flag::new("--threshold", "policy.trigger_pct", ratio));
    let flags = threshold.into_iter().collect();
    let world = World::load_by_default(global, Profile::CheckpointRestart, flags)?;
    let (folder, mut saved) = match &args.resume {
        Some(run_id) => RunFolder::open(world.root(), run_id).map_err(|error| failure(&error))?,
        None => begin(args, &world, global)?,
    };
    hold(&mut saved, args);
    if saved.state.next == Next::Nothing {
        let message = format!("run '{}' is finished", saved.state.run_id);
        return Err(Failure::usage(message, "start another with --prompt"));
    }
    if !saved.folder.is_dir() {
        let message = format!("cannot work in {}: it is not there", saved.folder.display());
        return Err(Failure::new(Code::Input, message));
    }
    drive(args, &world, global, folder, saved)
}

/// A new run, in a folder of its own.
fn begin(args: &Run, world: &World, global: &Global) -> Result<(RunFolder, SavedRun), Failure> {
    let (Some(command), Some(prompt)) = (&args.agent, &args.prompt) else {
        return Err(Failure::usage(
            "run needs an agent and a task",
            "pass --agent claude --prompt FILE, or --resume RUN",
        ));
    };
    let source = Source::read(prompt)
        .map_err(|failure| failure.help("write the task into a file, or pass - for stdin"))?;
    let Ok(task) = String::from_utf8(source.bytes.to_vec()) else {
        return Err(Failure::new(
            Code::Input,
            format!("{}: it is not UTF-8", source.name),
        ));
    };
    if task.trim().is_empty() {
        let message = format!("{}: the task is empty", source.name);
        return Err(Failure::new(Code::Input, message).help("write what the agent is to do"));
    }
    let run_id = global.session.clone().unwrap_or_else(new_id);
    let here = std::env::current_dir();
    let saved = SavedRun {
        command: command.clone(),
        arguments: args.arguments.clone(),
        folder: here.map_err(|error| Failure::of(Code::Unexpected, &error))?,
        judged: Judged::default(),
        state: RunState {
            until: args.until.clone(),
            ..RunState::new(&run_id, task)
        },
    };
    Ok((
        RunFolder::create(world.root(), &run_id).map_err(|error| failure(&error))?,
        saved,
    ))
}

/// A name that tells when the run began.
fn new_id() -> String {
    let now = Timestamp::now();
    let salt = format!("{} {}", now.as_nanosecond(), std::process::id());
    let salt = blake3::hash(salt.as_bytes()).to_hex();
    let salt: String = salt.chars().take(4).collect();
    let at = now.to_zoned(TimeZone::UTC).strftime("%Y%m%d-%H%M%S");
    format!("{at}-{salt}")
}

/// What is given counts; what is not stays as the run has it.
fn hold(saved: &mut SavedRun, args: &Run) {
    let limits = &mut saved.state.limits;
    *limits = Limits {
        max_restarts: args.max_restarts.or(limits.max_restarts),
        time: args.timeout.or(limits.time),
    };
    let given = Judged {
        window: args.window,
        threshold: args.threshold,
        checkpoint_timeout: args.checkpoint_timeout,
        max_silence: args.max_silence,
    };
    saved.judged = given.or(saved.judged);
}

fn drive(
    args: &Run,
    world: &World,
    global: &Global,
    folder: RunFolder,
    saved: SavedRun,
) -> Result<Answer, Failure> {
    let state = saved.state.clone();
    let run_id = state.run_id.clone();
    let agent = launch(&saved).agent();
    let model = world.model().map(str::to_owned);
    let window = world.window(None);
    let explicit = (window.source == WindowSource::Explicit).then_some(window.tokens);
    let estimator = world.estimator(model.as_deref());
    let judged = saved.judged;
    let policy = Policy {
        trigger_pct: judged.threshold.unwrap_or(world.base_policy().trigger_pct),
        ..world.base_policy().clone()
    };
    let terms = Terms {
        policy: &policy,
        window: judged.window.map(Tokens).or(explicit),
        model: model.as_deref(),
        estimator: &*estimator,
        redactor: world.redactor(Boundary::Summary),
        patience: patience(judged),
    };
    if !global.quiet && std::io::stderr().is_terminal() {
        output::aside(&format!(
            "run {run_id}, kept in {}\n{}",
            folder.path().display(),
            settings_line(world.files())
        ));
    }
    let mut screen = Screen::new(global, world, folder, saved);
    let (outcome, stop) = block_on(async {
        let stop = Stop::listen()?;
        let runner = Runner::new(&*agent, &mut screen, terms, state, stop.watch());
        Ok((runner.run().await, stop))
    })?;
    match outcome {
        Ok((answer, _)) => {
            let answer = match screen.has_shown(&answer) {
                true => Vec::new(),
                false => format!("{}\n", answer.trim_end()).into_bytes(),
            };
            Ok(Answer::new(screen.finished(), String::new())
                .naming(world.files())
                .with_payload(Some(answer)))
        }
        Err(RunError::Stopped) => {
            let resume = how_to_resume(&run_id, global);
            Ok(stopped(&run_id, &resume, stop.code(), global))
        }
        Err(error) => {
            let is_new = args.resume.is_none();
            if is_no_program(&error) && is_new && screen.discard() {
                return Err(Failure::of(Code::Usage, &error).split_advice());
            }
            Err(gave_up(&error, &how_to_resume(&run_id, global)))
        }
    }
}

/// Whether there is nothing that could have begun.
fn is_no_program(error: &RunError) -> bool {
    matches!(
        error,
        RunError::Agent(AgentError::Missing(_) | AgentError::NotExecutable(_))
    )
}

fn launch(saved: &SavedRun) -> Launch {
    Launch {
        command: saved.command.clone(),
        arguments: saved.arguments.clone(),
        // Whoever locks by the agent's name keeps its locks from session to session.
        environment: vec![(RUN_VARIABLE.to_owned(), saved.state.run_id.clone())],
        folder: Some(saved.folder.clone()),
    }
}

fn patience(judged: Judged) -> Patience {
    let usual = Patience::default();
    Patience {
        checkpoint: judged.checkpoint_timeout.unwrap_or(usual.checkpoint),
        silence: judged.max_silence.unwrap_or(usual.silence),
        ..usual
    }
}

/// The command that goes on with a run, under the same configuration.
fn how_to_resume(run_id: &str, global: &Global) -> String {
    let mut command = format!("compactctl run --resume {}", quoted(run_id));
    if let Some(file) = &global.config {
        command.push_str(&format!(
            " --config {}",
            quoted(&file.display().to_string())
        ));
    }
    for profile in &global.profile {
        command.push_str(&format!(" --profile {profile}"));
    }
    command
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A person stopped it: that is no failure, but not the end either.
fn stopped(run_id: &str, resume: &str, code: u8, global: &Global) -> Answer {
    if !global.quiet {
        output::aside(&format!("stopped; nothing is lost, go on with: {resume}\n"));
    }
    let event = json!({"event": "run_stopped", "run_id": run_id, "resume": resume});
    Answer::new(event, String::new()).with_code(code)
}

fn gave_up(error: &RunError, resume: &str) -> Failure {
    let code = match error {
        error if is_no_program(error) => Code::Usage,
        RunError::Agent(AgentError::Unreadable(_)) => Code::Input,
        RunError::NoRoom { .. } => Code::Budget,
        RunError::Limit(_) | RunError::Fruitless(_) => Code::Check,
        _ => Code::Unexpected,
    };
    let advice = match error {
        error if is_no_program(error) => format!("then go on with: {resume}"),
        RunError::Limit(Limit::Restarts(_)) => {
            format!("raise the limit and go on: {resume} --max-restarts N")
        }
        RunError::Limit(Limit::Time(_)) => {
            format!("raise the limit and go on: {resume} --timeout TIME")
        }
        RunError::Record(_) => {
            format!("make room on the disk, then start again, or go on with: {resume}")
        }
        RunError::Silent(_) => {
            format!("go on with: {resume}, or with more patience: --max-silence TIME")
        }
        RunError::NoRoom { .. } => {
            format!(
                "give it a larger window or threshold, or fewer tools: {resume} --window TOKENS"
            )
        }
        RunError::Fruitless(_) => {
            format!("see what it lacks in the sessions that were kept, then go on with: {resume}")
        }
        RunError::Agent(AgentError::Unreadable(_)) => {
            format!("docs/run.md says what an agent has to print; go on with: {resume}")
        }
        _ => format!("go on with: {resume}"),
    };
    Failure::of(code, error).help(advice)
}

fn failure(error: &RunFolderError) -> Failure {
    let code = match error {
        RunFolderError::Exists(_) | RunFolderError::Busy(_) => Code::Usage,
        RunFolderError::Missing { .. } | RunFolderError::Unreadable(..) => Code::Input,
        _ => Code::Unexpected,
    };
    Failure::of(code, error).split_advice()
}

/// The event that `--json` ends with.
fn event(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
