//! Telling letters that somebody chose from letters that a machine drew.
//!
//! Names, paths and words spend few bits on each character: `tr` follows `s` often, `qz` hardly ever, a digit in the
//! middle of letters rarely. A drawn string spends more than its alphabet needs. The difference adds up: over twenty
//! characters it is tens of bits, so neither length nor the share of digits has to decide. What stands around a string is
//! not looked at here.

use std::ops::Range;
use std::sync::LazyLock;

/// The costs of letters.
pub(super) const TABLES: [&str; 1] = [include_str!("../../templates/secrets/letters.txt")];

/// Costs are counted in half bits.
const HALF_BITS: i32 = 2;

/// The drawn letters and digits without which a stretch proves nothing.
const SHORTEST: usize = 16;

/// How much dearer a stretch must be, as letters somebody chose, than as letters a machine drew: 26 bits.
const SURE: i32 = 22 * HALF_BITS;

/// The same for a whole word, in bits.
const SURE_OF_WORD: i32 = 12;

/// A stretch ends where what follows it is this much cheaper as chosen letters.
const DROP: i32 = 30 * HALF_BITS;

/// What was drawn changes between letters, capitals and digits more often than this.
const FEWEST_BREAKS: usize = 4;

/// A run of hex digits of this length is the name of a commit or a block, not a drawn word.
const HASH: usize = 7;

#[derive(Clone, Copy, PartialEq, Eq)]
enum LetterClass {
    Lower = 0,
    Upper = 1,
    Digit = 2,
    Joint = 3,
}

/// What a class costs after another, counted over the same texts as the letters.
const CLASS_COSTS: [[i32; 4]; 4] = [[0, 11, 16, 9], [5, 1, 12, 7], [8, 9, 1, 4], [1, 3, 12, 9]];

/// One digit of ten, one joint of four.
const DIGIT_COST: i32 = 7;
const JOINT_COST: i32 = 4;

/// The next letter of the alphabet, or the same again.
const STEP_COST: i32 = 2;

/// One of 64, and one of 36.
const MIXED_ALPHABET: i32 = 12;
const PLAIN_ALPHABET: i32 = 10;

/// Rows for the letter before, the first one for none; columns for the letter.
type LetterCosts = [[i32; 26]; 27];

static LETTER_COSTS: LazyLock<LetterCosts> = LazyLock::new(|| {
    let rows = TABLES.iter().flat_map(|table| table.lines());
    let mut costs = [[0; 26]; 27];
    for (row, line) in costs
        .iter_mut()
        .zip(rows.filter(|line| !line.starts_with('#')))
    {
        let digits = line.chars().skip(2);
        for (cost, digit) in row.iter_mut().zip(digits) {
            *cost = digit.to_digit(36).unwrap_or_default() as i32;
        }
    }
    costs
});

/// The characters of a run, counted by class.
#[derive(Default)]
struct LetterCounts {
    lower: usize,
    upper: usize,
    digits: usize,
}

impl LetterCounts {
    fn of(run: &[u8]) -> LetterCounts {
        LetterCounts {
            lower: run.iter().filter(|b| b.is_ascii_lowercase()).count(),
            upper: run.iter().filter(|b| b.is_ascii_uppercase()).count(),
            digits: run.iter().filter(|b| b.is_ascii_digit()).count(),
        }
    }

    fn is_mixed(&self) -> bool {
        self.lower > 0 && self.upper > 0
    }

    /// Nothing drawn has one case and no digit, or next to no letters.
    fn may_be_drawn(&self) -> bool {
        let letters = self.lower + self.upper;
        letters >= 4 && (self.is_mixed() || self.digits > 0)
    }
}

/// The stretches of a run that a machine drew. A run is letters, digits and the joints `_-/+`.
pub(super) fn find_drawn(run: &[u8]) -> Vec<Range<usize>> {
    if !may_be_drawn(run) {
        return Vec::new();
    }
    let counts = LetterCounts::of(run);
    if !counts.may_be_drawn() {
        return Vec::new();
    }
    let mut search = DrawnSearch::new(run, counts.is_mixed());
    search.follow();
    if search.found.is_empty() && is_drawn_whole(run, &counts) {
        search.found.push(0..run.len());
    }
    search.found
}

/// Whether a run is no hash and changes often enough to have been drawn.
pub(super) fn may_be_drawn(run: &[u8]) -> bool {
    let is_hash = |run: &[u8]| run.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    breaks(run).nth(FEWEST_BREAKS - 1).is_some() && !is_hash(run)
}

/// A word of capitals, small letters and digits alone needs less to be sure of: there is no choice where it begins.
fn is_drawn_whole(run: &[u8], counts: &LetterCounts) -> bool {
    let is_word = counts.lower + counts.upper + counts.digits == run.len();
    let is_number = run.starts_with(b"0x") || run.starts_with(b"0X");
    is_word && !is_number && counts.is_mixed() && counts.digits > 0 && surprise(run) >= SURE_OF_WORD
}

/// Places where a digit and a letter meet, or a capital follows a small letter.
fn breaks(run: &[u8]) -> impl Iterator<Item = usize> {
    let is_break = |[a, b]: &[u8; 2]| {
        a.is_ascii_digit() != b.is_ascii_digit() || a.is_ascii_lowercase() & b.is_ascii_uppercase()
    };
    let pairs = run.array_windows::<2>().enumerate();
    pairs
        .filter(move |(_, pair)| is_break(pair))
        .map(|(at, _)| at)
}

/// True when a machine drew the most of a word.
pub(super) fn is_drawn(word: &[u8]) -> bool {
    let drawn: usize = find_drawn(word).iter().map(ExactSizeIterator::len).sum();
    drawn * 2 > word.len()
}

/// How many bits dearer a whole word is as chosen letters than as drawn ones; below nought for names.
pub(super) fn surprise(word: &[u8]) -> i32 {
    let mixed = LetterCounts::of(word).is_mixed();
    let search = DrawnSearch::new(word, mixed);
    let mut before = b'_';
    let mut sum = 0;
    for byte in word {
        sum += search.excess(before, *byte);
        before = *byte;
    }
    sum / HALF_BITS
}

/// The stretch that is being followed: where it began, what it is worth, and where it was worth the most.
#[derive(Clone, Copy, Default)]
struct OpenStretch {
    start: usize,
    worth: i32,
    best: i32,
    best_end: usize,
}

struct DrawnSearch<'r> {
    run: &'r [u8],
    mixed: bool,
    open: OpenStretch,
    found: Vec<Range<usize>>,
}

impl<'r> DrawnSearch<'r> {
    fn new(run: &'r [u8], mixed: bool) -> DrawnSearch<'r> {
        DrawnSearch {
            run,
            mixed,
            open: OpenStretch::default(),
            found: Vec::new(),
        }
    }

    fn follow(&mut self) {
        let mut before = b'_';
        let mut at = 0;
        while let Some(byte) = self.run.get(at).copied() {
            let hash = self.hash_length(before, at);
            if hash > 0 {
                self.close(at + hash);
                at += hash;
                before = b'0';
                continue;
            }
            self.take(before, byte, at);
            before = byte;
            at += 1;
        }
        self.close(at);
    }

    fn take(&mut self, before: u8, byte: u8, at: usize) {
        // Joints part words of one case; in drawn strings of both they are letters like any other.
        if !self.mixed && classify(byte) == LetterClass::Joint {
            self.close(at + 1);
            return;
        }
        let open = &mut self.open;
        if open.worth <= 0 {
            let worth_it = open.best >= SURE;
            if worth_it {
                self.close(at);
            }
            self.open = OpenStretch {
                start: at,
                ..OpenStretch::default()
            };
        }
        let excess = self.excess(before, byte);
        let open = &mut self.open;
        open.worth += excess;
        if open.worth > open.best {
            open.best = open.worth;
            open.best_end = at + 1;
        }
        if open.best - open.worth > DROP {
            self.close(at + 1);
        }
    }

    /// Ends the stretch; the next one begins at `next`.
    fn close(&mut self, next: usize) {
        let open = self.open;
        self.open = OpenStretch {
            start: next,
            ..OpenStretch::default()
        };
        if open.best < SURE {
            return;
        }
        let range = open.start..open.best_end;
        let letters = self.count_letters(&range);
        let word = self.whole_word(range);
        // A few odd letters within a long name do not make it a drawn one.
        if letters >= SHORTEST && letters * 2 >= self.count_letters(&word) {
            self.found.push(word);
        }
    }

    fn count_letters(&self, range: &Range<usize>) -> usize {
        let letters = self.run.get(range.clone()).unwrap_or_default();
        letters.iter().filter(|b| b.is_ascii_alphanumeric()).count()
    }

    /// A stretch that was drawn begins and ends with the word that it is in.
    fn whole_word(&self, range: Range<usize>) -> Range<usize> {
        let before = self.run.get(..range.start).unwrap_or_default();
        let after = self.run.get(range.end..).unwrap_or_default();
        let is_letter = |b: &&u8| b.is_ascii_alphanumeric();
        let back = before.iter().rev().take_while(is_letter).count();
        let on = after.iter().take_while(is_letter).count();
        range.start - back..range.end + on
    }

    /// The length of a hash or number that begins at a place, or nought: hex digits of one case up to the next joint, or
    /// a number of a program.
    fn hash_length(&self, before: u8, at: usize) -> usize {
        if before.is_ascii_alphanumeric() {
            return 0;
        }
        let rest = self.run.get(at..).unwrap_or_default();
        if rest.starts_with(b"0x") || rest.starts_with(b"0X") {
            return rest
                .iter()
                .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
                .count();
        }
        let hex = rest.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let ends = !rest.get(hex).is_some_and(u8::is_ascii_alphanumeric);
        let word = rest.get(..hex).unwrap_or_default();
        if hex >= HASH && ends && !LetterCounts::of(word).is_mixed() {
            hex
        } else {
            0
        }
    }

    /// What a character costs as a chosen one beyond what it costs as a drawn one.
    fn excess(&self, before: u8, byte: u8) -> i32 {
        let drawn = if self.mixed {
            MIXED_ALPHABET
        } else {
            PLAIN_ALPHABET
        };
        chosen_cost(before, byte) - drawn
    }
}

fn chosen_cost(before: u8, byte: u8) -> i32 {
    if byte == before || byte == before.wrapping_add(1) {
        return STEP_COST;
    }
    let (from, to) = (classify(before), classify(byte));
    let class = CLASS_COSTS
        .get(from as usize)
        .and_then(|row| row.get(to as usize));
    let own = match to {
        LetterClass::Digit => DIGIT_COST,
        LetterClass::Joint => JOINT_COST,
        LetterClass::Lower | LetterClass::Upper => letter_cost(before, byte),
    };
    class.copied().unwrap_or_default() + own
}

/// A capital after a small letter opens a word.
fn letter_cost(before: u8, byte: u8) -> i32 {
    let opens =
        !before.is_ascii_alphabetic() || before.is_ascii_lowercase() && byte.is_ascii_uppercase();
    let row = match opens {
        true => 0,
        false => usize::from(before.to_ascii_lowercase().wrapping_sub(b'a')) + 1,
    };
    let column = usize::from(byte.to_ascii_lowercase().wrapping_sub(b'a'));
    let cost = LETTER_COSTS.get(row).and_then(|row| row.get(column));
    cost.copied().unwrap_or_default()
}

fn classify(byte: u8) -> LetterClass {
    match byte {
        b'a'..=b'z' => LetterClass::Lower,
        b'A'..=b'Z' => LetterClass::Upper,
        b'0'..=b'9' => LetterClass::Digit,
        _ => LetterClass::Joint,
    }
}
