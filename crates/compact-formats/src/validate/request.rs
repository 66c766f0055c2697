//! A request as the rules see it: its messages, and its other fields where a whole body was given.

use serde_json::{Map, Value};

use super::Provider;
use crate::error::FormatError;
use crate::json::At;
use crate::source;

/// What is checked.
pub(super) struct Request {
    /// The fields beside the messages; none when only messages were given.
    fields: Map<String, Value>,
    entries: Entries,
}

/// What stands in the place of the messages.
enum Entries {
    List(Vec<Value>),
    Text,
    Other,
}

impl Request {
    /// Reads a body, a list, or values one after the other.
    pub(super) fn read(provider: Provider, source: &[u8]) -> Result<Request, FormatError> {
        let offset = source::start(source);
        let text = source::text(source, offset..source.len())?;
        let at = At { source, offset };
        let values: Vec<Value> = serde_json::Deserializer::from_str(text)
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error| at.json(&error))?;
        Self::of(provider, values).ok_or(FormatError::Empty)
    }

    fn of(provider: Provider, mut values: Vec<Value>) -> Option<Request> {
        if values.len() > 1 {
            return Some(Request::list(values));
        }
        Some(match values.pop()? {
            Value::Array(entries) => Request::list(entries),
            Value::Object(fields) => Request::object(provider, fields),
            _ => Request::body(Map::new(), None),
        })
    }

    /// A body, or the only line of a list of lines.
    fn object(provider: Provider, mut fields: Map<String, Value>) -> Request {
        let is_message = ["role", "type", "parts"]
            .iter()
            .any(|field| fields.contains_key(*field));
        match fields.shift_remove(provider.list()) {
            None if is_message => Request::list(vec![Value::Object(fields)]),
            list => Request::body(fields, list),
        }
    }

    fn list(entries: Vec<Value>) -> Request {
        Request::body(Map::new(), Some(Value::Array(entries)))
    }

    fn body(fields: Map<String, Value>, list: Option<Value>) -> Request {
        let entries = match list {
            Some(Value::Array(entries)) => Entries::List(entries),
            Some(Value::String(_)) => Entries::Text,
            _ => Entries::Other,
        };
        Request { fields, entries }
    }

    /// The messages; none if there is no list of them.
    pub(super) fn entries(&self) -> &[Value] {
        match &self.entries {
            Entries::List(entries) => entries,
            Entries::Text | Entries::Other => &[],
        }
    }

    /// True when the messages are a list.
    pub(super) fn has_list(&self) -> bool {
        matches!(self.entries, Entries::List(_))
    }

    /// True when a text stands in place of the messages.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.entries, Entries::Text)
    }

    /// A field of the body; null counts as absent.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// A field of the body that is text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.field(name)?.as_str()
    }
}

/// A member that is text.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// A member that is a list; empty otherwise.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let items = value.get(name).and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

/// A member that is there and not null.
pub(super) fn present<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).filter(|value| !value.is_null())
}

/// The JSON type, for people.
pub(super) fn kind(value: Option<&Value>) -> &'static str {
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
