//! Which numbers of a rule are values that a later rule may change, and which only name a thing.
//!
//! "at most 3 retries" and "until 12 Dec" hold values; "host 3", "port 8080", `db1` and `/data/shard1`
//! name what the rule is about, and another number there is another subject. Where it is not plain
//! that a number is a value, it names.

use crate::cue_list::{WordList, cue_file};

static LIMIT_WORDS: WordList = WordList::new(cue_file!("limit_word"));
static COUNT_WORDS: WordList = WordList::new(cue_file!("count_word"));
static TEXT_PARTS: WordList = WordList::new(cue_file!("text_part"));

/// The words of a sentence in lower case, each without the punctuation around it.
pub(super) fn sentence_words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace()
        .map(|word| {
            word.trim_matches(|c: char| EDGES.contains(c))
                .to_lowercase()
        })
        .filter(|word| !word.is_empty())
}

const EDGES: &str = ".,;:!?\"'`()[]{}*…";

/// Whether the word at `at` is a number that measures something.
pub(super) fn is_value(words: &[String], at: usize) -> bool {
    let word = |at: Option<usize>| at.and_then(|at| words.get(at)).map_or("", String::as_str);
    let (before, after) = (word(at.checked_sub(1)), word(Some(at + 1)));
    let Some((number, unit)) = split_number(word(Some(at))) else {
        return false;
    };
    is_date(number)
        || word(Some(at)).starts_with(['$', '€', '£'])
        || !unit.is_empty()
        || is_month(before)
        || is_month(after)
        || LIMIT_WORDS.has(before)
        || (COUNT_WORDS.has(before) && is_counted(after))
        || (number.contains('.') && !TEXT_PARTS.has(before))
}

/// A number and the unit that is written right behind it; a sign before it is left out. A version has
/// up to three parts; an address on a network, which has four, is no number.
fn split_number(word: &str) -> Option<(&str, &str)> {
    let word = word.trim_start_matches(['$', '€', '£', '<', '>', '=', '≤', '≥', '~']);
    let word = word.strip_prefix('v').unwrap_or(word);
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || ".,:-".contains(c));
    let number = word.get(..word.len() - unit.len())?;
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(|c: char| c.is_ascii_digit())
        && number.matches('.').count() <= 2;
    (is_number && (unit.is_empty() || UNITS.contains(&unit))).then_some((number, unit))
}

/// `2026-12-05` and `18:30`.
fn is_date(number: &str) -> bool {
    let parts: Vec<usize> = number.split(['-', ':']).map(str::len).collect();
    matches!(parts.as_slice(), [4, 2, 2] | [1 | 2, 2])
}

fn is_month(word: &str) -> bool {
    word.len() >= 3 && MONTHS.iter().any(|month| month.starts_with(word))
}

/// A noun in the plural, or a word for a share.
fn is_counted(word: &str) -> bool {
    (word.len() >= 4 && word.ends_with('s')) || word == "percent" || word == "people"
}

/// Units that are written right behind a number.
const UNITS: [&str; 25] = [
    "%", "s", "ms", "m", "min", "h", "d", "k", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "px",
    "x", "am", "pm", "st", "nd", "rd", "th", "eur", "usd",
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
