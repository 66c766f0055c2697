//! The transcript: what a session's host raised as events, in order, kept whatever happens to the
//! context; and the artifacts that a compaction leaves beside it.
//!
//! Appending is fire and forget, because an agent must not wait for a disk; flushing is the
//! acknowledgement, because somebody must be able to know. What could not be written is said by the
//! next flush, and in the transcript itself as soon as it can be.

pub mod conformance;
mod memory;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;

pub use memory::MemoryTranscripts;

/// The `type` of the line that stands where events are missing.
pub const GAP: &str = "transcript_gap";

/// What a compaction leaves beside the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Artifact {
    /// What the summarizer was given.
    SummarizerInput,
    /// What it gave back.
    Summary,
}

impl Artifact {
    /// The beginning of its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Artifact::SummarizerInput => "summarizer-input",
            Artifact::Summary => "summary",
        }
    }
}

/// A transcript that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// The events, the oldest first.
    pub events: Vec<Value>,
    /// Lines that are no events: torn by a crash, or not ours.
    pub damaged: u64,
}

/// Why a transcript or artifact could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// Events that are not in the transcript.
    #[error("{events} events of session '{session}' are not in its transcript {place}: {reason}")]
    Lost {
        /// The session.
        session: String,
        /// How many events, since the flush before.
        events: u64,
        /// The transcript.
        place: String,
        /// What went wrong.
        reason: String,
    },
    /// The store behind it failed.
    #[error("cannot {action}")]
    Store {
        /// What was being done, and to what.
        action: String,
        /// The store's own error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Keeps transcripts and artifacts. One writer per session; safe to share between tasks.
#[async_trait]
pub trait TranscriptStore: Send + Sync {
    /// Hands an event to the session's writer: lines stand in the order of these calls. Does not
    /// wait for the medium and cannot fail; see [`TranscriptStore::flush`].
    fn append(&self, session: &str, event: &Value);

    /// Waits until everything appended before is durable: then it is acknowledged. An error says
    /// how many events since the last flush are missing, and why.
    async fn flush(&self, session: &str) -> Result<(), TranscriptError>;

    /// The events of a session; none for a session that has no transcript.
    async fn read(&self, session: &str) -> Result<Transcript, TranscriptError>;

    /// Keeps a text under a name of its own, never in place of another; returns where it is.
    async fn keep_artifact(
        &self,
        session: &str,
        artifact: Artifact,
        at: Timestamp,
        text: &str,
    ) -> Result<String, TranscriptError>;

    /// Where a session's transcript is, for people and events.
    fn location(&self, session: &str) -> String;
}
