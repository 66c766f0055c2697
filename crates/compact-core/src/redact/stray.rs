//! Secrets that nothing names: strings that a machine drew, wherever they stand.
//!
//! Only runs of twenty letters, digits and joints or more are looked at, and most texts have few. What was drawn and is
//! public all the same stays: hashes, ids, pages, public keys, data within addresses. The words and prefixes that tell
//! are files.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use super::secret_check::name_words;
use super::{escape, letters};
use crate::cue_list::cue_lines;

/// The shortest run that is looked at.
const SHORTEST_RUN: usize = 20;

/// How far before a string its name may begin.
const NAME_REACH: usize = 96;

/// The words and prefixes of what is public.
pub(super) const LISTS: [&str; 2] = [NAME_LIST, PREFIX_LIST];
const NAME_LIST: &str = include_str!("../../templates/secrets/public_name.txt");
const PREFIX_LIST: &str = include_str!("../../templates/secrets/public_prefix.txt");

static PUBLIC_NAMES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| cue_lines(NAME_LIST).collect());

static PUBLIC_PREFIXES: LazyLock<Vec<&str>> = LazyLock::new(|| cue_lines(PREFIX_LIST).collect());

/// How public keys, pictures, sounds, packed files and fonts begin in base64.
const PUBLIC_STARTS: [&str; 20] = [
    "AAAAB3NzaC1",
    "AAAAC3NzaC1",
    "AAAAE2VjZHNh",
    "AAAAGnNr",
    "AAAAInNr",
    "iVBORw0KGgo",
    "/9j/4",
    "R0lGOD",
    "UklGR",
    "JVBERi0",
    "UEsDB",
    "H4sI",
    "PHN2Zy",
    "AGFzbQ",
    "T2dnUw",
    "SUQz",
    "AAAAIGZ0eXA",
    "d09GRg",
    "d09GMg",
    "TVqQ",
];

/// How compilers begin the names that they make.
const MANGLED_STARTS: [&str; 5] = ["_Z", "__Z", "_R", "__R", "anon_"];

/// Whether each byte is one of a run.
static RUN_BYTES: LazyLock<[bool; 256]> = LazyLock::new(|| {
    std::array::from_fn(|byte| {
        let byte = byte as u8;
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/' | b'+')
    })
});

fn is_run_byte(table: &[bool; 256], byte: u8) -> bool {
    table.get(usize::from(byte)).copied().unwrap_or_default()
}

/// Calls `found` with each string that a machine drew and that is not known to be public.
pub(super) fn scan_strays(text: &str, mut found: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(run) = next_run(bytes, at) {
        at = run.end;
        let Some(letters) = bytes.get(run.clone()) else {
            continue;
        };
        if !letters::may_be_drawn(letters) || is_public_id(letters) {
            continue;
        }
        for drawn in letters::find_drawn(letters) {
            let range = run.start + drawn.start..run.start + drawn.end;
            let range = after_terminal_codes(text, range);
            if !is_public(text, &run, &range) {
                let start = escape::after_escape(text, range.start);
                found(start..with_padding(bytes, range.end));
            }
        }
    }
}

/// The next run of at least the shortest length. Looks at every twentieth byte or so: a run that is long enough covers one.
fn next_run(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let table = &*RUN_BYTES;
    let is_run = |b: &u8| is_run_byte(table, *b);
    let mut start = from;
    loop {
        let window = bytes.get(start..start + SHORTEST_RUN)?;
        match window.iter().rposition(|b| !is_run(b)) {
            Some(gap) => start += gap + 1,
            None => {
                let rest = bytes.get(start + SHORTEST_RUN..).unwrap_or_default();
                let more = rest.iter().take_while(|b| is_run(b)).count();
                return Some(start..start + SHORTEST_RUN + more);
            }
        }
    }
}

/// A public prefix with letters and digits behind it: most of the strings in a transcript that were drawn.
fn is_public_id(run: &[u8]) -> bool {
    let letters = run.iter().rev();
    let rest = letters.take_while(|b| b.is_ascii_alphanumeric()).count();
    let head = run.get(..run.len() - rest).unwrap_or_default();
    !head.is_empty()
        && PUBLIC_PREFIXES
            .iter()
            .any(|prefix| prefix.as_bytes() == head)
}

/// A string after a colour code begins after the code.
fn after_terminal_codes(text: &str, range: Range<usize>) -> Range<usize> {
    let before = text.get(..range.start).unwrap_or_default();
    let codes = before.trim_end_matches(|c: char| c.is_ascii_digit() || c == ';');
    if !codes.ends_with("\u{1b}[") {
        return range;
    }
    let drawn = text.get(range.clone()).unwrap_or_default();
    let digits = drawn.bytes().take_while(u8::is_ascii_digit).count();
    let letter = usize::from(digits < drawn.len());
    range.start + digits + letter..range.end
}

/// Base64 ends in `=`.
fn with_padding(bytes: &[u8], end: usize) -> usize {
    let rest = bytes.get(end..).unwrap_or_default();
    end + rest.iter().take(2).take_while(|b| **b == b'=').count()
}

fn is_public(text: &str, run: &Range<usize>, drawn: &Range<usize>) -> bool {
    let start = base64_start(text, run, drawn);
    let before = text.get(..start).unwrap_or_default();
    let value = text.get(start..drawn.end).unwrap_or_default();
    let whole = text.get(run.clone()).unwrap_or_default();
    let starts = |list: &[&str], text: &str| list.iter().any(|start| text.starts_with(start));
    let names = [before, text.get(..run.start).unwrap_or_default()];
    let mut names = names.into_iter();
    starts(&PUBLIC_STARTS, value)
        || starts(&PUBLIC_PREFIXES, value)
        || starts(&MANGLED_STARTS, whole)
        || follows_public_prefix(before)
        || follows_public_prefix(text.get(..drawn.start).unwrap_or_default())
        || is_mail_id(before, text.get(drawn.end..).unwrap_or_default())
        || has_public_path(text, run, drawn)
        || is_content_id(value)
        || names.any(|before| name_before(before).is_some_and(is_public_name))
}

/// Where the base64 begins whose part was drawn: chance may have made words of its beginning.
fn base64_start(text: &str, run: &Range<usize>, drawn: &Range<usize>) -> usize {
    let head = text.get(run.start..drawn.start).unwrap_or_default();
    let is_base64 = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    drawn.start - head.bytes().rev().take_while(is_base64).count()
}

/// A prefix counts with its first letter at the start of a word.
fn follows_public_prefix(before: &str) -> bool {
    PUBLIC_PREFIXES.iter().any(|prefix| {
        let tail = before
            .len()
            .checked_sub(prefix.len())
            .and_then(|at| before.get(at..));
        let same = tail.is_some_and(|tail| tail.eq_ignore_ascii_case(prefix));
        let ahead = before
            .get(..before.len() - prefix.len().min(before.len()))
            .unwrap_or_default();
        same && (!prefix.starts_with(|c: char| c.is_ascii_alphanumeric())
            || escape::opens_word(ahead))
    })
}

/// An address whose path says that an id follows.
fn has_public_path(text: &str, run: &Range<usize>, drawn: &Range<usize>) -> bool {
    let path = text.get(run.start..drawn.end).unwrap_or_default();
    let mut prefixes = PUBLIC_PREFIXES
        .iter()
        .filter(|prefix| prefix.starts_with('/'));
    prefixes.any(|prefix| path.contains(prefix))
}

/// `<drawn@host>`: a message's own name.
fn is_mail_id(before: &str, after: &str) -> bool {
    after.starts_with('@') && before.ends_with('<')
}

/// Names of contents in IPFS, and ULIDs.
fn is_content_id(value: &str) -> bool {
    let all = |test: fn(&u8) -> bool| value.as_bytes().iter().all(test);
    let is_ulid = value.len() == 26
        && value.starts_with('0')
        && all(|b| b.is_ascii_digit() || b.is_ascii_uppercase() && !b"ILOU".contains(b));
    let is_cid = value.starts_with("Qm") && value.len() == 46
        || value.starts_with("bafy") && value.len() == 59 && all(|b| !b.is_ascii_uppercase());
    is_ulid || is_cid
}

/// The name that a value after `before` is assigned to.
fn name_before(before: &str) -> Option<&str> {
    let near = before.len().saturating_sub(NAME_REACH);
    let near = before.get(before.ceil_char_boundary(near)..)?;
    let quotes = ['"', '\'', '`', '\\', ' ', '\t'];
    let operator = near.trim_end_matches(quotes);
    let name = operator.trim_end_matches(['=', ':', '>']);
    if name.len() == operator.len() {
        return None;
    }
    let name = name.trim_end_matches(quotes);
    let start = name.rfind(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.'));
    name.get(
        start.map_or(0, |at| {
            at + name
                .get(at..)
                .and_then(|n| n.chars().next())
                .map_or(1, char::len_utf8)
        })..,
    )
}

fn is_public_name(name: &str) -> bool {
    let words = name_words(name);
    words
        .iter()
        .any(|word| PUBLIC_NAMES.contains(word.as_str()))
}
