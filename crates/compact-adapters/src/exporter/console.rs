//! Events as text: a line to read, or a line of JSON.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use compact_core::event::Event;
use compact_runtime::port::event::EventSink;
use serde::Serialize;
use serde_json::Value;

/// The longest value shown to a person.
const MAX_CHARS: usize = 64;

/// The format of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConsoleFormat {
    /// For people: `12:00:01 compact.trigger_decision session=abc 112,345/128,000 (88%) compact`.
    #[default]
    Human,
    /// For programs: the event itself, one per line.
    Json,
}

impl ConsoleFormat {
    /// Writes an event as one line, without its end: one of ours, or a host's JSON.
    pub fn format_event(self, event: &impl Serialize) -> String {
        let json = serde_json::to_value(event).unwrap_or_default();
        match self {
            ConsoleFormat::Human => human_line(&json),
            ConsoleFormat::Json => json.to_string(),
        }
    }
}

/// Writes events to a stream. A write that fails is forgotten; for a stream that may block (a
/// pipe, a terminal that was stopped), put a [`Background`](super::BackgroundSink) in front.
#[derive(Debug)]
pub struct ConsoleSink<W> {
    form: ConsoleFormat,
    out: Mutex<W>,
}

impl ConsoleSink<io::Stderr> {
    /// Events to standard error, so that standard output stays the program's.
    pub fn stderr(form: ConsoleFormat) -> ConsoleSink<io::Stderr> {
        ConsoleSink::new(form, io::stderr())
    }
}

impl<W: Write + Send> ConsoleSink<W> {
    /// Events to any stream.
    pub fn new(form: ConsoleFormat, out: W) -> ConsoleSink<W> {
        ConsoleSink {
            form,
            out: Mutex::new(out),
        }
    }
}

impl<W: Write + Send> EventSink for ConsoleSink<W> {
    fn emit(&self, event: &Event) {
        let mut line = self.form.format_event(event);
        line.push('\n');
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }
}

/// Fields that have their own place in the line, or none because every line repeats them.
const PLACED: [&str; 12] = [
    "ts",
    "trace_id",
    "span_id",
    "parent_span_id",
    "session_id",
    "event",
    "severity",
    "model",
    "t_est",
    "max",
    "policy",
    "verdict",
];

/// Returns one line for a person: time, name, session, how full the window is, the verdict, and whatever
/// else the event says that is not nothing.
fn human_line(event: &Value) -> String {
    let time = time_of_day(event);
    match time.as_str() {
        "" => event_line(event),
        time => format!("{time} {}", event_line(event)),
    }
}

/// Formats an event as one line for people, without the time.
pub(super) fn event_line(event: &Value) -> String {
    let mut parts = vec![text_field(event, "event").unwrap_or_else(|| "event".to_owned())];
    parts.extend(
        text_field(event, "severity")
            .filter(|word| word != "info")
            .map(|word| format!("[{word}]")),
    );
    parts.extend(text_field(event, "session_id").map(|id| format!("session={id}")));
    parts.extend(window_fullness(event));
    parts.extend(text_field(event, "verdict"));
    for (key, value) in event.as_object().into_iter().flatten() {
        if !PLACED.contains(&key.as_str()) {
            push_details(key, value, &mut parts);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

/// Returns the time of day of an ISO-8601 timestamp.
fn time_of_day(event: &Value) -> String {
    let ts = text_field(event, "ts").unwrap_or_default();
    let time = ts.split_once('T').map_or(ts.as_str(), |(_, time)| time);
    time.chars().take("12:00:01".len()).collect()
}

fn window_fullness(event: &Value) -> Option<String> {
    let tokens = event.get("t_est")?.as_u64()?;
    let max = event.get("max")?.as_u64().filter(|max| *max > 0)?;
    let percent = (u128::from(tokens) * 100 + u128::from(max / 2)) / u128::from(max);
    Some(format!(
        "{}/{} ({percent}%)",
        group_digits(tokens),
        group_digits(max)
    ))
}

/// Appends `key=value`, or `key.inner=value` for each field of an object; zeros and blanks are left out.
fn push_details(key: &str, value: &Value, parts: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(false) => {}
        Value::Number(number) if number.as_f64() == Some(0.0) => {}
        Value::Object(fields) => {
            for (inner, value) in fields {
                push_details(&format!("{key}.{inner}"), value, parts);
            }
        }
        other => parts.push(format!("{}={}", make_printable(key), render_detail(other))),
    }
}

fn render_detail(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains(' ') || text.is_empty() => {
            format!("\"{}\"", make_printable(text))
        }
        Value::String(text) => make_printable(text),
        Value::Number(number) => number
            .as_u64()
            .map_or_else(|| number.to_string(), group_digits),
        other => make_printable(&other.to_string()),
    }
}

/// Returns a text field, fit to be shown.
fn text_field(event: &Value, key: &str) -> Option<String> {
    event.get(key)?.as_str().map(make_printable)
}

/// Returns a short text without anything that could move a cursor or break a line.
fn make_printable(text: &str) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        match c {
            _ if n == MAX_CHARS => {
                out.push('…');
                break;
            }
            // Bidirectional marks would reorder the rest of the line.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                let _ = write!(out, "{}", c.escape_unicode());
            }
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// Formats `1234567` as `1,234,567`.
fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
