//! What can be wrong with a transcript, said so that a person can go to the place and mend it.

use std::fmt;

use compact_core::error::Hinted;

use crate::Format;

/// A place in the input, counted from 1 as editors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, counted from 1.
    pub line: usize,
    /// The byte within the line.
    pub column: usize,
}

impl Position {
    /// Returns the position of a byte offset.
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
#[error("{}", self.sentence())]
#[non_exhaustive]
pub enum FormatError {
    /// Nothing but white space.
    Empty,
    /// No format recognises the input.
    Unrecognised {
        /// What was looked at.
        at: Position,
    },
    /// A file of many sessions where one was asked for.
    ManySessions {
        /// The number of sessions.
        count: usize,
    },
    /// A name that no format has.
    UnknownName {
        /// The name as given.
        name: String,
    },
    /// The input is not valid JSON.
    Json {
        /// The position of the error.
        at: Position,
        /// What the parser said.
        reason: String,
    },
    /// The input is not valid UTF-8.
    Utf8 {
        /// The position of the first invalid byte.
        at: Position,
    },
    /// JSON of the wrong type.
    Field {
        /// Where the message or line starts.
        at: Position,
        /// The field's path within it.
        field: String,
        /// What the wire allows.
        expected: &'static str,
        /// The type that was found.
        found: &'static str,
    },
    /// The format cannot mark a compaction.
    NoBoundary {
        /// The format without a boundary.
        format: Format,
    },
    /// A history that is not in the body.
    ServerState {
        /// The member that says so.
        field: &'static str,
    },
    /// A view of another conversation.
    NoSuchEntry {
        /// The index that the view names.
        entry: usize,
        /// How many there are.
        entries: usize,
    },
    /// Two documents that cannot be joined.
    Mismatch {
        /// The document to continue.
        first: Format,
        /// The document to continue it with.
        later: Format,
    },
}

impl Hinted for FormatError {
    fn message(&self) -> String {
        match self {
            FormatError::Empty => "the input is empty".to_owned(),
            FormatError::Unrecognised { at } => format!("{at}: cannot detect the format"),
            FormatError::ManySessions { count } => format!("the file holds {count} sessions"),
            FormatError::UnknownName { name } => format!("unknown format `{name}`"),
            FormatError::Json { at, reason } => format!("{at}: not valid JSON: {reason}"),
            FormatError::Utf8 { at } => format!("{at}: not valid UTF-8"),
            FormatError::Field {
                at,
                field,
                expected,
                found,
            } => format!("{at}: `{field}` must be {expected}, found {found}"),
            FormatError::NoBoundary { format } => {
                format!("{format} has no compaction boundary to append")
            }
            FormatError::ServerState { field } => format!(
                "`{field}` keeps the history on the server, so this body cannot be compacted"
            ),
            FormatError::NoSuchEntry { entry, entries } => {
                format!("the view names entry {entry}, but the document has {entries}")
            }
            FormatError::Mismatch { first, later } => {
                format!("cannot continue a {first} transcript with a {later} one")
            }
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            FormatError::Unrecognised { .. } => {
                return Some(format!("name it, one of {}", Format::names()));
            }
            FormatError::ManySessions { count } => {
                let last = count.saturating_sub(1);
                return Some(format!("choose one by its index, 0 to {last}"));
            }
            FormatError::UnknownName { .. } => return Some(format!("one of {}", Format::names())),
            FormatError::Field { .. } => return None,
            FormatError::Empty => "pass a transcript or a request body",
            FormatError::Json { .. } => "fix or remove it",
            FormatError::Utf8 { .. } => "re-encode the file as UTF-8",
            FormatError::NoBoundary { .. } => "write the view as a transcript of its own",
            FormatError::ServerState { .. } => {
                "send the whole history as `input` without it, or compact on the server"
            }
            FormatError::NoSuchEntry { .. } => "use the view's own conversation",
            FormatError::Mismatch { .. } => "pass two of the same format",
        };
        Some(hint.to_owned())
    }
}
