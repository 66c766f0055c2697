//! Where agents keep their settings, and whether those leave auto-compaction on.

use std::path::{Path, PathBuf};

use compact::hook::HookAgent;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstNode, CstRootNode};

use super::SettingsError;
use super::edit::BYTE_ORDER_MARK;
use crate::args::HookScope;
use crate::failure::{Failure, FailureCode};

/// What the environment says.
#[derive(Debug)]
pub(crate) struct AgentEnvironment {
    /// The folder of everything that hooks leave behind.
    pub hooks: PathBuf,
    home: Option<PathBuf>,
    folder: PathBuf,
    program: PathBuf,
    variable: fn(&str) -> Option<String>,
}

impl AgentEnvironment {
    /// Those of this process.
    pub(crate) fn from_process(hooks: PathBuf) -> Result<AgentEnvironment, Failure> {
        let failed = |error: std::io::Error| Failure::from_error(FailureCode::Unexpected, &error);
        Ok(AgentEnvironment {
            hooks,
            home: etcetera::home_dir().ok(),
            folder: std::env::current_dir().map_err(failed)?,
            program: std::env::current_exe().map_err(failed)?,
            variable: |name| std::env::var(name).ok().filter(|value| !value.is_empty()),
        })
    }

    /// The file that holds an agent's hooks.
    pub(crate) fn hooks_file(
        &self,
        agent: HookAgent,
        scope: HookScope,
    ) -> Result<PathBuf, SettingsError> {
        let name = match agent {
            HookAgent::ClaudeCode | HookAgent::GeminiCli => "settings.json",
            HookAgent::Codex => "hooks.json",
            HookAgent::OpenCode => "plugin/compact.js",
        };
        Ok(self.settings_folder(agent, scope)?.join(name))
    }

    /// The folder of the project.
    pub(super) fn project_folder(&self) -> &Path {
        &self.folder
    }

    /// How an agent is to call us: by path, but in a project, which others share, by name.
    pub(crate) fn hook_command(&self, scope: HookScope) -> String {
        let path = self.program.display().to_string();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
        match scope {
            HookScope::Project => "compactctl".to_owned(),
            HookScope::User if path.chars().all(plain) => path,
            HookScope::User => format!("'{}'", path.replace('\'', r"'\''")),
        }
    }

    /// Whether a variable of this process is set to anything but off.
    pub(super) fn is_variable_on(&self, name: &str) -> bool {
        let value = (self.variable)(name);
        value.is_some_and(|value| !matches!(value.as_str(), "0" | "false"))
    }

    fn settings_folder(
        &self,
        agent: HookAgent,
        scope: HookScope,
    ) -> Result<PathBuf, SettingsError> {
        let (variable, folder) = match agent {
            HookAgent::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude"),
            HookAgent::Codex => ("CODEX_HOME", ".codex"),
            HookAgent::GeminiCli => ("", ".gemini"),
            HookAgent::OpenCode => ("OPENCODE_CONFIG_DIR", ".opencode"),
        };
        if scope == HookScope::Project {
            return Ok(self.folder.join(folder));
        }
        if let Some(named) = (self.variable)(variable) {
            return Ok(PathBuf::from(named));
        }
        let home = self.home.as_ref().ok_or(SettingsError::NoHome)?;
        let config = || (self.variable)("XDG_CONFIG_HOME").map(PathBuf::from);
        Ok(match agent {
            HookAgent::OpenCode => config()
                .unwrap_or_else(|| home.join(".config"))
                .join("opencode"),
            _ => home.join(folder),
        })
    }
}

/// Whether an agent compacts by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AutoCompaction {
    /// It does, since nothing says otherwise.
    On,
    /// It does not; what says so.
    Off(String),
}

impl AutoCompaction {
    /// For programs.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            AutoCompaction::On => "on",
            AutoCompaction::Off(_) => "off",
        }
    }

    /// What says so.
    pub(crate) fn source(&self) -> Option<&str> {
        match self {
            AutoCompaction::On => None,
            AutoCompaction::Off(source) => Some(source),
        }
    }

    /// For people.
    pub(crate) fn describe(&self) -> String {
        match self {
            AutoCompaction::On => "on".to_owned(),
            AutoCompaction::Off(source) => format!("off ({source})"),
        }
    }

    /// What to tell a person who installs hooks that will rarely be called.
    pub(crate) fn warning(&self) -> Option<String> {
        let source = self.source()?;
        Some(format!(
            "auto-compaction is off ({source}): the hooks run only when you compact by hand"
        ))
    }
}

/// Looks for what turns an agent's own compaction off, in its variables and its settings. Codex has
/// nothing that does: a limit beyond the model's window is cut to the window.
pub(crate) fn auto_compaction(agent: HookAgent, around: &AgentEnvironment) -> AutoCompaction {
    let variables: &[&str] = match agent {
        HookAgent::ClaudeCode => &["DISABLE_AUTO_COMPACT", "DISABLE_COMPACT"],
        HookAgent::OpenCode => &["OPENCODE_DISABLE_AUTOCOMPACT"],
        HookAgent::Codex | HookAgent::GeminiCli => &[],
    };
    let mut variables = variables.iter();
    if let Some(name) = variables.find(|name| around.is_variable_on(name)) {
        return AutoCompaction::Off(format!("{name} is set"));
    }
    let mut files = switch_files(agent, around).into_iter();
    match files.find(|(path, keys)| is_off(path, keys)) {
        Some((path, keys)) => {
            AutoCompaction::Off(format!("{} in {}", keys.join("."), path.display()))
        }
        None => AutoCompaction::On,
    }
}

/// Files in which a key may turn compaction off.
fn switch_files(
    agent: HookAgent,
    around: &AgentEnvironment,
) -> Vec<(PathBuf, &'static [&'static str])> {
    let (names, keys): (&[&str], &'static [&'static str]) = match agent {
        HookAgent::ClaudeCode => (
            &["settings.json", "settings.local.json"],
            &["autoCompactEnabled"],
        ),
        HookAgent::GeminiCli => (&["settings.json"], &["model", "compressionThreshold"]),
        HookAgent::OpenCode => (
            &["opencode.json", "opencode.jsonc"],
            &["compaction", "auto"],
        ),
        HookAgent::Codex => (&[], &[]),
    };
    let folders = [HookScope::Project, HookScope::User]
        .into_iter()
        .filter_map(|scope| around.settings_folder(agent, scope).ok());
    let mut files: Vec<_> = folders
        .flat_map(|folder| names.iter().map(move |name| (folder.join(name), keys)))
        .collect();
    if agent == HookAgent::OpenCode {
        files.push((around.folder.join("opencode.json"), keys));
    }
    // Claude Code keeps what `/config` sets in a file of its own.
    if agent == HookAgent::ClaudeCode {
        let folder = (around.variable)("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        let folder = folder.or_else(|| around.home.clone());
        files.extend(folder.map(|folder| (folder.join(".claude.json"), keys)));
    }
    files
}

/// A switch that is false, or a threshold that is never reached.
fn is_off(path: &Path, keys: &[&str]) -> bool {
    let Ok(Some(text)) = super::read_settings(path) else {
        return false;
    };
    let text = text.trim_start_matches(BYTE_ORDER_MARK);
    let Ok(root) = CstRootNode::parse(text, &ParseOptions::default()) else {
        return false;
    };
    let mut node: Option<CstNode> = root.value();
    for key in keys {
        node = node
            .and_then(|node| node.as_object())
            .and_then(|object| object.get(key))
            .and_then(|property| property.value());
    }
    let Some(node) = node else { return false };
    let threshold = || node.to_string().parse::<f64>();
    match node.as_boolean_lit() {
        Some(switch) => !switch.value(),
        None => threshold().is_ok_and(|threshold| threshold >= 1.0),
    }
}

/// Why hooks that are installed do not run, as far as settings tell.
pub(crate) fn find_hindrance(
    agent: HookAgent,
    scope: HookScope,
    around: &AgentEnvironment,
) -> Option<String> {
    let folder = around.settings_folder(agent, scope).ok()?;
    let (name, keys): (&str, &[&str]) = match agent {
        HookAgent::Codex => return codex_hindrance(&around.hooks_file(agent, scope).ok()?, around),
        HookAgent::GeminiCli => ("settings.json", &["hooksConfig", "enabled"]),
        HookAgent::ClaudeCode | HookAgent::OpenCode => return None,
    };
    let path = folder.join(name);
    let said = format!("{} in {} is off", keys.join("."), path.display());
    is_off(&path, keys).then_some(said)
}

/// Codex runs hooks that a person trusted, unless they are off altogether. A hook that was changed
/// since must be trusted again, which only Codex knows.
fn codex_hindrance(hooks: &Path, around: &AgentEnvironment) -> Option<String> {
    let config = around
        .settings_folder(HookAgent::Codex, HookScope::User)
        .ok()?;
    let config = config.join("config.toml");
    let text = super::read_settings(&config).map(Option::unwrap_or_default);
    let table: toml::Table = match text.map(|text| text.parse()) {
        Ok(Ok(table)) => table,
        _ => return Some(format!("{} cannot be read", config.display())),
    };
    let within = |section: &str, key: &str| table.get(section)?.as_table()?.get(key).cloned();
    if within("features", "hooks") == Some(toml::Value::Boolean(false)) {
        return Some(format!("features.hooks in {} is false", config.display()));
    }
    let places = [hooks.to_owned(), hooks.canonicalize().unwrap_or_default()];
    let starts = places.map(|place| format!("{}:pre_compact:", place.display()));
    let state = within("hooks", "state");
    let is_ours = |key: &String| starts.iter().any(|start| key.starts_with(start));
    let has_hash = |value: &toml::Value| value.get("trusted_hash").is_some();
    let known = state.as_ref().and_then(toml::Value::as_table);
    let is_trusted =
        known.is_some_and(|state| state.iter().any(|(k, v)| is_ours(k) && has_hash(v)));
    (!is_trusted).then(|| "not trusted yet: start Codex and review them with /hooks".to_owned())
}

/// What a person must do beside installing.
pub(crate) fn install_notes(agent: HookAgent) -> &'static [&'static str] {
    match agent {
        HookAgent::ClaudeCode | HookAgent::GeminiCli | HookAgent::OpenCode => {
            &["restart the sessions that are running"]
        }
        HookAgent::Codex => {
            &["Codex runs hooks only after you trust them: start it and review them with /hooks"]
        }
    }
}
