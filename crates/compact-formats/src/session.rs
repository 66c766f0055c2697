//! Files that hold many sessions: a list of runs, or one run per line.
//!
//! Each session is a slice of the file that is a document of its own: reading, compacting and
//! restoring one is reading, compacting and restoring those bytes. Nothing here writes a file of
//! many sessions.

use std::ops::Range;

use serde_json::value::RawValue;

use crate::Format;
use crate::detect::{FormatClues, detect};
use crate::error::FormatError;
use crate::json::{ItemContext, Members, is_object, is_string, span_in, string_value};
use crate::source;
use crate::surrogate::readable_json;

/// One session of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSlice {
    /// Which one, from 0.
    pub index: usize,
    /// What the file calls it.
    pub name: Option<String>,
    /// The format of the slice by itself.
    pub format: Format,
    /// The bytes of the file that are this session.
    pub span: Range<usize>,
}

/// Returns the sessions of a file in order; a file that is one session has one.
pub fn sessions(source: &[u8], format: Option<Format>) -> Result<Vec<SessionSlice>, FormatError> {
    let source = &*readable_json(source);
    let whole = || std::iter::once(0..source.len()).collect();
    let spans: Vec<_> = session_spans(source)?.unwrap_or_else(whole);
    let slice = |(index, span): (usize, Range<usize>)| {
        let bytes = source.get(span.clone()).unwrap_or_default();
        Ok(SessionSlice {
            index,
            name: session_name(bytes),
            format: format.map_or_else(|| detect(bytes), Ok)?,
            span,
        })
    };
    spans.into_iter().enumerate().map(slice).collect()
}

/// Returns the spans of the sessions when the source is a container of sessions.
pub(crate) fn session_spans(source: &[u8]) -> Result<Option<Vec<Range<usize>>>, FormatError> {
    let start = source::start_offset(source);
    let body = source.get(start..).unwrap_or_default().trim_ascii_start();
    let is_container = match body.first() {
        Some(b'[') => FormatClues::from_first_element(body).is_session(),
        Some(b'{') => return session_spans_in_object(source, body),
        _ => false,
    };
    if !is_container {
        return Ok(None);
    }
    let text = source::span_text(source, start..source.len())?;
    let at = ItemContext {
        source,
        offset: start,
    };
    spans(at, text, at.read(text)?).map(Some)
}

/// Runs under `simulations`, or one run per line.
fn session_spans_in_object(
    source: &[u8],
    body: &[u8],
) -> Result<Option<Vec<Range<usize>>>, FormatError> {
    let line = memchr::memchr(b'\n', body.trim_ascii_end()).and_then(|end| body.get(..end));
    let first = line.map(FormatClues::from_object);
    if first.is_some_and(|(clues, result)| result.is_ok() && clues.is_session()) {
        let lines = source::line_spans(source).into_iter();
        let said = |span: &Range<usize>| {
            let bytes = source.get(span.clone()).unwrap_or_default();
            !bytes.trim_ascii().is_empty()
        };
        let lines: Vec<_> = lines.filter(said).collect();
        return Ok((lines.len() > 1).then_some(lines));
    }
    if memchr::memmem::find(body, b"\"simulations\"").is_none() {
        return Ok(None);
    }
    let start = source::start_offset(source);
    let text = source::span_text(source, start..source.len())?;
    let at = ItemContext {
        source,
        offset: start,
    };
    match Members::from_json(text).get("simulations") {
        Some(list) if list.get().starts_with('[') => spans(at, text, list).map(Some),
        _ => Ok(None),
    }
}

fn spans(
    at: ItemContext<'_>,
    text: &str,
    list: &RawValue,
) -> Result<Vec<Range<usize>>, FormatError> {
    let elements = at.read_list("the document", list)?;
    let span = |element: &&RawValue| {
        if !is_object(element) {
            return Err(at.wrong_type("the document[]", "an object that is a session", element));
        }
        let span = span_in(text, element.get());
        Ok(at.offset + span.start..at.offset + span.end)
    };
    elements.iter().map(span).collect()
}

/// Members that say which session it is, the most telling first.
const NAMES: [&str; 6] = [
    "session_id",
    "instance_id",
    "sessionId",
    "id",
    "task_id",
    "trial",
];

fn session_name(session: &[u8]) -> Option<String> {
    let members = Members::from_json(std::str::from_utf8(session).ok()?);
    let said = |key: &str| {
        let raw = members.get(key)?;
        if is_string(raw) {
            return string_value(Some(raw)).map(String::from);
        }
        let is_number = raw.get().bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| format!("{key} {}", raw.get()))
    };
    let named = NAMES.iter().position(|key| said(key).is_some())?;
    // Runs of one task are told apart by their trial.
    let name = said(NAMES.get(named)?)?;
    match (NAMES.get(named), said("trial")) {
        (Some(&"task_id"), Some(trial)) => Some(format!("{name}, {trial}")),
        _ => Some(name),
    }
}

#[cfg(test)]
mod tests;
