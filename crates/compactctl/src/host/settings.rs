//! The settings of agents: where they are, what we write into them, and how it is taken out again.
//!
//! A file is edited in place: comments, order and indentation of everything else stay. What stood
//! there before is kept, so that taking the hooks out of a file that nobody touched since gives the
//! same bytes back. A file that cannot be read as JSON is refused and left alone.

mod edit;
mod location;
mod plugin;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use compact::hook;
use compact::hook::HookAgent;
use serde::{Deserialize, Serialize};

use crate::args::HookScope;
use crate::failure::Failure;
use crate::output::OutputTarget;

pub(crate) use location::{AgentEnvironment, auto_compaction, find_hindrance, install_notes};
pub(crate) use plugin::{
    find_version_hindrance, plan_plugin, plan_plugin_removal, read_plugin_status,
    remove_plugin_folders,
};

/// Why settings were not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// Not JSON.
    #[error("{}:{line}:{column}: {message}", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// JSON of another shape.
    #[error("{}: {field} is not {expected}", .path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// Which part.
        field: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A file of ours would take the place of somebody else's.
    #[error("{} is not the plugin that `hook install` writes", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// What is written would appear elsewhere.
    #[error("{} leads to {}", .path.display(), .target.display())]
    LeadsAway {
        /// The file.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// Nowhere to look for the user's settings.
    #[error("cannot find the user's home directory")]
    NoHome,
    /// The file could not be read or written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A file as it is and as it will be; `None` is no file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SettingsChange {
    /// The file.
    pub path: PathBuf,
    /// What is there.
    pub before: Option<String>,
    /// What will be there.
    pub after: Option<String>,
    /// What the record of the installation will be.
    record: Option<InstallRecord>,
}

/// What stood in a file before we wrote to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct InstallRecord {
    before: Option<String>,
    after: String,
}

/// What is found in a file.
#[derive(Debug)]
pub(crate) struct HookStatus {
    /// The file.
    pub path: PathBuf,
    /// Whether our hooks are there.
    pub state: HookState,
    /// Why the file cannot be read.
    pub error: Option<String>,
}

/// Whether hooks are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookState {
    /// All of them.
    Installed,
    /// Some of them, or under another command: installing again mends it.
    Outdated,
    /// None.
    NotInstalled,
    /// The file cannot be read.
    Unreadable,
}

impl HookState {
    /// Whether any of our hooks is there.
    pub(crate) fn calls_us(self) -> bool {
        matches!(self, HookState::Installed | HookState::Outdated)
    }

    /// For programs and people.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            HookState::Installed => "installed",
            HookState::Outdated => "outdated",
            HookState::NotInstalled => "not installed",
            HookState::Unreadable => "unreadable",
        }
    }
}

/// The settings with our hooks.
pub(crate) fn plan_install(
    agent: HookAgent,
    scope: HookScope,
    around: &AgentEnvironment,
) -> Result<SettingsChange, SettingsError> {
    let path = around.hooks_file(agent, scope)?;
    around.check_place(agent, scope, &path)?;
    let before = read_settings(&path)?;
    let command = around.hook_command(scope);
    let after = match agent {
        HookAgent::OpenCode => match &before {
            Some(text) if !edit::is_plugin(text) => return Err(SettingsError::Foreign { path }),
            _ => edit::render_plugin(&command),
        },
        _ => edit::insert_hooks(agent, &path, before.as_deref().unwrap_or(""), &command)?,
    };
    // Installed twice, the first state is still the one to go back to.
    let origin = match around.read_record(&path) {
        Some(known) if before.as_ref() == Some(&known.after) => known.before,
        _ => before.clone(),
    };
    let record = InstallRecord {
        before: origin,
        after: after.clone(),
    };
    Ok(SettingsChange {
        path,
        before,
        after: Some(after),
        record: Some(record),
    })
}

/// The settings without them.
pub(crate) fn plan_uninstall(
    agent: HookAgent,
    scope: HookScope,
    around: &AgentEnvironment,
) -> Result<SettingsChange, SettingsError> {
    let path = around.hooks_file(agent, scope)?;
    around.check_place(agent, scope, &path)?;
    let before = read_settings(&path)?;
    let after = match (&before, around.read_record(&path)) {
        (None, _) => None,
        (Some(text), Some(known)) if *text == known.after => known.before,
        (Some(text), _) if agent == HookAgent::OpenCode => {
            (!edit::is_plugin(text)).then(|| text.clone())
        }
        (Some(text), known) => {
            let text = edit::remove_hooks(agent, &path, text)?;
            let was_there = known.and_then(|known| known.before);
            let was_there = was_there.is_some_and(|before| edit::has_switch(&before));
            let goes = agent == HookAgent::ClaudeCode && plugin::is_installed(around) && !was_there;
            Some(match goes {
                true => edit::remove_switch(&path, &text)?,
                false => text,
            })
        }
    };
    Ok(SettingsChange {
        path,
        before,
        after,
        record: None,
    })
}

/// What is there now.
pub(crate) fn read_status(
    agent: HookAgent,
    scope: HookScope,
    around: &AgentEnvironment,
) -> HookStatus {
    let path = around.hooks_file(agent, scope).unwrap_or_default();
    let state = read_settings(&path).and_then(|text| match text {
        None => Ok(HookState::NotInstalled),
        Some(text) => find_state(agent, &path, &text, &around.hook_command(scope)),
    });
    let (state, error) = match state {
        Ok(state) => (state, None),
        Err(refused) => (HookState::Unreadable, Some(refused.to_string())),
    };
    HookStatus { path, state, error }
}

/// The file that calls our hooks, if it does.
pub(crate) fn installed_path(
    agent: HookAgent,
    scope: HookScope,
    around: &AgentEnvironment,
) -> Option<PathBuf> {
    let found = read_status(agent, scope, around);
    found.state.calls_us().then_some(found.path)
}

fn find_state(
    agent: HookAgent,
    path: &Path,
    text: &str,
    command: &str,
) -> Result<HookState, SettingsError> {
    if agent == HookAgent::OpenCode {
        return Ok(
            match (text == edit::render_plugin(command), edit::is_plugin(text)) {
                (true, _) => HookState::Installed,
                (_, true) => HookState::Outdated,
                _ => HookState::NotInstalled,
            },
        );
    }
    let without = edit::remove_hooks(agent, path, text)?;
    let with = edit::insert_hooks(agent, path, text, command)?;
    Ok(match (with == text, without == text) {
        (true, _) => HookState::Installed,
        (_, true) => HookState::NotInstalled,
        _ => HookState::Outdated,
    })
}

impl SettingsChange {
    /// The same settings of Claude Code with the switch that lets it load our plugin.
    pub(crate) fn with_plugin_switch(mut self) -> Result<SettingsChange, SettingsError> {
        let text = edit::insert_switch(&self.path, self.after.as_deref().unwrap_or_default())?;
        if let Some(record) = &mut self.record {
            record.after.clone_from(&text);
        }
        self.after = Some(text);
        Ok(self)
    }

    /// True when the file stays as it is.
    pub(crate) fn is_empty(&self) -> bool {
        self.before == self.after
    }

    /// Writes the file, or removes it, and remembers what stood there.
    pub(crate) fn write(&self, around: &AgentEnvironment) -> Result<(), Failure> {
        let refused = |error: io::Error| {
            Failure::from(SettingsError::Io {
                path: self.path.clone(),
                error,
            })
        };
        // The record comes first: without it the way back is lost.
        if let Some(record) = &self.record {
            around.write_record(&self.path, record).map_err(refused)?;
        }
        match &self.after {
            _ if self.is_empty() => {}
            Some(text) => {
                let folder = self.path.parent().unwrap_or(Path::new("."));
                create_settings_folder(folder).map_err(refused)?;
                OutputTarget::open(&self.path, None)?.write(text.clone().into_bytes())?;
            }
            None => {
                fs::remove_file(&self.path).map_err(refused)?;
                // A folder that was made for this file goes with it; any other is not empty.
                let _ = self.path.parent().map(fs::remove_dir);
            }
        }
        if self.record.is_none() {
            around.remove_record(&self.path);
        }
        Ok(())
    }
}

/// Creates a folder of an agent, which nobody else can write to whatever the umask says.
fn create_settings_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o755);
    builder.recursive(true).create(folder)
}

/// The text of a settings file; none where nothing has its name. A link that leads nowhere is a name that somebody
/// gave, and what is no file may never end.
fn read_settings(path: &Path) -> Result<Option<String>, SettingsError> {
    let is_nothing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let text = match fs::metadata(path) {
        Ok(found) if found.is_file() => fs::read_to_string(path),
        Ok(_) => Err(io::Error::other("it is not a regular file")),
        Err(error) if is_nothing(&error) => match fs::read_link(path) {
            Ok(target) => Err(io::Error::other(format!(
                "it leads to {}, which is not there",
                target.display()
            ))),
            Err(_) => return Ok(None),
        },
        Err(error) => Err(error),
    };
    text.map(Some).map_err(|error| SettingsError::Io {
        path: path.to_owned(),
        error,
    })
}

impl AgentEnvironment {
    /// Refuses a file that is elsewhere than it says. A person may keep the settings of an agent behind a
    /// link, and they are edited there; a repository's links may lead to anything, and a plugin takes the
    /// whole place of what is there.
    fn check_place(
        &self,
        agent: HookAgent,
        scope: HookScope,
        path: &Path,
    ) -> Result<(), SettingsError> {
        let leads_away = |target| SettingsError::LeadsAway {
            path: path.to_owned(),
            target,
        };
        if agent == HookAgent::OpenCode
            && let Ok(target) = fs::read_link(path)
        {
            return Err(leads_away(target));
        }
        if scope == HookScope::User {
            return Ok(());
        }
        let project = self.project_folder().canonicalize();
        let there = path
            .ancestors()
            .find(|part| fs::symlink_metadata(part).is_ok());
        let target = there.map(|part| match part.canonicalize() {
            Ok(target) => target,
            Err(_) => fs::read_link(part).unwrap_or_default(),
        });
        match (project, target) {
            (Ok(project), Some(target)) if !target.starts_with(&project) => Err(leads_away(target)),
            _ => Ok(()),
        }
    }

    fn read_record(&self, path: &Path) -> Option<InstallRecord> {
        serde_json::from_slice(&fs::read(self.record_path(path)).ok()?).ok()
    }

    fn write_record(&self, path: &Path, record: &InstallRecord) -> io::Result<()> {
        hook::write_atomically(&self.record_path(path), &[&serde_json::to_vec(record)?])
    }

    fn remove_record(&self, path: &Path) {
        let _ = fs::remove_file(self.record_path(path));
    }

    fn record_path(&self, path: &Path) -> PathBuf {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let name = format!("{}.json", hook::repository_key(&path));
        self.hooks.join("installed").join(name)
    }
}
