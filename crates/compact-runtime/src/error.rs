//! What can go wrong while driving a compaction, and what to do about it: in settings and arguments,
//! never in commands. A program adds its own words.

use compact_core::error::{CompactError, Hinted};
use compact_formats::FormatError;

use crate::port::archive::ArchiveError;
use crate::port::catalog::{CatalogError, HISTORY_SIGN};
use crate::port::index::IndexError;

/// An error of the runtime.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.sentence())]
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
    SessionDead,
    /// The summarizer failed and the policy leaves the conversation to its host.
    Declined(String),
    /// All that is left must stay.
    NothingToCompact {
        /// History tokens.
        tokens: compact_core::token::Tokens,
    },
    /// The summarizer failed and the policy says that nothing else will do; nothing was changed.
    Summary {
        /// Who failed.
        summarizer: String,
        /// Why.
        reason: String,
    },
    /// What was recorded of a compaction is not what this version writes.
    Record {
        /// The receipt.
        receipt: String,
        /// What the decoder said.
        source: serde_json::Error,
    },
    /// Input for a session that is being compacted, where the policy refuses it.
    Compacting(String),
    /// Another process took the session over while this one compacted it.
    Overtaken(String),
    /// A compaction beside a session ended without an outcome.
    Interrupted,
    /// No receipt and no session of that name.
    NotFound(String),
    /// A session whose history went apart: no single one is all that it held.
    Branches {
        /// The session.
        session: String,
        /// The receipt that each of its histories ends with.
        ends: Vec<String>,
    },
    /// The compaction ran without an archive.
    NotArchived(String),
    /// A question without a word that could be looked for.
    EmptyQuery,
    /// A text that is no pointer.
    BadPointer(String),
    /// A pattern that is too large.
    BadPattern(String),
    /// A text that names no lines.
    BadLines(String),
    /// A pointer to an entry that its session does not have.
    NoSuchEntry(String),
    /// A pointer to an entry of another session than the one that was named.
    OtherSession {
        /// The pointer.
        pointer: String,
        /// The session that was named.
        session: String,
    },
}

impl Hinted for Error {
    fn message(&self) -> String {
        match self {
            Error::Compact(error) => error.message(),
            Error::Format(error) => error.message(),
            Error::Archive(error) => error.message(),
            Error::Catalog(error) => error.message(),
            Error::Index(error) => error.to_string(),
            Error::Transcript(error) => error.to_string(),
            Error::SessionDead => compact_core::reset::DEAD.to_owned(),
            Error::Declined(reason) => format!(
                "the summarizer failed and the policy leaves it to the host: {reason}; nothing was \
                 changed"
            ),
            Error::NothingToCompact { tokens } => format!(
                "a history of {tokens} tokens has nothing left to summarize; nothing was changed"
            ),
            Error::Summary { summarizer, reason } => {
                format!("the summarizer {summarizer} failed: {reason}")
            }
            Error::Record { receipt, .. } => {
                format!("the record of receipt {receipt} cannot be read or written")
            }
            Error::Compacting(session) => format!("session '{session}' is being compacted"),
            Error::Overtaken(session) => format!(
                "another process took over session '{session}': nothing was changed, its view \
                 counts"
            ),
            Error::Interrupted => {
                "the compaction ended before it was done; nothing was changed".to_owned()
            }
            Error::NotFound(name) => {
                format!("'{name}' is neither a receipt nor a session on record")
            }
            Error::Branches { session, ends } => {
                let named = ends.iter().map(|end| format!("{HISTORY_SIGN}{end}"));
                format!(
                    "session '{session}' went apart, and {} histories are on record under its name: \
                     {}",
                    ends.len(),
                    named.collect::<Vec<_>>().join(", ")
                )
            }
            Error::NotArchived(receipt) => {
                format!("receipt {receipt} was made without an archive: its original was not kept")
            }
            Error::EmptyQuery => "the query has no words to look for".to_owned(),
            Error::BadPointer(text) => format!("'{text}' is no pointer"),
            Error::BadPattern(text) => format!("'{text}' is too large for a pattern"),
            Error::BadLines(text) => format!("'{text}' names no lines"),
            Error::NoSuchEntry(pointer) => format!("there is no entry {pointer}"),
            Error::OtherSession { pointer, session } => {
                format!("{pointer} is no entry of session '{session}'")
            }
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Error::Compact(error) => return error.hint(),
            Error::Format(error) => return error.hint(),
            Error::Archive(
                ArchiveError::Damaged { .. }
                | ArchiveError::Missing { .. }
                | ArchiveError::MissingBase { .. },
            ) => "verify the archive; what was removed can be imported from a copy",
            Error::Archive(ArchiveError::Store { .. }) => {
                "nothing was changed; check that the archive is writable and has space"
            }
            Error::Archive(error) => return error.hint(),
            Error::Catalog(error) => return error.hint(),
            Error::Index(_) => {
                "the archive is not affected; the index may be deleted, and is rebuilt from it"
            }
            Error::Compacting(_) => {
                "try again in a moment, or set policy.during_compaction to queue"
            }
            Error::NotFound(_) => "name a session that was compacted, or one of its receipts",
            Error::Branches { .. } => "restore one of them by that name",
            Error::Summary { .. } => {
                "nothing was changed, retry, or set policy.on_summary_failure to deterministic"
            }
            Error::EmptyQuery => "use a name, a path or a few distinctive words",
            Error::BadLines(_) => "write FIRST..LAST, such as 120..160, or 120..",
            Error::BadPattern(_) => "look for fewer words",
            Error::BadPointer(_) => "write RECEIPT#NUMBER, as a view or a hit shows it",
            Error::NoSuchEntry(_) => "recall finds entries by their words",
            Error::OtherSession { .. } => {
                "write #NUMBER for an entry of that session, or name the session that the pointer is of"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_hint_apart_and_ends_its_sentence_with_it() {
        let refused = Error::from(CatalogError::Refused {
            action: "open the catalog; or not".to_owned(),
            reason: "no such user".to_owned(),
            hint: "create it".to_owned(),
        });
        let message = "cannot open the catalog; or not: no such user";
        assert_eq!(refused.message(), message);
        assert_eq!(refused.hint().as_deref(), Some("create it"));
        assert_eq!(refused.to_string(), format!("{message}; create it"));
        let empty = Error::from(FormatError::Empty);
        assert_eq!(
            empty.to_string(),
            "the input is empty; pass a transcript or a request body"
        );
        assert_eq!(Error::Interrupted.hint(), None);
        assert_eq!(
            Error::Interrupted.to_string(),
            "the compaction ended before it was done; nothing was changed"
        );
    }
}
