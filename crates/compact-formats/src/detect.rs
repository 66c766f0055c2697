//! Tells a transcript's format from its content, never from its name.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::Format;
use crate::error::{FormatError, Position};
use crate::json::{At, lenient};
use crate::source;

/// The members that tell formats apart.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Probe<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    role: Option<&'a RawValue>,
    payload: Option<IgnoredAny>,
    message: Option<IgnoredAny>,
    messages: Option<IgnoredAny>,
    #[serde(rename = "sessionId")]
    session_id: Option<IgnoredAny>,
    #[serde(rename = "parentUuid")]
    parent_uuid: Option<IgnoredAny>,
    uuid: Option<IgnoredAny>,
    #[serde(rename = "leafUuid")]
    leaf_uuid: Option<IgnoredAny>,
    snapshot: Option<IgnoredAny>,
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

/// True for an object with `messages`, on one line or over many.
pub(crate) fn is_document(body: &[u8]) -> bool {
    let line = body.trim_ascii_start();
    let line = line.split(|b| *b == b'\n').next().unwrap_or_default();
    match serde_json::from_slice::<Probe<'_>>(line) {
        Ok(probe) => probe.messages.is_some(),
        // A first line that ends in the middle of a value opens a document of several lines.
        Err(error) => error.is_eof() && line.len() < body.trim_ascii().len(),
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
        let probe: Probe<'_> = At {
            source,
            offset: span.start,
        }
        .read(text)?;
        if let Some(format) = of_line(&probe) {
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

fn of_line(probe: &Probe<'_>) -> Option<Format> {
    let kind = lenient(probe.r#type).unwrap_or_default();
    if probe.payload.is_some() {
        let known = [
            "session_meta",
            "response_item",
            "event_msg",
            "turn_context",
            "compacted",
        ];
        return known
            .contains(&kind.as_ref())
            .then_some(Format::CodexRollout);
    }
    let is_claude = probe.parent_uuid.is_some()
        || probe.session_id.is_some()
        || probe.leaf_uuid.is_some()
        || (probe.uuid.is_some() && probe.message.is_some())
        || (kind == "file-history-snapshot" && probe.snapshot.is_some());
    if is_claude {
        return Some(Format::ClaudeCode);
    }
    lenient(probe.role).map(|_| Format::MessagesJsonl)
}
