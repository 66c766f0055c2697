//! The hard reset: when a session may be compacted, what it is told, and how it goes on.
//!
//! The history is cleared and the session continues from a summary at the end of its system prompt.
//! Here are the decisions only: the attempts of a turn, the numbers a trigger rests on, the events and the
//! prompt. Files, clocks and the compaction itself are the runtime's.

mod prompt;
mod state;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::transcript::{TranscriptEventKind, events_of, render_sections};
pub use prompt::summary_of;
pub use state::{CompactionState, TriggerReason};

/// What a person reads when a session cannot go on.
pub const DEAD: &str = "Context limit exceeded and compaction failed. Please start a new session.";

/// What a host is told about the resets of its session. The fields are those of the founding document,
/// and where its text names more than its schemas have, they are here too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
        /// Tokens of the context that the session goes on with, by estimate.
        tokens_after: u64,
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
    /// The model whose limit counts.
    pub fn model(&self) -> &str {
        match self {
            ResetEvent::ContextCompactionStarted { model, .. }
            | ResetEvent::ContextCompacted { model, .. }
            | ResetEvent::ContextCompactionFailed { model, .. } => model,
        }
    }

    /// Every text: what redaction looks at.
    pub(crate) fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            ResetEvent::ContextCompactionStarted { model, .. } => vec![model],
            ResetEvent::ContextCompacted {
                model,
                transcript_path,
                summarizer_input_path,
                summary_path,
                ..
            } => {
                let paths = [transcript_path, summarizer_input_path, summary_path];
                paths.into_iter().flatten().chain([model]).collect()
            }
            ResetEvent::ContextCompactionFailed {
                error,
                model,
                transcript_path,
                summarizer_input_path,
                ..
            } => {
                let paths = [transcript_path, summarizer_input_path];
                paths.into_iter().flatten().chain([model, error]).collect()
            }
        }
    }
}
