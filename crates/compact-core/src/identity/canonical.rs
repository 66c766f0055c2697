//! One spelling for JSON that clients write in many.
//!
//! A client that reads a history and writes it again may change the blanks between tokens and the
//! escapes within strings; what it says stays the same. The canonical form has no blanks and escapes
//! only what JSON must, as most programs write it to begin with. The order of keys and the digits of
//! numbers stay as written. Text that is no JSON object or list is its own canonical form.

use std::borrow::Cow;

use memchr::memchr2;
use serde::de::IgnoredAny;

/// The canonical form of a call's arguments or a tool's answer.
pub(super) fn canonical_form(text: &str) -> Cow<'_, str> {
    if !text.trim_ascii_start().starts_with(['{', '[']) {
        return Cow::Borrowed(text);
    }
    let is_json = || serde_json::from_str::<IgnoredAny>(text).is_ok();
    match Spelling::respell(text).finish() {
        // Most texts are written so already: only others are worth a proof.
        Some(other) if is_json() => Cow::Owned(other),
        _ => Cow::Borrowed(text),
    }
}

/// A text that is being spelt anew: what was copied, and how far.
struct Spelling<'t> {
    text: &'t str,
    out: String,
    copied: usize,
}

impl<'t> Spelling<'t> {
    /// Spells a text as if it were JSON.
    fn respell(text: &'t str) -> Self {
        let mut spelling = Spelling {
            text,
            out: String::new(),
            copied: 0,
        };
        let mut at = 0;
        while let Some(byte) = text.as_bytes().get(at) {
            at = match byte {
                b'"' => spelling.respell_string(at + 1),
                b' ' | b'\n' | b'\r' | b'\t' => spelling.replace(at, 1, ""),
                _ => at + 1,
            };
        }
        spelling
    }

    /// Spells the string that begins at `at`; returns where it ends.
    fn respell_string(&mut self, mut at: usize) -> usize {
        loop {
            let rest = self.text.as_bytes().get(at..).unwrap_or_default();
            let Some(found) = memchr2(b'"', b'\\', rest) else {
                return self.text.len();
            };
            at += found;
            if rest.get(found) == Some(&b'"') {
                return at + 1;
            }
            let written = self.text.get(at..).unwrap_or_default();
            at = match read_escape(written) {
                Some((length, plain)) if written.get(..length) != Some(&plain) => {
                    self.replace(at, length, &plain)
                }
                Some((length, _)) => at + length,
                None => at + 2,
            };
        }
    }

    /// Puts `with` where `length` bytes stand at `at`; returns where they end.
    fn replace(&mut self, at: usize, length: usize, with: &str) -> usize {
        let before = self.text.get(self.copied..at);
        self.out.push_str(before.unwrap_or_default());
        self.out.push_str(with);
        self.copied = at + length;
        self.copied
    }

    /// The whole text; `None` when nothing was spelt otherwise.
    fn finish(mut self) -> Option<String> {
        (self.copied > 0).then(|| {
            let rest = self.text.get(self.copied..).unwrap_or_default();
            self.out.push_str(rest);
            self.out
        })
    }
}

/// How long the escape is that opens a text, and how it is spelt; `None` for those of one spelling.
fn read_escape(text: &str) -> Option<(usize, String)> {
    if text.starts_with("\\/") {
        return Some((2, "/".to_owned()));
    }
    let first = read_code_unit(text)?;
    let second = text.get(6..).and_then(read_code_unit);
    let units = [Some(first), second];
    let pair = char::decode_utf16(units.into_iter().flatten()).next()?;
    Some(match pair {
        Ok(plain) => (6 * plain.len_utf16(), escape_char(plain)),
        // Half of a pair is no character.
        Err(half) => (6, format!("\\u{:04x}", half.unpaired_surrogate())),
    })
}

/// The number of an escape `\uXXXX` that opens a text.
fn read_code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

/// A character within a JSON string.
fn escape_char(plain: char) -> String {
    let quoted = serde_json::to_string(&plain).unwrap_or_default();
    let within = quoted.get(1..quoted.len().saturating_sub(1));
    within.unwrap_or_default().to_owned()
}
