//! Finding the phrases of a list in a text, without a regular expression for each list.
//!
//! Two dozen expressions took longer to compile than a session takes to be read. A phrase is compared only where a
//! word begins or ends and two bytes say that one may stand there, so most words of a text are passed over at once.

use std::ops::Range;

/// Where in a text the phrases of a list count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhrasePlace {
    /// Where a word begins or ends.
    Anywhere,
    /// At its beginning.
    Start,
}

/// One part of a phrase.
#[derive(Debug)]
enum PhrasePart {
    /// These letters, in upper or lower case.
    Letters(Box<[u8]>),
    /// One or more bytes of this kind: `*`, `<number>`.
    Run(fn(u8) -> bool),
}

/// A phrase that may stand where two bytes are as it begins.
#[derive(Debug)]
struct Candidate {
    /// The low bits of its third byte, if it has one that is known.
    third: Option<u8>,
    /// Its place in the list.
    nth: u32,
}

/// The phrases of a list by how they begin.
#[derive(Debug)]
pub(super) struct PhraseTable {
    place: PhrasePlace,
    phrases: Vec<Vec<PhrasePart>>,
    /// For each beginning, whether a phrase has it.
    begins: [u64; BEGINNINGS / 64],
    /// Phrases by their beginnings, in the order of the list.
    candidates: Vec<Candidate>,
    /// For each beginning, and one more, where its candidates begin.
    groups: Vec<u32>,
    /// Whether a phrase may begin where a word ends: one of them opens with a sign.
    opens_with_sign: bool,
}

/// The low bits of a byte are the same in either case.
const LOW_BITS: u8 = 0x1f;
const LOW_VALUES: usize = LOW_BITS as usize + 1;
const BEGINNINGS: usize = LOW_VALUES * LOW_VALUES;

impl PhraseTable {
    pub(super) fn new<'p>(
        place: PhrasePlace,
        phrases: impl Iterator<Item = &'p str>,
    ) -> PhraseTable {
        let phrases: Vec<Vec<PhrasePart>> = phrases.map(read_phrase).collect();
        let mut begins = [0; BEGINNINGS / 64];
        let mut by_beginning: Vec<Vec<u32>> = vec![Vec::new(); BEGINNINGS];
        for (parts, nth) in phrases.iter().zip(0..) {
            for beginning in beginnings(parts).map(usize::from) {
                let group = by_beginning.get_mut(beginning);
                group.into_iter().for_each(|group| group.push(nth));
                let bits = begins.get_mut(beginning / 64);
                bits.into_iter()
                    .for_each(|bits| *bits |= 1 << (beginning % 64));
            }
        }
        let mut candidates = Vec::new();
        let mut groups = vec![0];
        for group in by_beginning {
            candidates.extend(group.into_iter().map(|nth| Candidate {
                third: phrases.get(nth as usize).and_then(|parts| third_of(parts)),
                nth,
            }));
            groups.push(candidates.len() as u32);
        }
        let opens_with_sign = phrases.iter().any(|parts| opens_with_sign(parts));
        PhraseTable {
            place,
            phrases,
            begins,
            candidates,
            groups,
            opens_with_sign,
        }
    }

    /// The first phrase in a text from a byte on.
    pub(super) fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        let text = text.as_bytes();
        if self.place == PhrasePlace::Start {
            return (from == 0).then(|| self.phrase_at(text, 0))?;
        }
        let mut was_word = from > 0 && is_word_at(text, from - 1);
        for (at, byte) in text.iter().enumerate().skip(from) {
            let is_word = is_word(*byte);
            if is_word != was_word
                && (is_word || self.opens_with_sign)
                && let Some(found) = self.phrase_at(text, at)
            {
                return Some(found);
            }
            was_word = is_word;
        }
        None
    }

    /// The phrase that begins at a byte: the first of the list that does.
    #[inline]
    fn phrase_at(&self, text: &[u8], at: usize) -> Option<Range<usize>> {
        let beginning = beginning_of(text.get(at..)?);
        let bits = self.begins.get(usize::from(beginning) / 64)?;
        match bits >> (beginning % 64) & 1 {
            0 => None,
            _ => self.phrase_of(beginning, text, at),
        }
    }

    /// The phrase at a byte, among those with this beginning.
    #[inline(never)]
    fn phrase_of(&self, beginning: u16, text: &[u8], at: usize) -> Option<Range<usize>> {
        let group = usize::from(beginning);
        let [first, end] = *self.groups.get(group..group + 2)?.as_array()?;
        let third = low_bits(text.get(at + 2));
        let candidates = self.candidates.get(first as usize..end as usize)?;
        let mut candidates = candidates
            .iter()
            .filter(|candidate| candidate.third.is_none_or(|known| known == third));
        candidates.find_map(|candidate| {
            let parts = self.phrases.get(candidate.nth as usize)?;
            Some(at..end_of(parts, text, at)?)
        })
    }
}

/// Whether a phrase of these parts begins with something else than a word.
fn opens_with_sign(parts: &[PhrasePart]) -> bool {
    match parts.first() {
        Some(PhrasePart::Letters(letters)) => !is_word_at(letters, 0),
        Some(PhrasePart::Run(_)) | None => false,
    }
}

fn read_phrase(phrase: &str) -> Vec<PhrasePart> {
    let mut parts = Vec::new();
    for (nth, words) in phrase.split('*').enumerate() {
        if nth > 0 {
            parts.push(PhrasePart::Run(is_word));
        }
        for (nth, letters) in words.split("<number>").enumerate() {
            if nth > 0 {
                parts.push(PhrasePart::Run(|byte| byte.is_ascii_digit()));
            }
            if !letters.is_empty() {
                parts.push(PhrasePart::Letters(letters.as_bytes().into()));
            }
        }
    }
    parts
}

/// How a text may begin that begins with a phrase of these parts.
fn beginnings(parts: &[PhrasePart]) -> Range<u16> {
    let letters: &[u8] = match parts.first() {
        Some(PhrasePart::Letters(letters)) => letters,
        _ => &[],
    };
    let known = beginning_of(letters);
    let low = LOW_VALUES as u16;
    match letters.len() {
        0 => 0..BEGINNINGS as u16,
        1 => known / low * low..(known / low + 1) * low,
        _ => known..known + 1,
    }
}

/// The low bits of the first two bytes.
fn beginning_of(text: &[u8]) -> u16 {
    let low = |byte| u16::from(low_bits(byte));
    low(text.first()) * LOW_VALUES as u16 + low(text.get(1))
}

/// The low bits of the third byte of a phrase that opens with three letters at least.
fn third_of(parts: &[PhrasePart]) -> Option<u8> {
    match parts.first() {
        Some(PhrasePart::Letters(letters)) => letters.get(2).map(|byte| low_bits(Some(byte))),
        Some(PhrasePart::Run(_)) | None => None,
    }
}

fn low_bits(byte: Option<&u8>) -> u8 {
    byte.copied().unwrap_or(0) & LOW_BITS
}

/// Where these parts end that begin at a byte, if they stand there with nothing of a word cut off behind them.
fn end_of(parts: &[PhrasePart], text: &[u8], at: usize) -> Option<usize> {
    let Some((first, rest)) = parts.split_first() else {
        let is_boundary = at > 0 && is_word_at(text, at - 1) != is_word_at(text, at);
        return is_boundary.then_some(at);
    };
    match first {
        PhrasePart::Letters(letters) => {
            let end = at + letters.len();
            let here = text.get(at..end)?;
            // Where two bytes agree, the last seldom does.
            let may_be = here.last().map(u8::to_ascii_lowercase)
                == letters.last().map(u8::to_ascii_lowercase);
            let is_here = may_be && here.eq_ignore_ascii_case(letters);
            is_here.then(|| end_of(rest, text, end))?
        }
        PhrasePart::Run(is_part) => {
            let run = text.get(at..)?.iter().take_while(|b| is_part(**b)).count();
            (1..=run).rev().find_map(|n| end_of(rest, text, at + n))
        }
    }
}

fn is_word_at(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(|byte| is_word(*byte))
}

fn is_word(byte: u8) -> bool {
    WORD_BYTES.get(usize::from(byte)).copied().unwrap_or(false)
}

/// For each byte, whether it is part of a word.
const WORD_BYTES: [bool; 256] = word_bytes();

// A constant table is built before any data is read: every index below is in its range.
#[allow(clippy::indexing_slicing)]
const fn word_bytes() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
}
