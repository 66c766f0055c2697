//! Tells a transcript's format from its content, never from its name.
//!
//! A format knows its own signs ([`FormatSigns`]). What is decided here is where to look for them, and which
//! of the formats that are lists of messages it is: those look alike until tools are used.

mod request_body;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::Format;
use crate::error::{FormatError, Position};
use crate::json::{ItemContext, string_value};
use crate::source;
use crate::surrogate::readable_json;

/// Members whose value is a list that holds the entries of a session, or sessions.
const LISTS: [&str; 4] = ["messages", "history", "traj", "simulations"];

/// The signs of a format in the members of an object, as far as it could be read.
#[derive(Debug, Default)]
pub(crate) struct FormatClues {
    /// The value of `type`.
    kind: String,
    /// The names of its members.
    keys: Vec<String>,
    /// The first elements of the lists among them, by name.
    firsts: Vec<(&'static str, FormatClues)>,
    /// True when these are all the clues of a list's first element.
    in_list: bool,
}

/// What a format is told by. Each of these is asked of what it is named after, and the formats of later rows
/// of the table before those of earlier ones.
#[derive(Clone, Copy)]
pub(crate) struct FormatSigns {
    /// A line of a file of lines; the first line that somebody knows decides.
    pub(crate) line: fn(&FormatClues) -> bool,
    /// An object that holds a session.
    pub(crate) document: fn(&FormatClues) -> bool,
    /// The first element of a list.
    pub(crate) element: fn(&FormatClues) -> bool,
    /// The bytes of a file that does not begin like JSON, from its first visible one.
    pub(crate) text: fn(&[u8]) -> bool,
}

impl FormatSigns {
    /// The signs of a format that is told by comparison.
    pub(crate) const NONE: FormatSigns = FormatSigns {
        line: |_| false,
        document: |_| false,
        element: |_| false,
        text: |_| false,
    };
}

/// Returns the format that shows one of its signs, the last of the table first.
fn format_with_sign(shows: impl Fn(&FormatSigns) -> bool) -> Option<Format> {
    let mut formats = Format::ALL.iter().rev().copied();
    formats.find(|format| shows(&format.wire().signs))
}

/// Members beyond this many tell nothing new.
const MAX_KEYS: usize = 64;

impl FormatClues {
    pub(crate) fn from_object(json: &[u8]) -> (FormatClues, Result<(), serde_json::Error>) {
        let mut clues = FormatClues::default();
        let mut reader = serde_json::Deserializer::from_slice(json);
        let result = ObjectClueVisitor(&mut clues).deserialize(&mut reader);
        (clues, result.and_then(|()| reader.end()))
    }

    /// Returns the clues of the first element of a list.
    pub(crate) fn from_first_element(json: &[u8]) -> FormatClues {
        let mut clues = FormatClues::default();
        let mut reader = serde_json::Deserializer::from_slice(json);
        // A list that is cut short, or no list, has told what it can.
        let _ = ListClueVisitor(&mut clues).deserialize(&mut reader);
        clues
    }

    pub(crate) fn has_member(&self, key: &str) -> bool {
        self.keys.iter().any(|known| known == key)
    }

    /// Returns the clues of the first element of the list under `key`.
    fn first_element(&self, key: &str) -> Option<&FormatClues> {
        let mut firsts = self.firsts.iter();
        firsts.find(|(name, _)| *name == key).map(|(_, c)| c)
    }

    /// Returns the value of `type`; empty without one.
    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns whether the list under `key` begins with an object that has this member.
    pub(crate) fn opens_list_with(&self, key: &str, member: &str) -> bool {
        self.first_element(key)
            .is_some_and(|first| first.has_member(member))
    }

    /// Returns true for the body of a request whose history is under `key`.
    pub(crate) fn is_request_with(&self, key: &str) -> bool {
        let is_other = self.has_member("role") || self.has_member("messages");
        self.kind.is_empty() && !is_other && self.has_member(key)
    }

    /// Returns true for the record of a run that keeps its history under that name.
    pub(crate) fn is_run_with_history(&self) -> bool {
        let is_other = ["role", "messages", "payload"];
        self.has_member("history") && !is_other.iter().any(|key| self.has_member(key))
    }

    /// Returns true for what an agent did or saw.
    pub(crate) fn is_event(&self) -> bool {
        self.has_member("action") || self.has_member("observation")
    }

    /// Returns true for an object that holds a whole session among others of its kind.
    pub(crate) fn is_session(&self) -> bool {
        let is_entry = self.has_member("role") || self.is_event();
        let holds = |key: &&str| self.first_element(key).is_some_and(|first| first.in_list);
        !is_entry && ["messages", "history", "traj"].iter().any(holds)
    }
}

/// Notes each member as it comes, so that an object cut short has still been seen.
struct ObjectClueVisitor<'c>(&'c mut FormatClues);

impl<'de> DeserializeSeed<'de> for ObjectClueVisitor<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectClueVisitor<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if let Some(list) = LISTS.into_iter().find(|list| *list == key) {
                self.0.firsts.push((list, FormatClues::default()));
                self.0.keys.push(key);
                if let Some((_, first)) = self.0.firsts.last_mut() {
                    map.next_value_seed(ListClueVisitor(first))?;
                }
                continue;
            }
            if key == "type" {
                let value = string_value(Some(map.next_value::<&RawValue>()?));
                self.0.kind = value.unwrap_or_default().into_owned();
            } else {
                if self.0.keys.len() < MAX_KEYS {
                    self.0.keys.push(key);
                }
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Notes the members of the first object in a list, or in a list of lists.
struct ListClueVisitor<'c>(&'c mut FormatClues);

impl<'de> DeserializeSeed<'de> for ListClueVisitor<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

macro_rules! tells_nothing {
    ($($visit:ident($type:ty))*) => {$(
        fn $visit<E: serde::de::Error>(self, _: $type) -> Result<(), E> {
            Ok(())
        }
    )*};
}

impl<'de> Visitor<'de> for ListClueVisitor<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<(), S::Error> {
        let first = list.next_element_seed(ListClueVisitor(self.0))?;
        self.0.in_list = true;
        while first.is_some() && list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<(), M::Error> {
        ObjectClueVisitor(self.0).visit_map(map)
    }
    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }
    tells_nothing! { visit_bool(bool) visit_i64(i64) visit_u64(u64) visit_f64(f64) visit_str(&str) }
}

/// How many lines are looked at before giving up.
const MAX_LINES: usize = 64;

/// Tells the format of a transcript, or of the sessions that it holds.
pub fn detect(source: &[u8]) -> Result<Format, FormatError> {
    let source = &*readable_json(source);
    let start = source::start_offset(source);
    let body = source.get(start..).unwrap_or_default();
    let Some(first) = body.iter().position(|b| !b.is_ascii_whitespace()) else {
        return Err(FormatError::Empty);
    };
    let unrecognised = || FormatError::Unrecognised {
        at: Position::at_offset(source, start + first),
    };
    match body.get(first) {
        Some(b'[') => format_of_list(body).ok_or_else(unrecognised),
        Some(b'{') => match document_clues(body) {
            Some(clues) => Ok(match format_of_document(&clues) {
                None | Some(Format::OpenAiChat) => request_body::format_of_messages(body),
                Some(format) => format,
            }),
            None => detect_lines(source),
        },
        _ => {
            let text = body.get(first..).unwrap_or_default();
            let told = format_with_sign(|signs| (signs.text)(text));
            told.ok_or_else(|| unknown_text_error(source, start, first))
        }
    }
}

/// Returns the error for what is no JSON: a file that is no text, UTF-16 or compressed, is told so by its first
/// bytes.
fn unknown_text_error(source: &[u8], start: usize, first: usize) -> FormatError {
    let body = source.get(start..).unwrap_or_default();
    match std::str::from_utf8(body) {
        Ok(_) => FormatError::Unrecognised {
            at: Position::at_offset(source, start + first),
        },
        Err(error) => FormatError::Utf8 {
            at: Position::at_offset(source, start + error.valid_up_to()),
        },
    }
}

/// How much of a long line is looked at first.
const GLANCE_BYTES: usize = 1 << 18;

/// Returns true for an object with `messages`, on one line or over many.
pub(crate) fn is_document(body: &[u8]) -> bool {
    document_clues(body).is_some()
}

/// Returns the clues of a body that is one object with the entries of a session in it.
fn document_clues(body: &[u8]) -> Option<FormatClues> {
    let body = body.trim_ascii();
    let line = memchr::memchr(b'\n', body)
        .and_then(|end| body.get(..end))
        .unwrap_or(body);
    if let Some(glance) = line.get(..GLANCE_BYTES) {
        let (clues, _) = FormatClues::from_object(glance);
        if clues.is_decisive() {
            return Some(clues);
        }
    }
    match FormatClues::from_object(line) {
        // A first line that ends in the middle of a value opens a document of several lines.
        (_, Err(error)) if error.is_eof() && line.len() < body.len() => {
            Some(FormatClues::from_object(body).0)
        }
        (clues, _) if format_of_document(&clues).is_some() => Some(clues),
        _ => None,
    }
}

impl FormatClues {
    /// Returns whether no later member could change the answer.
    fn is_decisive(&self) -> bool {
        let is_message = self
            .first_element("messages")
            .is_some_and(|m| m.has_member("role"));
        is_message || format_of_document(self).is_some_and(|format| format != Format::OpenAiChat)
    }
}

/// Returns the format of an object that holds a session.
fn format_of_document(clues: &FormatClues) -> Option<Format> {
    let holds_messages = clues.has_member("messages") || clues.has_member("simulations");
    // One message, whatever else it holds, is no session.
    let is_chat = holds_messages && !clues.has_member("role");
    format_with_sign(|signs| (signs.document)(clues)).or(is_chat.then_some(Format::OpenAiChat))
}

/// Returns the format of a list: of messages, of events, or of sessions.
fn format_of_list(body: &[u8]) -> Option<Format> {
    let first = FormatClues::from_first_element(body);
    if let Some(format) = format_with_sign(|signs| (signs.element)(&first)) {
        return Some(format);
    }
    let format = match format_of_document(&first) {
        Some(format) if first.is_session() => format,
        _ => request_body::format_of_message_list(&first, body),
    };
    // A list of objects that nobody speaks in is a list of something else.
    let is_silent = !first.keys.is_empty() && !first.has_member("role");
    (format != Format::Messages || !is_silent).then_some(format)
}

/// Returns whether a body names tool calls. Only a whole JSON string, never part of one, stands between two
/// bare quotes.
fn calls_tools(body: &[u8]) -> bool {
    [
        &b"\"tool_calls\""[..],
        b"\"tool_call_id\"",
        b"\"function_call\"",
    ]
    .iter()
    .any(|key| memchr::memmem::find(body, key).is_some())
}

fn detect_lines(source: &[u8]) -> Result<Format, FormatError> {
    let spans = source::line_spans(source);
    for span in spans.iter().take(MAX_LINES) {
        let text = source::span_text(source, span.clone())?.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let (clues, result) = FormatClues::from_object(text.as_bytes());
        result.map_err(|error| {
            ItemContext {
                source,
                offset: span.start,
            }
            .json_error(&error)
        })?;
        if let Some(format) = format_of_line(&clues) {
            let is_plain = format == Format::MessagesJsonl;
            return Ok(if is_plain && calls_tools(source) {
                Format::OpenAiChat
            } else {
                format
            });
        }
    }
    Err(FormatError::Unrecognised {
        at: Position::at_offset(source, spans.first().map_or(0, |span| span.start)),
    })
}

fn format_of_line(clues: &FormatClues) -> Option<Format> {
    let is_message = clues.has_member("role") && !clues.has_member("payload");
    format_with_sign(|signs| (signs.line)(clues)).or(is_message.then_some(Format::MessagesJsonl))
}
