//! A person's message that is too long: its head and its tail, and between them the sentences that rule.
//!
//! A constraint in the middle of a long request must not go with the rest of it, whoever wrote the rest. It stays in
//! its message, so nothing more is claimed for it than before.

use super::{ClipPointer, clip_text, marker, split_ends};
use crate::ledger::{is_prohibition, is_standing_rule, split_sentences};
use crate::token::{Estimator, Units};

/// The share of a cut message that sentences out of its middle may take.
const RULES_SHARE: f64 = 0.5;
/// A longer sentence, in characters, is more than a rule.
const RULE: usize = 320;
/// Sentences in which rules are looked for.
const SENTENCES: usize = 2000;
/// How often a cut is tried that turned out too long.
const TRIES: usize = 6;

/// Message cut to at most `limit` units; `None` when it fits as it is.
pub(super) fn clip_request(
    whole: &str,
    limit: Units,
    estimator: &dyn Estimator,
    pointer: ClipPointer<'_>,
) -> Option<String> {
    let plain = clip_text(whole, limit, estimator, pointer)?;
    let total = whole.chars().count();
    let shown = plain.chars().count();
    let mut chars = shown.saturating_sub(marker(total, pointer).chars().count());
    for _ in 0..TRIES {
        let Some(cut) = cut_around_rules(whole, total, chars, pointer) else {
            return Some(plain);
        };
        if estimator.count_units(&cut) <= limit {
            return Some(cut);
        }
        chars = chars * 9 / 10;
    }
    Some(plain)
}

/// Head, rules and tail of so many characters together; `None` where nothing between head and tail rules.
fn cut_around_rules(
    whole: &str,
    total: usize,
    chars: usize,
    pointer: ClipPointer<'_>,
) -> Option<String> {
    let most = (chars as f64 * RULES_SHARE) as usize;
    let (head, tail) = split_ends(whole, total, chars - most);
    let rules = rules_within(whole.get(head.len()..whole.len() - tail.len())?, most);
    let taken = rules.chars().count();
    let (head, tail) = split_ends(whole, total, chars.checked_sub(taken)?);
    // With fewer rules than there is room for, head and tail are longer and may hold them.
    let rules = rules_within(whole.get(head.len()..whole.len() - tail.len())?, taken);
    let left_out = total - head.chars().count() - tail.chars().count() - rules.chars().count();
    let mark = marker(left_out, pointer);
    let mark = mark.trim();
    (!rules.is_empty()).then(|| format!("{}\n{mark}\n{rules}…\n{}", head.trim_end(), tail.trim()))
}

/// The sentences that rule, a line each, in so many characters: prohibitions before others, and all in order.
fn rules_within(text: &str, most: usize) -> String {
    let sentences = split_sentences(text).take(SENTENCES);
    let ruling = sentences.filter(|(sentence, _)| is_standing_rule(sentence));
    let lines: Vec<String> = ruling
        .map(|(sentence, _)| format!("- {}\n", sentence.trim_start_matches(['-', '*', ' '])))
        .collect();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|nth| !lines.get(*nth).is_some_and(|line| is_prohibition(line)));
    let mut left = most;
    order.retain(|nth| {
        let cost = lines.get(*nth).map_or(0, |line| line.chars().count());
        let fits = cost <= left.min(RULE);
        left -= if fits { cost } else { 0 };
        fits
    });
    order.sort_unstable();
    let kept = order.iter().filter_map(|nth| lines.get(*nth));
    kept.map(String::as_str).collect()
}
