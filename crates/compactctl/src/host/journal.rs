//! The log of the hooks: one file in the data directory, and stderr.
//!
//! It is the only place where a hook that failed says so, and it must not fail itself.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use compact_adapters::private;
use compact_runtime::host::Agent;
use jiff::Timestamp;

use crate::output;

/// A log that has grown to this many bytes is put aside; the one before it goes.
const LONGEST: u64 = 1 << 20;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// All is well.
    Info,
    /// Something was left undone.
    Warning,
    /// Something failed.
    Error,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Level::Info => "INFO",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
        }
    }
}

/// Where lines go.
#[derive(Clone, Debug)]
pub struct Journal {
    file: Option<PathBuf>,
    stderr: Stderr,
}

/// What stderr hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stderr {
    Everything,
    WhatIsNotInTheFile,
}

impl Journal {
    /// A log in this folder, or on stderr alone.
    pub fn new(folder: Option<&Path>) -> Journal {
        Journal {
            file: folder.map(|folder| folder.join("hook.log")),
            stderr: Stderr::Everything,
        }
    }

    /// The same for an agent: Gemini CLI shows stderr to the person who works with it.
    pub fn of(&self, agent: Agent) -> Journal {
        let stderr = match agent {
            Agent::GeminiCli => Stderr::WhatIsNotInTheFile,
            Agent::ClaudeCode | Agent::Codex | Agent::OpenCode => Stderr::Everything,
        };
        Journal {
            stderr,
            ..self.clone()
        }
    }

    /// Writes one line.
    pub fn line(&self, level: Level, message: &str) {
        let message: String = message
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let line = format!("{} {} {message}\n", Timestamp::now(), level.as_str());
        // A disk that is full cannot be told about on the disk.
        let is_written = match &self.file {
            Some(file) => append(file, &line).is_ok(),
            None => false,
        };
        if self.stderr == Stderr::Everything || !is_written {
            output::aside(&format!("{}: {message}\n", level.as_str()));
        }
    }
}

fn append(file: &Path, line: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        private::create_dir(folder)?;
    }
    if fs::metadata(file).is_ok_and(|found| found.len() > LONGEST) {
        fs::rename(file, file.with_extension("log.1"))?;
    }
    private::open(fs::File::options().append(true).create(true), file)?.write_all(line.as_bytes())
}
