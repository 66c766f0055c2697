//! What was finished, and which of the work that was put off is no longer open for it.
//!
//! A later word of the model or a tool's answer closes open work when it says that something is
//! finished and holds nearly all words of it. The work is then told as done, not as open.

use std::collections::HashSet;

use super::revoke::rule_body;
use crate::ledger::{Fact, Facts, scan_names};

type WordSet = HashSet<String, foldhash::fast::FixedState>;

/// What the ledger says is finished.
pub(super) struct FinishedWork<'l> {
    said: Vec<(&'l Fact, WordSet)>,
}

/// The longest saying that is told.
const SAYING: usize = 160;
/// A longer message asks for more than one thing.
const MESSAGE: usize = 400;
/// The fewest words of a saying that tell what it is about.
const FEWEST_WORDS: usize = 4;
/// So many of the newest sayings are compared with each message: bounds the work.
const NEWEST: usize = 400;

impl<'l> FinishedWork<'l> {
    pub(super) fn from_facts(facts: &'l Facts) -> Self {
        let said = facts.done.iter().map(|f| (f, word_set(&f.text)));
        FinishedWork {
            said: said.collect(),
        }
    }

    /// Whether open work was finished later.
    pub(super) fn closes(&self, open: &Fact) -> bool {
        self.closing(open).is_some()
    }

    /// Whether what a message asks for was finished later: a saying repeats nearly all of it, or names all that it
    /// names and adds little.
    pub(super) fn answers(&self, message: &Fact) -> bool {
        if message.text.len() > MESSAGE {
            return false;
        }
        let asked = word_set(&message.text);
        let names = collect_names(&message.text);
        let names_all =
            |fact: &Fact| !names.is_empty() && names.iter().all(|n| fact.text.contains(n));
        let repeats = |fact: &Fact, said: &WordSet| {
            let added = said.difference(&asked).count();
            said.len() >= FEWEST_WORDS && added * 5 <= said.len() || added <= 2 && names_all(fact)
        };
        let newest = self.said.iter().rev().take(NEWEST);
        let mut later = newest.take_while(|(f, _)| f.ordinal > message.ordinal);
        later.any(|(fact, said)| repeats(fact, said))
    }

    fn closing(&self, open: &Fact) -> Option<&'l Fact> {
        let work = word_set(rule_body(&open.text));
        let covers = |said: &WordSet| work.intersection(said).count() * 5 >= work.len() * 4;
        let later = self.said.iter().filter(|(f, _)| f.ordinal > open.ordinal);
        let mut found = later.filter(|(_, said)| !work.is_empty() && covers(said));
        found.next_back().map(|(f, _)| *f)
    }

    /// The sayings worth telling: those that close open work, then those about what the user named,
    /// the shortest first since each costs its length.
    pub(super) fn facts_to_show(&self, facts: &'l Facts) -> Vec<&'l Fact> {
        let mut told: Vec<&Fact> = facts.open.iter().filter_map(|f| self.closing(f)).collect();
        let asked: HashSet<&str, foldhash::fast::FixedState> = facts
            .requests
            .iter()
            .flat_map(|f| collect_names(&f.text))
            .collect();
        let mut others: Vec<&Fact> = self
            .said
            .iter()
            .rev()
            .map(|(f, _)| *f)
            .filter(|f| f.text.len() <= SAYING)
            .filter(|f| {
                collect_names(&f.text)
                    .iter()
                    .any(|name| asked.contains(name))
            })
            .collect();
        others.sort_by_key(|f| f.text.len());
        told.extend(others);
        let mut shown: HashSet<&str> = HashSet::new();
        told.retain(|f| {
            let names = collect_names(&f.text);
            names.is_empty()
                || names
                    .into_iter()
                    .fold(false, |new, name| shown.insert(name) | new)
        });
        told.dedup_by_key(|f| f.ordinal);
        told
    }
}

fn collect_names(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    scan_names(text, &mut |_, _, name| out.push(name));
    out
}

/// The words of some work, in lower case.
fn word_set(text: &str) -> WordSet {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
        .filter(|w| w.chars().count() >= 3)
        .map(str::to_lowercase)
        .collect()
}
