//! The plugin that gives Claude Code our view in place of its own summary: its files, and the switch in
//! the settings without which it is not loaded.
//!
//! It stands among the user's skills, where Claude Code loads plugins by itself. A project cannot bring it
//! along: code that others wrote would decide what their model sees.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compact::hook::HookAgent;

use super::edit::SWITCH;
use super::{AgentEnvironment, HookState, SettingsChange, SettingsError, edit, read_settings};
use crate::args::HookScope;

/// The folder, named unlike any skill that people write.
const FOLDER: &str = "skills/compact-view";

/// The code, by which the plugin is recognised.
const CODE: &str = "hooks/view.ts";

/// The first version that was seen to take a view.
const OLDEST: [u32; 3] = [2, 1, 325];

/// What is found of the plugin.
#[derive(Debug)]
pub(crate) struct PluginStatus {
    /// Its folder.
    pub folder: PathBuf,
    /// Whether it is there.
    pub state: HookState,
    /// Why Claude Code does not use it, as far as can be seen.
    pub hindrance: Option<String>,
}

/// The files of the plugin as they are to be.
pub(crate) fn plan_plugin(around: &AgentEnvironment) -> Result<Vec<SettingsChange>, SettingsError> {
    let folder = plugin_folder(around)?;
    let code = folder.join(CODE);
    let is_free = !folder.exists() || is_ours(&code);
    if !is_free {
        return Err(SettingsError::Foreign { path: folder });
    }
    let files = plugin_files(around).into_iter();
    let planned = files.map(|(name, text)| plan_file(folder.join(name), Some(text)));
    planned.collect()
}

/// The removal of what is there of it; nothing where it is not, or is somebody else's.
pub(crate) fn plan_plugin_removal(
    around: &AgentEnvironment,
) -> Result<Vec<SettingsChange>, SettingsError> {
    let folder = plugin_folder(around)?;
    if !is_ours(&folder.join(CODE)) {
        return Ok(Vec::new());
    }
    let files = plugin_files(around).into_iter();
    let planned = files.map(|(name, _)| plan_file(folder.join(name), None));
    planned.collect()
}

/// Removes the folders that the removal left empty.
pub(crate) fn remove_plugin_folders(around: &AgentEnvironment) {
    if let Ok(folder) = plugin_folder(around) {
        let _ = fs::remove_dir(&folder);
        let _ = folder.parent().map(fs::remove_dir);
    }
}

/// What is there now.
pub(crate) fn read_plugin_status(around: &AgentEnvironment) -> PluginStatus {
    let folder = plugin_folder(around).unwrap_or_default();
    let state = plugin_state(around, &folder);
    let hindrance = state.calls_us().then(|| find_hindrance(around)).flatten();
    PluginStatus {
        folder,
        state,
        hindrance,
    }
}

/// Whether the plugin is there, of whichever version.
pub(super) fn is_installed(around: &AgentEnvironment) -> bool {
    plugin_folder(around).is_ok_and(|folder| is_ours(&folder.join(CODE)))
}

/// Why the installed Claude Code may not load it.
pub(crate) fn find_version_hindrance() -> Option<String> {
    let version = read_claude_version()?;
    let oldest = OLDEST.map(|part| part.to_string()).join(".");
    let is_old = parse_version(&version).is_some_and(|known| known < OLDEST);
    is_old.then(|| {
        format!(
            "Claude Code {version} may not load it: function hooks are early access, and were seen to \
             work from {oldest} on"
        )
    })
}

fn plugin_folder(around: &AgentEnvironment) -> Result<PathBuf, SettingsError> {
    let settings = around.hooks_file(HookAgent::ClaudeCode, HookScope::User)?;
    Ok(settings.parent().unwrap_or(Path::new("")).join(FOLDER))
}

fn plugin_files(around: &AgentEnvironment) -> [(&'static str, String); 3] {
    let command = around.hook_command(HookScope::User);
    let manifest = include_str!("../../../templates/claude-code/plugin.json");
    let hooks = include_str!("../../../templates/claude-code/hooks.json");
    [
        (CODE, edit::render_view_plugin(&command)),
        (".claude-plugin/plugin.json", manifest.to_owned()),
        ("hooks/hooks.json", hooks.to_owned()),
    ]
}

fn plan_file(path: PathBuf, after: Option<String>) -> Result<SettingsChange, SettingsError> {
    Ok(SettingsChange {
        before: read_settings(&path)?,
        path,
        after,
        record: None,
    })
}

fn is_ours(code: &Path) -> bool {
    fs::read_to_string(code).is_ok_and(|text| edit::is_plugin(&text))
}

fn plugin_state(around: &AgentEnvironment, folder: &Path) -> HookState {
    if !is_ours(&folder.join(CODE)) {
        return HookState::NotInstalled;
    }
    let files = plugin_files(around);
    let is_current = |(name, text): &(&str, String)| {
        fs::read_to_string(folder.join(name)).is_ok_and(|found| found == *text)
    };
    match files.iter().all(is_current) {
        true => HookState::Installed,
        false => HookState::Outdated,
    }
}

fn find_hindrance(around: &AgentEnvironment) -> Option<String> {
    let settings = around
        .hooks_file(HookAgent::ClaudeCode, HookScope::User)
        .ok()?;
    let text = read_settings(&settings).ok()?.unwrap_or_default();
    let is_on = around.is_variable_on(SWITCH) || edit::has_switch(&text);
    match is_on {
        true => find_version_hindrance(),
        false => Some(format!("env.{SWITCH} is missing in {}", settings.display())),
    }
}

/// What the Claude Code on the PATH calls its version.
fn read_claude_version() -> Option<String> {
    let mut asked = Command::new("claude");
    asked
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let said = String::from_utf8(asked.output().ok()?.stdout).ok()?;
    said.split_whitespace().next().map(str::to_owned)
}

fn parse_version(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(parse_version("2.1.325"), Some(OLDEST));
        assert!(parse_version("2.1.1000") > Some(OLDEST));
        assert!(parse_version("2.1.99") < Some(OLDEST));
        assert_eq!(parse_version("unknown"), None);
    }
}
