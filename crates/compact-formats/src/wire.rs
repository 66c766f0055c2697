//! What a format supplies: its rules, its signs, reading, three ways of writing, and an empty document.
//!
//! One value says everything about a format, so that a new one is a folder and a row of the table in `lib.rs`.

use compact_core::message::{Conversation, Entry};
use compact_core::view::{View, ViewItem};
use compact_core::wire::WireRules;

use crate::convert::{BlankSource, Circumstances, SessionHead};
use crate::detect::FormatSigns;
use crate::edit::EntryEdits;
use crate::error::FormatError;
use crate::list::ListElements;
use crate::source::{self, EntryPlace, TranscriptReading};
use crate::{BoundaryStamp, Document, TranscriptScope};

type ReadFn = fn(&[u8], TranscriptScope) -> Result<TranscriptReading, FormatError>;
type ReadElementsFn =
    for<'a> fn(&'a [u8], ListElements<'a>) -> Result<TranscriptReading, FormatError>;
type EmitFn = fn(&DocumentContext<'_>, &View) -> Result<Vec<u8>, FormatError>;
type AppendFn = fn(&DocumentContext<'_>, &View, &BoundaryStamp<'_>) -> Result<Vec<u8>, FormatError>;
type ExtendFn = fn(&Document, &DocumentContext<'_>, usize) -> Result<Vec<u8>, FormatError>;
type BlankFn = fn(&SessionHead<'_>) -> BlankSource;

/// Rules, and what the strictest servers make of them.
pub(crate) type StrictPair = (&'static WireRules, &'static WireRules);

/// Whom a transcript is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// An agent keeps it to itself.
    Agent,
    /// It is sent to a provider, or stands for what is.
    Provider,
}

/// One family of transcripts: what its provider accepts, how it is told and read, and how it is written.
pub(crate) struct Wire {
    pub(crate) rules: &'static WireRules,
    /// Where some servers accept less; those whose rules have no pair are all alike.
    pub(crate) strict: &'static [StrictPair],
    /// What is accepted of documents that say more than their format does.
    pub(crate) more_rules: &'static [&'static WireRules],
    pub(crate) audience: Audience,
    /// What it is told by; nothing where `detect` compares it with its likes.
    pub(crate) signs: FormatSigns,
    /// The entries of a transcript, each with its place.
    pub(crate) read: ReadFn,
    /// The entries of some elements of its list by themselves, where it is one.
    pub(crate) read_elements: Option<ReadElementsFn>,
    /// The view as a transcript of this wire.
    pub(crate) emit: EmitFn,
    /// The lines that make the view the context, to stand behind the transcript.
    pub(crate) append: AppendFn,
    /// A transcript followed by the later one's entries from an entry on.
    pub(crate) extend: ExtendFn,
    /// A transcript in which nothing is said yet.
    pub(crate) blank: BlankFn,
}

impl Wire {
    /// Returns a wire of an agent's own transcripts, without a boundary, whose servers are all alike.
    pub(crate) const fn new(
        rules: &'static WireRules,
        read: ReadFn,
        emit: EmitFn,
        extend: ExtendFn,
        blank: BlankFn,
    ) -> Wire {
        Wire {
            rules,
            strict: &[],
            more_rules: &[],
            audience: Audience::Agent,
            signs: FormatSigns::NONE,
            read,
            read_elements: None,
            emit,
            append: no_boundary,
            extend,
            blank,
        }
    }

    /// Returns the wire of what is sent to a provider.
    pub(crate) const fn sent_to_provider(self) -> Wire {
        Wire {
            audience: Audience::Provider,
            ..self
        }
    }

    /// Returns the wire of lists whose elements can be read by themselves.
    pub(crate) const fn with_elements(self, read_elements: ReadElementsFn) -> Wire {
        Wire {
            read_elements: Some(read_elements),
            ..self
        }
    }

    /// Returns the wire with what its transcripts are told by.
    pub(crate) const fn recognised_by(self, signs: FormatSigns) -> Wire {
        Wire { signs, ..self }
    }

    pub(crate) const fn with_boundary(self, append: AppendFn) -> Wire {
        Wire { append, ..self }
    }

    pub(crate) const fn with_strict_rules(self, strict: &'static [StrictPair]) -> Wire {
        Wire { strict, ..self }
    }

    pub(crate) const fn with_more_rules(self, more_rules: &'static [&'static WireRules]) -> Wire {
        Wire { more_rules, ..self }
    }
}

/// Returns what a format without boundaries answers.
pub(crate) fn no_boundary(
    page: &DocumentContext<'_>,
    _: &View,
    _: &BoundaryStamp<'_>,
) -> Result<Vec<u8>, FormatError> {
    Err(FormatError::NoBoundary {
        format: page.document.format,
    })
}

/// A document with the conversation that was read from it.
pub(crate) struct DocumentContext<'a> {
    pub(crate) document: &'a Document,
    pub(crate) conversation: &'a Conversation,
    /// Of what was said in another document.
    pub(crate) circumstances: Option<&'a Circumstances>,
}

/// A view item with what it shows.
pub(crate) enum ShownItem<'a> {
    /// An entry as it stands in the source.
    Kept {
        place: &'a EntryPlace,
        item: &'a str,
    },
    /// An entry to be spliced.
    Edited {
        place: &'a EntryPlace,
        item: &'a str,
        edits: EntryEdits<'a>,
    },
    /// Text of the engine.
    New(&'a Entry),
}

impl<'a> DocumentContext<'a> {
    pub(crate) fn bytes(&self) -> &'a [u8] {
        &self.document.source
    }

    /// Returns an entry's place and JSON.
    pub(crate) fn entry_source(
        &self,
        index: usize,
    ) -> Result<(&'a EntryPlace, &'a str), FormatError> {
        let place = self
            .document
            .places
            .get(index)
            .ok_or(FormatError::NoSuchEntry {
                entry: index,
                entries: self.document.places.len(),
            })?;
        Ok((place, source::span_text(self.bytes(), place.span.clone())?))
    }

    /// Returns when a new entry was said, as JSON, if it comes from another document that knows.
    pub(crate) fn moment_of(&self, entry: &Entry) -> Option<&'a str> {
        self.circumstances?.moment_of(&entry.id)
    }

    pub(crate) fn resolve_item(&self, item: &'a ViewItem) -> Result<ShownItem<'a>, FormatError> {
        match item {
            ViewItem::New(entry) => Ok(ShownItem::New(entry)),
            ViewItem::Kept { entry } => {
                let (place, item) = self.entry_source(*entry)?;
                Ok(ShownItem::Kept { place, item })
            }
            ViewItem::Edited { entry, edits } => {
                let (place, item) = self.entry_source(*entry)?;
                Ok(ShownItem::Edited {
                    place,
                    item,
                    edits: EntryEdits(edits),
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
    pub(crate) fn starting_with(source: &[u8]) -> LineWriter {
        let mut writer = LineWriter::following(source);
        writer.out.splice(0..0, source.iter().copied());
        writer
    }

    /// Lines to stand behind `source`, without it.
    pub(crate) fn following(source: &[u8]) -> LineWriter {
        let mut writer = LineWriter::new(source);
        if !source.is_empty() && !source.ends_with(b"\n") {
            writer.out.extend_from_slice(writer.newline);
        }
        writer
    }

    pub(crate) fn write_line(&mut self, line: &[u8]) {
        self.out.extend_from_slice(line.trim_ascii_end());
        self.out.extend_from_slice(self.newline);
    }

    /// Returns the lines, each with its end: whoever writes next begins a line of its own.
    pub(crate) fn into_lines(self) -> Vec<u8> {
        self.out
    }

    /// Returns the lines; `source` says whether the last one ends in a newline.
    pub(crate) fn finish(mut self, source: &[u8]) -> Vec<u8> {
        if !source.ends_with(b"\n") && self.out.ends_with(self.newline) {
            self.out.truncate(self.out.len() - self.newline.len());
        }
        self.out
    }
}
