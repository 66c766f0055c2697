//! JSON as spans: read one level at a time, changed by splicing.
//!
//! Nothing here builds a tree. A value is a slice of the source, so what is not changed is copied
//! byte for byte, with its key order, numbers and white space, however deep it is nested.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{FormatError, Position};

/// The offset of an item in the source, for errors.
#[derive(Clone, Copy)]
pub(crate) struct ItemContext<'s> {
    pub(crate) source: &'s [u8],
    pub(crate) offset: usize,
}

impl ItemContext<'_> {
    pub(crate) fn position(self) -> Position {
        Position::at_offset(self.source, self.offset)
    }

    /// Returns a field of the wrong type.
    pub(crate) fn wrong_type(
        self,
        field: &str,
        expected: &'static str,
        found: &RawValue,
    ) -> FormatError {
        FormatError::Field {
            at: self.position(),
            field: field.to_owned(),
            expected,
            found: type_of(found),
        }
    }

    /// Returns a field that is not there.
    pub(crate) fn missing_field(self, field: &str, expected: &'static str) -> FormatError {
        FormatError::Field {
            at: self.position(),
            field: field.to_owned(),
            expected,
            found: "nothing",
        }
    }

    /// Returns what serde says about the item at this place.
    pub(crate) fn json_error(self, error: &serde_json::Error) -> FormatError {
        let at = match (self.position(), error.line(), error.column()) {
            (start, 0, _) => start,
            (start, 1, column) => Position {
                line: start.line,
                column: start.column + column.saturating_sub(1),
            },
            (start, line, column) => Position {
                line: start.line + line - 1,
                column: column.max(1),
            },
        };
        let text = error.to_string();
        let reason = text
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned();
        FormatError::Json { at, reason }
    }

    /// Reads an item, or a value within it, into a struct of spans.
    pub(crate) fn read<'a, T: Deserialize<'a>>(self, json: &'a str) -> Result<T, FormatError> {
        serde_json::from_str(json).map_err(|error| self.narrowed_to(json).json_error(&error))
    }

    /// Returns the place of a slice of the source; this place for any other text.
    fn narrowed_to(self, json: &str) -> Self {
        let offset = (json.as_ptr() as usize).wrapping_sub(self.source.as_ptr() as usize);
        if offset < self.source.len() {
            ItemContext { offset, ..self }
        } else {
            self
        }
    }

    /// Returns a field that must be a string.
    pub(crate) fn read_string(self, field: &str, raw: &RawValue) -> Result<String, FormatError> {
        if !is_string(raw) {
            return Err(self.wrong_type(field, "a string", raw));
        }
        self.read(raw.get())
    }

    /// Returns an optional field that must be a string.
    pub(crate) fn read_optional_string(
        self,
        field: &str,
        raw: Option<&RawValue>,
    ) -> Result<Option<String>, FormatError> {
        raw.map(|raw| self.read_string(field, raw)).transpose()
    }

    /// Returns a field that must be a list.
    pub(crate) fn read_list<'a>(
        self,
        field: &str,
        raw: &'a RawValue,
    ) -> Result<Vec<&'a RawValue>, FormatError> {
        if !raw.get().starts_with('[') {
            return Err(self.wrong_type(field, "a list", raw));
        }
        self.read(raw.get())
    }
}

fn type_of(raw: &RawValue) -> &'static str {
    match raw.get().bytes().next() {
        Some(b'"') => "a string",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

pub(crate) fn is_string(raw: &RawValue) -> bool {
    raw.get().starts_with('"')
}

pub(crate) fn is_list(raw: &RawValue) -> bool {
    raw.get().starts_with('[')
}

pub(crate) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

pub(crate) fn is_true(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

/// Returns the string a field holds, if it holds one; anything else counts as absent.
pub(crate) fn string_value(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let raw = raw.filter(|raw| is_string(raw))?;
    // Most strings are short names without escapes: what stands between the quotes.
    let plain = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if !plain.bytes().any(|byte| byte == b'\\') {
        return Some(Cow::Borrowed(plain));
    }
    serde_json::from_str::<Text<'_>>(raw.get())
        .ok()
        .map(|text| text.0)
}

/// Returns a string as JSON.
pub(crate) fn quote(text: &str) -> String {
    // Serializing a string into memory cannot fail; the fallback keeps the output JSON.
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

/// One member of an object.
pub(crate) struct Member<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) value: &'a RawValue,
}

/// The members of an object, in order.
pub(crate) struct Members<'a>(pub(crate) Vec<Member<'a>>);

impl<'a> Members<'a> {
    /// Returns the members of `json`, or none when it is not an object.
    pub(crate) fn from_json(json: &'a str) -> Members<'a> {
        serde_json::from_str(json).unwrap_or(Members(Vec::new()))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|m| m.key == key).map(|m| m.value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<MemberKey<'de>, &'de RawValue>()? {
                    members.push(Member { key: key.0, value });
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// A member's key. Read as bytes, so that half a pair of surrogates in it is no error.
struct MemberKey<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for MemberKey<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyBytes;
        impl<'de> Visitor<'de> for KeyBytes {
            type Value = MemberKey<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_bytes<E>(self, key: &'de [u8]) -> Result<Self::Value, E> {
                Ok(MemberKey(String::from_utf8_lossy(key)))
            }
            fn visit_bytes<E>(self, key: &[u8]) -> Result<Self::Value, E> {
                Ok(MemberKey(String::from_utf8_lossy(key).into_owned().into()))
            }
        }
        deserializer.deserialize_bytes(KeyBytes)
    }
}

/// Changes to one item of JSON, applied together.
pub(crate) struct Patch<'a> {
    source: &'a str,
    changes: Vec<(Range<usize>, String)>,
}

impl<'a> Patch<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        Patch {
            source,
            changes: Vec::new(),
        }
    }

    /// Returns where `part`, a slice of the source, stands in it.
    pub(crate) fn span(&self, part: &str) -> Range<usize> {
        span_in(self.source, part)
    }

    pub(crate) fn replace(&mut self, part: &RawValue, with: String) {
        let span = self.span(part.get());
        self.changes.push((span, with));
    }

    pub(crate) fn source(&self) -> &'a str {
        self.source
    }

    /// Replaces a member of an object within the source, or adds it at the object's end.
    pub(crate) fn set_member(&mut self, object: &str, key: &str, json: String) {
        let members = Members::from_json(object);
        if let Some(value) = members.get(key) {
            return self.replace(value, json);
        }
        if let Some(brace) = object.rfind('}') {
            let end = self.span(object).start + brace;
            let comma = if members.0.is_empty() { "" } else { "," };
            self.changes
                .push((end..end, format!("{comma}{}:{json}", quote(key))));
        }
    }

    /// Leaves members out of the item.
    pub(crate) fn remove_members(
        &mut self,
        members: &Members<'_>,
        gone: impl Fn(&Member<'_>) -> bool,
    ) {
        let gone: Vec<bool> = members.0.iter().map(gone).collect();
        let mut spans: Vec<Range<usize>> =
            members.0.iter().map(|m| self.span(m.value.get())).collect();
        // A key may be written with escapes, so the front is found from the brace and not from it.
        if let (Some(first), Some(brace)) = (spans.first_mut(), self.source.find('{')) {
            first.start = brace + 1;
        }
        self.remove(&spans, &gone);
    }

    /// Leaves elements out of a list.
    pub(crate) fn remove_elements(&mut self, elements: &[&RawValue], gone: &[bool]) {
        let spans: Vec<_> = elements.iter().map(|e| self.span(e.get())).collect();
        self.remove(&spans, gone);
    }

    /// Removes spans from a list. Each removal takes the comma before it; a run at the front takes the one
    /// after it.
    fn remove(&mut self, spans: &[Range<usize>], gone: &[bool]) {
        let front = gone.iter().take_while(|gone| **gone).count();
        let run_end = front
            .checked_sub(1)
            .and_then(|last| spans.get(last))
            .map(|s| s.end);
        if let (Some(first), Some(end)) = (spans.first(), run_end) {
            let rest = self.source.get(end..).unwrap_or_default();
            let comma = if front < spans.len() {
                rest.find(',').map_or(0, |at| at + 1)
            } else {
                0
            };
            self.changes.push((first.start..end + comma, String::new()));
        }
        for ((before, this), gone) in spans
            .iter()
            .zip(spans.iter().skip(1))
            .zip(gone.iter().skip(1))
            .skip(front)
        {
            if *gone {
                self.changes.push((before.end..this.end, String::new()));
            }
        }
    }

    /// Returns the item with every change; a change within a removed part is lost with it.
    pub(crate) fn finish(mut self) -> String {
        self.changes
            .sort_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
        let mut out = String::with_capacity(self.source.len());
        let mut done = 0;
        for (span, with) in self.changes {
            if span.start < done {
                continue;
            }
            out.push_str(self.source.get(done..span.start).unwrap_or_default());
            out.push_str(&with);
            done = span.end;
        }
        out.push_str(self.source.get(done..).unwrap_or_default());
        out
    }
}

/// Returns where `part`, a slice of `whole`, stands in it.
pub(crate) fn span_in(whole: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    if start > whole.len() {
        return 0..0;
    }
    start..start + part.len()
}
