//! Halves of surrogate pairs, which JavaScript and Python write as `\ud83d` when they cut a text within
//! an emoji. No character is meant by one alone, and no JSON reader here takes it: it is read as
//! `\ufffd`, which has as many bytes, so that every span stays what it is.

use std::borrow::Cow;

use bytes::Bytes;

/// Returns the source as a JSON reader takes it; the very same bytes where every pair is whole.
pub(crate) fn readable_source(source: &Bytes) -> Bytes {
    match readable_json(source) {
        Cow::Borrowed(_) => source.clone(),
        Cow::Owned(mended) => mended.into(),
    }
}

/// Returns JSON of the same length in which every escape stands for a character.
pub fn readable_json(json: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Cow::Borrowed(json);
    let mut pair_end = 0;
    for at in memchr::memmem::find_iter(json, b"\\u") {
        let Some(half) = surrogate_at(json, at).filter(|_| at >= pair_end) else {
            continue;
        };
        let next = surrogate_at(json, at + ESCAPE);
        if (half, next) == (SurrogateHalf::High, Some(SurrogateHalf::Low)) {
            pair_end = at + 2 * ESCAPE;
        } else if let Some(escape) = mended.to_mut().get_mut(at..at + ESCAPE) {
            escape.copy_from_slice(b"\\ufffd");
        }
    }
    mended
}

/// Returns a piece of JSON in which every escape stands for a character.
pub(crate) fn readable_text(json: &str) -> Cow<'_, str> {
    match readable_json(json.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(json),
        // ASCII took the place of ASCII.
        Cow::Owned(mended) => Cow::Owned(String::from_utf8_lossy(&mended).into_owned()),
    }
}

/// The bytes of an escape such as `\ud83d`.
const ESCAPE: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq)]
enum SurrogateHalf {
    High,
    Low,
}

/// Returns the half of a pair that is escaped at `at`, if one is.
fn surrogate_at(json: &[u8], at: usize) -> Option<SurrogateHalf> {
    let (head, tail) = json.split_at_checked(at)?;
    let digits = tail.strip_prefix(b"\\u")?.get(..4)?;
    // A backslash that is itself escaped begins nothing: `\\ud83d` is text.
    let backslashes = head.iter().rev().take_while(|byte| **byte == b'\\').count();
    let code = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    match code {
        0xD800..=0xDBFF if backslashes % 2 == 0 => Some(SurrogateHalf::High),
        0xDC00..=0xDFFF if backslashes % 2 == 0 => Some(SurrogateHalf::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
