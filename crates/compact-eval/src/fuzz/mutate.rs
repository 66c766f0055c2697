//! One input from others.

use std::ops::Range;

use super::json::{self, ValueSpan};
use crate::random::Random;

/// Values that stand where others are expected.
const ODD: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-1",
    "-0.0",
    "1.5",
    "1e400",
    "-1e-400",
    "9223372036854775808",
    "18446744073709551616",
    "-9223372036854775809",
    "00",
    "\"\"",
    "\" \"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"a\\udc00b\"",
    "\"\\ud83d\\ude00\"",
    "\"\\u202e\\ufeff\"",
    "\"a\\nb\"",
    "\"\u{202e}漢🙂e\u{301}\"",
    "\"user\"",
    "\"assistant\"",
    "\"tool\"",
    "\"system\"",
    "[]",
    "{}",
    "[[]]",
    "[null]",
    "[{}]",
    "[\"x\"]",
    "{\"type\":\"text\"}",
    "{\"text\":7}",
    "[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"image\"}]",
    "[{\"type\":\"image\",\"source\":{\"data\":\"iVBORw0KGgo\"}}]",
    "{\"\":{}}",
    "{\"a\":1,\"a\":2}",
    "\"<COMPACT-SUMMARY v2>\\nreceipt: c0ffee\\nx\\n</COMPACT-SUMMARY>\"",
    "\"<COMPACT-SUMMARY v99999999999>\\n</COMPACT-SUMMARY>\"",
    "\"<system-reminder>x</system-reminder>\"",
    "\"{\\\"a\\\":1}\"",
    "\"data:image/png;base64,iVBORw0KGgoAAAANSUhEUv////////8=\"",
];

/// Bytes that break things: quotes and brackets, and what is no UTF-8.
const HARMS: &[&[u8]] = &[
    b"\0",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x82",
    b"\"",
    b"\\",
    b"\\u",
    b"\n",
    b"\r\n",
    b"\xe2\x80\xa8",
    b"{",
    b"]",
    b",",
    b"\xef\xbb\xbf",
];

/// Larger inputs take long and tell no more.
const LARGEST: usize = 1 << 16;

/// Makes new inputs from a pool of seeds.
pub(crate) struct Mutator {
    random: Random,
}

impl Mutator {
    pub(crate) fn new(random: Random) -> Self {
        Mutator { random }
    }

    /// Returns an input of the pool with some changes, most of which leave it JSON.
    pub(crate) fn mutate(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.random.pick(pool).cloned().unwrap_or_default();
        let other = self.random.pick(pool).cloned().unwrap_or_default();
        for _ in 0..=self.random.index(4) {
            input = match self.random.index(16) {
                0 => self.harm(input),
                1 => self.shuffle_lines(&input),
                2 => self.cross(&input, &other),
                3..=5 => self.copy_value(&input, &other),
                6 => self.rename(&input, &other),
                7 => self.repeat(&input),
                8 | 9 => self.remove(&input),
                10 => self.deepen(&input),
                11 => self.swap_values(&input),
                12 => self.stretch(&input),
                _ => self.insert_odd_value(&input),
            };
        }
        input.truncate(LARGEST);
        input
    }

    fn pick_value(&mut self, text: &[u8]) -> Option<ValueSpan> {
        self.random.pick(&json::find_spans(text).values).cloned()
    }

    /// Returns a value in the place of another.
    fn replace(&mut self, input: &[u8], with: &[u8]) -> Vec<u8> {
        match self.pick_value(input) {
            Some(place) => splice(input, place.span, with),
            None => [input, with].concat(),
        }
    }

    fn insert_odd_value(&mut self, input: &[u8]) -> Vec<u8> {
        let odd = self.random.pick(ODD).copied().unwrap_or_default();
        self.replace(input, odd.as_bytes())
    }

    /// Returns a value of another input, or of this one.
    fn copy_value(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let from = if self.random.roll_percent(50) {
            input
        } else {
            other
        };
        match self.pick_value(from) {
            Some(place) => self.replace(input, slice(from, place.span)),
            None => input.to_vec(),
        }
    }

    /// Returns a member under the name of another.
    fn rename(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let from = if self.random.roll_percent(50) {
            input
        } else {
            other
        };
        let new = self.random.pick(&json::find_spans(from).keys).cloned();
        let old = self.random.pick(&json::find_spans(input).keys).cloned();
        match old.zip(new) {
            Some((old, new)) => splice(input, old, slice(from, new)),
            None => input.to_vec(),
        }
    }

    /// Returns an element or a member again, once or many times.
    fn repeat(&mut self, input: &[u8]) -> Vec<u8> {
        let Some(place) = self.pick_value(input) else {
            return input.to_vec();
        };
        let again = [b",", slice(input, place.member_span())].concat();
        let times = if self.random.roll_percent(90) { 1 } else { 200 };
        let end = place.span.end;
        splice(input, end..end, &again.repeat(times))
    }

    /// Returns an element or a member gone, and a comma with it.
    fn remove(&mut self, input: &[u8]) -> Vec<u8> {
        let Some(place) = self.pick_value(input) else {
            return input.to_vec();
        };
        let mut gone = place.member_span();
        let before = slice(input, 0..gone.start).trim_ascii_end();
        if input.get(gone.end) == Some(&b',') {
            gone.end += 1;
        } else if before.ends_with(b",") {
            gone.start = before.len() - 1;
        }
        splice(input, gone, b"")
    }

    /// Returns a value within many lists or objects.
    fn deepen(&mut self, input: &[u8]) -> Vec<u8> {
        let depths = [1, 5, 130, 2_000, 20_000];
        let depth = self.random.pick(&depths).copied().unwrap_or(1);
        let Some(place) = self.pick_value(input) else {
            return input.to_vec();
        };
        let (open, close): (&[u8], &[u8]) = if self.random.roll_percent(50) {
            (b"[", b"]")
        } else {
            (b"{\"a\":", b"}")
        };
        let value = slice(input, place.span.clone());
        let nested = [&open.repeat(depth), value, &close.repeat(depth)].concat();
        splice(input, place.span, &nested)
    }

    /// Returns two values in each other's places.
    fn swap_values(&mut self, input: &[u8]) -> Vec<u8> {
        let (Some(a), Some(b)) = (self.pick_value(input), self.pick_value(input)) else {
            return input.to_vec();
        };
        let (first, second) = if a.span.start < b.span.start {
            (a.span, b.span)
        } else {
            (b.span, a.span)
        };
        if first.end > second.start {
            return input.to_vec();
        }
        let moved = splice(input, second.clone(), slice(input, first.clone()));
        splice(&moved, first, slice(input, second))
    }

    /// Returns a text that is far longer than others.
    fn stretch(&mut self, input: &[u8]) -> Vec<u8> {
        let words = ["a", "src/a.rs:12 error ", "\\n", "漢", "\\u0000", "\\\""];
        let word = self.random.pick(&words).copied().unwrap_or("a");
        let times = self.random.between(1_000, 3_000) as usize;
        let text = format!("\"{}\"", word.repeat(times));
        self.replace(input, text.as_bytes())
    }

    fn harm(&mut self, mut input: Vec<u8>) -> Vec<u8> {
        let at = self.random.index(input.len() + 1);
        let harm = self.random.pick(HARMS).copied().unwrap_or_default();
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

    /// Returns a line twice, gone, or in another place.
    fn shuffle_lines(&mut self, input: &[u8]) -> Vec<u8> {
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

    /// Returns the beginning of one input with the end of another: at a line where there are several, else
    /// at a value.
    fn cross(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let breaks = |text: &[u8]| -> Vec<usize> {
            let lines = text.iter().enumerate().filter(|(_, b)| **b == b'\n');
            let lines: Vec<usize> = lines.map(|(at, _)| at + 1).collect();
            if lines.len() > 1 {
                return lines;
            }
            let values = json::find_spans(text).values;
            values
                .iter()
                .map(|place| place.member_span().start)
                .collect()
        };
        let head = self.random.pick(&breaks(input)).copied().unwrap_or(0);
        let tail = self.random.pick(&breaks(other)).copied().unwrap_or(0);
        [slice(input, 0..head), slice(other, tail..other.len())].concat()
    }
}

fn slice(text: &[u8], span: Range<usize>) -> &[u8] {
    text.get(span).unwrap_or_default()
}

fn splice(input: &[u8], span: Range<usize>, with: &[u8]) -> Vec<u8> {
    let before = slice(input, 0..span.start);
    let after = slice(input, span.end..input.len());
    [before, with, after].concat()
}
