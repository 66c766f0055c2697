//! Agents as programs: Claude Code, Codex, and any other that speaks the small protocol of
//! `docs/run.md`.
//!
//! Each runs in a process group of its own, so that it ends with everything that it started. None is
//! allowed to compact by itself: two who keep a context small would each undo the other's work.

mod claude_code;
mod codex;
mod line_agent;
mod process;
#[cfg(unix)]
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use compact_formats::stream::StreamDialect;
use compact_runtime::port::agent::AgentProgram;

pub use claude_code::ClaudeCodeAgent;
pub use codex::CodexAgent;
pub use line_agent::LineAgent;

/// The command, folder and arguments that an agent is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// A program on the path, the path of one, or a command line for the shell.
    pub command: String,
    /// What else it is given, in every session.
    pub arguments: Vec<String>,
    /// What is added to its environment, in every session.
    pub environment: Vec<(String, String)>,
    /// Where it works; unset, here.
    pub folder: Option<PathBuf>,
}

impl Launch {
    /// Returns how the agent speaks, by the name of its program.
    pub fn dialect(&self) -> StreamDialect {
        let name = Path::new(&self.command).file_name();
        match name.and_then(|name| name.to_str()) {
            Some("claude") => StreamDialect::ClaudeCode,
            Some("codex") => StreamDialect::Codex,
            _ => StreamDialect::Lines,
        }
    }

    /// Converts the launch to the agent that it names.
    pub fn into_agent(self) -> Box<dyn AgentProgram> {
        match self.dialect() {
            StreamDialect::ClaudeCode => Box::new(ClaudeCodeAgent(self)),
            StreamDialect::Codex => Box::new(CodexAgent(self)),
            StreamDialect::Lines => Box::new(LineAgent(self)),
        }
    }

    /// Returns the program and its arguments. A command with blanks that is no file is the shell's to read.
    fn resolve_program(&self, arguments: &[&str]) -> (OsString, Vec<OsString>) {
        let given = arguments.iter().map(OsString::from);
        if !self.command.contains(char::is_whitespace) || Path::new(&self.command).exists() {
            return (OsString::from(&self.command), given.collect());
        }
        let script = format!("exec {} \"$@\"", self.command);
        let head = ["-c".into(), script.into(), "sh".into()];
        ("sh".into(), head.into_iter().chain(given).collect())
    }
}
