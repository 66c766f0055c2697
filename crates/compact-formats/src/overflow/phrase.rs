//! The sentences in which providers say that a prompt is too large.

use std::sync::LazyLock;

use compact_core::cue_list::cue_lines;
use compact_core::token::Tokens;
use regex::{Captures, Regex};

use super::Overflow;

/// The phrases, one a line.
const PHRASES: &str = include_str!("../../templates/cues/overflow.txt");

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = cue_lines(PHRASES).map(|phrase| Regex::new(&build_pattern(phrase)));
    patterns.filter_map(Result::ok).collect()
});

fn build_pattern(phrase: &str) -> String {
    let number = "[0-9][0-9,_]*";
    let named = |name: &str| format!("(?<{name}>{number})");
    let phrase = phrase
        .replace("<number>", number)
        .replace("<tokens>", &named("tokens"))
        .replace("<limit>", &named("limit"));
    format!("(?is){phrase}")
}

/// Returns the first sentence that says it.
pub(super) fn find_phrase(text: &str) -> Option<Overflow> {
    let found = PATTERNS.iter().find_map(|pattern| pattern.captures(text))?;
    let number = |name: &str| -> Option<Tokens> {
        let digits = |captures: &Captures<'_>| -> Option<String> {
            let text = captures.name(name)?.as_str();
            Some(text.chars().filter(char::is_ascii_digit).collect())
        };
        digits(&found)?.parse().ok().map(Tokens)
    };
    Some(Overflow {
        tokens: number("tokens"),
        limit: number("limit"),
        ..Overflow::SAID
    })
}

#[cfg(test)]
#[test]
fn every_phrase_is_needed_by_an_answer() {
    let answers = include_str!("refusals.jsonl").lines();
    let first = |answer: &str| PATTERNS.iter().position(|pattern| pattern.is_match(answer));
    let needed: std::collections::BTreeSet<usize> = answers.filter_map(first).collect();
    let all = (0..cue_lines(PHRASES).count()).collect();
    assert_eq!(needed, all);
}
