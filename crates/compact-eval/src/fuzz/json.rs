//! Where the values of a JSON text stand, as far as it is JSON.

use std::ops::Range;

/// The spans of all values and keys, in the order in which they begin. What is not closed is left
/// out, so a torn text has fewer.
pub(crate) fn values(text: &[u8]) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'{' | b'[' => {
                open.push(at);
                at += 1;
            }
            b'}' | b']' => {
                if let Some(start) = open.pop() {
                    spans.push(start..at + 1);
                }
                at += 1;
            }
            b'"' => {
                let end = string_end(text, at);
                spans.push(at..end);
                at = end;
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' => {
                let rest = text.get(at..).unwrap_or_default();
                let length = rest.iter().take_while(|b| is_word(**b)).count().max(1);
                spans.push(at..at + length);
                at += length;
            }
            _ => at += 1,
        }
    }
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    spans
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// One past the closing quote of the string that opens at `start`.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}
