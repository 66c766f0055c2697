//! The settings of agents: where they are, what we write into them, and how it is taken out again.
//!
//! A file is edited in place: comments, order and indentation of everything else stay. What stood
//! there before is kept, so that taking the hooks out of a file that nobody touched since gives the
//! same bytes back. A file that cannot be read as JSON is refused and left alone.

mod edit;
mod place;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use compact_adapters::shelf;
use compact_runtime::host::Agent;
use serde::{Deserialize, Serialize};

use crate::args::HookScope;
use crate::failure::Failure;
use crate::output::Target;

pub use place::{Surroundings, auto_compaction, hindrance, notes};

/// Why settings were not changed.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
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
    /// Nowhere to look for the user's settings.
    #[error("the user's home directory is not known")]
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
pub struct Change {
    /// The file.
    pub path: PathBuf,
    /// What is there.
    pub before: Option<String>,
    /// What will be there.
    pub after: Option<String>,
    /// What the record of the installation will be.
    record: Option<Record>,
}

/// What stood in a file before we wrote to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    before: Option<String>,
    after: String,
}

/// What is found in a file.
#[derive(Debug)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// Whether our hooks are there.
    pub state: State,
    /// Why the file cannot be read.
    pub error: Option<String>,
}

/// Whether hooks are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All of them.
    Installed,
    /// Some of them, or under another command: installing again mends it.
    Outdated,
    /// None.
    NotInstalled,
    /// The file cannot be read.
    Unreadable,
}

impl State {
    /// Whether any of our hooks is there.
    pub fn calls_us(self) -> bool {
        matches!(self, State::Installed | State::Outdated)
    }

    /// For programs and people.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Installed => "installed",
            State::Outdated => "outdated",
            State::NotInstalled => "not installed",
            State::Unreadable => "unreadable",
        }
    }
}

/// The settings with our hooks.
pub fn install(agent: Agent, scope: HookScope, around: &Surroundings) -> Result<Change, Refused> {
    let path = around.file(agent, scope)?;
    let before = read(&path)?;
    let command = around.command(scope);
    let after = match agent {
        Agent::OpenCode => edit::plugin(&command),
        _ => edit::insert(agent, &path, before.as_deref().unwrap_or(""), &command)?,
    };
    // Installed twice, the first state is still the one to go back to.
    let origin = match around.record(&path) {
        Some(known) if before.as_ref() == Some(&known.after) => known.before,
        _ => before.clone(),
    };
    let record = Record {
        before: origin,
        after: after.clone(),
    };
    Ok(Change {
        path,
        before,
        after: Some(after),
        record: Some(record),
    })
}

/// The settings without them.
pub fn uninstall(agent: Agent, scope: HookScope, around: &Surroundings) -> Result<Change, Refused> {
    let path = around.file(agent, scope)?;
    let before = read(&path)?;
    let after = match (&before, around.record(&path)) {
        (None, _) => None,
        (Some(text), Some(known)) if *text == known.after => known.before,
        (Some(text), _) if agent == Agent::OpenCode => {
            (!edit::is_plugin(text)).then(|| text.clone())
        }
        (Some(text), _) => Some(edit::remove(agent, &path, text)?),
    };
    Ok(Change {
        path,
        before,
        after,
        record: None,
    })
}

/// What is there now.
pub fn look(agent: Agent, scope: HookScope, around: &Surroundings) -> Found {
    let path = around.file(agent, scope).unwrap_or_default();
    let state = read(&path).and_then(|text| match text {
        None => Ok(State::NotInstalled),
        Some(text) => state(agent, &path, &text, &around.command(scope)),
    });
    let (state, error) = match state {
        Ok(state) => (state, None),
        Err(refused) => (State::Unreadable, Some(refused.to_string())),
    };
    Found { path, state, error }
}

/// The file that calls our hooks, if it does.
pub fn installed(agent: Agent, scope: HookScope, around: &Surroundings) -> Option<PathBuf> {
    let found = look(agent, scope, around);
    found.state.calls_us().then_some(found.path)
}

fn state(agent: Agent, path: &Path, text: &str, command: &str) -> Result<State, Refused> {
    if agent == Agent::OpenCode {
        return Ok(
            match (text == edit::plugin(command), edit::is_plugin(text)) {
                (true, _) => State::Installed,
                (_, true) => State::Outdated,
                _ => State::NotInstalled,
            },
        );
    }
    let without = edit::remove(agent, path, text)?;
    let with = edit::insert(agent, path, text, command)?;
    Ok(match (with == text, without == text) {
        (true, _) => State::Installed,
        (_, true) => State::NotInstalled,
        _ => State::Outdated,
    })
}

impl Change {
    /// True when the file stays as it is.
    pub fn is_empty(&self) -> bool {
        self.before == self.after
    }

    /// Writes the file, or removes it, and remembers what stood there.
    pub fn write(&self, around: &Surroundings) -> Result<(), Failure> {
        let refused = |error: io::Error| {
            Failure::from(Refused::Io {
                path: self.path.clone(),
                error,
            })
        };
        // The record comes first: without it the way back is lost.
        if let Some(record) = &self.record {
            around.set_record(&self.path, record).map_err(refused)?;
        }
        match &self.after {
            _ if self.is_empty() => {}
            Some(text) => {
                let folder = self.path.parent().unwrap_or(Path::new("."));
                fs::create_dir_all(folder).map_err(refused)?;
                Target::open(&self.path, None)?.write(text.clone().into_bytes())?;
            }
            None => {
                fs::remove_file(&self.path).map_err(refused)?;
                // A folder that was made for this file goes with it; any other is not empty.
                let _ = self.path.parent().map(fs::remove_dir);
            }
        }
        if self.record.is_none() {
            around.forget(&self.path);
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Option<String>, Refused> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Refused::Io {
            path: path.to_owned(),
            error,
        }),
    }
}

impl Surroundings {
    fn record(&self, path: &Path) -> Option<Record> {
        serde_json::from_slice(&fs::read(self.record_file(path)).ok()?).ok()
    }

    fn set_record(&self, path: &Path, record: &Record) -> io::Result<()> {
        shelf::save(&self.record_file(path), &[&serde_json::to_vec(record)?])
    }

    fn forget(&self, path: &Path) {
        let _ = fs::remove_file(self.record_file(path));
    }

    fn record_file(&self, path: &Path) -> PathBuf {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let name = format!("{}.json", shelf::repository_key(&path));
        self.hooks.join("installed").join(name)
    }
}
