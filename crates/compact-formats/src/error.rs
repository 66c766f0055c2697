//! What can be wrong with a transcript, said so that a person can go to the place and mend it.

use std::fmt;

use crate::Format;

/// A place in the input, counted from 1 as editors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The byte within the line.
    pub column: usize,
}

impl Position {
    /// The position of a byte offset.
    pub(crate) fn at_offset(source: &[u8], offset: usize) -> Position {
        let before = source.get(..offset).unwrap_or(source);
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        Position {
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: before.len() - line_start + 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            1 => write!(f, "line {}", self.line),
            column => write!(f, "line {}, column {column}", self.line),
        }
    }
}

/// Why a transcript could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Nothing but white space.
    #[error("the input is empty; pass a transcript or a request body")]
    Empty,
    /// No format recognises the input.
    #[error(
        "{at}: cannot tell the format; name it with --format ({})",
        Format::names()
    )]
    Unrecognised {
        /// What was looked at.
        at: Position,
    },
    /// A file of many sessions where one was asked for.
    #[error(
        "the file holds {count} sessions; choose one with --session-index 0 to {}",
        .count.saturating_sub(1)
    )]
    ManySessions {
        /// How many.
        count: usize,
    },
    /// A name that no format has.
    #[error("unknown format `{name}`; one of {}", Format::names())]
    UnknownName {
        /// The name as given.
        name: String,
    },
    /// Not JSON.
    #[error("{at}: not valid JSON: {reason}; mend or remove it")]
    Json {
        /// Where.
        at: Position,
        /// What the parser said.
        reason: String,
    },
    /// Not text.
    #[error("{at}: not valid UTF-8; re-encode the file as UTF-8")]
    Utf8 {
        /// Where.
        at: Position,
    },
    /// JSON of the wrong type.
    #[error("{at}: `{field}` must be {expected}, found {found}")]
    Field {
        /// Where the message or line starts.
        at: Position,
        /// The field's path within it.
        field: String,
        /// What the wire allows.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// The format cannot mark a compaction.
    #[error("{format} has no compaction boundary to append; write the view with -o instead")]
    NoBoundary {
        /// The format.
        format: Format,
    },
    /// A history that is not in the body.
    #[error(
        "`{field}` keeps the history on the server, so this body cannot be compacted; \
         send the whole history as `input` without it, or compact on the server"
    )]
    ServerState {
        /// The member that says so.
        field: &'static str,
    },
    /// A view of another conversation.
    #[error(
        "the view names entry {entry}, but the document has {entries}; use the view's own conversation"
    )]
    NoSuchEntry {
        /// The index.
        entry: usize,
        /// How many there are.
        entries: usize,
    },
    /// Two documents that cannot be joined.
    #[error("cannot continue a {first} transcript with a {later} one; pass two of the same format")]
    Mismatch {
        /// The document to continue.
        first: Format,
        /// The document to continue it with.
        later: Format,
    },
}
