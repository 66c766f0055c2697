//! A request as the rules see it: its messages, and its other fields where a whole body was given.

use serde_json::{Map, Value};

use super::Provider;
use crate::error::FormatError;
use crate::json::ItemContext;
use crate::source;

/// A request body or list of messages to check.
pub(super) struct CheckedRequest {
    /// The fields beside the messages; none when only messages were given.
    fields: Map<String, Value>,
    entries: RequestEntries,
}

/// The messages of a request, or what was found in their place.
enum RequestEntries {
    List(Vec<Value>),
    Text,
    Other,
}

impl CheckedRequest {
    /// Reads a body, a list, or values one after the other.
    pub(super) fn read(provider: Provider, source: &[u8]) -> Result<CheckedRequest, FormatError> {
        let offset = source::start_offset(source);
        let text = source::span_text(source, offset..source.len())?;
        let at = ItemContext { source, offset };
        let values: Vec<Value> = serde_json::Deserializer::from_str(text)
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error| find_broken_line(source).unwrap_or_else(|| at.json_error(&error)))?;
        Self::from_values(provider, values).ok_or(FormatError::Empty)
    }

    fn from_values(provider: Provider, mut values: Vec<Value>) -> Option<CheckedRequest> {
        if values.len() > 1 {
            return Some(CheckedRequest::from_list(values));
        }
        Some(match values.pop()? {
            Value::Array(entries) => CheckedRequest::from_list(entries),
            Value::Object(fields) => CheckedRequest::from_object(provider, fields),
            _ => CheckedRequest::from_body(Map::new(), None),
        })
    }

    /// Returns a body, or the only line of a list of lines.
    fn from_object(provider: Provider, mut fields: Map<String, Value>) -> CheckedRequest {
        let is_message = ["role", "type", "parts"]
            .iter()
            .any(|field| fields.contains_key(*field));
        match fields.shift_remove(provider.list_field()) {
            None if is_message => CheckedRequest::from_list(vec![Value::Object(fields)]),
            list => CheckedRequest::from_body(fields, list),
        }
    }

    fn from_list(entries: Vec<Value>) -> CheckedRequest {
        CheckedRequest::from_body(Map::new(), Some(Value::Array(entries)))
    }

    fn from_body(fields: Map<String, Value>, list: Option<Value>) -> CheckedRequest {
        let entries = match list {
            Some(Value::Array(entries)) => RequestEntries::List(entries),
            Some(Value::String(_)) => RequestEntries::Text,
            _ => RequestEntries::Other,
        };
        CheckedRequest { fields, entries }
    }

    /// Returns the messages; none if there is no list of them.
    pub(super) fn entries(&self) -> &[Value] {
        match &self.entries {
            RequestEntries::List(entries) => entries,
            RequestEntries::Text | RequestEntries::Other => &[],
        }
    }

    /// Returns whether the messages are a list.
    pub(super) fn has_list(&self) -> bool {
        matches!(self.entries, RequestEntries::List(_))
    }

    /// Returns whether a text stands in place of the messages.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.entries, RequestEntries::Text)
    }

    /// Returns a field of the body; null counts as absent.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// Returns a field of the body that is text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.field(name)?.as_str()
    }
}

/// Returns the error of the first line that is no JSON, in a file whose lines are: a value that is not closed is
/// noticed only lines later.
fn find_broken_line(source: &[u8]) -> Option<FormatError> {
    let spans = source::line_spans(source);
    let mut errors = spans.iter().filter_map(|span| {
        let offset = span.start;
        let line = source::span_text(source, span.clone()).ok()?;
        let at = ItemContext { source, offset };
        let is_blank = line.trim_ascii().is_empty();
        (!is_blank).then(|| at.read::<serde::de::IgnoredAny>(line).err())
    });
    let is_lines = errors.next()?.is_none();
    errors.flatten().next().filter(|_| is_lines)
}

/// Returns a member that is text.
pub(super) fn text_member<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// Returns a member that is a list; empty otherwise.
pub(super) fn list_member<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let items = value.get(name).and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

/// Returns a member that is there and not null.
pub(super) fn present_member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).filter(|value| !value.is_null())
}

/// Returns the JSON type, for people.
pub(super) fn json_type(value: Option<&Value>) -> &'static str {
    match value {
        None => "nothing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    }
}
