//! `run`: an agent carries a task across as many sessions as it takes.
//!
//! Arguments become a run on disk, an agent and the terms by which it is judged; the rest is the
//! runtime's. Ctrl-C ends the agent, not the run.

mod recorder;

use std::io::IsTerminal;

use compact::agent::{
    AgentError, Launch, NextStep, RestartLimitReached, RestartLimits, RunError, RunFolder,
    RunFolderError, RunLimits, RunState, RunTerms, Runner, SavedRun, WaitLimits,
};
use compact::config::{ConfigFlag, RUN_VARIABLE};
use compact::policy::{Policy, Profile};
use compact::redact::RedactionBoundary;
use compact::token::{Tokens, WindowSource};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::answer::{CommandAnswer, set_field, settings_line};
use crate::app::{App, block_on};
use crate::args::{GlobalArgs, RunArgs};
use crate::failure::{Failure, FailureCode};
use crate::input::InputSource;
use crate::output;
use crate::stop::{Hangup, StopRequest};
use recorder::RunRecorder;

/// Runs or resumes.
pub(super) fn run(args: &RunArgs, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    let threshold = args
        .threshold
        .map(|ratio| ConfigFlag::new("--threshold", "policy.trigger_pct", ratio));
    let flags = threshold.into_iter().collect();
    let app = App::load_with_fallback_profile(global, Profile::CheckpointRestart, flags)?;
    let (folder, mut saved) = match &args.resume {
        Some(run_id) => {
            RunFolder::open(app.data_directory(), run_id).map_err(|error| folder_failure(&error))?
        }
        None => create_run(args, &app, global)?,
    };
    apply_limits(&mut saved, args);
    if saved.state.next == NextStep::Nothing {
        let message = format!("run '{}' is finished", saved.state.run_id);
        return Err(Failure::usage(message, "start another with --prompt"));
    }
    if !saved.folder.is_dir() {
        let message = format!(
            "cannot work in {}: it does not exist",
            saved.folder.display()
        );
        return Err(Failure::new(FailureCode::Input, message));
    }
    run_agent(args, &app, global, folder, saved)
}

/// A new run, in a folder of its own.
fn create_run(
    args: &RunArgs,
    app: &App,
    global: &GlobalArgs,
) -> Result<(RunFolder, SavedRun), Failure> {
    let (Some(command), Some(prompt)) = (&args.agent, &args.prompt) else {
        return Err(Failure::usage(
            "run needs an agent and a task",
            "pass --agent claude --prompt FILE, or --resume RUN",
        ));
    };
    let source = InputSource::read(prompt)
        .map_err(|failure| failure.help("write the task into a file, or pass - for stdin"))?;
    let Ok(task) = String::from_utf8(source.bytes.to_vec()) else {
        return Err(Failure::new(
            FailureCode::Input,
            format!("{}: it is not UTF-8", source.name),
        ));
    };
    if task.trim().is_empty() {
        let message = format!("{}: the task is empty", source.name);
        return Err(Failure::new(FailureCode::Input, message).help("write what the agent is to do"));
    }
    let run_id = global
        .session
        .clone()
        .unwrap_or_else(|| new_run_id(app.compact().clock().now()));
    let here = std::env::current_dir();
    let saved = SavedRun {
        command: command.clone(),
        arguments: args.arguments.clone(),
        folder: here.map_err(|error| Failure::from_error(FailureCode::Unexpected, &error))?,
        judged: RunLimits::default(),
        state: RunState {
            until: args.until.clone(),
            ..RunState::new(&run_id, task)
        },
    };
    Ok((
        RunFolder::create(app.data_directory(), &run_id).map_err(|error| folder_failure(&error))?,
        saved,
    ))
}

/// A name that tells when the run began.
fn new_run_id(now: Timestamp) -> String {
    let salt = format!("{} {}", now.as_nanosecond(), std::process::id());
    let salt = blake3::hash(salt.as_bytes()).to_hex();
    let salt: String = salt.chars().take(4).collect();
    let at = now.to_zoned(TimeZone::UTC).strftime("%Y%m%d-%H%M%S");
    format!("{at}-{salt}")
}

/// What is given counts; what is not stays as the run has it.
fn apply_limits(saved: &mut SavedRun, args: &RunArgs) {
    let limits = &mut saved.state.limits;
    *limits = RestartLimits {
        max_restarts: args.max_restarts.or(limits.max_restarts),
        time: args.timeout.or(limits.time),
    };
    let given = RunLimits {
        window: args.window,
        threshold: args.threshold,
        checkpoint_timeout: args.checkpoint_timeout,
        max_silence: args.max_silence,
    };
    saved.judged = given.or_earlier(saved.judged);
}

fn run_agent(
    args: &RunArgs,
    app: &App,
    global: &GlobalArgs,
    folder: RunFolder,
    saved: SavedRun,
) -> Result<CommandAnswer, Failure> {
    let state = saved.state.clone();
    let run_id = state.run_id.clone();
    let agent = launch(&saved).into_agent();
    let model = app.model().map(str::to_owned);
    let window = app.compact().window(None);
    let explicit = (window.source == WindowSource::Explicit).then_some(window.tokens);
    let estimator = app.compact().estimator(model.as_deref());
    let judged = saved.judged;
    let policy = Policy {
        trigger_pct: judged.threshold.unwrap_or(app.base_policy().trigger_pct),
        ..app.base_policy().clone()
    };
    let redactor = app.compact().redactor(RedactionBoundary::Summary);
    let terms = RunTerms::new(&policy, &*estimator, redactor)
        .with_window(judged.window.map(Tokens).or(explicit))
        .with_model(model.as_deref())
        .with_wait_limits(patience(judged))
        .with_clock(app.compact().clock())
        .within_span(app.caller_span());
    if !global.quiet && std::io::stderr().is_terminal() {
        output::print_stderr(&format!(
            "run {run_id}, kept in {}\n{}",
            folder.path().display(),
            settings_line(app.config_files())
        ));
    }
    let mut screen = RunRecorder::new(global, app, folder, saved)?;
    let (outcome, stop) = block_on(async {
        let stop = StopRequest::listen(Hangup::Stops)?;
        let runner = Runner::new(&*agent, &mut screen, terms, state, stop.watch());
        Ok((runner.run().await, stop))
    })?;
    match outcome {
        Ok((said, _)) => {
            let answer = match screen.has_shown(&said) {
                true => Vec::new(),
                false => format!("{}\n", said.trim_end()).into_bytes(),
            };
            let mut ended = screen.into_ended();
            set_field(&mut ended, "text", said);
            Ok(CommandAnswer::new(ended, String::new())
                .with_settings_files(app.config_files())
                .with_payload(Some(answer)))
        }
        Err(RunError::Stopped) => {
            let resume = resume_command(&run_id, global);
            Ok(stopped_answer(
                screen.into_ended(),
                &resume,
                stop.code(),
                global,
            ))
        }
        Err(error) => {
            let is_new = args.resume.is_none();
            if let Some(missing) = missing_program(&error)
                && is_new
                && screen.discard()
            {
                return Err(Failure::from_hinted(FailureCode::Usage, missing));
            }
            Err(run_failure(&error, &resume_command(&run_id, global)))
        }
    }
}

/// Returns why nothing could have begun, where there is no program to begin with.
fn missing_program(error: &RunError) -> Option<&AgentError> {
    match error {
        RunError::Agent(error @ (AgentError::Missing(_) | AgentError::NotExecutable(_))) => {
            Some(error)
        }
        _ => None,
    }
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

fn patience(judged: RunLimits) -> WaitLimits {
    let usual = WaitLimits::default();
    WaitLimits {
        checkpoint: judged.checkpoint_timeout.unwrap_or(usual.checkpoint),
        silence: judged.max_silence.unwrap_or(usual.silence),
        ..usual
    }
}

/// The command that goes on with a run, under the same configuration.
fn resume_command(run_id: &str, global: &GlobalArgs) -> String {
    let mut command = format!("compactctl run --resume {}", shell_quote(run_id));
    if let Some(file) = &global.config {
        command.push_str(&format!(
            " --config {}",
            shell_quote(&file.display().to_string())
        ));
    }
    for profile in &global.profile {
        command.push_str(&format!(" --profile {profile}"));
    }
    command
}

/// A word as a shell takes it.
fn shell_quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A person stopped it: that is no failure, but not the end either.
fn stopped_answer(mut ended: Value, resume: &str, code: u8, global: &GlobalArgs) -> CommandAnswer {
    if !global.quiet {
        output::print_stderr(&format!(
            "stopped; nothing is lost, continue with: {resume}\n"
        ));
    }
    set_field(&mut ended, "resume", resume);
    CommandAnswer::new(ended, String::new()).with_code(code)
}

fn run_failure(error: &RunError, resume: &str) -> Failure {
    let code = match error {
        error if missing_program(error).is_some() => FailureCode::Usage,
        RunError::Agent(AgentError::Unreadable(_)) => FailureCode::Input,
        RunError::NoRoom { .. } => FailureCode::Budget,
        RunError::Limit(_) | RunError::Fruitless(_) => FailureCode::Check,
        _ => FailureCode::Unexpected,
    };
    let advice = match error {
        error if missing_program(error).is_some() => format!("then continue with: {resume}"),
        RunError::Limit(RestartLimitReached::Restarts(_)) => {
            format!("raise the limit and continue: {resume} --max-restarts N")
        }
        RunError::Limit(RestartLimitReached::Time(_)) => {
            format!("raise the limit and continue: {resume} --timeout TIME")
        }
        RunError::Record(_) => {
            format!("make room on the disk, then start again, or continue with: {resume}")
        }
        RunError::Silent(_) => {
            format!("continue with: {resume}, and allow more time with --max-silence TIME")
        }
        RunError::NoRoom { .. } => {
            format!(
                "give it a larger window or threshold, or fewer tools: {resume} --window TOKENS"
            )
        }
        RunError::Fruitless(_) => {
            format!(
                "find out what it lacks in the sessions that were kept, then continue with: {resume}"
            )
        }
        RunError::Agent(AgentError::Unreadable(_)) => {
            format!("docs/run.md says what an agent has to print; continue with: {resume}")
        }
        _ => format!("continue with: {resume}"),
    };
    Failure::from_error(code, error).help(advice)
}

fn folder_failure(error: &RunFolderError) -> Failure {
    let code = match error {
        RunFolderError::Exists(_) | RunFolderError::Busy(_) => FailureCode::Usage,
        RunFolderError::Missing { .. } | RunFolderError::Unreadable(..) => FailureCode::Input,
        _ => FailureCode::Unexpected,
    };
    Failure::from_hinted(code, error)
}

/// The event that `--json` ends with.
fn event_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
