//! What was allowed after a rule had forbidden it, or is otherwise since: "Priya approved the text", "the freeze is over".
//!
//! A rule that waits for something is not taken back when that comes true, since whether it did is for
//! the reader to judge. It is shown together with the words that may release it.

use std::collections::HashSet;

use super::revoke::{RevokedRules, meaningful_words};
use crate::ledger::{Fact, Facts, is_exception, is_release};

/// A word of the user that allows what a rule forbade, or may take it back.
#[derive(Clone, Copy)]
pub(super) struct RuleRelease<'l> {
    pub fact: &'l Fact,
    /// The newest rule that it is about.
    pub rule: &'l Fact,
}

/// Words are about a rule that share so large a part of theirs with it.
const PART: usize = 3;

type Stems = HashSet<String, foldhash::fast::FixedState>;

/// The releases of rules that nobody took back, in order.
pub(super) fn rule_releases<'l>(
    facts: &'l Facts,
    revoked: &RevokedRules<'l>,
) -> Vec<RuleRelease<'l>> {
    let live = facts.rules.iter().filter(|rule| revoked.is_live(rule));
    // A sentence may rule and say that something is otherwise: "lines may have up to 120 characters now".
    let said: Vec<&Fact> = facts
        .releases
        .iter()
        .chain(live.clone().filter(|rule| is_release(&rule.text)))
        .collect();
    let doubts = revoked.doubts().iter();
    let doubts =
        doubts.filter(|doubt| revoked.is_live(&doubt.later) && revoked.is_live(&doubt.rule));
    let doubtful: Vec<RuleRelease<'l>> = doubts
        .map(|doubt| RuleRelease {
            fact: &doubt.later,
            rule: &doubt.rule,
        })
        .collect();
    if said.is_empty() {
        return doubtful;
    }
    let live: Vec<(&Fact, Stems)> = live.map(|rule| (rule, stems(&rule.text))).collect();
    // An exception that names nothing of a rule is one to the rule before it.
    let newest = |fact: &'l Fact| {
        let (rule, _) = live.iter().rfind(|(rule, _)| rule.ordinal < fact.ordinal)?;
        Some(RuleRelease { fact, rule })
    };
    let released = |fact: &'l Fact| {
        let said = stems(&fact.text);
        let earlier = live.iter().filter(|(rule, _)| rule.ordinal < fact.ordinal);
        let (shared, rule, stems) = earlier
            .map(|(rule, stems)| (said.intersection(stems).count(), *rule, stems))
            .max_by_key(|(shared, ..)| *shared)?;
        let covers =
            |stems: &Stems| shared > 0 && (shared * PART >= said.len() || shared == stems.len());
        match covers(stems) {
            true => Some(RuleRelease { fact, rule }),
            false if is_exception(&fact.text) => newest(fact),
            false => None,
        }
    };
    let is_told = |fact: &Fact| doubtful.iter().any(|doubt| doubt.fact == fact);
    let said = said.into_iter().filter(|fact| !is_told(fact));
    let mut releases: Vec<RuleRelease<'l>> = said.filter_map(released).collect();
    releases.extend(doubtful.iter().copied());
    releases
}

/// The words that carry meaning, without their endings: "named" and "name" are one.
fn stems(text: &str) -> Stems {
    let stem = |word: String| {
        let short = ["ing", "ed", "e"]
            .iter()
            .find_map(|end| word.strip_suffix(end));
        short
            .filter(|short| short.len() >= 3)
            .map_or(word.clone(), str::to_owned)
    };
    meaningful_words(text).map(stem).collect()
}
