//! Runs on disk: what each goes on from, what was told of it, and every line that its agent printed.
//!
//! ```text
//! runs/{run}/state.json          what the run goes on from; replaced whole at every step
//! runs/{run}/events.jsonl        what was told
//! runs/{run}/session-001.jsonl   the first session, as its agent printed it
//! runs/{run}/lock                held by the process that drives the run
//! ```
//!
//! Everything is its owner's alone: sessions may hold secrets.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use compact_core::error::Hinted;
use compact_core::message::{Entry, Role};
use compact_formats::stream::{AgentActivity, StreamDialect, StreamReader};
use compact_runtime::restart::RunState;
use serde::{Deserialize, Serialize};

use crate::agent::Launch;
use crate::private;
use crate::transcript::plain_name;

const RUNS: &str = "runs";

/// A run with how its agent is started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedRun {
    /// The command that starts the agent.
    pub command: String,
    /// What else it is given.
    pub arguments: Vec<String>,
    /// The working directory of the agent.
    pub folder: PathBuf,
    /// How it is judged, as far as somebody said so.
    pub judged: RunLimits,
    /// What the run goes on from.
    pub state: RunState,
}

/// The limits of a run; they hold until others are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLimits {
    /// The window, in tokens.
    pub window: Option<u64>,
    /// The share of it at which a session ends.
    pub threshold: Option<f64>,
    /// How long a checkpoint is waited for.
    pub checkpoint_timeout: Option<Duration>,
    /// How long an agent may say nothing.
    pub max_silence: Option<Duration>,
}

impl RunLimits {
    /// Returns these limits, and the earlier ones for those that are not set.
    #[must_use]
    pub fn or_earlier(self, earlier: RunLimits) -> RunLimits {
        RunLimits {
            window: self.window.or(earlier.window),
            threshold: self.threshold.or(earlier.threshold),
            checkpoint_timeout: self.checkpoint_timeout.or(earlier.checkpoint_timeout),
            max_silence: self.max_silence.or(earlier.max_silence),
        }
    }
}

/// Why a run cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.sentence())]
#[non_exhaustive]
pub enum RunFolderError {
    /// There is one of that name.
    Exists(String),
    /// There is no run of that name.
    Missing {
        /// The name that was given.
        name: String,
        /// The runs that there are, the latest first.
        known: Vec<String>,
    },
    /// Another process drives it.
    Busy(String),
    /// What is there cannot be read.
    Unreadable(PathBuf, #[source] serde_json::Error),
    /// The disk would not.
    Io(PathBuf, #[source] io::Error),
}

impl Hinted for RunFolderError {
    fn message(&self) -> String {
        match self {
            RunFolderError::Exists(name) => format!("run '{name}' already exists"),
            RunFolderError::Missing { name, .. } => format!("there is no run '{name}'"),
            RunFolderError::Busy(name) => format!("run '{name}' is in use by another process"),
            RunFolderError::Unreadable(path, _) => format!("{} cannot be read", path.display()),
            RunFolderError::Io(path, _) => {
                format!("{} cannot be written or read", path.display())
            }
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            RunFolderError::Exists(_) => "resume it, or choose another name".to_owned(),
            RunFolderError::Missing { known, .. } => describe_runs(known),
            RunFolderError::Busy(_) => "end that first".to_owned(),
            RunFolderError::Unreadable(..) => "it may be from another version".to_owned(),
            RunFolderError::Io(..) => "check its permissions and the free space".to_owned(),
        })
    }
}

fn describe_runs(known: &[String]) -> String {
    match known {
        [] => "none was started yet".to_owned(),
        known => {
            let some: Vec<&str> = known.iter().take(5).map(String::as_str).collect();
            format!("the latest are {}", some.join(", "))
        }
    }
}

/// The folder of one run, held by this process.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: File,
    session: Option<(u32, File)>,
}

impl RunFolder {
    /// Makes the folder of a new run.
    pub fn create(root: &Path, run_id: &str) -> Result<RunFolder, RunFolderError> {
        let path = root.join(RUNS).join(plain_name(run_id));
        if path.join("state.json").exists() {
            return Err(RunFolderError::Exists(run_id.to_owned()));
        }
        private::create_dir(&path).map_err(|error| RunFolderError::Io(path.clone(), error))?;
        RunFolder::lock(path, run_id)
    }

    /// Opens the folder of a run that was left, with what it goes on from.
    pub fn open(root: &Path, run_id: &str) -> Result<(RunFolder, SavedRun), RunFolderError> {
        let path = root.join(RUNS).join(plain_name(run_id));
        let file = path.join("state.json");
        let bytes = fs::read(&file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => RunFolderError::Missing {
                name: run_id.to_owned(),
                known: list_runs(root),
            },
            _ => RunFolderError::Io(file.clone(), error),
        })?;
        let folder = RunFolder::lock(path, run_id)?;
        match serde_json::from_slice(&bytes) {
            Ok(saved) => Ok((folder, saved)),
            Err(error) => Err(RunFolderError::Unreadable(file, error)),
        }
    }

    fn lock(path: PathBuf, run_id: &str) -> Result<RunFolder, RunFolderError> {
        let file = path.join("lock");
        let failed = |error| RunFolderError::Io(file.clone(), error);
        let lock =
            private::open(OpenOptions::new().create(true).append(true), &file).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RunFolderError::Busy(run_id.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        Ok(RunFolder {
            path,
            _lock: lock,
            session: None,
        })
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes a run that never began, and says so; one of which a line was heard stays.
    pub fn discard_if_unused(self) -> io::Result<bool> {
        let never_began = self.session.is_none();
        if never_began {
            fs::remove_dir_all(&self.path)?;
        }
        Ok(never_began)
    }

    /// Writes down what the run goes on from: all of it or nothing.
    pub fn save_state(&self, run: &SavedRun) -> io::Result<()> {
        let (staged, file) = (self.path.join("state.new"), self.path.join("state.json"));
        let mut options = OpenOptions::new();
        let mut writer = private::open(options.create(true).write(true).truncate(true), &staged)?;
        writer.write_all(&serde_json::to_vec(run)?)?;
        writer.sync_all()?;
        fs::rename(&staged, &file)?;
        private::sync_dir(&self.path)
    }

    /// Writes an event down.
    pub fn append_event(&self, event: &str) -> io::Result<()> {
        let file = self.path.join("events.jsonl");
        let mut writer = private::open(OpenOptions::new().create(true).append(true), &file)?;
        writer.write_all(format!("{event}\n").as_bytes())
    }

    /// Writes a line of the n-th session down.
    pub fn append_session_line(&mut self, session: u32, line: &str) -> io::Result<()> {
        let mut writer = match self.session.take() {
            Some((number, file)) if number == session => file,
            _ => {
                let file = self.path.join(format!("session-{session:03}.jsonl"));
                private::open(OpenOptions::new().create(true).append(true), &file)?
            }
        };
        let written = writer.write_all(format!("{line}\n").as_bytes());
        self.session = Some((session, writer));
        written
    }
}

/// One session that a run kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSession {
    /// The lines that the agent printed.
    pub file: PathBuf,
    /// The run that the session belongs to.
    pub run_id: String,
    /// How they are read.
    dialect: StreamDialect,
    /// What the agent was asked, in a run's first session.
    task: Option<String>,
}

/// The part of a run's state that is needed to find its sessions.
#[derive(Deserialize)]
struct SavedRunHead {
    command: String,
    state: RunTask,
}

#[derive(Deserialize)]
struct RunTask {
    run_id: String,
    task: String,
}

/// Returns every session that the runs below a data directory kept.
pub fn kept_sessions(root: &Path) -> Vec<KeptSession> {
    let runs = fs::read_dir(root.join(RUNS)).into_iter().flatten();
    let mut all: Vec<KeptSession> = runs
        .flatten()
        .flat_map(|run| sessions_of_run(&run.path()))
        .collect();
    all.sort_by(|a, b| a.file.cmp(&b.file));
    all
}

fn sessions_of_run(folder: &Path) -> Vec<KeptSession> {
    let head = fs::read(folder.join("state.json"));
    let head = head
        .ok()
        .and_then(|bytes| serde_json::from_slice::<SavedRunHead>(&bytes).ok());
    let Some(SavedRunHead { command, state }) = head else {
        return Vec::new();
    };
    let launch = Launch {
        command,
        ..Launch::default()
    };
    let dialect = launch.dialect();
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let sessions = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        let number = name.strip_prefix("session-")?.strip_suffix(".jsonl")?;
        let is_first = number.parse::<u32>().ok()? == 1;
        Some(KeptSession {
            file: file.path(),
            run_id: state.run_id.clone(),
            dialect,
            task: is_first.then(|| state.task.clone()),
        })
    });
    sessions.collect()
}

impl KeptSession {
    /// Returns what was said in it; lines that are not of the agent's stream say nothing.
    pub fn read_entries(&self) -> io::Result<Vec<Entry>> {
        let text = fs::read(&self.file)?;
        let mut reader = StreamReader::new(self.dialect);
        let task = self.task.iter();
        let mut entries: Vec<Entry> = task
            .map(|task| Entry::from_text("task", Role::User, task))
            .collect();
        for line in String::from_utf8_lossy(&text).lines() {
            let told = reader.read_line(line).unwrap_or_default();
            entries.extend(told.into_iter().filter_map(|told| match told {
                AgentActivity::Said(entry) => Some(entry),
                _ => None,
            }));
        }
        Ok(entries)
    }
}

/// Returns the runs that there are, the latest first.
fn list_runs(root: &Path) -> Vec<String> {
    let found = fs::read_dir(root.join(RUNS))
        .into_iter()
        .flatten()
        .flatten();
    let mut runs: Vec<_> = found
        .filter_map(|entry| {
            let state = entry.path().join("state.json").metadata().ok()?;
            let name = entry.file_name().into_string().ok()?;
            Some((state.modified().ok()?, name))
        })
        .collect();
    runs.sort();
    runs.into_iter().rev().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests;
