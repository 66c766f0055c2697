//! Where the values of a JSON text stand, as far as it is JSON.

use std::ops::Range;

/// The places of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct JsonSpans {
    /// The values, in the order in which they begin.
    pub(crate) values: Vec<ValueSpan>,
    /// The names of members.
    pub(crate) keys: Vec<Range<usize>>,
}

/// The place of a value in a text, and of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueSpan {
    pub(crate) span: Range<usize>,
    /// Where its name begins, when it is a member of an object.
    key: Option<usize>,
}

impl ValueSpan {
    /// Returns the value with its name.
    pub(crate) fn member_span(&self) -> Range<usize> {
        self.key.unwrap_or(self.span.start)..self.span.end
    }
}

/// Finds the values and keys of a text. What is not closed is left out, so a torn text has fewer.
pub(crate) fn find_spans(text: &[u8]) -> JsonSpans {
    let mut scan = JsonScan::default();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at = match byte {
            b'{' | b'[' => {
                scan.open.push((at, scan.key.take()));
                at + 1
            }
            b'}' | b']' => {
                if let Some((start, key)) = scan.open.pop() {
                    scan.push_value(start..at + 1, key);
                }
                at + 1
            }
            b'"' => scan.scan_string(text, at),
            b'-' | b'0'..=b'9' | b'a'..=b'z' => {
                let end = at + count_while(text, at, is_scalar_byte).max(1);
                let key = scan.key.take();
                scan.push_value(at..end, key);
                end
            }
            _ => at + 1,
        };
    }
    let by_start = |place: &ValueSpan| (place.span.start, std::cmp::Reverse(place.span.end));
    scan.places.values.sort_by_key(by_start);
    scan.places
}

#[derive(Default)]
struct JsonScan {
    places: JsonSpans,
    /// Where each container that is not closed begins, and its name.
    open: Vec<(usize, Option<usize>)>,
    /// Where the name of the value to come begins.
    key: Option<usize>,
}

impl JsonScan {
    fn push_value(&mut self, span: Range<usize>, key: Option<usize>) {
        self.places.values.push(ValueSpan { span, key });
    }

    /// Notes a string as the name of a member if a colon follows it, or else as a value; returns its end.
    fn scan_string(&mut self, text: &[u8], start: usize) -> usize {
        let end = string_end(text, start);
        let blank = count_while(text, end, |b| b.is_ascii_whitespace());
        if text.get(end + blank) == Some(&b':') {
            self.key = Some(start);
            self.places.keys.push(start..end);
        } else {
            let key = self.key.take();
            self.push_value(start..end, key);
        }
        end
    }
}

fn count_while(text: &[u8], from: usize, is: impl Fn(u8) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.iter().take_while(|byte| is(**byte)).count()
}

fn is_scalar_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// Returns one past the closing quote of the string that opens at `start`.
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
