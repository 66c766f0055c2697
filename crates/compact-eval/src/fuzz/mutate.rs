//! One input from others.

use super::json;
use crate::random::Random;

/// Values that stand where others are expected.
const ODD: [&str; 24] = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1e400",
    "18446744073709551616",
    "\"\"",
    "\" \"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"a\\nb\"",
    "\"\u{202e}漢🙂\"",
    "[]",
    "{}",
    "[[]]",
    "[null]",
    "[{}]",
    "{\"type\":\"text\"}",
    "{\"text\":7}",
    "[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"image\"}]",
    "{\"\":{}}",
    "\"<COMPACT-SUMMARY v2>\\nreceipt: c0ffee\\nx\\n</COMPACT-SUMMARY>\"",
    "\"{\\\"a\\\":1}\"",
];

/// Bytes that break things.
const HARMS: [&[u8]; 10] = [
    b"\0",
    b"\xff",
    b"\"",
    b"\\",
    b"\n",
    b"\r\n",
    b"{",
    b"]",
    b",",
    b"\xef\xbb\xbf",
];

/// Makes inputs.
pub(crate) struct Mutator {
    random: Random,
}

impl Mutator {
    pub(crate) fn new(random: Random) -> Self {
        Mutator { random }
    }

    /// An input of the pool with some changes, most of which leave it JSON.
    pub(crate) fn mutate(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.random.pick(pool).cloned().unwrap_or_default();
        let other = self.random.pick(pool).cloned().unwrap_or_default();
        for _ in 0..=self.random.index(4) {
            input = match self.random.index(10) {
                0 => self.harm(input),
                1 => self.lines(&input),
                2 | 3 => self.swap(&input, &other),
                4 => self.repeat(&input),
                5 => self.remove(&input),
                6 => self.deepen(&input),
                _ => self.oddity(&input),
            };
        }
        // Large inputs take long and tell no more.
        input.truncate(1 << 16);
        input
    }

    fn value(&mut self, text: &[u8]) -> Option<std::ops::Range<usize>> {
        let spans = json::values(text);
        self.random.pick(&spans).cloned()
    }

    /// A value in the place of another.
    fn replace(&mut self, input: &[u8], with: &[u8]) -> Vec<u8> {
        let Some(span) = self.value(input) else {
            return [input, with].concat();
        };
        splice(input, span, with)
    }

    fn oddity(&mut self, input: &[u8]) -> Vec<u8> {
        let odd = self.random.pick(&ODD).copied().unwrap_or_default();
        self.replace(input, odd.as_bytes())
    }

    /// A value of another input, or of this one.
    fn swap(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let from = if self.random.percent(50) {
            input
        } else {
            other
        };
        let Some(span) = self.value(from) else {
            return input.to_vec();
        };
        self.replace(input, from.get(span).unwrap_or_default())
    }

    /// A value twice, as an element or a member would be.
    fn repeat(&mut self, input: &[u8]) -> Vec<u8> {
        let Some(span) = self.value(input) else {
            return input.to_vec();
        };
        let value = input.get(span.clone()).unwrap_or_default();
        splice(input, span.end..span.end, &[b",", value].concat())
    }

    /// A value, and the comma or colon after it, gone.
    fn remove(&mut self, input: &[u8]) -> Vec<u8> {
        let Some(span) = self.value(input) else {
            return input.to_vec();
        };
        let comma = usize::from(matches!(input.get(span.end), Some(b',' | b':')));
        splice(input, span.start..span.end + comma, b"")
    }

    /// A value within many lists.
    fn deepen(&mut self, input: &[u8]) -> Vec<u8> {
        let depth = [1, 5, 130, 2_000].get(self.random.index(4)).copied();
        let depth = depth.unwrap_or(1);
        let Some(span) = self.value(input) else {
            return input.to_vec();
        };
        let value = input.get(span.clone()).unwrap_or_default();
        let nested = [&b"[".repeat(depth), value, &b"]".repeat(depth)].concat();
        splice(input, span, &nested)
    }

    fn harm(&mut self, mut input: Vec<u8>) -> Vec<u8> {
        let at = self.random.index(input.len() + 1);
        let harm = self.random.pick(&HARMS).copied().unwrap_or_default();
        match self.random.index(4) {
            0 => input.truncate(at),
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = byte.wrapping_add(1);
                }
            }
            2 => input = splice(&input, at..at, harm),
            _ => {
                let end = (at + self.random.index(20)).min(input.len());
                input = splice(&input, at..end, b"");
            }
        }
        input
    }

    /// A line twice, gone, or in another place.
    fn lines(&mut self, input: &[u8]) -> Vec<u8> {
        let mut lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
        let from = self.random.index(lines.len());
        let to = self.random.index(lines.len());
        match self.random.index(3) {
            0 => {
                let line = lines.get(from).copied().unwrap_or_default();
                lines.insert(to, line);
            }
            1 => drop(lines.remove(from)),
            _ => lines.swap(from, to),
        }
        lines.join(&b'\n')
    }
}

fn splice(input: &[u8], span: std::ops::Range<usize>, with: &[u8]) -> Vec<u8> {
    let before = input.get(..span.start).unwrap_or_default();
    let after = input.get(span.end..).unwrap_or_default();
    [before, with, after].concat()
}
