//! The hard reset: when a session may be compacted, what it is told, and how it goes on.
//!
//! The history is cleared and the session continues from a summary at the end of its system prompt
//! (seed 001). Here are the decisions only: the attempts of a turn, the numbers a trigger rests on,
//! the events and the prompt. Files, clocks and the compaction itself are the runtime's.

mod prompt;
mod state;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::event::EventKind;

pub use prompt::summary_of;
pub use state::{CompactionState, TriggerReason};

/// What a person reads when a session cannot go on.
pub const DEAD: &str = "Context limit exceeded and compaction failed. Please start a new session.";

/// What a host is told about the resets of its session. The fields are those of seed 001, and
/// where it names more than its schemas have, they are here too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResetEvent {
    /// A compaction begins: input is closed until one of the other two follows.
    ContextCompactionStarted {
        /// Tokens before.
        tokens_before: u64,
        /// What the model takes.
        max_tokens: u64,
        /// How the tokens were counted.
        trigger_reason: TriggerReason,
        /// The model whose limit counts.
        model: String,
    },
    /// The history was replaced by a summary.
    ContextCompacted {
        /// Tokens before.
        tokens_before: u64,
        /// How the tokens were counted.
        trigger_reason: TriggerReason,
        /// The model whose limit counts.
        model: String,
        /// The transcript's file.
        transcript_path: Option<String>,
        /// The file of what the summarizer was given.
        summarizer_input_path: Option<String>,
        /// The file of the summary.
        summary_path: Option<String>,
        /// How many compactions this session has had.
        compaction_count: u32,
    },
    /// Nothing was changed.
    ContextCompactionFailed {
        /// Why.
        error: String,
        /// Whether the context is over the limit: the session is dead.
        context_exceeded: bool,
        /// Tokens now.
        tokens_current: u64,
        /// What the model takes.
        max_tokens: u64,
        /// How the tokens were counted.
        trigger_reason: TriggerReason,
        /// The model whose limit counts.
        model: String,
        /// The transcript's file.
        transcript_path: Option<String>,
        /// The file of what the summarizer was given.
        summarizer_input_path: Option<String>,
    },
}

impl ResetEvent {
    /// What happened, as every event names it.
    pub fn kind(&self) -> EventKind {
        match self {
            ResetEvent::ContextCompactionStarted { .. } => EventKind::ContextCompactionStarted,
            ResetEvent::ContextCompacted { .. } => EventKind::ContextCompacted,
            ResetEvent::ContextCompactionFailed { .. } => EventKind::ContextCompactionFailed,
        }
    }
}
