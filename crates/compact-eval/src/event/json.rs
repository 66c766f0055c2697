//! JSON as the metric's definition reads and writes it: lenient reading, and values as text with a
//! space after each comma and colon.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Returns one value per line; what is no JSON is skipped.
pub(super) fn parse_lines(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Parses bytes as one JSON document.
pub(super) fn parse_document(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}

/// Returns the member of an object as text, or nothing.
pub(super) fn str_of<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the elements under a key.
pub(super) fn list_of<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Returns the first of these members that is not empty, zero, false or absent.
pub(super) fn first_filled<'v>(value: &'v Value, keys: &[&str]) -> Option<&'v Value> {
    let mut members = keys.iter().filter_map(|key| value.get(key));
    members.find(|member| is_filled(member))
}

/// Returns false for what is empty, zero or false.
pub(super) fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Number(n) => n.as_f64() != Some(0.0),
        Value::String(s) => !s.is_empty(),
        Value::Array(a) => !a.is_empty(),
        Value::Object(o) => !o.is_empty(),
    }
}

/// Returns a string as it is, anything else as JSON; what is absent is `null`.
pub(super) fn value_text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        other => {
            let mut out = Vec::new();
            let mut serializer = Serializer::with_formatter(&mut out, SpacedFormatter);
            // Writing a value to memory does not fail.
            let _ = other.serialize(&mut serializer);
            String::from_utf8(out).unwrap_or_default()
        }
    }
}

/// Returns the texts of a content: a string, a block, or a list of them, images left out.
pub(super) fn flatten_content(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().filter_map(block_text);
            texts
                .filter(|t| !t.is_empty())
                .collect::<Vec<_>>()
                .join("\n")
        }
        Some(block @ Value::Object(_)) => block_text(block).unwrap_or_default(),
        _ => String::new(),
    }
}

fn block_text(block: &Value) -> Option<String> {
    if let Value::String(text) = block {
        return Some(text.clone());
    }
    if matches!(str_of(block, "type"), "image" | "input_image" | "image_url") {
        return None;
    }
    let member = |key: &str| block.get(key).filter(|value| !value.is_null());
    let text = block
        .is_object()
        .then(|| member("text").or(member("content")))?;
    match text {
        Some(number @ (Value::Number(_) | Value::Bool(_))) => Some(value_text(Some(number))),
        other => Some(flatten_content(other)),
    }
}

/// `, ` between elements and `: ` after keys.
struct SpacedFormatter;

impl Formatter for SpacedFormatter {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        w.write_all(b": ")
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, w: &mut W, value: f64) -> io::Result<()> {
        w.write_all(format_float(value).as_bytes())
    }
}

/// Returns the shortest decimals that read back as the number; exponents have a sign and two digits.
fn format_float(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-4..1e16).contains(&size) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_with_spaces() {
        let value = json!({"a": [1, 2.0, 1e-5], "b": {"c": "é\n\u{1}"}, "d": null});
        assert_eq!(
            value_text(Some(&value)),
            r#"{"a": [1, 2.0, 1e-05], "b": {"c": "é\n\u0001"}, "d": null}"#
        );
        assert_eq!(
            (value_text(Some(&json!("x y"))), value_text(None)),
            ("x y".into(), "null".into())
        );
        assert_eq!(format_float(1.5e300), "1.5e+300");
    }

    #[test]
    fn contents_are_flattened() {
        let content = json!(["a", {"type": "text", "text": "b"}, {"type": "image", "text": "no"},
            {"content": [{"text": "c"}]}, {"text": ""}, {"text": 7}]);
        assert_eq!(flatten_content(Some(&content)), "a\nb\nc\n7");
        assert_eq!(flatten_content(Some(&json!({"text": "d"}))), "d");
        assert_eq!(flatten_content(None), "");
    }
}
