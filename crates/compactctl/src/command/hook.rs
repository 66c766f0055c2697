//! `hook`: an agent calls, or a person has it called.

use std::io::{IsTerminal, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use compact_runtime::host::{Agent, Call, Moment};
use jiff::Timestamp;
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::answer::{Answer, located};
use crate::args::{Global, Hook, HookCommand, HookPlace, HookScope};
use crate::failure::{Code, Failure};
use crate::host::settings::{self, Surroundings};
use crate::host::{self, Journal, Level, Terms};
use crate::output;
use crate::world::{HOOKS, HookTerms, hook_terms};

/// No agent says more than this; what comes after is not read.
const LONGEST: u64 = 256 << 20;

/// Answers an agent, or changes its settings.
pub fn run(args: &Hook, global: &Global) -> Result<Answer, Failure> {
    let found = hook_terms(global);
    let hooks = |found: Result<HookTerms, Failure>| found.map(|terms| terms.root.join(HOOKS));
    match &args.command {
        None => Ok(called(args.agent.as_deref(), found)),
        Some(HookCommand::Install(place)) => install(place, hooks(found)?),
        Some(HookCommand::Uninstall(place)) => uninstall(place, hooks(found)?),
        Some(HookCommand::Status { agent }) => status(*agent, hooks(found)?),
    }
}

/// What the configuration says of itself, once for each call that does something.
fn log_configuration(call: &Call, found: &HookTerms, journal: &Journal) {
    let event = &call.event;
    if let Some(fault) = &found.fault {
        let line = format!(
            "{event}: the configuration is broken, so everything is redacted and what is whole \
             applies: {fault}"
        );
        journal.line(Level::Error, &line);
    }
    for warning in &found.warnings {
        journal.line(Level::Warning, &format!("{event}: {warning}"));
    }
    if !found.files.is_empty() && call.moment != Moment::Prompt {
        let files = found.files.iter().map(|file| located(file).to_string());
        let files: Vec<String> = files.collect();
        journal.line(
            Level::Info,
            &format!("{event}: settings of {}", files.join(", ")),
        );
    }
}

/// Whatever happens, the agent gets an answer that lets it go on.
fn called(agent: Option<&str>, found: Result<HookTerms, Failure>) -> Answer {
    let hooks = found.as_ref().ok().map(|found| found.root.join(HOOKS));
    let journal = Journal::new(hooks.as_deref());
    let said = catch_unwind(AssertUnwindSafe(|| listen(agent, found, &journal)));
    let said = said.unwrap_or_else(|_| {
        journal.line(Level::Error, "hook: unexpected failure; nothing was told");
        String::new()
    });
    // Not through `deliver`: a host that does not read is no failure of the hook.
    let _ = output::bytes(said.as_bytes());
    Answer::new(Value::Null, String::new()).with_payload(Some(Vec::new()))
}

fn listen(agent: Option<&str>, found: Result<HookTerms, Failure>, journal: &Journal) -> String {
    let mut payload = Vec::new();
    if std::io::stdin().is_terminal() {
        let message = "hook: reads an agent's JSON on stdin; see `compactctl hook install --help`";
        journal.line(Level::Warning, message);
        return String::new();
    }
    if let Err(error) = std::io::stdin().take(LONGEST).read_to_end(&mut payload) {
        journal.line(Level::Error, &format!("hook: cannot read stdin: {error}"));
        return String::new();
    }
    let named: Option<Agent> = agent.and_then(|name| name.parse().ok());
    let call = match Call::read(&payload, named) {
        Ok(call) => call,
        Err(refusal) => {
            journal.line(Level::Warning, &format!("hook: {refusal}"));
            return String::new();
        }
    };
    let journal = &journal.of(call.agent);
    match found {
        Ok(_) if call.moment == Moment::Other => String::new(),
        Ok(found) => {
            log_configuration(&call, &found, journal);
            let terms = Terms {
                hooks: found.root.join(HOOKS),
                redaction: found.redaction,
            };
            host::answer(&call, &terms, Timestamp::now(), journal)
        }
        Err(failure) => {
            let line = format!("{}: {}", call.event, failure.message());
            journal.line(Level::Error, &line);
            String::new()
        }
    }
}

fn install(place: &HookPlace, hooks: PathBuf) -> Result<Answer, Failure> {
    let surroundings = Surroundings::here(hooks)?;
    let change = settings::install(place.agent, place.scope, &surroundings)?;
    if !place.dry_run {
        change.write(&surroundings)?;
    }
    let mut answer = changed(place, &change, "installed");
    let auto = settings::auto_compaction(place.agent, &surroundings);
    let twice = match place.scope {
        HookScope::User => settings::installed(place.agent, HookScope::Project, &surroundings),
        HookScope::Project => settings::installed(place.agent, HookScope::User, &surroundings),
    };
    // At home both are one file.
    let twice = twice.filter(|other| *other != change.path);
    let twice = twice.map(|other| twice_told(&other));
    for warning in auto.warning().into_iter().chain(twice) {
        answer
            .human
            .push_str(&format!("{} {warning}\n", "warning:".yellow().bold()));
    }
    let program = program_of(place.agent);
    if !is_on_path(program) {
        answer.human.push_str(&format!(
            "{} there is no `{program}` on the PATH; the hooks wait until it runs\n",
            "note:".cyan().bold()
        ));
    }
    let is_written = !change.is_empty() && !place.dry_run;
    for note in settings::notes(place.agent).iter().filter(|_| is_written) {
        answer
            .human
            .push_str(&format!("{} {note}\n", "note:".cyan().bold()));
    }
    crate::answer::set(&mut answer.json, "auto_compaction", auto.as_str());
    Ok(answer)
}

/// What an agent is started by.
fn program_of(agent: Agent) -> &'static str {
    match agent {
        Agent::ClaudeCode => "claude",
        Agent::Codex => "codex",
        Agent::GeminiCli => "gemini",
        Agent::OpenCode => "opencode",
    }
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| {
        let file = folder.join(program);
        file.is_file()
            || file.with_extension("exe").is_file()
            || file.with_extension("cmd").is_file()
    })
}

/// Agents run what the user's settings and the project's say, one after the other.
fn twice_told(other: &Path) -> String {
    let other = other.display();
    format!("{other} calls the hooks too, so each call would be answered twice; uninstall one")
}

fn uninstall(place: &HookPlace, hooks: PathBuf) -> Result<Answer, Failure> {
    let surroundings = Surroundings::here(hooks)?;
    let change = settings::uninstall(place.agent, place.scope, &surroundings)?;
    if !place.dry_run {
        change.write(&surroundings)?;
    }
    Ok(changed(place, &change, "uninstalled"))
}

fn changed(place: &HookPlace, change: &settings::Change, done: &str) -> Answer {
    let path = change.path.display();
    let verb = match (change.is_empty(), place.dry_run) {
        (true, _) => format!("nothing to change: {done} already"),
        (false, true) => format!("would be {done}"),
        (false, false) => done.to_owned(),
    };
    let mut human = format!("{}  {verb}\n  {path}\n", place.agent.name().bold());
    if place.dry_run && !change.is_empty() {
        match &change.after {
            Some(text) => human.push_str(&format!("\n{text}\n")),
            None => human.push_str("  the file would be removed\n"),
        }
    }
    let json = json!({
        "agent": place.agent.name(),
        "scope": match place.scope { HookScope::User => "user", HookScope::Project => "project" },
        "file": change.path,
        "changed": !change.is_empty() && !place.dry_run,
        "dry_run": place.dry_run,
        "text": change.after,
    });
    Answer::new(json, human)
}

fn status(agent: Option<Agent>, hooks: PathBuf) -> Result<Answer, Failure> {
    let surroundings = Surroundings::here(hooks)?;
    let (mut rows, mut human) = (Vec::new(), String::new());
    for agent in Agent::ALL
        .into_iter()
        .filter(|a| agent.is_none_or(|one| one == *a))
    {
        let auto = settings::auto_compaction(agent, &surroundings);
        human.push_str(&format!(
            "{}  auto-compaction {}\n",
            agent.name().bold(),
            auto.told()
        ));
        let scopes = [HookScope::User, HookScope::Project];
        let places = scopes.map(|scope| {
            let (told, place) = place_status(agent, scope, &surroundings);
            human.push_str(&told);
            place
        });
        rows.push(json!({
            "agent": agent.name(), "auto_compaction": auto.as_str(),
            "auto_compaction_from": auto.source(), "places": places,
        }));
    }
    human.push_str(&format!("archives  {}\n", surroundings.hooks.display()));
    Ok(Answer::new(
        json!({ "agents": rows, "archives": surroundings.hooks }),
        human,
    ))
}

/// What one file of settings says, for people and for programs.
fn place_status(agent: Agent, scope: HookScope, surroundings: &Surroundings) -> (String, Value) {
    let found = settings::look(agent, scope, surroundings);
    let name = match scope {
        HookScope::User => "user",
        HookScope::Project => "project",
    };
    let state = found.state.as_str();
    let mut human = format!("  {name:<8} {state:<14} {}\n", found.path.display());
    let is_there = found.state.calls_us();
    let hindrance = is_there.then(|| settings::hindrance(agent, scope, surroundings));
    let hindrance = hindrance.flatten();
    let other = match scope {
        HookScope::User => None,
        HookScope::Project => settings::installed(agent, HookScope::User, surroundings),
    };
    let warnings = [
        hindrance
            .as_ref()
            .map(|why| format!("they do not run: {why}")),
        found
            .error
            .as_ref()
            .map(|why| format!("it cannot be read: {why}")),
        other
            .filter(|other| is_there && *other != found.path)
            .map(|other| twice_told(&other)),
    ];
    for warning in warnings.into_iter().flatten() {
        human.push_str(&format!("           {} {warning}\n", "warning:".yellow()));
    }
    let place = json!({
        "scope": name, "file": found.path, "state": state, "hindrance": hindrance,
        "error": found.error,
    });
    (human, place)
}

impl From<settings::Refused> for Failure {
    fn from(refused: settings::Refused) -> Failure {
        Failure::of(Code::Usage, &refused).help(match refused {
            settings::Refused::Broken { .. } | settings::Refused::Shape { .. } => {
                "nothing was written; mend the file and run the command again"
            }
            settings::Refused::NoHome => "set HOME, or use --scope project",
            settings::Refused::Io { .. } => "nothing was written; check the file and its folder",
        })
    }
}
