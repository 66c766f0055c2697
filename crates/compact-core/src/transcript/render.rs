//! Render: a transcript as the text that a summarizer reads, the same bytes for the same events.
//!
//! Every event is a heading `[turn 001] WHO:` and a body. No body can pass for a heading: a line of
//! it that begins like one is quoted, so a tool's output cannot speak as the user. Nothing is cut
//! here; what is too large for a model is the summarizer's to divide.

use serde_json::Value;

use super::{TranscriptEventKind, event_type, since_boundary};
use crate::speech;

/// How every heading begins.
const HEADING: &str = "[turn ";

/// Renders what happened since the last compaction, after the summary that it left: one text for each
/// event, since it may be divided between them.
pub fn render_sections(events: &[Value], previous: Option<&str>) -> Vec<String> {
    let (mut turn, events) = since_boundary(events);
    let mut out = Vec::new();
    if let Some(summary) = previous {
        out.push(render_section(turn, "PREVIOUS_SUMMARY", summary));
    }
    for event in events {
        if TranscriptEventKind::from_event(event) == TranscriptEventKind::User {
            turn += 1;
        }
        if let Some((heading, body)) = heading_and_body(event) {
            out.push(render_section(turn, &heading, &body));
        }
    }
    // An empty line stands between two sections and not behind the last.
    if let Some(last) = out.last_mut() {
        last.pop();
    }
    out
}

fn render_section(turn: usize, heading: &str, body: &str) -> String {
    let mut out = format!("{HEADING}{turn:03}] {heading}:\n");
    out.push_str(&speech::quote_headings(
        body.trim_end_matches(['\n', '\r']),
        HEADING,
    ));
    out.push_str("\n\n");
    out
}

/// Heading and body of an event; `None` for what a summarizer need not know.
fn heading_and_body(event: &Value) -> Option<(String, String)> {
    Some(match TranscriptEventKind::from_event(event) {
        TranscriptEventKind::User => ("USER".to_owned(), field_text(event, "content")),
        TranscriptEventKind::Assistant => (
            "ASSISTANT (completed)".to_owned(),
            field_text(event, "response"),
        ),
        TranscriptEventKind::ToolResult => ("TOOL_RESULT".to_owned(), field_text(event, "result")),
        TranscriptEventKind::ToolRequest => (request_heading(event), json(event.get("args"))),
        TranscriptEventKind::Approval => {
            (event_type(event).to_ascii_uppercase(), without_type(event))
        }
        TranscriptEventKind::Other => (
            format!("EVENT (type={})", one_line(event_type(event))),
            without_type(event),
        ),
        TranscriptEventKind::Boundary
        | TranscriptEventKind::Fragment
        | TranscriptEventKind::Aside => return None,
    })
}

fn request_heading(event: &Value) -> String {
    let field = |key: &str| one_line(event.get(key).and_then(Value::as_str).unwrap_or("unknown"));
    format!(
        "TOOL_REQUEST (tool={}, request_id={})",
        field("tool_name"),
        field("request_id")
    )
}

/// A name that goes into a heading must not end it.
fn one_line(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_control() || speech::is_line_break(c) {
                ' '
            } else {
                c
            }
        })
        .collect()
}

/// A field as text: words as they are, anything else as JSON.
fn field_text(event: &Value, key: &str) -> String {
    match event.get(key) {
        Some(Value::String(text)) => text.clone(),
        other => json(other),
    }
}

fn json(value: Option<&Value>) -> String {
    value.map_or_else(String::new, Value::to_string)
}

/// The event as one line of JSON; its heading says the type.
fn without_type(event: &Value) -> String {
    match event {
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.shift_remove("type");
            Value::Object(fields).to_string()
        }
        other => other.to_string(),
    }
}
