//! Which rules no longer hold.
//!
//! A rule falls when the user says the same again with another number, or takes something back: then
//! the rule that is most like the new words falls, if any is like them at all. A rule that falls is
//! told nowhere.

use std::collections::HashSet;

use crate::ledger::{Fact, Facts, clip, is_revision, rule_label};

/// The rules that a later word of the user took back.
pub(super) struct RevokedRules<'l>(Vec<&'l Fact>);

impl<'l> RevokedRules<'l> {
    pub(super) fn from_facts(facts: &'l Facts) -> Self {
        let mut standing: Vec<ParsedRule<'l>> = Vec::new();
        let mut revoked = Vec::new();
        let mut revising = None;
        for fact in &facts.rules {
            let new = ParsedRule::from_fact(fact);
            if is_revision(&fact.text) {
                revising = Some(fact.ordinal);
            }
            let before = revoked.len();
            standing.retain(|old| {
                let falls = new.restates(old);
                if falls {
                    revoked.push(old.fact);
                }
                !falls
            });
            if revoked.len() == before
                && revising == Some(fact.ordinal)
                && let Some(at) = new.most_like(&standing)
            {
                revoked.push(standing.remove(at).fact);
            }
            standing.push(new);
        }
        RevokedRules(revoked)
    }

    pub(super) fn has_fact(&self, fact: &Fact) -> bool {
        self.0
            .iter()
            .any(|f| f.ordinal == fact.ordinal && f.text == fact.text)
    }

    /// The text without the sentences that no longer hold.
    pub(super) fn strip_revoked(&self, ordinal: u32, text: &str) -> String {
        let gone = self.0.iter().filter(|f| f.ordinal == ordinal);
        gone.fold(text.to_owned(), |text, fact| without(&text, &fact.text))
    }

    /// Whether a quotation from an entry shows words that no longer hold: all, or at an edge.
    pub(super) fn appears_in(&self, ordinal: u32, quotation: &str) -> bool {
        let mut gone = self.0.iter().filter(|f| f.ordinal == ordinal).peekable();
        if gone.peek().is_none() {
            return false;
        }
        let quotation = clip(quotation, usize::MAX - 1);
        let (opening, ending) = edges(&quotation);
        gone.any(|f| {
            quotation.contains(rule_body(&f.text))
                || f.text.contains(opening)
                || f.text.contains(ending)
        })
    }
}

/// A text without a sentence, also where the text was cut within it.
pub(super) fn without(text: &str, sentence: &str) -> String {
    if text.contains(sentence) {
        return text.replace(sentence, "");
    }
    let (opening, _) = edges(sentence);
    let cut = text.find(opening).filter(|at| {
        let rest = text.get(*at..).unwrap_or("").trim_end_matches('…');
        sentence.starts_with(rest)
    });
    match cut.and_then(|at| text.get(..at)) {
        Some(head) => format!("{head}…"),
        None => text.to_owned(),
    }
}

/// The first and the last characters of a text, enough to recognise it by.
fn edges(text: &str) -> (&str, &str) {
    let first = text.char_indices().nth(EDGE).map_or(text.len(), |(i, _)| i);
    let last = text.char_indices().nth_back(EDGE).map_or(0, |(i, _)| i);
    (
        text.get(..first).unwrap_or(text),
        text.get(last..).unwrap_or(text),
    )
}

const EDGE: usize = 24;

/// What follows a label such as `One condition:`.
pub(super) fn rule_body(sentence: &str) -> &str {
    rule_label(sentence)
        .and_then(|head| sentence.get(head.len() + 2..))
        .unwrap_or(sentence)
        .trim_end_matches(['.', '!', ' '])
}

/// A rule taken apart.
struct ParsedRule<'l> {
    fact: &'l Fact,
    /// All words of the body, in order, lower case.
    said: Vec<String>,
    /// The words that carry meaning, numbers left out.
    subject: HashSet<String, foldhash::fast::FixedState>,
    /// How many of those stand in the body.
    weight: usize,
    numbers: Vec<String>,
}

impl<'l> ParsedRule<'l> {
    fn from_fact(fact: &'l Fact) -> Self {
        let body = rule_body(&fact.text);
        let said: Vec<String> = lowercase_words(body).collect();
        let carried: HashSet<String, _> = said.iter().filter_map(|w| meaningful_stem(w)).collect();
        let weight = carried.len();
        let label = fact.text.get(..fact.text.len() - body.len()).unwrap_or("");
        let mut subject: HashSet<String, foldhash::fast::FixedState> = carried;
        subject.extend(lowercase_words(label).filter_map(|w| meaningful_stem(&w)));
        ParsedRule {
            fact,
            subject,
            weight,
            numbers: said.iter().filter(|w| is_number(w)).cloned().collect(),
            said: said
                .into_iter()
                .skip_while(|w| FILLERS.contains(&w.as_str()))
                .collect(),
        }
    }

    /// The same rule with another number.
    fn restates(&self, old: &ParsedRule<'_>) -> bool {
        self.fact.ordinal > old.fact.ordinal
            && self.said.len() == old.said.len()
            && self.weight >= 2
            && self.numbers != old.numbers
            && self
                .said
                .iter()
                .zip(&old.said)
                .all(|(a, b)| a == b || (is_number(a) && is_number(b)))
    }

    /// The earlier rule that shares the most words, the newest of equals.
    fn most_like(&self, standing: &[ParsedRule<'_>]) -> Option<usize> {
        let likeness = standing.iter().map(|old| self.likeness(old));
        let best = likeness.enumerate().max_by_key(|(_, likeness)| *likeness)?;
        (best.1 > 0).then_some(best.0)
    }

    fn likeness(&self, old: &ParsedRule<'_>) -> usize {
        if self.fact.ordinal <= old.fact.ordinal {
            return 0;
        }
        let common = self.subject.intersection(&old.subject).count();
        let lead = self.lead(old);
        let smaller = self.weight.min(old.weight).max(1);
        match (common >= 1 && common * 2 >= smaller) || lead >= 2 || common >= 3 {
            true => common + lead,
            false => 0,
        }
    }

    /// How many opening words are the same, if one of them carries meaning.
    fn lead(&self, old: &ParsedRule<'_>) -> usize {
        let same = self.said.iter().zip(&old.said).take_while(|(a, b)| a == b);
        let lead: Vec<&String> = same.map(|(a, _)| a).collect();
        match lead.iter().any(|w| meaningful_stem(w).is_some()) {
            true => lead.len(),
            false => 0,
        }
    }
}

fn lowercase_words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
}

fn is_number(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_digit())
}

/// A word that says what a rule is about, in the singular.
fn meaningful_stem(word: &str) -> Option<String> {
    let carries = word.chars().count() >= 3 && !is_number(word) && !EMPTY.contains(&word);
    carries.then(|| word.trim_end_matches('s').to_owned())
}

/// Words that may stand before a rule's own.
const FILLERS: [&str; 9] = [
    "and", "but", "please", "actually", "no", "ok", "so", "also", "instead",
];

const EMPTY: [&str; 88] = [
    "never",
    "always",
    "must",
    "only",
    "prefer",
    "avoid",
    "ensure",
    "make",
    "sure",
    "should",
    "shall",
    "from",
    "with",
    "without",
    "that",
    "this",
    "these",
    "those",
    "when",
    "then",
    "than",
    "have",
    "has",
    "had",
    "keep",
    "please",
    "actually",
    "instead",
    "forget",
    "longer",
    "rather",
    "anymore",
    "just",
    "also",
    "into",
    "about",
    "there",
    "what",
    "your",
    "you",
    "will",
    "using",
    "use",
    "need",
    "needs",
    "the",
    "and",
    "but",
    "for",
    "not",
    "don",
    "does",
    "are",
    "was",
    "were",
    "been",
    "its",
    "one",
    "any",
    "all",
    "every",
    "each",
    "now",
    "new",
    "old",
    "earlier",
    "before",
    "after",
    "more",
    "most",
    "least",
    "rule",
    "rules",
    "constraint",
    "condition",
    "important",
    "note",
    "said",
    "told",
    "asked",
    "change",
    "plan",
    "correction",
    "replaces",
    "void",
    "again",
    "today",
    "holds",
];
