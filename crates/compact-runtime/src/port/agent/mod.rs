//! An agent that works by itself: a program with a model, tools and sessions of its own.
//!
//! A session is opened with a prompt, heard until its turn ends, told more, interrupted, closed. The
//! port knows nothing of pressure or checkpoints; an adapter knows nothing else of its agent than how
//! to start it, read it and end it.

pub mod conformance;
mod scripted;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use compact_core::error::Hinted;
use compact_formats::stream::{AgentActivity, UnreadableLine};

pub use scripted::{AgentStep, ScriptedAgent, ScriptedPrompt};

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionOpening<'a> {
    /// With an empty context.
    Fresh,
    /// With the context of a session that was closed.
    Resumed(&'a str),
}

/// One line of an agent, with what it tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentOutput {
    /// The line as it was printed; none when something else than a line told it.
    pub line: Option<String>,
    /// What it tells.
    pub told: Vec<AgentActivity>,
}

/// Why an agent does not work.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.sentence())]
#[non_exhaustive]
pub enum AgentError {
    /// No such program.
    Missing(String),
    /// A file that is no program.
    NotExecutable(String),
    /// It ended in the middle of a turn.
    Exited {
        /// How.
        status: String,
        /// The last it said on its way out.
        said: String,
    },
    /// It does not speak as expected.
    #[error(transparent)]
    Unreadable(#[from] UnreadableLine),
    /// It has no such session.
    NoSession(String),
    /// The system would not.
    Io(#[from] std::io::Error),
}

impl Hinted for AgentError {
    fn message(&self) -> String {
        match self {
            AgentError::Missing(program) => format!("there is no program '{program}'"),
            AgentError::NotExecutable(program) => format!("'{program}' cannot be executed"),
            AgentError::Exited { status, said } => format!(
                "the agent ended with {status} in the middle of its work{}",
                because(said)
            ),
            AgentError::Unreadable(error) => error.to_string(),
            AgentError::NoSession(session) => {
                format!("the agent cannot take up session '{session}' again")
            }
            AgentError::Io(_) => "the agent cannot be reached".to_owned(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            AgentError::Missing(_) => Some("install it, or give its path".to_owned()),
            AgentError::NotExecutable(_) => Some("give the path of a program".to_owned()),
            _ => None,
        }
    }
}

fn because(said: &str) -> String {
    match said.trim() {
        "" => String::new(),
        said => format!(": {said}"),
    }
}

/// Opens sessions.
#[async_trait]
pub trait AgentProgram: Send + Sync {
    /// What it is, for people.
    fn name(&self) -> &str;

    /// Whether a session that was closed can be taken up again.
    fn can_resume(&self) -> bool;

    /// Opens a session with the prompt of its first turn.
    async fn open(
        &self,
        opening: SessionOpening<'_>,
        prompt: &str,
    ) -> Result<Box<dyn AgentSession>, AgentError>;
}

/// One session. Dropping it ends everything that it started.
#[async_trait]
pub trait AgentSession: Send {
    /// Waits for the next line of a running turn. Dropping the future loses nothing.
    async fn next(&mut self) -> Result<AgentOutput, AgentError>;

    /// Begins another turn, once the last has ended.
    async fn send_prompt(&mut self, prompt: &str) -> Result<(), AgentError>;

    /// Asks the running turn to end: `next` goes on to tell what comes, and its end.
    async fn interrupt(&mut self) -> Result<(), AgentError>;

    /// Ends the session and everything that it started, whatever it is doing.
    async fn close(&mut self);
}
