//! What a format supplies: reading, and three ways of writing.

use std::borrow::Cow;

use compact_core::message::{Conversation, Entry};
use compact_core::view::{View, ViewItem};
use compact_core::wire::WireRules;

use crate::edit::Edits;
use crate::error::{FormatError, Position};
use crate::source::{Place, Reading};
use crate::{Document, Scope, Stamp};

/// One family of transcripts.
pub(crate) trait Wire: Sync {
    /// What its provider accepts.
    fn rules(&self) -> &'static WireRules;

    /// The entries of a transcript, each with its place.
    fn read(&self, source: &[u8], scope: Scope) -> Result<Reading, FormatError>;

    /// The view as a transcript of this wire.
    fn emit(&self, page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError>;

    /// The transcript followed by a boundary and the view.
    fn append(
        &self,
        page: &Page<'_>,
        _view: &View,
        _stamp: &Stamp<'_>,
    ) -> Result<Vec<u8>, FormatError> {
        Err(FormatError::NoBoundary {
            format: page.document.format,
        })
    }

    /// A transcript followed by the later one's entries from `from` on.
    fn extend(
        &self,
        first: &Document,
        later: &Page<'_>,
        from: usize,
    ) -> Result<Vec<u8>, FormatError>;
}

/// A document with the conversation that was read from it.
pub(crate) struct Page<'a> {
    pub(crate) document: &'a Document,
    pub(crate) conversation: &'a Conversation,
}

/// A view item with what it shows.
pub(crate) enum Shown<'a> {
    /// An entry as it stands in the source.
    Kept {
        place: &'a Place,
        entry: &'a Entry,
        item: &'a str,
    },
    /// An entry to be spliced.
    Edited {
        place: &'a Place,
        entry: &'a Entry,
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

    /// An entry with its place and JSON.
    pub(crate) fn entry(
        &self,
        index: usize,
    ) -> Result<(&'a Place, &'a Entry, &'a str), FormatError> {
        let place = self.document.places.get(index);
        let entry = self.conversation.entries.get(index);
        let (Some(place), Some(entry)) = (place, entry) else {
            return Err(FormatError::NoSuchEntry {
                entry: index,
                entries: self.document.places.len(),
            });
        };
        let bytes = self.bytes().get(place.span.clone()).unwrap_or_default();
        let item = std::str::from_utf8(bytes).map_err(|_| FormatError::Utf8 {
            at: Position::of(self.bytes(), place.span.start),
        })?;
        Ok((place, entry, item))
    }

    pub(crate) fn shown(&self, item: &'a ViewItem) -> Result<Shown<'a>, FormatError> {
        match item {
            ViewItem::New(entry) => Ok(Shown::New(entry)),
            ViewItem::Kept { entry } => {
                let (place, entry, item) = self.entry(*entry)?;
                Ok(Shown::Kept { place, entry, item })
            }
            ViewItem::Edited { entry, edits } => {
                let (place, entry, item) = self.entry(*entry)?;
                Ok(Shown::Edited {
                    place,
                    entry,
                    item,
                    edits: Edits(edits),
                })
            }
        }
    }
}

/// Lines of output, each ended, the last one as the source's last line is.
#[derive(Default)]
pub(crate) struct LineWriter {
    out: Vec<u8>,
}

impl LineWriter {
    /// Continues `source`, whose last line may lack its end.
    pub(crate) fn after(source: &[u8]) -> LineWriter {
        let mut writer = LineWriter {
            out: source.to_vec(),
        };
        if !source.is_empty() && !source.ends_with(b"\n") {
            writer.out.push(b'\n');
        }
        writer
    }

    pub(crate) fn line(&mut self, line: &[u8]) {
        self.out.extend_from_slice(line);
        self.out.push(b'\n');
    }

    /// The lines; `source` says whether the last one ends in a newline.
    pub(crate) fn finish(mut self, source: &[u8]) -> Vec<u8> {
        if !source.ends_with(b"\n") && self.out.ends_with(b"\n") {
            self.out.pop();
        }
        self.out
    }
}

/// A field's JSON, or null.
pub(crate) fn json_or_null(json: Option<&str>) -> Cow<'_, str> {
    Cow::Borrowed(json.unwrap_or("null"))
}
