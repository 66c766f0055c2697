//! Where the values of a JSON text stand, as far as it is JSON.

use std::ops::Range;

/// The places of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// The values, in the order in which they begin.
    pub(crate) values: Vec<Place>,
    /// The names of members.
    pub(crate) keys: Vec<Range<usize>>,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) span: Range<usize>,
    /// Where its name begins, when it is a member of an object.
    key: Option<usize>,
}

impl Place {
    /// The value with its name.
    pub(crate) fn member(&self) -> Range<usize> {
        self.key.unwrap_or(self.span.start)..self.span.end
    }
}

/// Finds the values and keys of a text. What is not closed is left out, so a torn text has fewer.
pub(crate) fn places(text: &[u8]) -> Places {
    let mut scan = Scan::default();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at = match byte {
            b'{' | b'[' => {
                scan.open.push((at, scan.key.take()));
                at + 1
            }
            b'}' | b']' => {
                if let Some((start, key)) = scan.open.pop() {
                    scan.value(start..at + 1, key);
                }
                at + 1
            }
            b'"' => scan.string(text, at),
            b'-' | b'0'..=b'9' | b'a'..=b'z' => {
                let end = at + count(text, at, is_word).max(1);
                let key = scan.key.take();
                scan.value(at..end, key);
                end
            }
            _ => at + 1,
        };
    }
    let by_start = |place: &Place| (place.span.start, std::cmp::Reverse(place.span.end));
    scan.places.values.sort_by_key(by_start);
    scan.places
}

#[derive(Default)]
struct Scan {
    places: Places,
    /// Where each container that is not closed begins, and its name.
    open: Vec<(usize, Option<usize>)>,
    /// Where the name of the value to come begins.
    key: Option<usize>,
}

impl Scan {
    fn value(&mut self, span: Range<usize>, key: Option<usize>) {
        self.places.values.push(Place { span, key });
    }

    /// A string is the name of what follows it when a colon does.
    fn string(&mut self, text: &[u8], start: usize) -> usize {
        let end = string_end(text, start);
        let blank = count(text, end, |b| b.is_ascii_whitespace());
        if text.get(end + blank) == Some(&b':') {
            self.key = Some(start);
            self.places.keys.push(start..end);
        } else {
            let key = self.key.take();
            self.value(start..end, key);
        }
        end
    }
}

fn count(text: &[u8], from: usize, is: impl Fn(u8) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.iter().take_while(|byte| is(**byte)).count()
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
