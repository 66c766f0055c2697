//! Rewriting the strings of a JSON text in place.
//!
//! Only string literals change; numbers, spacing and the order of keys keep their bytes. A text that
//! is not JSON is treated as far as its quotes make sense.

use std::ops::Range;

/// Applies `change` to each decoded string literal; `None` when nothing changed.
pub(super) fn map_strings(
    json: &str,
    mut change: impl FnMut(&str) -> Option<String>,
) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    for literal in literals(json) {
        let Some(raw) = json.get(literal.clone()) else {
            continue;
        };
        let Ok(text) = serde_json::from_str::<String>(raw) else {
            continue;
        };
        let Some(encoded) = change(&text).and_then(|t| serde_json::to_string(&t).ok()) else {
            continue;
        };
        out.push_str(json.get(copied..literal.start).unwrap_or_default());
        out.push_str(&encoded);
        copied = literal.end;
    }
    if copied == 0 {
        return None;
    }
    out.push_str(json.get(copied..).unwrap_or_default());
    Some(out)
}

/// The ranges of string literals, quotes included.
fn literals(json: &str) -> impl Iterator<Item = Range<usize>> {
    let mut bytes = json.bytes().enumerate();
    std::iter::from_fn(move || {
        let (start, _) = bytes.find(|(_, b)| *b == b'"')?;
        loop {
            match bytes.next()? {
                (_, b'\\') => drop(bytes.next()?),
                (end, b'"') => return Some(start..end + 1),
                _ => {}
            }
        }
    })
}
