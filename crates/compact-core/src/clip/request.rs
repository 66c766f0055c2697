//! A person's message that is too long: what they pasted goes first, then the middle of their own words, and of that
//! the sentences that rule stay.
//!
//! A constraint in the middle of a long request must not go with the rest of it. A sentence out of a pasted text says
//! that it is one: it would read as the person's own.

use super::{ClipPointer, clip_message, cut_until_fitting, head_and_tail, marker, split_ends};
use crate::ledger::{is_prohibition, is_standing_rule, split_sentences};
use crate::speech::PastedParts;
use crate::token::{Estimator, Units};

/// The share of a cut message that sentences out of its middle may take.
const RULES_SHARE: f64 = 0.5;
/// The share of it that the person's own words may take beside what they pasted.
const OWN_SHARE: f64 = 0.85;
/// A longer sentence, in characters, is more than a rule.
const RULE: usize = 320;
/// Sentences in which rules are looked for.
const SENTENCES: usize = 2000;
/// Bytes of a message that somebody may have typed: of a longer one, head and tail have to do. Reading it at each length that
/// is tried made the compaction of twenty pages five times as slow.
const LONGEST: usize = 1 << 14;

/// Message cut to at most `limit` units; `None` when it fits as it is.
pub(super) fn clip_request(
    whole: &str,
    limit: Units,
    estimator: &dyn Estimator,
    pointer: ClipPointer<'_>,
) -> Option<String> {
    let plain = clip_message(whole, limit, estimator, pointer)?;
    if whole.len() > LONGEST {
        return Some(plain);
    }
    let request = LongRequest {
        whole,
        total: whole.chars().count(),
        pasted: PastedParts::find(whole),
        pointer,
    };
    let shown = plain.chars().count();
    let chars = shown.saturating_sub(marker(request.total, pointer).chars().count());
    let cut = cut_until_fitting(plain, chars, limit, estimator, |chars| {
        let own_words = request.cut_pasted(chars);
        own_words.or_else(|| request.cut_around_rules(chars))
    });
    Some(cut)
}

struct LongRequest<'r> {
    whole: &'r str,
    /// Its characters.
    total: usize,
    pasted: PastedParts,
    pointer: ClipPointer<'r>,
}

impl LongRequest<'_> {
    /// The person's words whole, and of each pasted part its head and tail; `None` where there is none, or no room.
    fn cut_pasted(&self, chars: usize) -> Option<String> {
        let count = |text: &str| text.chars().count();
        let parts = self
            .pasted
            .places
            .iter()
            .filter_map(|place| self.whole.get(place.clone()));
        let lengths: Vec<usize> = parts.map(count).collect();
        let own = self.total - lengths.iter().sum::<usize>();
        if lengths.is_empty() || own as f64 > chars as f64 * OWN_SHARE {
            return None;
        }
        let each = (chars - own) / lengths.len();
        let marked = count(&marker(self.total, self.pointer));
        let cut = self.pasted.replace(self.whole, |part| {
            let length = count(part);
            if length <= each {
                return part.to_owned();
            }
            let cut = head_and_tail(part, length, each.saturating_sub(marked), self.pointer);
            let end = if part.ends_with('\n') { "\n" } else { "" };
            format!("{}{end}", cut.trim_end())
        });
        // Some providers refuse a last message that ends in white space.
        Some(cut.trim_end().to_owned())
    }

    /// Head, rules and tail of so many characters together; `None` where nothing between head and tail rules.
    fn cut_around_rules(&self, chars: usize) -> Option<String> {
        let most = (chars as f64 * RULES_SHARE) as usize;
        let own = self.without_pasted();
        let pasted = self.pasted_alone();
        let rules_between = |(head, tail): (&str, &str), most: usize| {
            let middle = head.len()..own.len() - tail.len();
            let rules = rules_within(own.get(middle.clone())?, most, "- ");
            let left = most - rules.chars().count();
            Some(rules + &rules_within(pasted.get(middle)?, left, "- [pasted] "))
        };
        let rules = rules_between(split_ends(self.whole, chars - most), most)?;
        let taken = rules.chars().count();
        // With fewer rules than there is room for, head and tail are longer and may hold them.
        let (head, tail) = split_ends(self.whole, chars.checked_sub(taken)?);
        let rules = rules_between((head, tail), taken)?;
        let shown = [head, tail, &rules].map(|text| text.chars().count());
        let left_out = self.total.saturating_sub(shown.iter().sum());
        let mark = marker(left_out, self.pointer);
        let (head, mark, tail) = (head.trim_end(), mark.trim(), tail.trim());
        (!rules.is_empty()).then(|| format!("{head}\n{mark}\n{rules}…\n{tail}"))
    }

    /// The message with line breaks in the place of every byte that was pasted.
    fn without_pasted(&self) -> String {
        let blank = |part: &str| "\n".repeat(part.len());
        self.pasted.replace(self.whole, blank).into_owned()
    }

    /// What was pasted, each part in its place, and line breaks before and between.
    fn pasted_alone(&self) -> String {
        let mut out = String::with_capacity(self.whole.len());
        for place in &self.pasted.places {
            out.extend(std::iter::repeat_n('\n', place.start - out.len()));
            out.push_str(self.whole.get(place.clone()).unwrap_or(""));
        }
        out.extend(std::iter::repeat_n('\n', self.whole.len() - out.len()));
        out
    }
}

/// The sentences that rule, a line each behind `mark`, in so many characters: prohibitions before others, all in order.
fn rules_within(text: &str, most: usize, mark: &str) -> String {
    let sentences = split_sentences(text).take(SENTENCES);
    let ruling = sentences.filter(|(sentence, _)| is_standing_rule(sentence));
    let lines: Vec<String> = ruling
        .map(|(sentence, _)| format!("{mark}{}\n", sentence.trim_start_matches(['-', '*', ' '])))
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
