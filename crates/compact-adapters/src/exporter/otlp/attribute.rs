//! From an event's JSON to attributes.
//!
//! Every field keeps its name below `compact.`; what the conventions for generative AI have a name
//! for is there under that name as well.

use jiff::Timestamp;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use serde_json::Value;

/// Fields of an event that the conventions for generative AI name.
const CONVENTIONS: [(&str, &str); 6] = [
    ("session_id", "gen_ai.conversation.id"),
    ("model", "gen_ai.request.model"),
    ("turn_input", "gen_ai.usage.input_tokens"),
    ("turn_output", "gen_ai.usage.output_tokens"),
    ("turn_cache_read", "gen_ai.usage.cache_read.input_tokens"),
    (
        "turn_cache_creation",
        "gen_ai.usage.cache_creation.input_tokens",
    ),
];

/// Fields that have a place of their own in a record.
const PLACED: [&str; 4] = ["ts", "trace_id", "span_id", "parent_span_id"];

pub(super) fn key_value(key: &str, value: AnyValue) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(value),
        ..KeyValue::default()
    }
}

pub(super) fn string_value(text: &str) -> AnyValue {
    AnyValue {
        value: Some(Any::StringValue(text.to_owned())),
    }
}

/// Returns every field of an event as an attribute.
pub(super) fn event_attributes(event: &Value) -> Vec<KeyValue> {
    let mut out = Vec::new();
    for (name, value) in event.as_object().into_iter().flatten() {
        if !PLACED.contains(&name.as_str()) {
            flatten_value(&format!("compact.{name}"), value, &mut out);
        }
    }
    out.extend(gen_ai_attributes(event));
    out
}

/// Returns what the conventions for generative AI call it.
pub(super) fn gen_ai_attributes(event: &Value) -> Vec<KeyValue> {
    let mut out = Vec::new();
    for (name, convention) in CONVENTIONS {
        if let Some(value) = event.get(name).filter(|value| !is_blank(value)) {
            flatten_value(convention, value, &mut out);
        }
    }
    out
}

fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

/// Appends an attribute for each field of a value, such as `compact.policy.trigger_pct`; null is left out.
fn flatten_value(name: &str, value: &Value, out: &mut Vec<KeyValue>) {
    let any = match value {
        Value::Null => return,
        Value::Object(fields) => {
            for (inner, value) in fields {
                flatten_value(&format!("{name}.{inner}"), value, out);
            }
            return;
        }
        Value::Bool(is) => Any::BoolValue(*is),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Any::IntValue(whole),
            None => Any::DoubleValue(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Any::StringValue(text.clone()),
        Value::Array(_) => Any::StringValue(value.to_string()),
    };
    out.push(key_value(name, AnyValue { value: Some(any) }));
}

pub(super) fn str_field<'e>(event: &'e Value, field: &str) -> Option<&'e str> {
    event.get(field)?.as_str()
}

/// Returns when an event was, in nanoseconds since 1970; 0 where it does not say.
pub(super) fn event_time(event: &Value) -> u64 {
    let ts = str_field(event, "ts").and_then(|ts| ts.parse::<Timestamp>().ok());
    ts.and_then(|ts| u64::try_from(ts.as_nanosecond()).ok())
        .unwrap_or_default()
}

/// Returns the bytes of a trace's or a span's name; none where the event has none.
pub(super) fn id_bytes(event: &Value, field: &str) -> Vec<u8> {
    let hex = str_field(event, field).unwrap_or_default();
    let mut digits = hex.chars().map(|c| c.to_digit(16));
    let mut bytes = Vec::with_capacity(hex.len() / 2);
    while let (Some(high), Some(low)) = (digits.next(), digits.next()) {
        let (Some(high), Some(low)) = (high, low) else {
            return Vec::new();
        };
        bytes.push((high * 16 + low) as u8);
    }
    bytes
}
