//! Who is asked for prose: a model behind some wire.
//!
//! One question, one answer. A summarizer has no tools, asks nobody, remembers nothing between two
//! questions, and is never handed anything that was not redacted. It retries what is worth retrying
//! itself; what to do when it fails is the policy's decision, not its own.

pub mod conformance;
mod scripted;
#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use compact_core::prompt::{SourceMessage, SummarizerAnswer};
use compact_core::summarize::Style;
use compact_core::token::Tokens;

pub use scripted::{ScriptedAnswer, ScriptedSummarizer};

/// What a summarizer is, without asking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummarizerInfo {
    /// Its wire and model, as receipts name it.
    pub name: String,
    /// What it takes in one request, when that is known.
    pub window: Option<Tokens>,
    /// The format of conversations that it can go on from, keeping the provider's cache.
    pub continues: Option<&'static str>,
    /// The most requests that one summary may take.
    pub most_requests: usize,
    /// What it reads.
    pub reads: QuestionForm,
}

/// What a summarizer reads of a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuestionForm {
    /// The prompt, with the conversation in it.
    #[default]
    Prompt,
    /// The messages themselves, in a style that it knows by name.
    Messages,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelQuestion {
    /// Instructions.
    pub system: String,
    /// The style that is asked for.
    pub style: Style,
    /// The messages that the prompt tells of, for a summarizer that reads those.
    pub messages: Vec<SourceMessage>,
    /// What to read, or, with a conversation, what to do with it.
    pub prompt: String,
    /// The conversation's own request body, redacted: it goes first, as it is.
    pub conversation: Option<Bytes>,
    /// The most tokens of an answer.
    pub limit: Tokens,
    /// The model of the session, for a summarizer without one of its own.
    pub model: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummarizerError {
    /// Nobody there.
    #[error("{place} cannot be reached: {reason}")]
    Unreachable {
        /// Where it should be.
        place: String,
        /// What the connection said.
        reason: String,
    },
    /// No answer in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The connection broke before the answer was whole.
    #[error("the connection ended before the answer did: {0}")]
    Interrupted(String),
    /// Too busy, or out of order, and still so after retries.
    #[error("status {status} after {attempts} attempts: {message}")]
    Overloaded {
        /// The HTTP status.
        status: u16,
        /// How often it was asked.
        attempts: u32,
        /// What it said.
        message: String,
    },
    /// The question is larger than its window.
    #[error("the request is larger than the summarizer's window: {message}")]
    TooLong {
        /// What it takes, if it said so.
        limit: Option<Tokens>,
        /// What it said.
        message: String,
    },
    /// It will not: a wrong key, an unknown model, a malformed request.
    #[error("status {status}: {message}")]
    Rejected {
        /// The HTTP status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// An answer that is none.
    #[error("the answer cannot be read: {0}")]
    Malformed(String),
    /// It cannot go on from this conversation; a request of its own may do.
    #[error("the conversation cannot be gone on from: {0}")]
    Unsuitable(String),
    /// It is not set up.
    #[error("{0}")]
    Setup(String),
    /// A function of the host raised this kind of error.
    #[error("it failed with {0}")]
    Raised(String),
}

impl SummarizerError {
    /// What is wrong, without words of the server: those may repeat what it was sent.
    pub fn kind(&self) -> String {
        match self {
            SummarizerError::Unreachable { .. } => "unreachable".to_owned(),
            SummarizerError::Timeout(_) => self.to_string(),
            SummarizerError::Interrupted(_) => {
                "the connection ended before the answer did".to_owned()
            }
            SummarizerError::Overloaded {
                status, attempts, ..
            } => {
                format!("status {status} after {attempts} attempts")
            }
            SummarizerError::TooLong { .. } => "the request is too long".to_owned(),
            SummarizerError::Rejected { status, .. } => format!("status {status}"),
            SummarizerError::Malformed(_) => "the answer cannot be read".to_owned(),
            SummarizerError::Unsuitable(_) => "the conversation cannot be gone on from".to_owned(),
            SummarizerError::Setup(_) => "it is not set up".to_owned(),
            SummarizerError::Raised(_) => self.to_string(),
        }
    }
}

/// Answers questions with prose. Safe to share; dropping the future abandons the question.
#[async_trait]
pub trait Summarizer: Send + Sync {
    /// What it is.
    fn describe(&self) -> SummarizerInfo;

    /// Asks once; retries and time limits are inside.
    async fn answer(&self, question: &ModelQuestion) -> Result<SummarizerAnswer, SummarizerError>;
}
