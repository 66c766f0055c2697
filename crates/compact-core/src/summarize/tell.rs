//! Facts as lines: what is still in force, what is open, what was done.
//!
//! Here the links between facts resolve: a rule that a later one takes back is left out, a failure
//! that a later run mended is told as mended, a finished step is told as done.

use std::borrow::Cow;
use std::collections::HashSet;

use super::root::Root;
use super::template::{Rank, Template, Topic};
use crate::ledger::{Act, Fact, Facts, FileFact, Ledger, Outcome, Run, clip, revises};

/// One line of a section.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub topic: Topic,
    /// Where it belongs in the session.
    pub ordinal: u32,
    /// The words, without provenance.
    pub text: String,
}

fn line(topic: Topic, ordinal: u32, text: impl Into<String>) -> Line {
    Line {
        topic,
        ordinal,
        text: text.into(),
    }
}

/// The share of the budget that the facts of a topic may take.
pub(super) fn share(topic: Topic, template: &Template) -> f64 {
    if template.rank(topic) == Some(Rank::Lead) {
        return 0.3;
    }
    match topic {
        Topic::Goals => 0.15,
        Topic::Rules => 0.25,
        Topic::Plan | Topic::Decisions | Topic::Files => 0.05,
        Topic::Open | Topic::Failures => 0.03,
        Topic::Steps => 0.10,
        Topic::Record | Topic::Names => 0.0,
    }
}

/// The rules and sentences that a later word of the user took back.
pub(super) struct Revoked<'l>(Vec<&'l Fact>);

impl<'l> Revoked<'l> {
    pub(super) fn of(facts: &'l Facts) -> Self {
        let subjects: Vec<HashSet<String>> = facts.rules.iter().map(|f| subject(&f.text)).collect();
        let mut out = Vec::new();
        for (i, (old, about)) in facts.rules.iter().zip(&subjects).enumerate() {
            let later = facts.rules.iter().zip(&subjects).skip(i + 1);
            if later
                .into_iter()
                .any(|(new, on)| supersedes(new, on, old, about))
            {
                out.push(old);
            }
        }
        Revoked(out)
    }

    pub(super) fn has(&self, fact: &Fact) -> bool {
        self.0
            .iter()
            .any(|f| f.ordinal == fact.ordinal && f.text == fact.text)
    }

    /// The text without the sentences that no longer hold.
    pub(super) fn strip(&self, ordinal: u32, text: &str) -> String {
        let mut out = text.to_owned();
        for fact in self.0.iter().filter(|f| f.ordinal == ordinal) {
            out = out.replace(&*fact.text, "");
        }
        out
    }

    /// Whether a quotation from an entry shows words that no longer hold.
    pub(super) fn shows(&self, ordinal: u32, quotation: &str) -> bool {
        self.0.iter().any(|f| {
            f.ordinal == ordinal && (f.text.contains(quotation) || quotation.contains(&*f.text))
        })
    }
}

/// The words of a rule that say what it is about.
fn subject(text: &str) -> HashSet<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
        .map(|w| w.to_lowercase())
        .filter(|w| w.chars().count() >= 4 && !EMPTY_WORDS.contains(&w.as_str()))
        .map(|w| w.trim_end_matches('s').to_owned())
        .collect()
}

const EMPTY_WORDS: [&str; 40] = [
    "never", "always", "must", "only", "prefer", "avoid", "ensure", "make", "sure", "should",
    "shall", "from", "with", "without", "that", "this", "these", "those", "when", "then", "than",
    "have", "keep", "please", "actually", "instead", "forget", "longer", "rather", "anymore",
    "just", "also", "into", "about", "there", "what", "your", "will", "using", "need",
];

fn supersedes(new: &Fact, on: &HashSet<String>, old: &Fact, about: &HashSet<String>) -> bool {
    let common = on.intersection(about).count();
    let smaller = on.len().min(about.len()).max(1);
    let overlap = common as f64 / smaller as f64;
    if new.ordinal <= old.ordinal {
        return false;
    }
    let same_rule = common >= 3 && overlap >= 0.75 && numbers(&new.text) != numbers(&old.text);
    same_rule || (revises(&new.text) && common >= 1 && overlap >= 0.5)
}

fn numbers(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|n| !n.is_empty())
        .collect()
}

/// All fact lines of a ledger, in the order in which they deserve room.
pub(super) fn lines(ledger: &Ledger, revoked: &Revoked<'_>, root: &Root<'_>) -> Vec<Line> {
    let facts = &ledger.facts;
    let mut out = goals(facts, revoked);
    out.extend(
        facts
            .rules
            .iter()
            .rev()
            .filter(|f| !revoked.has(f))
            .map(|f| line(Topic::Rules, f.ordinal, format!("\"{}\"", f.text))),
    );
    out.extend(plan(facts));
    out.extend(failures(facts));
    let recent = ledger.next.saturating_sub(ledger.next / 5) as u32;
    let open = facts
        .open
        .iter()
        .rev()
        .filter(|f| f.ordinal >= recent)
        .take(6);
    out.extend(open.map(|f| line(Topic::Open, f.ordinal, &*f.text)));
    out.extend(
        facts
            .files
            .iter()
            .rev()
            .filter(|f| f.act != Act::Read)
            .map(file),
    );
    out.extend(
        facts
            .decisions
            .iter()
            .rev()
            .map(|f| line(Topic::Decisions, f.ordinal, &*f.text)),
    );
    out.extend(facts.runs.iter().rev().map(step));
    for line in out.iter_mut().filter(|l| !l.topic.instructs()) {
        if let Cow::Owned(short) = root.shorten(&line.text) {
            line.text = short;
        }
    }
    out
}

/// The first request is the task; then the newest ones. Sentences that rule are told as rules.
fn goals(facts: &Facts, revoked: &Revoked<'_>) -> Vec<Line> {
    let goal = |f: &Fact| {
        let mut text = revoked.strip(f.ordinal, &f.text);
        for rule in facts.rules.iter().filter(|r| r.ordinal == f.ordinal) {
            text = text.replace(&*rule.text, "");
        }
        let text = clip(&text, usize::MAX - 1);
        (text.len() >= 12).then(|| line(Topic::Goals, f.ordinal, format!("\"{text}\"")))
    };
    let (first, rest) = match facts.requests.split_first() {
        Some((first, rest)) => (Some(first), rest),
        None => (None, facts.requests.as_slice()),
    };
    first
        .into_iter()
        .chain(rest.iter().rev())
        .filter_map(goal)
        .collect()
}

fn plan(facts: &Facts) -> Vec<Line> {
    let steps = |done| facts.plan.steps.iter().filter(move |s| s.done == done);
    let open = steps(false).map(|s| format!("open: {}", s.text));
    let done = steps(true).map(|s| format!("done: {}", s.text));
    open.chain(done)
        .map(|text| line(Topic::Plan, facts.plan.ordinal, text))
        .collect()
}

/// Failures, newest first, with "later passed" for those that the same command outlived.
fn failures(facts: &Facts) -> Vec<Line> {
    let mut told = HashSet::new();
    let mut passed = HashSet::new();
    let mut out = Vec::new();
    for run in facts.runs.iter().rev() {
        match &run.outcome {
            Outcome::Ok => {
                passed.insert(&run.text);
            }
            Outcome::Failed(why) if told.insert((&run.text, why)) => {
                let end = if passed.contains(&run.text) {
                    "later passed"
                } else {
                    "open"
                };
                let what = clip(&run.text, 120);
                out.push(line(
                    Topic::Failures,
                    run.ordinal,
                    format!("{what} → {why} ({end})"),
                ));
            }
            _ => {}
        }
    }
    out
}

fn file(file: &FileFact) -> Line {
    let act = match file.act {
        Act::Read => "read",
        Act::Edited => "edited",
        Act::Created => "created",
        Act::Deleted => "deleted",
    };
    let times = if file.edits > 1 {
        format!(" ×{}", file.edits)
    } else {
        String::new()
    };
    let symbols = match file.symbols.is_empty() {
        true => String::new(),
        false => format!(": {}", file.symbols.join(", ")),
    };
    line(
        Topic::Files,
        file.ordinal,
        format!("{} {act}{times}{symbols}", file.path),
    )
}

fn step(run: &Run) -> Line {
    let end = match &run.outcome {
        Outcome::Pending => "no answer yet".to_owned(),
        Outcome::Ok => "ok".to_owned(),
        Outcome::Failed(why) => format!("failed: {why}"),
    };
    line(Topic::Steps, run.ordinal, format!("{} → {end}", run.text))
}
