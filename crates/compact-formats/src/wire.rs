//! What a format supplies: reading, and three ways of writing.

use compact_core::message::{Conversation, Entry};
use compact_core::view::{View, ViewItem};
use compact_core::wire::WireRules;

use crate::edit::Edits;
use crate::error::FormatError;
use crate::source::{self, Place, Reading};
use crate::{Document, Scope, Stamp};

type Read = fn(&[u8], Scope) -> Result<Reading, FormatError>;
type Emit = fn(&Page<'_>, &View) -> Result<Vec<u8>, FormatError>;
type Append = fn(&Page<'_>, &View, &Stamp<'_>) -> Result<Vec<u8>, FormatError>;
type Extend = fn(&Document, &Page<'_>, usize) -> Result<Vec<u8>, FormatError>;

/// Rules, and what the strictest servers make of them.
pub(crate) type Stricter = (&'static WireRules, &'static WireRules);

/// One family of transcripts: what its provider accepts, how it is read, and three ways of writing.
pub(crate) struct Wire {
    pub(crate) rules: &'static WireRules,
    /// Where some servers accept less; those whose rules have no pair are all alike.
    pub(crate) strict: &'static [Stricter],
    /// What is accepted of documents that say more than their format does.
    pub(crate) more_rules: &'static [&'static WireRules],
    /// The entries of a transcript, each with its place.
    pub(crate) read: Read,
    /// The view as a transcript of this wire.
    pub(crate) emit: Emit,
    /// The lines that make the view the context, to stand behind the transcript.
    pub(crate) append: Append,
    /// A transcript followed by the later one's entries from an entry on.
    pub(crate) extend: Extend,
}

impl Wire {
    /// A wire without a boundary, whose servers are all alike.
    pub(crate) const fn new(
        rules: &'static WireRules,
        read: Read,
        emit: Emit,
        extend: Extend,
    ) -> Wire {
        Wire {
            rules,
            strict: &[],
            more_rules: &[],
            read,
            emit,
            append: no_boundary,
            extend,
        }
    }

    pub(crate) const fn with_boundary(self, append: Append) -> Wire {
        Wire { append, ..self }
    }

    pub(crate) const fn with_strict_rules(self, strict: &'static [Stricter]) -> Wire {
        Wire { strict, ..self }
    }

    pub(crate) const fn with_more_rules(self, more_rules: &'static [&'static WireRules]) -> Wire {
        Wire { more_rules, ..self }
    }
}

/// What a format without boundaries answers.
pub(crate) fn no_boundary(
    page: &Page<'_>,
    _: &View,
    _: &Stamp<'_>,
) -> Result<Vec<u8>, FormatError> {
    Err(FormatError::NoBoundary {
        format: page.document.format,
    })
}

/// A document with the conversation that was read from it.
pub(crate) struct Page<'a> {
    pub(crate) document: &'a Document,
    pub(crate) conversation: &'a Conversation,
}

/// A view item with what it shows.
pub(crate) enum Shown<'a> {
    /// An entry as it stands in the source.
    Kept { place: &'a Place, item: &'a str },
    /// An entry to be spliced.
    Edited {
        place: &'a Place,
        item: &'a str,
        edits: Edits<'a>,
    },
    /// Text of the engine.
    New(&'a Entry),
}

impl<'a> Page<'a> {
    pub(crate) fn bytes(&self) -> &'a [u8] {
        &self.document.source
    }

    /// An entry's place and JSON.
    pub(crate) fn entry(&self, index: usize) -> Result<(&'a Place, &'a str), FormatError> {
        let place = self
            .document
            .places
            .get(index)
            .ok_or(FormatError::NoSuchEntry {
                entry: index,
                entries: self.document.places.len(),
            })?;
        Ok((place, source::text(self.bytes(), place.span.clone())?))
    }

    pub(crate) fn shown(&self, item: &'a ViewItem) -> Result<Shown<'a>, FormatError> {
        match item {
            ViewItem::New(entry) => Ok(Shown::New(entry)),
            ViewItem::Kept { entry } => {
                let (place, item) = self.entry(*entry)?;
                Ok(Shown::Kept { place, item })
            }
            ViewItem::Edited { entry, edits } => {
                let (place, item) = self.entry(*entry)?;
                Ok(Shown::Edited {
                    place,
                    item,
                    edits: Edits(edits),
                })
            }
        }
    }
}

/// Lines of output that end as the source's lines do, the last one included.
pub(crate) struct LineWriter {
    out: Vec<u8>,
    newline: &'static [u8],
}

impl LineWriter {
    pub(crate) fn new(source: &[u8]) -> LineWriter {
        let first = memchr::memchr(b'\n', source).and_then(|at| source.get(..at));
        let is_crlf = first.is_some_and(|line| line.ends_with(b"\r"));
        LineWriter {
            out: Vec::new(),
            newline: if is_crlf { b"\r\n" } else { b"\n" },
        }
    }

    /// Continues `source`, whose last line may lack its end.
    pub(crate) fn after(source: &[u8]) -> LineWriter {
        let mut writer = LineWriter::behind(source);
        writer.out.splice(0..0, source.iter().copied());
        writer
    }

    /// Lines to stand behind `source`, without it.
    pub(crate) fn behind(source: &[u8]) -> LineWriter {
        let mut writer = LineWriter::new(source);
        if !source.is_empty() && !source.ends_with(b"\n") {
            writer.out.extend_from_slice(writer.newline);
        }
        writer
    }

    pub(crate) fn line(&mut self, line: &[u8]) {
        self.out.extend_from_slice(line.trim_ascii_end());
        self.out.extend_from_slice(self.newline);
    }

    /// The lines, each with its end: whoever writes next begins a line of its own.
    pub(crate) fn into_lines(self) -> Vec<u8> {
        self.out
    }

    /// The lines; `source` says whether the last one ends in a newline.
    pub(crate) fn finish(mut self, source: &[u8]) -> Vec<u8> {
        if !source.ends_with(b"\n") && self.out.ends_with(self.newline) {
            self.out.truncate(self.out.len() - self.newline.len());
        }
        self.out
    }
}
