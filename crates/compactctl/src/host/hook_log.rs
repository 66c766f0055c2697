//! The log of the hooks: one file in the data directory, and stderr.
//!
//! It is the only place where a hook that failed says so, and it must not fail itself.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use compact::clock::{Clock, SystemClock};
use compact::hook::{HookAgent, private};

use crate::output;

/// A log that has grown to this many bytes is put aside; the one before it goes.
const LONGEST: u64 = 1 << 20;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogLevel {
    /// All is well.
    Info,
    /// Something was left undone.
    Warning,
    /// Something failed.
    Error,
}

impl LogLevel {
    fn as_str(self) -> &'static str {
        match self {
            LogLevel::Info => "INFO",
            LogLevel::Warning => "WARNING",
            LogLevel::Error => "ERROR",
        }
    }
}

/// Where lines go.
#[derive(Clone, Debug)]
pub(crate) struct HookLog {
    file: Option<PathBuf>,
    stderr: StderrUse,
}

/// What stderr hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StderrUse {
    Everything,
    WhatIsNotInTheFile,
}

impl HookLog {
    /// A log in this folder, or on stderr alone.
    pub(crate) fn new(folder: Option<&Path>) -> HookLog {
        HookLog {
            file: folder.map(|folder| folder.join("hook.log")),
            stderr: StderrUse::Everything,
        }
    }

    /// The same for an agent: Gemini CLI shows stderr to the person who works with it.
    pub(crate) fn for_agent(&self, agent: HookAgent) -> HookLog {
        let stderr = match agent {
            HookAgent::GeminiCli => StderrUse::WhatIsNotInTheFile,
            HookAgent::ClaudeCode | HookAgent::Codex | HookAgent::OpenCode => StderrUse::Everything,
        };
        HookLog {
            stderr,
            ..self.clone()
        }
    }

    /// Writes one line.
    pub(crate) fn write_line(&self, level: LogLevel, message: &str) {
        let message: String = message
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let line = format!("{} {} {message}\n", SystemClock.now(), level.as_str());
        // A disk that is full cannot be told about on the disk.
        let is_written = match &self.file {
            Some(file) => append_line(file, &line).is_ok(),
            None => false,
        };
        if self.stderr == StderrUse::Everything || !is_written {
            output::print_stderr(&format!("{}: {message}\n", level.as_str()));
        }
    }
}

fn append_line(file: &Path, line: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        private::create_dir(folder)?;
    }
    if fs::metadata(file).is_ok_and(|found| found.len() > LONGEST) {
        fs::rename(file, file.with_extension("log.1"))?;
    }
    private::open(fs::File::options().append(true).create(true), file)?.write_all(line.as_bytes())
}
