//! What can go wrong while driving a compaction.

use compact_core::error::CompactError;
use compact_formats::FormatError;

use crate::port::archive::ArchiveError;
use crate::port::catalog::CatalogError;
use crate::port::index::IndexError;

/// An error of the runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine made no view; nothing was changed.
    #[error(transparent)]
    Compact(#[from] CompactError),
    /// A transcript could not be read or written.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The archive could not store or return a pack.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The catalog could not record or answer.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The recall index could not be written or searched.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A transcript could not be written or read.
    #[error(transparent)]
    Transcript(#[from] crate::port::transcript::TranscriptError),
    /// The session is over its limit and could not be compacted.
    #[error("{}", compact_core::reset::DEAD)]
    SessionDead,
    /// The summarizer failed and the policy leaves the conversation to its host.
    #[error("the summarizer failed and the policy leaves it to the host: {0}; nothing was changed")]
    Declined(String),
    /// All that is left must stay.
    #[error("a history of {tokens} tokens has nothing left to summarize; nothing was changed")]
    NothingToCompact {
        /// History tokens.
        tokens: compact_core::token::Tokens,
    },
    /// The summarizer failed and the policy says that nothing else will do; nothing was changed.
    #[error(
        "the summarizer {summarizer} failed: {reason}; nothing was changed, retry, or set \
         policy.on_summary_failure to deterministic"
    )]
    Summary {
        /// Who failed.
        summarizer: String,
        /// Why.
        reason: String,
    },
    /// What was recorded of a compaction is not what this version writes.
    #[error("the record of receipt {receipt} cannot be read or written")]
    Record {
        /// The receipt.
        receipt: String,
        /// What the decoder said.
        source: serde_json::Error,
    },
    /// Input for a session that is being compacted, where the policy refuses it.
    #[error(
        "session '{0}' is being compacted: try again in a moment, or set policy.during_compaction to queue"
    )]
    Compacting(String),
    /// Another process took the session over while this one compacted it.
    #[error("another process took over session '{0}': nothing was changed, its view counts")]
    Overtaken(String),
    /// A compaction beside a session ended without an outcome.
    #[error("the compaction ended before it was done; nothing was changed")]
    Interrupted,
    /// No receipt and no session of that name.
    #[error(
        "'{0}' is neither a receipt nor a session on record: `compactctl archive list` shows what is"
    )]
    NotFound(String),
    /// The compaction ran without an archive.
    #[error("receipt {0} was made without an archive: its original was not kept")]
    NotArchived(String),
    /// A question without a word that could be looked for.
    #[error("the query has no words to look for; give a name, a path or a few telling words")]
    EmptyQuery,
    /// A text that is no pointer.
    #[error("'{0}' is no pointer; write RECEIPT#NUMBER, as a view or `compactctl recall` shows it")]
    BadPointer(String),
    /// A pointer to an entry that its session does not have.
    #[error("there is no entry {0}; `compactctl recall` finds entries by their words")]
    NoSuchEntry(String),
}
