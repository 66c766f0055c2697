//! Events as text: a line to read, or a line of JSON (S2-51).

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use compact_runtime::port::event::EventSink;
use serde_json::Value;

/// The longest value shown to a person.
const MAX_CHARS: usize = 64;

/// How an event is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// For people: `12:00:01 compact.trigger_decision session=abc 112,345/128,000 (88%) compact`.
    #[default]
    Human,
    /// For programs: the event itself, one per line.
    Json,
}

impl Form {
    /// An event as one line, without its end.
    pub fn line(self, event: &Value) -> String {
        match self {
            Form::Human => human(event),
            Form::Json => event.to_string(),
        }
    }
}

/// Writes events to a stream. A write that fails is forgotten; for a stream that may block (a
/// pipe, a terminal that was stopped), put a [`Background`](super::Background) in front.
#[derive(Debug)]
pub struct Console<W> {
    form: Form,
    out: Mutex<W>,
}

impl Console<io::Stderr> {
    /// Events to standard error, so that standard output stays the program's.
    pub fn stderr(form: Form) -> Console<io::Stderr> {
        Console::new(form, io::stderr())
    }
}

impl<W: Write + Send> Console<W> {
    /// Events to any stream.
    pub fn new(form: Form, out: W) -> Console<W> {
        Console {
            form,
            out: Mutex::new(out),
        }
    }
}

impl<W: Write + Send> EventSink for Console<W> {
    fn emit(&self, event: &Value) {
        let mut line = self.form.line(event);
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

/// One line for a person: time, name, session, how full the window is, the verdict, and whatever
/// else the event says that is not nothing.
fn human(event: &Value) -> String {
    let time = time(event);
    match time.as_str() {
        "" => line(event),
        time => format!("{time} {}", line(event)),
    }
}

/// The same without the time.
pub(super) fn line(event: &Value) -> String {
    let mut parts = vec![text(event, "event").unwrap_or_else(|| "event".to_owned())];
    parts.extend(
        text(event, "severity")
            .filter(|word| word != "info")
            .map(|word| format!("[{word}]")),
    );
    parts.extend(text(event, "session_id").map(|id| format!("session={id}")));
    parts.extend(fullness(event));
    parts.extend(text(event, "verdict"));
    for (key, value) in event.as_object().into_iter().flatten() {
        if !PLACED.contains(&key.as_str()) {
            details(key, value, &mut parts);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

/// The time of day of an ISO-8601 timestamp.
fn time(event: &Value) -> String {
    let ts = text(event, "ts").unwrap_or_default();
    let time = ts.split_once('T').map_or(ts.as_str(), |(_, time)| time);
    time.chars().take("12:00:01".len()).collect()
}

fn fullness(event: &Value) -> Option<String> {
    let tokens = event.get("t_est")?.as_u64()?;
    let max = event.get("max")?.as_u64().filter(|max| *max > 0)?;
    let percent = (u128::from(tokens) * 100 + u128::from(max / 2)) / u128::from(max);
    Some(format!("{}/{} ({percent}%)", grouped(tokens), grouped(max)))
}

/// `key=value`, or `key.inner=value` for each field of an object; zeros and blanks are left out.
fn details(key: &str, value: &Value, parts: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(false) => {}
        Value::Number(number) if number.as_f64() == Some(0.0) => {}
        Value::Object(fields) => {
            for (inner, value) in fields {
                details(&format!("{key}.{inner}"), value, parts);
            }
        }
        other => parts.push(format!("{}={}", printable(key), shown(other))),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains(' ') || text.is_empty() => {
            format!("\"{}\"", printable(text))
        }
        Value::String(text) => printable(text),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), grouped),
        other => printable(&other.to_string()),
    }
}

/// A text field, fit to be shown.
fn text(event: &Value, key: &str) -> Option<String> {
    event.get(key)?.as_str().map(printable)
}

/// A short text without anything that could move a cursor or break a line.
fn printable(text: &str) -> String {
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

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
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
