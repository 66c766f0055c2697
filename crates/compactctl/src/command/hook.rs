//! `hook`: an agent calls, or a person has it called.

mod view;

use std::io::{IsTerminal, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use compact::clock::{Clock, SystemClock};
use compact::hook::HOOKS_FOLDER;
use compact::hook::{HookAgent, HookMoment, HookPayload};

use owo_colors::OwoColorize;
use serde_json::{Value, json};

use crate::answer::{CommandAnswer, with_absolute_path};
use crate::app::{HookConfig, caller_span, load_hook_config};
use crate::args::{
    GlobalArgs, HookArgs, HookCommand, HookInstallArgs, HookScope, HookSettingsArgs,
};
use crate::failure::{Failure, FailureCode};
use crate::host::settings::{self, AgentEnvironment};
use crate::host::{self, HookEvents, HookLog, HookOptions, LogLevel};
use crate::output;

/// No agent says more than this; what comes after is not read.
const LONGEST: u64 = 256 << 20;

/// Answers an agent, or changes its settings.
pub(super) fn run(args: &HookArgs, global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    let found = load_hook_config(global);
    let hooks =
        |found: Result<HookConfig, Failure>| found.map(|terms| terms.root.join(HOOKS_FOLDER));
    match &args.command {
        None => Ok(answer_agent(args.agent.as_deref(), &found)),
        Some(HookCommand::Install(wanted)) => install(wanted, hooks(found)?),
        Some(HookCommand::Uninstall(place)) => uninstall(place, hooks(found)?),
        Some(HookCommand::Status { agent }) => status(*agent, hooks(found)?),
        Some(HookCommand::View(args)) => view::run(args, global),
    }
}

/// What the configuration says of itself, once for each call that does something.
fn log_configuration(call: &HookPayload, found: &HookConfig, journal: &HookLog) {
    let event = &call.event;
    if let Some(fault) = &found.fault {
        let line = format!(
            "{event}: the configuration is broken; everything is redacted, and only its valid \
             parts apply: {fault}"
        );
        journal.write_line(LogLevel::Error, &line);
    }
    for warning in &found.warnings {
        journal.write_line(LogLevel::Warning, &format!("{event}: {warning}"));
    }
    if !found.files.is_empty() && call.moment != HookMoment::Prompt {
        let files = found
            .files
            .iter()
            .map(|file| with_absolute_path(file).to_string());
        let files: Vec<String> = files.collect();
        journal.write_line(
            LogLevel::Info,
            &format!("{event}: settings of {}", files.join(", ")),
        );
    }
}

/// Whatever happens, the agent gets an answer that lets it go on.
fn answer_agent(agent: Option<&str>, found: &Result<HookConfig, Failure>) -> CommandAnswer {
    let hooks = found
        .as_ref()
        .ok()
        .map(|found| found.root.join(HOOKS_FOLDER));
    let journal = HookLog::new(hooks.as_deref());
    let events = HookEvents::new(&SystemClock, caller_span().as_ref());
    let said = catch_unwind(AssertUnwindSafe(|| {
        read_and_answer(agent, found, &journal, &events)
    }));
    let said = said.unwrap_or_else(|_| {
        journal.write_line(
            LogLevel::Error,
            "hook: unexpected failure; nothing was added to the context",
        );
        String::new()
    });
    // Not through `deliver`: a host that does not read is no failure of the hook.
    let _ = output::print_bytes(said.as_bytes());
    if let Ok(found) = found {
        let _ = catch_unwind(AssertUnwindSafe(|| events.export(found, &journal)));
    }
    CommandAnswer::new(Value::Null, String::new()).with_payload(Some(Vec::new()))
}

fn read_and_answer(
    agent: Option<&str>,
    found: &Result<HookConfig, Failure>,
    journal: &HookLog,
    events: &HookEvents<'_>,
) -> String {
    let mut payload = Vec::new();
    if std::io::stdin().is_terminal() {
        let message = "hook: reads an agent's JSON on stdin; see `compactctl hook install --help`";
        journal.write_line(LogLevel::Warning, message);
        return String::new();
    }
    if let Err(error) = std::io::stdin().take(LONGEST).read_to_end(&mut payload) {
        journal.write_line(
            LogLevel::Error,
            &format!("hook: cannot read stdin: {error}"),
        );
        return String::new();
    }
    let named: Option<HookAgent> = agent.and_then(|name| name.parse().ok());
    let call = match HookPayload::read(&payload, named) {
        Ok(call) => call,
        Err(refusal) => {
            journal.write_line(LogLevel::Warning, &format!("hook: {refusal}"));
            return String::new();
        }
    };
    let journal = &journal.for_agent(call.agent);
    match found {
        Ok(_) if call.moment == HookMoment::Other => String::new(),
        Ok(found) => {
            log_configuration(&call, found, journal);
            let terms = HookOptions {
                hooks: found.root.join(HOOKS_FOLDER),
                redaction: found.config.redaction.clone(),
            };
            host::answer_call(&call, &terms, SystemClock.now(), journal, events)
        }
        Err(failure) => {
            let line = format!("{}: {}", call.event, failure.message());
            journal.write_line(LogLevel::Error, &line);
            String::new()
        }
    }
}

fn install(wanted: &HookInstallArgs, hooks: PathBuf) -> Result<CommandAnswer, Failure> {
    let place = &wanted.place;
    let surroundings = AgentEnvironment::from_process(hooks)?;
    let mut change = settings::plan_install(place.agent, place.scope, &surroundings)?;
    let mut plugin = Vec::new();
    if wanted.replace_summary {
        check_plugin_place(place)?;
        change = change.with_plugin_switch()?;
        plugin = settings::plan_plugin(&surroundings)?;
    }
    if !place.dry_run {
        for change in plugin.iter().chain([&change]) {
            change.write(&surroundings)?;
        }
    }
    let mut answer = change_answer(place, &change, "installed");
    add_plugin_answer(&mut answer, place, &plugin, "installed");
    if wanted.replace_summary {
        answer.human.push_str(&early_access_notes());
    }
    let auto = settings::auto_compaction(place.agent, &surroundings);
    let twice = match place.scope {
        HookScope::User => settings::installed_path(place.agent, HookScope::Project, &surroundings),
        HookScope::Project => settings::installed_path(place.agent, HookScope::User, &surroundings),
    };
    // At home both are one file.
    let twice = twice.filter(|other| *other != change.path);
    let twice = twice.map(|other| duplicate_warning(&other));
    for warning in auto.warning().into_iter().chain(twice) {
        answer
            .human
            .push_str(&format!("{} {warning}\n", "warning:".yellow().bold()));
    }
    let program = program_of(place.agent);
    if !is_on_path(program) {
        answer.human.push_str(&format!(
            "{} there is no `{program}` on the PATH; the hooks do nothing until there is\n",
            "note:".cyan().bold()
        ));
    }
    let changed = plugin.iter().chain([&change]);
    let is_written = changed.into_iter().any(|change| !change.is_empty()) && !place.dry_run;
    for note in settings::install_notes(place.agent)
        .iter()
        .filter(|_| is_written)
    {
        answer
            .human
            .push_str(&format!("{} {note}\n", "note:".cyan().bold()));
    }
    crate::answer::set_field(&mut answer.json, "auto_compaction", auto.as_str());
    Ok(answer)
}

/// The plugin is for one agent, and for one person: a project must not bring code for others' sessions.
fn check_plugin_place(place: &HookSettingsArgs) -> Result<(), Failure> {
    match (place.agent, place.scope) {
        (HookAgent::ClaudeCode, HookScope::User) => Ok(()),
        (HookAgent::ClaudeCode, HookScope::Project) => Err(Failure::usage(
            "--replace-summary writes a plugin for you alone, not for a project",
            "leave --scope project out",
        )),
        (agent, _) => Err(Failure::usage(
            format!("{agent} does not let a plugin replace its summary"),
            "leave --replace-summary out; only claude-code takes it",
        )),
    }
}

/// What a person should know who relies on an interface that may change.
fn early_access_notes() -> String {
    let note = "the plugin uses an interface of Claude Code that is in early access; where it is missing \
                or fails, Claude Code writes its own summary";
    let hindrance = settings::find_version_hindrance();
    let hindrance = hindrance.map(|why| format!("{} {why}\n", "warning:".yellow().bold()));
    let note = format!("{} {note}\n", "note:".cyan().bold());
    format!("{}{note}", hindrance.unwrap_or_default())
}

/// Adds what becomes of the files of a plugin.
fn add_plugin_answer(
    answer: &mut CommandAnswer,
    place: &HookSettingsArgs,
    plugin: &[settings::SettingsChange],
    done: &str,
) {
    let changed: Vec<_> = plugin.iter().filter(|change| !change.is_empty()).collect();
    for change in &changed {
        answer
            .human
            .push_str(&format!("  {}\n", change.path.display()));
        if let (true, Some(text)) = (place.dry_run, &change.after) {
            answer.human.push_str(&format!("\n{text}\n"));
        }
    }
    let files: Vec<Value> = plugin
        .iter()
        .map(|change| json!({"file": change.path, "text": change.after}))
        .collect();
    let is_done = !changed.is_empty() && !place.dry_run;
    let state = json!({ "files": files, "changed": is_done, "done": done });
    if !plugin.is_empty() {
        crate::answer::set_field(&mut answer.json, "plugin", state);
    }
}

/// What an agent is started by.
pub(super) fn program_of(agent: HookAgent) -> &'static str {
    match agent {
        HookAgent::ClaudeCode => "claude",
        HookAgent::Codex => "codex",
        HookAgent::GeminiCli => "gemini",
        HookAgent::OpenCode => "opencode",
    }
}

pub(super) fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| {
        let file = folder.join(program);
        file.is_file()
            || file.with_extension("exe").is_file()
            || file.with_extension("cmd").is_file()
    })
}

/// Agents run what the user's settings and the project's say, one after the other.
fn duplicate_warning(other: &Path) -> String {
    let other = other.display();
    format!("{other} calls the hooks too, so each event would be handled twice; uninstall one")
}

fn uninstall(place: &HookSettingsArgs, hooks: PathBuf) -> Result<CommandAnswer, Failure> {
    let surroundings = AgentEnvironment::from_process(hooks)?;
    let change = settings::plan_uninstall(place.agent, place.scope, &surroundings)?;
    let plugin = match (place.agent, place.scope) {
        (HookAgent::ClaudeCode, HookScope::User) => settings::plan_plugin_removal(&surroundings)?,
        _ => Vec::new(),
    };
    if !place.dry_run {
        for change in plugin.iter().chain([&change]) {
            change.write(&surroundings)?;
        }
        if !plugin.is_empty() {
            settings::remove_plugin_folders(&surroundings);
        }
    }
    let mut answer = change_answer(place, &change, "uninstalled");
    add_plugin_answer(&mut answer, place, &plugin, "uninstalled");
    Ok(answer)
}

fn change_answer(
    place: &HookSettingsArgs,
    change: &settings::SettingsChange,
    done: &str,
) -> CommandAnswer {
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
    CommandAnswer::new(json, human)
}

fn status(agent: Option<HookAgent>, hooks: PathBuf) -> Result<CommandAnswer, Failure> {
    let surroundings = AgentEnvironment::from_process(hooks)?;
    let (mut rows, mut human) = (Vec::new(), String::new());
    for agent in HookAgent::ALL
        .into_iter()
        .filter(|a| agent.is_none_or(|one| one == *a))
    {
        let auto = settings::auto_compaction(agent, &surroundings);
        human.push_str(&format!(
            "{}  auto-compaction {}\n",
            agent.name().bold(),
            auto.describe()
        ));
        let scopes = [HookScope::User, HookScope::Project];
        let places = scopes.map(|scope| {
            let (told, place) = scope_status(agent, scope, &surroundings);
            human.push_str(&told);
            place
        });
        let mut row = json!({
            "agent": agent.name(), "auto_compaction": auto.as_str(),
            "auto_compaction_from": auto.source(), "places": places,
        });
        if agent == HookAgent::ClaudeCode {
            let (told, plugin) = plugin_status(&surroundings);
            human.push_str(&told);
            crate::answer::set_field(&mut row, "plugin", plugin);
        }
        rows.push(row);
    }
    human.push_str(&format!("archives  {}\n", surroundings.hooks.display()));
    Ok(CommandAnswer::new(
        json!({ "agents": rows, "archives": surroundings.hooks }),
        human,
    ))
}

/// What is there of the plugin that replaces summaries, for people and for programs.
fn plugin_status(surroundings: &AgentEnvironment) -> (String, Value) {
    let found = settings::read_plugin_status(surroundings);
    let state = found.state.as_str();
    let mut human = format!("  plugin   {state:<14} {}\n", found.folder.display());
    if let Some(why) = &found.hindrance {
        let warning = "warning:".yellow();
        human.push_str(&format!("           {warning} it may not run: {why}\n"));
    }
    let json = json!({ "folder": found.folder, "state": state, "hindrance": found.hindrance });
    (human, json)
}

/// What one file of settings says, for people and for programs.
fn scope_status(
    agent: HookAgent,
    scope: HookScope,
    surroundings: &AgentEnvironment,
) -> (String, Value) {
    let found = settings::read_status(agent, scope, surroundings);
    let name = match scope {
        HookScope::User => "user",
        HookScope::Project => "project",
    };
    let state = found.state.as_str();
    let mut human = format!("  {name:<8} {state:<14} {}\n", found.path.display());
    let is_there = found.state.calls_us();
    let hindrance = is_there.then(|| settings::find_hindrance(agent, scope, surroundings));
    let hindrance = hindrance.flatten();
    let other = match scope {
        HookScope::User => None,
        HookScope::Project => settings::installed_path(agent, HookScope::User, surroundings),
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
            .map(|other| duplicate_warning(&other)),
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

impl From<settings::SettingsError> for Failure {
    fn from(refused: settings::SettingsError) -> Failure {
        Failure::from_error(FailureCode::Usage, &refused).help(match refused {
            settings::SettingsError::Broken { .. } | settings::SettingsError::Shape { .. } => {
                "nothing was written; fix the file and run the command again"
            }
            settings::SettingsError::Foreign { .. } => "move it away, then install again",
            settings::SettingsError::LeadsAway { .. } => {
                "remove the link, or install with --scope user"
            }
            settings::SettingsError::NoHome => "set HOME, or use --scope project",
            settings::SettingsError::Io { .. } => {
                "nothing was written; check the file and its folder"
            }
        })
    }
}
