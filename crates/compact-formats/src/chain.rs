//! Lines that hang on each other by `id` and `parentId`, written so that the chain stays whole.

mod content;
pub(crate) mod write;

use compact_core::message::Entry;

use crate::Document;
use crate::error::FormatError;
use crate::fresh;
use crate::json::{Members, Patch, quote, string_value};
use crate::source::SourceLayout;
use crate::wire::{DocumentContext, LineWriter};

pub(crate) use self::content::LineContent;

/// Writes lines, each hung on the one before it.
pub(crate) struct LineChain {
    pub(crate) lines: LineWriter,
    /// The id of the latest line, where lines have ids.
    last: Option<String>,
    /// That of the latest line, as JSON.
    pub(crate) timestamp: String,
    written: usize,
}

impl LineChain {
    /// Returns a chain that begins, with line ends as in `source`.
    pub(crate) fn new(source: &[u8]) -> LineChain {
        LineChain {
            lines: LineWriter::new(source),
            last: None,
            timestamp: fresh::EPOCH.to_owned(),
            written: 0,
        }
    }

    /// Returns a chain that continues a document, into `writer`.
    pub(crate) fn following_document(source: &[u8], writer: LineWriter) -> LineChain {
        let lines = crate::source::line_spans(source);
        let members = |span: &std::ops::Range<usize>| {
            let json = std::str::from_utf8(source.get(span.clone())?).ok()?;
            let members = Members::from_json(json);
            members.get("id").is_some().then_some(members)
        };
        let last = lines.iter().rev().find_map(members);
        LineChain {
            last: last.and_then(|members| string_value(members.get("id")).map(String::from)),
            lines: writer,
            written: lines.len(),
            ..LineChain::new(source)
        }
    }

    /// Writes a line of the document, with another parent if its own is not the one before it.
    pub(crate) fn write_line(&mut self, json: &str) {
        let members = Members::from_json(json);
        if let Some(timestamp) = members.get("timestamp") {
            timestamp.get().clone_into(&mut self.timestamp);
        }
        self.written += 1;
        let Some(id) = string_value(members.get("id")) else {
            return self.lines.write_line(json.as_bytes());
        };
        // The first line of some documents is their head: it has an id and no parent.
        let is_head = self.last.is_none() && members.get("parentId").is_none();
        if is_head || string_value(members.get("parentId")).as_deref() == self.last.as_deref() {
            self.lines.write_line(json.as_bytes());
        } else {
            let mut patch = Patch::new(json);
            patch.set_member(json, "parentId", self.parent());
            self.lines.write_line(patch.finish().as_bytes());
        }
        if members.get("parentId").is_some() || !is_head {
            self.last = Some(id.into_owned());
        }
    }

    /// Returns the parent of the next line, as JSON.
    fn parent(&self) -> String {
        self.last.as_deref().map_or("null".to_owned(), quote)
    }

    /// Writes a line of our own around `body`, the members that make it what it is.
    pub(crate) fn write_new_line(&mut self, name: &str, has_ids: bool, body: &str) {
        let timestamp = &self.timestamp;
        let line = if has_ids {
            let id = fresh::stable_uuid(name, self.written);
            let parent = self.parent();
            let line = format!(
                "{{{body},\"id\":{},\"timestamp\":{timestamp},\"parentId\":{parent}}}",
                quote(&id)
            );
            self.last = Some(id);
            line
        } else {
            format!("{{{body},\"timestamp\":{timestamp}}}")
        };
        self.written += 1;
        self.lines.write_line(line.as_bytes());
    }

    /// Repeats a line after a boundary, under an id of its own.
    pub(crate) fn write_copy(&mut self, json: &str, entry: &Entry) {
        let members = Members::from_json(json);
        let mut patch = Patch::new(json);
        if members.get("id").is_some() {
            let id = fresh::stable_uuid(&entry.id.0, self.written);
            patch.set_member(json, "id", quote(&id));
            patch.set_member(json, "parentId", self.parent());
            self.last = Some(id);
        }
        patch.set_member(json, "timestamp", self.timestamp.clone());
        patch.set_member(json, "compactedFrom", quote(&entry.id.0));
        self.written += 1;
        self.lines.write_line(patch.finish().as_bytes());
    }
}

/// Returns the JSON of a line of the document.
pub(crate) fn line_json<'a>(page: &DocumentContext<'a>, index: usize) -> &'a str {
    let SourceLayout::Lines { lines, .. } = &page.document.layout else {
        return "";
    };
    let bytes = lines
        .get(index)
        .and_then(|span| page.bytes().get(span.clone()));
    std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
}

/// Returns how many lines the document has.
pub(crate) fn line_count(page: &DocumentContext<'_>) -> usize {
    match &page.document.layout {
        SourceLayout::Lines { lines, .. } => lines.len(),
        SourceLayout::List { .. } => 0,
    }
}

/// Returns the first document and the later one's lines from the entry on.
pub(crate) fn extend(
    first: &Document,
    later: &DocumentContext<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    let start = later.entry_source(from)?.0.line;
    let mut chain =
        LineChain::following_document(&first.source, LineWriter::starting_with(&first.source));
    for index in start..line_count(later) {
        chain.write_line(line_json(later, index).trim_ascii());
    }
    Ok(chain.lines.finish(later.bytes()))
}
