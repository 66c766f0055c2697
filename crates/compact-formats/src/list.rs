//! Documents whose entries are the elements of one JSON list, wherever in the document it stands.
//!
//! Everything around the list, and what stands between its elements, is the document's own and
//! stays as it is. What an element means is the wire's to say.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::Document;
use crate::error::FormatError;
use crate::json::{ItemContext, span_in};
use crate::source::{EntryPlace, SourceLayout};
use crate::wire::LineWriter;

/// The elements of a list with their places, and the layout that they make.
pub(crate) type ListElements<'a> = (Vec<(&'a RawValue, EntryPlace)>, SourceLayout);

/// Finds the elements of a list that stands in `text`, the source without its byte order mark.
pub(crate) fn find_elements<'a>(
    source: &[u8],
    text: &str,
    list: &'a RawValue,
    field: &str,
) -> Result<ListElements<'a>, FormatError> {
    let offset = source.len() - text.len();
    let elements = ItemContext { source, offset }.read_list(field, list)?;
    let place = |(line, raw): (usize, &&'a RawValue)| {
        let span = span_in(text, raw.get());
        let span = offset + span.start..offset + span.end;
        let part = None;
        (*raw, EntryPlace { line, span, part })
    };
    let places: Vec<_> = elements.iter().enumerate().map(place).collect();
    let layout = SourceLayout::List {
        open: offset + span_in(text, list.get()).start + 1,
        messages: places.iter().map(|(_, place)| place.span.clone()).collect(),
    };
    Ok((places, layout))
}

/// Returns what stands between two elements.
pub(crate) fn separator(document: &Document) -> &[u8] {
    match &document.layout {
        SourceLayout::List { messages, .. } => match messages.as_slice() {
            [first, second, ..] => document.source.get(first.end..second.start).unwrap_or(b","),
            _ => b",",
        },
        SourceLayout::Lines { .. } => b"\n",
    }
}

/// Elements in the document's own layout: everything around the list stays.
pub(crate) fn emit(document: &Document, elements: &[Cow<'_, str>]) -> Vec<u8> {
    let source = &document.source;
    let SourceLayout::List { open, messages } = &document.layout else {
        let mut writer = LineWriter::new(source);
        elements
            .iter()
            .for_each(|e| writer.write_line(e.as_bytes()));
        return writer.finish(source);
    };
    let begin = messages.first().map_or(*open, |first| first.start);
    let end = messages.last().map_or(*open, |last| last.end);
    let mut out = source.get(..begin).unwrap_or_default().to_vec();
    for (i, element) in elements.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(separator(document));
        }
        out.extend_from_slice(element.as_bytes());
    }
    out.extend_from_slice(source.get(end..).unwrap_or_default());
    out
}

/// Returns the document with more elements at the end of its list.
pub(crate) fn extend(first: &Document, added: &[&str]) -> Vec<u8> {
    let source = &first.source;
    let SourceLayout::List { open, messages } = &first.layout else {
        let mut writer = LineWriter::starting_with(source);
        added
            .iter()
            .for_each(|item| writer.write_line(item.as_bytes()));
        return writer.finish(source);
    };
    let end = messages.last().map_or(*open, |last| last.end);
    let (head, tail) = source.split_at_checked(end).unwrap_or((source, &[]));
    let mut out = head.to_vec();
    for (i, item) in added.iter().enumerate() {
        if i > 0 || !messages.is_empty() {
            out.extend_from_slice(separator(first));
        }
        out.extend_from_slice(item.as_bytes());
    }
    out.extend_from_slice(tail);
    out
}
