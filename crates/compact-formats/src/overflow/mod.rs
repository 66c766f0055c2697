//! Recognises that a provider refused a prompt because it is too large.
//!
//! No two providers say it alike: a code, a sentence with the numbers in it, a stop reason in an
//! answer that went well, or a stream that ends before its first event. Codes are compared whole;
//! sentences are looked for only where an answer carries its error, never in text that it echoes.
//! What to do about it is the caller's to decide.

mod phrase;
#[cfg(test)]
mod tests;

use compact_core::token::Tokens;
use serde_json::{Map, Value};

/// A prompt was larger than the model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// What the prompt costs, when the provider said it.
    pub tokens: Option<Tokens>,
    /// What the model takes, when the provider said it.
    pub limit: Option<Tokens>,
    /// How sure that is.
    pub sign: OverflowSign,
}

/// The way in which an overflow was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverflowSign {
    /// The provider said so.
    Said,
    /// A stream ended before its first event, as some servers do when a prompt does not fit: an
    /// overflow if the context is large, anything else if it is not.
    Silent,
}

impl Overflow {
    /// An overflow of unknown size.
    const SAID: Overflow = Overflow {
        tokens: None,
        limit: None,
        sign: OverflowSign::Said,
    };

    /// Fills in numbers that are not known yet.
    fn fill_missing(self, other: Overflow) -> Overflow {
        Overflow {
            tokens: self.tokens.or(other.tokens),
            limit: self.limit.or(other.limit),
            sign: self.sign,
        }
    }
}

/// Codes, types and reasons that mean it, whatever else is said.
const CODES: [&str; 6] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
    "model_max_prompt_tokens_exceeded",
    "request_too_large",
    "context_window_exceeded",
];

/// Codes that mean something else, though the sentence sounds alike.
const OTHER_CODES: [&str; 4] = [
    "rate_limit_exceeded",
    "rate_limit_error",
    "tokens",
    "insufficient_quota",
];

/// Reads an answer of a provider: its status, its content type when known, and all of its body.
pub fn find_in_response(status: u16, content_type: Option<&str>, body: &[u8]) -> Option<Overflow> {
    let text = String::from_utf8_lossy(body);
    match status {
        200..=299 => find_in_answer(content_type, &text),
        401..=404 | 408 | 409 | 429 | 501..=599 => None,
        400..=500 => find_in_error(status, &text),
        _ => None,
    }
}

/// Returns an error that arrived as a value: an event of a stream, the result of an SDK.
pub fn find_in_event(event: &Value) -> Option<Overflow> {
    let failed = event.get("error").is_some_and(|e| !e.is_null())
        || event.get("is_error") == Some(&Value::Bool(true))
        || matches!(
            event_type(event),
            Some("error" | "response.failed" | "response.incomplete")
        );
    let reason = ["/stop_reason", "/delta/stop_reason"];
    let stopped = reason.iter().filter_map(|at| event.pointer(at)?.as_str());
    if stopped.into_iter().any(|reason| CODES.contains(&reason)) {
        return Some(Overflow::SAID);
    }
    if failed { find_in_value(event) } else { None }
}

fn find_in_answer(content_type: Option<&str>, text: &str) -> Option<Overflow> {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return find_in_event(&value);
    }
    let mut events = text
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .peekable();
    let is_stream = content_type.is_some_and(|t| t.starts_with("text/event-stream"));
    if is_stream && events.peek().is_none() {
        return Some(Overflow {
            sign: OverflowSign::Silent,
            ..Overflow::SAID
        });
    }
    events.find_map(|data| find_in_event(&serde_json::from_str(data.trim()).ok()?))
}

fn find_in_error(status: u16, text: &str) -> Option<Overflow> {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if is_other_limit(&value) => None,
        Ok(value) => find_in_value(&value).or((status == 413).then_some(Overflow::SAID)),
        Err(_) if status == 413 => Some(phrase::find_phrase(text).unwrap_or(Overflow::SAID)),
        Err(_) => phrase::find_phrase(text),
    }
}

fn event_type(value: &Value) -> Option<&str> {
    value.get("type")?.as_str()
}

/// Returns whether the error names a limit that a smaller prompt does not answer to.
fn is_other_limit(value: &Value) -> bool {
    let error = value.get("error").unwrap_or(value);
    let named = ["code", "type"].map(|key| error.get(key).and_then(Value::as_str));
    named
        .iter()
        .flatten()
        .any(|code| OTHER_CODES.contains(code))
}

/// Looks through the parts of an error that say what went wrong.
fn find_in_value(value: &Value) -> Option<Overflow> {
    match value {
        Value::Object(fields) => find_in_object(fields),
        Value::Array(values) => values.iter().find_map(find_in_value),
        _ => None,
    }
}

fn find_in_object(fields: &Map<String, Value>) -> Option<Overflow> {
    let code = ["code", "type", "reason"];
    let coded = code
        .iter()
        .filter_map(|key| fields.get(*key)?.as_str())
        .any(|code| CODES.contains(&code))
        .then(|| read_counts(fields));
    let said = [
        "message", "error", "detail", "details", "raw", "result", "response", "metadata",
    ];
    let told = said
        .iter()
        .filter_map(|key| fields.get(*key))
        .find_map(find_in_part);
    match (coded, told) {
        (Some(coded), Some(told)) => Some(coded.fill_missing(told)),
        (coded, told) => coded.or(told),
    }
}

/// Returns the numbers that llama.cpp adds.
fn read_counts(fields: &Map<String, Value>) -> Overflow {
    let tokens = |key: &str| fields.get(key).and_then(Value::as_u64).map(Tokens);
    Overflow {
        tokens: tokens("n_prompt_tokens"),
        limit: tokens("n_ctx"),
        ..Overflow::SAID
    }
}

/// Returns a sentence, an error within, or an error that a proxy passes on as text.
fn find_in_part(part: &Value) -> Option<Overflow> {
    let Value::String(text) = part else {
        return find_in_value(part);
    };
    let within = text.trim_start().starts_with('{');
    match serde_json::from_str::<Value>(text) {
        Ok(value) if within => find_in_value(&value),
        _ => phrase::find_phrase(text),
    }
}
