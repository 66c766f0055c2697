//! Tells a transcript's format from its content, never from its name.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::Format;
use crate::error::{FormatError, Position};
use crate::json::{At, lenient};
use crate::source;

/// What the members of an object say about its format, as far as the object could be read.
#[derive(Default)]
struct Clues {
    kind: String,
    has_payload: bool,
    has_role: bool,
    has_messages: bool,
    is_claude: bool,
}

impl Clues {
    fn of(json: &[u8]) -> (Clues, Result<(), serde_json::Error>) {
        let mut clues = Clues::default();
        let mut reader = serde_json::Deserializer::from_slice(json);
        let result = Watch(&mut clues).deserialize(&mut reader);
        (clues, result.and_then(|()| reader.end()))
    }

    fn note(&mut self, key: &str) {
        match key {
            "payload" => self.has_payload = true,
            "role" => self.has_role = true,
            "messages" => self.has_messages = true,
            "parentUuid" | "sessionId" | "leafUuid" | "snapshot" => self.is_claude = true,
            _ => {}
        }
    }
}

/// Notes each member as it comes, so that an object cut short has still been seen.
struct Watch<'c>(&'c mut Clues);

impl<'de> DeserializeSeed<'de> for Watch<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Watch<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.0.note(&key);
            if key == "type" {
                let value = lenient(Some(map.next_value::<&RawValue>()?));
                self.0.kind = value.unwrap_or_default().into_owned();
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// How many lines are looked at before giving up.
const LINES: usize = 64;

/// Tells the format of a transcript.
pub fn detect(source: &[u8]) -> Result<Format, FormatError> {
    let start = source::start(source);
    let body = source.get(start..).unwrap_or_default();
    let Some(first) = body.iter().position(|b| !b.is_ascii_whitespace()) else {
        return Err(FormatError::Empty);
    };
    match body.get(first) {
        Some(b'[') => Ok(if calls_tools(body) {
            Format::OpenAiChat
        } else {
            Format::Messages
        }),
        Some(b'{') if is_document(body) => Ok(Format::OpenAiChat),
        Some(b'{') => detect_lines(source),
        _ => Err(FormatError::Unrecognised {
            at: Position::of(source, start + first),
        }),
    }
}

/// How much of a long line is looked at first.
const GLANCE: usize = 1 << 18;

/// True for an object with `messages`, on one line or over many.
pub(crate) fn is_document(body: &[u8]) -> bool {
    let body = body.trim_ascii();
    let line = memchr::memchr(b'\n', body)
        .and_then(|end| body.get(..end))
        .unwrap_or(body);
    if line
        .get(..GLANCE)
        .is_some_and(|glance| Clues::of(glance).0.has_messages)
    {
        return true;
    }
    match Clues::of(line) {
        (clues, _) if clues.has_messages => true,
        // A first line that ends in the middle of a value opens a document of several lines.
        (_, Err(error)) => error.is_eof() && line.len() < body.len(),
        (_, Ok(())) => false,
    }
}

/// Only a JSON string, never the inside of one, has these bytes between two bare quotes.
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
    let spans = source::lines(source);
    for span in spans.iter().take(LINES) {
        let text = source::text(source, span.clone())?.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let (clues, result) = Clues::of(text.as_bytes());
        result.map_err(|error| {
            At {
                source,
                offset: span.start,
            }
            .json(&error)
        })?;
        if let Some(format) = of_line(&clues) {
            let is_plain = format == Format::MessagesJsonl;
            return Ok(if is_plain && calls_tools(source) {
                Format::OpenAiChat
            } else {
                format
            });
        }
    }
    Err(FormatError::Unrecognised {
        at: Position::of(source, spans.first().map_or(0, |span| span.start)),
    })
}

fn of_line(clues: &Clues) -> Option<Format> {
    let codex = [
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
    ];
    if clues.has_payload {
        return codex
            .contains(&clues.kind.as_str())
            .then_some(Format::CodexRollout);
    }
    match (clues.has_role, clues.is_claude) {
        (true, _) => Some(Format::MessagesJsonl),
        (false, true) => Some(Format::ClaudeCode),
        (false, false) => None,
    }
}
