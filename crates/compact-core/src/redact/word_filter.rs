//! Finding many words in one pass, in upper or lower case.
//!
//! A text is read four bytes at a time, and a table of bits says whether a word may begin so; only then is the word
//! compared. Unlike an automaton the table fits the nearest cache, no step waits for the one before, and it is ready as
//! soon as it is filled.

use std::ops::Range;

use foldhash::HashMap;

/// The bytes of a word's beginning that the table knows; a word may be one shorter.
const BEGINNING: usize = 4;

/// The bits of each byte that count: the low ones, which are the same in either case.
const LOW_BITS: u32 = 0x1f1f_1f1f;

/// Spread beginnings over the two tables; any odd numbers with bits everywhere do.
const SPREADS: [u32; 2] = [0x9e37_79b1, 0x85eb_ca6b];

const SLOT_BITS: u32 = 16;

const SLOTS: usize = 1 << SLOT_BITS;

/// Words of at least three bytes, each with what it stands for.
pub(super) struct WordFilter<T> {
    /// Two tables, for what the first one lets through by chance.
    begins: [Box<[u64; SLOTS / 64]>; 2],
    /// The words by their first bytes in lower case.
    words: HashMap<[u8; 3], Vec<(String, T)>>,
}

impl<T: Copy> WordFilter<T> {
    pub(super) fn new(all: impl IntoIterator<Item = (String, T)>) -> WordFilter<T> {
        let mut filter = WordFilter {
            begins: [Box::new([0; SLOTS / 64]), Box::new([0; SLOTS / 64])],
            words: HashMap::default(),
        };
        for (word, meaning) in all {
            filter.add(&word, meaning);
        }
        filter
    }

    fn add(&mut self, word: &str, meaning: T) {
        let bytes = word.as_bytes();
        let Some([a, b, c]) = bytes.get(..BEGINNING - 1) else {
            return;
        };
        match bytes.get(BEGINNING - 1) {
            Some(d) => self.mark([*a, *b, *c, *d]),
            None => (0..=0x1f).for_each(|any| self.mark([*a, *b, *c, any])),
        }
        let list = self.words.entry(fold_case(*a, *b, *c)).or_default();
        list.push((word.to_owned(), meaning));
    }

    fn mark(&mut self, beginning: [u8; BEGINNING]) {
        for (table, spread) in self.begins.iter_mut().zip(SPREADS) {
            let slot = slot_of(u32::from_le_bytes(beginning), spread);
            if let Some(bits) = table.get_mut(slot / 64) {
                *bits |= 1 << (slot % 64);
            }
        }
    }

    /// Calls `found` with each word in the order of the text, and what it stands for.
    pub(super) fn scan(&self, text: &str, mut found: impl FnMut(T, Range<usize>)) {
        let bytes = text.as_bytes();
        let mut start = 0;
        while let Some(at) = self.next_beginning(bytes, start) {
            self.compare(bytes, at, &mut found);
            start = at + 1;
        }
        // A word of three bytes may be the last one.
        if let Some(last) = bytes
            .len()
            .checked_sub(BEGINNING - 1)
            .filter(|last| *last >= start)
        {
            self.compare(bytes, last, &mut found);
        }
    }

    /// Where the next word may begin, from a place on.
    fn next_beginning(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let ([a, b, c], rest) = bytes.get(from..)?.split_first_chunk()?;
        let [first, second] = &self.begins;
        let [spread, other] = SPREADS;
        let mut four = u32::from_le_bytes([0, *a, *b, *c]);
        let begins = |byte: &u8| {
            four = four >> 8 | u32::from(*byte) << 24;
            is_marked(first, slot_of(four, spread)) && is_marked(second, slot_of(four, other))
        };
        rest.iter().position(begins).map(|at| from + at)
    }

    fn compare(&self, bytes: &[u8], start: usize, found: &mut impl FnMut(T, Range<usize>)) {
        let Some([a, b, c]) = bytes.get(start..start + BEGINNING - 1) else {
            return;
        };
        let words = self.words.get(&fold_case(*a, *b, *c));
        for (word, meaning) in words.into_iter().flatten() {
            let range = start..start + word.len();
            let here = bytes.get(range.clone());
            // Words that begin alike seldom end so.
            let may_be = |here: &&[u8]| has_same_end(here, word.as_bytes());
            let here = here.filter(may_be);
            if here.is_some_and(|here| here.eq_ignore_ascii_case(word.as_bytes())) {
                found(*meaning, range);
            }
        }
    }
}

/// Whether the last bytes are the same, in either case.
#[inline]
fn has_same_end(one: &[u8], other: &[u8]) -> bool {
    let end = |word: &[u8]| word.last().map(u8::to_ascii_lowercase);
    end(one) == end(other)
}

#[inline]
fn is_marked(table: &[u64; SLOTS / 64], slot: usize) -> bool {
    let bits = table.get(slot / 64).copied().unwrap_or_default();
    bits >> (slot % 64) & 1 == 1
}

/// The slot of four bytes, the first of them the lowest.
#[inline]
fn slot_of(beginning: u32, spread: u32) -> usize {
    let low = beginning & LOW_BITS;
    (low.wrapping_mul(spread) >> (u32::BITS - SLOT_BITS)) as usize
}

fn fold_case(a: u8, b: u8, c: u8) -> [u8; 3] {
    [a, b, c].map(|byte| byte.to_ascii_lowercase())
}
