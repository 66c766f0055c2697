//! Which rules no longer hold.
//!
//! A rule falls when the user says the same again with another value, or surely takes something back: then
//! the rule that is most like the new words falls, if they speak of all that it speaks of. Where that is in doubt both
//! stand, the later words behind the rule. Two prohibitions both
//! hold unless the later one says that something changed, and so do rules that name different things. What lifts a rule for
//! one case only ("no longer for staging") is an exception: the rule holds everywhere else, and both are told.
//! A rule that falls is told nowhere; the proof counts it among what the view does not show. Other statements of the
//! user's fall in the same way, and what they only quote (`quotation`) never ruled.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::quotation::quoted_rules;
use super::value::{is_value, sentence_words};
use crate::cue_list::{WordList, cue_file, cue_lines};
use crate::ledger::{
    DoubtfulWithdrawal, Fact, Facts, Revocations, RevokedStatement, Withdrawal, clip, find_phrase,
    is_change, is_lifting, is_prohibition, is_replacement, is_revision, rule_label,
    split_sentences,
};
use crate::speech::own_words;

static RULE_FILLERS: WordList = WordList::new(cue_file!("rule_filler"));
static SCOPE_OPENERS: WordList = WordList::new(cue_file!("scope_opener"));
static RULE_FRAME: WordList = WordList::new(cue_file!("rule_frame"));

/// What a later word of the user took back.
pub(super) struct RevokedRules<'l>(&'l Revocations);

impl<'l> RevokedRules<'l> {
    pub(super) fn from_facts(facts: &'l Facts) -> Self {
        RevokedRules(facts.revocations.get_or_find(|| {
            let (rules, doubts) = find_revoked(facts);
            Revocations {
                rules,
                doubts,
                statements: revoked_statements(&facts.requests),
                quoted: quoted_rules(facts).into_iter().cloned().collect(),
            }
        }))
    }

    /// What may take back a rule, and does not surely.
    pub(super) fn doubts(&self) -> &'l [DoubtfulWithdrawal] {
        &self.0.doubts
    }

    /// The rules that fell.
    pub(super) fn facts(&self) -> impl Iterator<Item = &'l Fact> {
        self.0.rules.iter()
    }

    /// Whether a rule holds: nobody took it back, and it is no quotation.
    pub(super) fn is_live(&self, fact: &Fact) -> bool {
        let mut fallen = self.0.rules.iter().chain(&self.0.quoted);
        !fallen.any(|f| f.ordinal == fact.ordinal && f.text == fact.text)
    }

    /// The sentences of an entry that no longer hold.
    fn sentences_of(&self, ordinal: u32) -> impl Iterator<Item = &str> {
        let rules = self.0.rules.iter().filter(move |f| f.ordinal == ordinal);
        let statements = self.0.statements.iter();
        let statements = statements.filter(move |s| s.ordinal == ordinal);
        rules
            .map(|f| &*f.text)
            .chain(statements.map(|s| s.text.as_str()))
    }

    /// The text without the sentences that no longer hold.
    pub(super) fn strip_revoked(&self, ordinal: u32, text: &str) -> String {
        let gone = self.sentences_of(ordinal);
        gone.fold(text.to_owned(), |text, sentence| without(&text, sentence))
    }

    /// Whether no word of a message holds any more.
    pub(super) fn takes_all_of(&self, message: &Fact) -> bool {
        let fell = self.sentences_of(message.ordinal).next().is_some();
        let rest = || self.strip_revoked(message.ordinal, &message.text);
        fell && !rest().contains(char::is_alphanumeric)
    }

    /// Whether a quotation from an entry shows words that no longer hold: all, or at an edge.
    pub(super) fn appears_in(&self, ordinal: u32, quotation: &str) -> bool {
        let mut gone = self.sentences_of(ordinal).peekable();
        if gone.peek().is_none() {
            return false;
        }
        let quotation = clip(quotation, usize::MAX - 1);
        let (opening, ending) = edges(&quotation);
        gone.any(|sentence| {
            quotation.contains(rule_body(sentence))
                || sentence.contains(opening)
                || sentence.contains(ending)
        })
    }
}

/// The rules that fell, and words that may have taken back others.
fn find_revoked(facts: &Facts) -> (Vec<Fact>, Vec<DoubtfulWithdrawal>) {
    let mut standing: Vec<ParsedRule<'_>> = Vec::new();
    let (mut revoked, mut doubts) = (Vec::new(), Vec::new());
    // What the sentences of a message do holds for those behind them.
    let mut revising = (0, Withdrawal::No);
    for fact in &facts.rules {
        let new = ParsedRule::from_fact(fact);
        let contrast = Contrast::of(&fact.text);
        let own = match contrast {
            Some(_) => Withdrawal::No,
            None => Withdrawal::of_sentence(&fact.text),
        };
        if own != Withdrawal::No || revising.0 != fact.ordinal {
            revising = (fact.ordinal, own);
        }
        let before = revoked.len();
        standing.retain(|old| {
            let falls =
                new.restates(old) || contrast.as_ref().is_some_and(|c| c.rejects(&new, old));
            if falls {
                revoked.push(old.fact.clone());
            }
            !falls
        });
        let (_, withdrawal) = revising;
        let is_open = revoked.len() == before && withdrawal != Withdrawal::No;
        if let Some(at) = new.most_like(&standing, withdrawal).filter(|_| is_open) {
            match standing
                .get(at)
                .filter(|old| !new.takes_back(withdrawal, old))
            {
                Some(old) => doubts.push(DoubtfulWithdrawal {
                    later: fact.clone(),
                    rule: old.fact.clone(),
                }),
                None => revoked.push(standing.remove(at).fact.clone()),
            }
        }
        standing.push(new);
    }
    (revoked, doubts)
}

/// What a sentence chooses against, where it takes nothing back but that: "keep carts in a table instead of a column".
struct Contrast<'s> {
    chosen: &'s str,
    rejected: &'s str,
}

/// Splits a sentence where it says what it chooses against.
fn split_contrast(sentence: &str) -> Option<(&str, &str)> {
    cue_lines(cue_file!("contrast")).find_map(|mark| {
        let between = |at: usize| {
            let (before, rest) = (sentence.get(..at)?, sentence.get(at + mark.len()..)?);
            Some((before.strip_suffix(' ')?, rest.strip_prefix(' ')?))
        };
        let mut places = sentence.match_indices(mark);
        places.find_map(|(at, _)| between(at))
    })
}

impl<'s> Contrast<'s> {
    fn of(sentence: &'s str) -> Option<Contrast<'s>> {
        let (chosen, rest) = match sentence.strip_prefix("Instead of ") {
            Some(rest) => ("", rest),
            None => split_contrast(sentence)?,
        };
        let end = rest.find([',', ';', '.']).unwrap_or(rest.len());
        let (rejected, behind) = rest.split_at_checked(end)?;
        let chosen = if chosen.is_empty() { behind } else { chosen };
        let takes_back = is_revision(chosen) || is_revision(behind);
        (!takes_back).then_some(Contrast { chosen, rejected })
    }

    /// Whether an earlier rule chose what this one chooses against, for the same thing. One that forbade it agrees.
    fn rejects(&self, new: &ParsedRule<'_>, old: &ParsedRule<'_>) -> bool {
        if old.prohibits {
            return false;
        }
        let text = &old.fact.text;
        let chosen = Contrast::of(text).map_or(&**text, |before| before.chosen);
        let chosen: HashSet<String, FixedState> = meaningful_words(chosen).collect();
        let mut rejected = meaningful_words(self.rejected).peekable();
        rejected.peek().is_some()
            && rejected.all(|word| chosen.contains(&word))
            && new.likeness(old) > 0
    }
}

/// A longer message is pasted text or a story, and a longer sentence says more than one thing.
const STATING_MESSAGE: usize = 600;
const STATEMENT: usize = 200;

type NameSet = HashSet<String, FixedState>;

/// A sentence that holds a value.
struct StatedValue {
    ordinal: u32,
    said: Vec<String>,
    text: String,
    /// What its message names: the sentence may be about that.
    names: NameSet,
}

impl StatedValue {
    /// Whether it says the same with another value. In messages about different things it says it of those, unless it
    /// says itself that something changed.
    fn replaces(&self, old: &StatedValue) -> bool {
        let is_beside = |names: &NameSet, others: &NameSet| {
            let stated = |name: &&String| !self.said.contains(*name) && !old.said.contains(*name);
            names.difference(others).any(|name| stated(&name))
        };
        old.ordinal < self.ordinal
            && old.said != self.said
            && !is_prohibition(&self.text)
            && (is_change(&self.text)
                || rule_label(&self.text).is_some()
                || !is_beside(&self.names, &old.names)
                || !is_beside(&old.names, &self.names))
    }
}

/// Sentences that hold a value, and that a later message repeats word for word but for the value.
fn revoked_statements(requests: &[Fact]) -> Vec<RevokedStatement> {
    let mut standing: HashMap<Vec<String>, StatedValue, FixedState> = HashMap::default();
    let mut revoked = Vec::new();
    let may_state = |f: &&Fact| f.text.len() <= STATING_MESSAGE && has_digit(&f.text);
    for message in requests.iter().filter(may_state) {
        let names = LazyCell::new(|| -> NameSet {
            let words = sentence_words(&message.text);
            words.filter(|word| is_name(word)).collect()
        });
        for (sentence, _) in split_sentences(&own_words(&message.text)) {
            // No value is without a digit.
            if sentence.len() > STATEMENT || sentence.ends_with('?') || !has_digit(&sentence) {
                continue;
            }
            let said: Vec<String> = sentence_words(rule_body(&sentence)).collect();
            let form = rule_form(&said);
            let measures = form.iter().any(|word| word == "#");
            let subject = meaningful_words(&sentence).take(2).count();
            if !measures || subject < 2 {
                continue;
            }
            let new = StatedValue {
                ordinal: message.ordinal,
                said,
                text: sentence.into_owned(),
                names: names.clone(),
            };
            let replaces = standing.get(&form).is_some_and(|old| new.replaces(old));
            let old = standing.insert(form, new).filter(|_| replaces);
            revoked.extend(old.map(|old| RevokedStatement {
                ordinal: old.ordinal,
                text: old.text,
            }));
        }
    }
    revoked
}

/// Which of a user's messages a later one takes back: it says that something changed, and names most of what the
/// earlier one is about.
pub(super) fn revised_messages<'m>(messages: impl Iterator<Item = &'m str>) -> Vec<usize> {
    let mut earlier: Vec<HashSet<String, FixedState>> = Vec::new();
    let mut revised = Vec::new();
    for text in messages {
        let subject: HashSet<String, FixedState> = meaningful_words(text).collect();
        let is_like = |old: &&HashSet<String, FixedState>| {
            let common = old.intersection(&subject).count();
            common >= 2 && common * 2 >= old.len()
        };
        let takes_back =
            |s: &str| Contrast::of(s).is_none() && Withdrawal::of_sentence(s).is_certain();
        if split_sentences(text).any(|(sentence, _)| takes_back(&sentence)) {
            let olds = earlier.iter().enumerate();
            let olds = olds.filter(|(_, old)| is_like(old));
            revised.extend(olds.map(|(at, _)| at));
        }
        earlier.push(subject);
    }
    revised
}

/// A text without a sentence, also where the text was cut within it.
pub(super) fn without(text: &str, sentence: &str) -> String {
    if let Some(found) = find_phrase(text, sentence) {
        let (head, tail) = (text.get(..found.start), text.get(found.end..));
        let rest = without(tail.unwrap_or(""), sentence);
        return format!("{}{rest}", head.unwrap_or(""));
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

/// So many opening words in common say the same again.
const LEAD: usize = 2;

/// Three words in common are much where they are one in so many of the shorter rule.
const MUCH: usize = 4;

/// A rule taken apart.
struct ParsedRule<'l> {
    fact: &'l Fact,
    /// All words of the body, in order, lower case.
    said: Vec<String>,
    /// The same with a mark for each value: two rules that differ in nothing else share it.
    form: Vec<String>,
    /// The words that carry meaning, numbers left out.
    subject: HashSet<String, foldhash::fast::FixedState>,
    /// How many of those stand in the body.
    weight: usize,
    /// What is named by letters and digits together.
    names: HashSet<String, foldhash::fast::FixedState>,
    prohibits: bool,
}

impl<'l> ParsedRule<'l> {
    fn from_fact(fact: &'l Fact) -> Self {
        let body = rule_body(&fact.text);
        let mut subject: HashSet<String, foldhash::fast::FixedState> =
            meaningful_words(body).collect();
        let weight = subject.len();
        let label = fact.text.get(..fact.text.len() - body.len()).unwrap_or("");
        subject.extend(meaningful_words(label));
        let said: Vec<String> = sentence_words(body)
            .filter(|word| !RULE_FILLERS.has(word))
            .collect();
        ParsedRule {
            fact,
            form: rule_form(&said),
            names: said.iter().filter(|w| is_name(w)).cloned().collect(),
            said,
            subject,
            weight,
            prohibits: is_prohibition(&fact.text),
        }
    }

    /// The same rule with another value.
    fn restates(&self, old: &ParsedRule<'_>) -> bool {
        self.fact.ordinal > old.fact.ordinal
            && self.weight >= 2
            && self.form == old.form
            && self.said != old.said
            && (!self.prohibits || is_change(&self.fact.text))
    }

    /// Whether words of this kind take back a rule that is like them beyond doubt: they speak of all that it speaks of,
    /// or put one order in the place of another.
    fn takes_back(&self, withdrawal: Withdrawal, old: &ParsedRule<'_>) -> bool {
        let speaks_of_it = || self.covers(old) || self.lead(old) >= LEAD;
        match withdrawal {
            Withdrawal::No | Withdrawal::Possible => false,
            Withdrawal::OfRule => true,
            Withdrawal::Replacing if !self.prohibits && !old.prohibits => true,
            Withdrawal::Replacing | Withdrawal::OfObject => speaks_of_it(),
        }
    }

    /// Whether it names most of what the other rule is about; of a single word it must say little else.
    fn covers(&self, old: &ParsedRule<'_>) -> bool {
        let common = self.subject.intersection(&old.subject).count();
        let is_about_it = common >= 2 || self.weight <= 2;
        is_about_it && common * 3 >= old.weight * 2
    }

    /// The earlier rule that shares the most words, the newest of equals. What says that a rule no longer applies need
    /// share only one.
    fn most_like(&self, standing: &[ParsedRule<'_>], withdrawal: Withdrawal) -> Option<usize> {
        let ends_rule = withdrawal == Withdrawal::OfRule && is_lifting(&self.fact.text);
        let likeness = standing.iter().map(|old| match ends_rule {
            true => self.shared_words(old),
            false => self.likeness(old),
        });
        let best = likeness.enumerate().max_by_key(|(_, likeness)| *likeness)?;
        (best.1 > 0).then_some(best.0)
    }

    /// Whether it says nothing of a rule, because that is no earlier one or about another thing or case.
    fn is_spared(&self, old: &ParsedRule<'_>) -> bool {
        self.fact.ordinal <= old.fact.ordinal || self.is_beside(old) || self.is_exception_to(old)
    }

    /// How many words it has in common with an earlier rule that it may speak of.
    fn shared_words(&self, old: &ParsedRule<'_>) -> usize {
        match self.is_spared(old) {
            true => 0,
            false => self.subject.intersection(&old.subject).count(),
        }
    }

    fn likeness(&self, old: &ParsedRule<'_>) -> usize {
        let common = self.shared_words(old);
        if self.is_spared(old) {
            return 0;
        }
        let lead = self.lead(old);
        let smaller = self.weight.min(old.weight).max(1);
        let much = common >= 3 && common * MUCH >= smaller;
        match (common >= 1 && common * 2 >= smaller) || lead >= 2 || much {
            true => common + lead,
            false => 0,
        }
    }

    /// Whether both forbid something, but of different things: "never restart db2 any more" leaves
    /// what was said of `db1` as it is.
    fn is_beside(&self, old: &ParsedRule<'_>) -> bool {
        self.prohibits
            && old.prohibits
            && self.names.is_disjoint(&old.names)
            && !(self.names.is_empty() || old.names.is_empty())
            && !is_replacement(&self.fact.text)
    }

    /// Whether it lifts the other rule only for a case that the rule itself does not name.
    fn is_exception_to(&self, old: &ParsedRule<'_>) -> bool {
        let text = &self.fact.text;
        is_lifting(text)
            && !is_replacement(text)
            && scope_words(text).any(|word| !old.subject.contains(&word))
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

/// The words that say where, when or for what a sentence holds. Behind `need to` and `have to` stands a deed, not a case.
fn scope_words(sentence: &str) -> impl Iterator<Item = String> {
    let mut before = String::new();
    let mut is_scope = false;
    let words = sentence.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    let words = words.filter(|word| !word.is_empty()).map(str::to_lowercase);
    words.filter_map(move |word| {
        let is_deed = word == "to" && matches!(before.as_str(), "need" | "have" | "has" | "want");
        if SCOPE_OPENERS.has(&word) {
            is_scope = !is_deed;
        }
        before.clone_from(&word);
        meaningful_stem(&word).filter(|_| is_scope)
    })
}

/// The words with `#` in the place of each value.
fn rule_form(said: &[String]) -> Vec<String> {
    let form = said
        .iter()
        .enumerate()
        .map(|(at, word)| match is_value(said, at) {
            true => "#".to_owned(),
            false => word.clone(),
        });
    form.collect()
}

/// The words of a text that say what it is about, in the singular, in lower case.
pub(super) fn meaningful_words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
        .filter_map(|word| meaningful_stem(&word.to_lowercase()))
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_digit())
}

/// Letters and digits joined, or a path.
fn is_name(word: &str) -> bool {
    word.contains(['/', '_']) || (has_digit(word) && word.contains(char::is_alphabetic))
}

/// A word that says what a rule is about, in the singular.
fn meaningful_stem(word: &str) -> Option<String> {
    let carries = word.chars().count() >= 3 && !has_digit(word) && !RULE_FRAME.has(word);
    carries.then(|| word.trim_end_matches('s').to_owned())
}
