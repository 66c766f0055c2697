//! Restarts from a checkpoint: an exhausted context ends a session, not the work (seeds 003, 004).
//!
//! Here is what is decided without the world: the words that ask a session for its checkpoint, what
//! its answer is worth, what the next session is told, and which limits hold. Sessions, clocks and
//! files are the runtime's.

mod compose;
mod extract;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use compose::{Checkpoint, CheckpointNotes};
pub use extract::{CheckpointWrapping, ExtractedCheckpoint, extract_checkpoint};

const REQUEST: &str = include_str!("../../templates/restart/checkpoint_request.md");
const CONTINUATION: &str = include_str!("../../templates/continuation_prompt.md");
const GO_ON: &str = include_str!("../../templates/restart/go_on.md");
const UNTIL: &str = include_str!("../../templates/restart/until.md");

/// What an exhausted session is asked.
pub fn checkpoint_request() -> &'static str {
    REQUEST.trim_end()
}

/// What the next session begins with. A checkpoint may hold braces: nothing in it is a place to
/// fill.
pub fn continuation_prompt(checkpoint: &str) -> String {
    CONTINUATION.trim_end().replacen("{summary}", checkpoint, 1)
}

/// What a session is told that stopped before its work was done, or was stopped from outside.
pub fn resume_prompt() -> &'static str {
    GO_ON.trim_end()
}

/// A prompt with the words that say when the work is done.
pub fn with_until(prompt: &str, until: Option<&str>) -> String {
    match until {
        None => prompt.to_owned(),
        Some(until) => {
            let line = UNTIL.trim_end().replacen("{until}", until, 1);
            format!("{}\n\n{line}", prompt.trim_end())
        }
    }
}

/// How far a task may be carried. Without a limit the agent is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RestartLimits {
    /// How many sessions may follow the first.
    pub max_restarts: Option<u32>,
    /// How long all sessions together may run.
    pub time: Option<Duration>,
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestartLimitReached {
    /// Too many sessions.
    #[error("the task took all of its {0} restarts and is not finished")]
    Restarts(u32),
    /// Too long.
    #[error("the task took all of its {} s and is not finished", .0.as_secs())]
    Time(Duration),
}

impl RestartLimits {
    /// Whether the n-th restart, from 1, is one too many.
    pub fn allow_restart(&self, restart: u32) -> Result<(), RestartLimitReached> {
        match self.max_restarts {
            Some(most) if restart > most => Err(RestartLimitReached::Restarts(most)),
            _ => Ok(()),
        }
    }

    /// What is left of the time after `spent` of it; `None` when it is not limited.
    pub fn time_left(&self, spent: Duration) -> Result<Option<Duration>, RestartLimitReached> {
        match self.time {
            Some(most) if spent >= most => Err(RestartLimitReached::Time(most)),
            most => Ok(most.map(|most| most - spent)),
        }
    }
}
