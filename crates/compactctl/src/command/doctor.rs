//! `doctor`: whether this installation can do its work, one line a check.
//!
//! It reads the settings, the store and what agents are set to, writes one unnamed file where archives go, and
//! compacts a short conversation in memory. It mends nothing: a line that is not `ok` says what would.

use std::path::Path;

use compact::Compact;
use compact::hook::{HOOKS_FOLDER, HookAgent};
use compact::manager::is_measure;
use owo_colors::OwoColorize;
use serde::Serialize;
use serde_json::{Value, json};

use super::hook::{is_on_path, program_of};
use crate::answer::CommandAnswer;
use crate::app::{self, App, load_hook_config};
use crate::args::{GlobalArgs, HookScope};
use crate::failure::{Failure, FailureCode};
use crate::host::settings::{self, AgentEnvironment, HookState, HookStatus};
use crate::report::number::{format_count, group_digits};
use crate::report::text::printable;

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckStatus {
    /// Nothing to do.
    Ok,
    /// It works, but not as somebody may expect.
    Warning,
    /// It does not work.
    Failed,
}

/// What a check found.
#[derive(Debug, Serialize)]
struct CheckResult {
    name: String,
    status: CheckStatus,
    message: String,
    /// What to do about it.
    help: Option<String>,
}

impl CheckResult {
    fn new(name: impl Into<String>, status: CheckStatus, message: impl Into<String>) -> Self {
        CheckResult {
            name: name.into(),
            status,
            message: message.into(),
            help: None,
        }
    }

    fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn from_failure(name: &str, failure: &Failure) -> Self {
        CheckResult {
            help: failure.advice().map(str::to_owned),
            ..CheckResult::new(name, CheckStatus::Failed, failure.message())
        }
    }
}

/// Checks everything.
pub(super) fn run(global: &GlobalArgs) -> Result<CommandAnswer, Failure> {
    let mut checks = vec![check_engine()];
    match App::load(global) {
        Ok(app) => {
            checks.push(describe_settings(&app));
            checks.push(check_data_directory(app.data_directory()));
            checks.push(
                check_store(&app)
                    .unwrap_or_else(|failure| CheckResult::from_failure("store", &failure)),
            );
        }
        Err(failure) => checks.push(CheckResult::from_failure("settings", &failure)),
    }
    match load_hook_config(global) {
        Ok(config) => {
            let around = AgentEnvironment::from_process(config.root.join(HOOKS_FOLDER))?;
            checks.extend(HookAgent::ALL.map(|agent| check_agent(agent, &around)));
        }
        Err(failure) => checks.push(CheckResult::from_failure("hooks", &failure)),
    }
    let is_broken = checks
        .iter()
        .any(|check| check.status == CheckStatus::Failed);
    let code = match is_broken {
        true => FailureCode::Check as u8,
        false => 0,
    };
    Ok(CommandAnswer::new(report_json(&checks, !is_broken), render(&checks)).with_code(code))
}

/// Compacts a conversation in memory, and holds what comes back against it.
fn check_engine() -> CheckResult {
    let turn = |n: u32| {
        [
            json!({"role": "user", "content": format!("Measure run {n} of src/run_{n}.rs.")}),
            json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
        ]
    };
    let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    let tried = app::block_on(async {
        let compact = Compact::builder().in_memory().window(20_000).build()?;
        let prompt = compact.session("doctor").compact(&messages, None).await?;
        let original = compact.restore("doctor").await?;
        let restored: Option<Vec<Value>> = serde_json::from_slice(&original.bytes).ok();
        let Some(receipt) = prompt.receipt() else {
            return Err(Failure::new(FailureCode::Check, "nothing was compacted"));
        };
        let report = compact.verify(&receipt.receipt_id).await?;
        if restored.as_ref() != Some(&messages) || !report.mismatches.is_empty() {
            let message = "a conversation did not come back as it was";
            return Err(Failure::new(FailureCode::Check, message));
        }
        Ok(format!(
            "version {}: {} tokens compacted to {}, verified and restored",
            env!("CARGO_PKG_VERSION"),
            group_digits(receipt.tokens_before.0),
            group_digits(receipt.tokens_after.0)
        ))
    });
    match tried {
        Ok(message) => CheckResult::new("engine", CheckStatus::Ok, message),
        Err(failure) => CheckResult::from_failure("engine", &failure),
    }
}

fn describe_settings(app: &App) -> CheckResult {
    let files: Vec<String> = app.config_files().iter().map(ToString::to_string).collect();
    let message = match files.is_empty() {
        true => "no files: defaults and the environment".to_owned(),
        false => files.join(", "),
    };
    CheckResult::new("settings", CheckStatus::Ok, message)
}

/// Checks that archives can be written, and that others cannot read them.
fn check_data_directory(directory: &Path) -> CheckResult {
    const NAME: &str = "data directory";
    let shown = directory.display();
    // What is not there yet is made by the first compaction, in the nearest folder that is there.
    let place = directory.ancestors().find(|folder| folder.is_dir());
    let written = tempfile::tempfile_in(place.unwrap_or(directory));
    if let Err(error) = written {
        let message = format!("{shown} cannot be written: {error}");
        return CheckResult::new(NAME, CheckStatus::Failed, message)
            .with_help("make it writable, or set COMPACT_STORAGE_PATH to another directory");
    }
    if place == Some(directory) && is_open_to_others(directory) {
        let message = format!("{shown} can be read by other users, and holds whole conversations");
        return CheckResult::new(NAME, CheckStatus::Warning, message)
            .with_help(format!("chmod 700 {shown}"));
    }
    CheckResult::new(NAME, CheckStatus::Ok, format!("{shown} can be written"))
}

#[cfg(unix)]
fn is_open_to_others(directory: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let found = directory.metadata();
    found.is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}

fn check_store(app: &App) -> Result<CheckResult, Failure> {
    let (archive, catalog) = (
        app.stores().archive_location(),
        app.stores().catalog_location(),
    );
    if !app.compact().has_store() {
        let message = format!("nothing is archived yet in {archive}");
        return Ok(CheckResult::new("store", CheckStatus::Ok, message));
    }
    let (sessions, packs) = app.block_on(async {
        let store = app.compact().store_as_is()?;
        let sessions = store.catalog.sessions().await?.into_iter();
        let sessions = sessions
            .filter(|info| !is_measure(&info.session_id))
            .count();
        Ok((sessions, store.archive.list().await?.len()))
    })?;
    let message = format!(
        "{} in {catalog}, {} in {archive}; `compactctl archive verify` reads all of them",
        format_count(sessions as u64, "session", "sessions"),
        format_count(packs as u64, "pack", "packs"),
    );
    Ok(CheckResult::new("store", CheckStatus::Ok, message))
}

/// Checks what an agent is set to: which hooks it calls, and whether it runs them.
fn check_agent(agent: HookAgent, around: &AgentEnvironment) -> CheckResult {
    let name = format!("hooks of {}", agent.name());
    let scopes = [HookScope::User, HookScope::Project];
    let places = scopes.map(|scope| (scope, settings::read_status(agent, scope, around)));
    let mut calling = places.iter().filter(|(_, found)| found.state.calls_us());
    let program = program_of(agent);
    if let Some(problem) = places.iter().find_map(|(_, found)| broken_file(found)) {
        return CheckResult::new(name, CheckStatus::Warning, problem)
            .with_help(format!("compactctl hook install --agent {}", agent.name()));
    }
    let Some((scope, found)) = calling.next() else {
        let check = CheckResult::new(name, CheckStatus::Ok, "not installed");
        return match is_on_path(program) {
            true => check.with_help(format!("compactctl hook install --agent {}", agent.name())),
            false => check,
        };
    };
    if let Some(why) = settings::find_hindrance(agent, *scope, around) {
        return CheckResult::new(
            name,
            CheckStatus::Warning,
            format!("they do not run: {why}"),
        );
    }
    if let Some((_, other)) = calling.next().filter(|(_, other)| other.path != found.path) {
        let message = format!("{} calls them too", other.path.display());
        return CheckResult::new(name, CheckStatus::Warning, message)
            .with_help("uninstall one of both: each event is handled twice");
    }
    let message = format!("installed in {}", found.path.display());
    match is_on_path(program) {
        true => CheckResult::new(name, CheckStatus::Ok, message),
        false => CheckResult::new(
            name,
            CheckStatus::Warning,
            format!("{message}, but there is no `{program}` on the PATH"),
        ),
    }
}

/// Returns what is wrong with a file of settings.
fn broken_file(found: &HookStatus) -> Option<String> {
    let path = found.path.display();
    match found.state {
        HookState::Outdated => Some(format!("{path} calls hooks of another installation")),
        HookState::Unreadable => {
            let why = found.error.as_deref().unwrap_or("no reason is known");
            Some(format!("{path} cannot be read: {why}"))
        }
        HookState::Installed | HookState::NotInstalled => None,
    }
}

fn report_json(checks: &[CheckResult], is_ok: bool) -> Value {
    json!({ "ok": is_ok, "version": env!("CARGO_PKG_VERSION"), "checks": checks })
}

fn render(checks: &[CheckResult]) -> String {
    let mut text = String::new();
    for check in checks {
        let status = match check.status {
            CheckStatus::Ok => format!("{:<7}", "ok").green().to_string(),
            CheckStatus::Warning => format!("{:<7}", "warning").yellow().to_string(),
            CheckStatus::Failed => format!("{:<7}", "failed").red().to_string(),
        };
        let (name, message) = (&check.name, printable(&check.message));
        text.push_str(&format!("{status}  {name:<20}  {message}\n"));
        if let Some(help) = &check.help {
            text.push_str(&format!(
                "{:<31}{} {}\n",
                "",
                "help:".cyan(),
                printable(help)
            ));
        }
    }
    text
}
