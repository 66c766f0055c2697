//! Facts as lines: what is still in force, what is open, what was done.
//!
//! Here the links between facts resolve: a rule that a later one takes back is left out, a failure
//! that a later run mended is told as mended, a finished step is told as done.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::Company;
use super::code;
use super::finish::Finished;
use super::revoke::{Revoked, without};
use super::root::Root;
use super::template::{Rank, Template, Topic};
use super::weigh::Group;
use crate::ledger::{Act, Fact, Facts, FileFact, Ledger, Outcome, Run, Voice, clip, postpones};

/// One line of a section.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub topic: Topic,
    /// Where it belongs in the session.
    pub ordinal: u32,
    /// The words, without provenance.
    pub text: String,
}

pub(super) fn line(topic: Topic, ordinal: u32, text: impl Into<String>) -> Line {
    Line {
        topic,
        ordinal,
        text: text.into(),
    }
}

/// The share of the budget that the facts of a topic may take. Beside turns, which show names in their
/// place, the user's words and what the model concluded come first.
pub(super) fn share(topic: Topic, template: &Template, company: Company) -> f64 {
    if template.rank(topic) == Some(Rank::Lead) {
        return 0.3;
    }
    match (company, topic) {
        (
            Company::Turns,
            Topic::Goals | Topic::Decisions | Topic::Failures | Topic::Done | Topic::Made,
        ) => 0.2,
        (Company::AgentSummary, Topic::Rules) => 0.7,
        (_, Topic::Goals) => 0.06,
        (_, Topic::Rules) => 0.20,
        (_, Topic::Open) => 0.12,
        (_, Topic::Done | Topic::Made | Topic::Failures) => 0.06,
        (_, Topic::Plan | Topic::Decisions | Topic::Files) => 0.05,
        (_, Topic::Steps | Topic::Code) => 0.10,
        (_, Topic::Record | Topic::Names) => 0.0,
    }
}

/// How many times a line is worth what it is otherwise, where turns show names in their place.
const BESIDE_TURNS: f64 = 4.0;

/// What a line of a topic is worth by itself, next to the chance that a name is needed.
pub(super) fn worth(topic: Topic, company: Company) -> f64 {
    let worth = match topic {
        Topic::Goals | Topic::Rules => 1.0,
        Topic::Open => 0.4,
        Topic::Plan | Topic::Made | Topic::Failures => 0.22,
        Topic::Done => 0.2,
        Topic::Decisions | Topic::Steps => 0.13,
        Topic::Files | Topic::Code | Topic::Record | Topic::Names => 0.06,
    };
    match company {
        Company::Turns => worth * BESIDE_TURNS,
        Company::Alone | Company::AgentSummary => worth,
    }
}

/// All fact lines of a ledger, in the order in which they deserve room.
pub(super) fn lines<'g>(
    ledger: &Ledger,
    ranked: impl Iterator<Item = &'g Group<'g>>,
    revoked: &Revoked<'_>,
    root: &Root<'_>,
) -> Vec<Line> {
    let facts = &ledger.facts;
    let finished = Finished::of(facts);
    let mut out = goals(facts, revoked);
    out.extend(rules(facts, revoked));
    out.extend(plan(facts));
    out.extend(failures(facts));
    out.extend(open(ledger, &finished));
    let done = finished.told(facts).into_iter();
    out.extend(done.map(|f| line(Topic::Done, f.ordinal, &*f.text)));
    out.extend(made(facts));
    out.extend(
        facts
            .files
            .iter()
            .rev()
            .filter(|f| f.act != Act::Read)
            .map(file),
    );
    out.extend(code::lines(ledger, ranked));
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

/// The rules that hold, the user's before the host's, those of the newest message first and each
/// message's in their order.
fn rules(facts: &Facts, revoked: &Revoked<'_>) -> Vec<Line> {
    let mut rules: Vec<&Fact> = facts.rules.iter().filter(|f| !revoked.has(f)).collect();
    rules.sort_by_key(|f| (f.voice != Voice::User, Reverse(f.ordinal)));
    let quoted = |f: &&Fact| line(Topic::Rules, f.ordinal, format!("\"{}\"", f.text));
    rules.iter().map(quoted).collect()
}

/// What was put off and not finished since. What the model merely has yet to do is soon stale.
fn open(ledger: &Ledger, finished: &Finished<'_>) -> Vec<Line> {
    let recent = ledger.next.saturating_sub(ledger.next / 5) as u32;
    let mut open: Vec<&Fact> = ledger
        .facts
        .open
        .iter()
        .rev()
        .filter(|f| (f.ordinal >= recent || postpones(&f.text)) && !finished.closes(f))
        .collect();
    open.sort_by_key(|f| f.voice != Voice::User);
    let told = open.iter().map(|f| line(Topic::Open, f.ordinal, &*f.text));
    told.collect()
}

/// Things that tools made, those of the rarest tools first: what is made all the time is not asked
/// for by its id.
fn made(facts: &Facts) -> Vec<Line> {
    let tool = |f: &Fact| f.text.split(':').next().unwrap_or("").to_owned();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for fact in &facts.made {
        *counts.entry(tool(fact)).or_default() += 1;
    }
    let mut made: Vec<&Fact> = facts.made.iter().rev().collect();
    made.sort_by_key(|f| counts.get(&tool(f)).copied());
    let told = made.iter().map(|f| line(Topic::Made, f.ordinal, &*f.text));
    told.collect()
}

/// The first request is the task; then the newest ones. Sentences that rule are told as rules.
fn goals(facts: &Facts, revoked: &Revoked<'_>) -> Vec<Line> {
    let goal = |f: &Fact| {
        let mut text = revoked.strip(f.ordinal, &f.text);
        let elsewhere = facts.rules.iter().chain(&facts.open);
        for told in elsewhere.filter(|r| r.ordinal == f.ordinal) {
            text = without(&text, &told.text);
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

/// A complaint so long is the same failure whatever command met it.
const TELLING: usize = 48;

/// Failures with their cure, or "later passed" for those that the same command outlived; those of
/// the rarest commands first, then the newest.
pub(super) fn failures(facts: &Facts) -> Vec<Line> {
    let mut told = HashSet::new();
    let mut passed = HashSet::new();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut out = Vec::new();
    for run in facts.runs.iter().rev() {
        match &run.outcome {
            Outcome::Ok => {
                passed.insert(&run.text);
            }
            Outcome::Failed(why) if told.insert((why, command(run, why))) => {
                let kind = kind(&run.text);
                *counts.entry(kind).or_default() += 1;
                let text = failure(facts, run, why, passed.contains(&run.text));
                out.push((kind, line(Topic::Failures, run.ordinal, text)));
            }
            _ => {}
        }
    }
    out.sort_by_key(|(kind, _)| counts.get(kind).copied());
    out.into_iter().map(|(_, line)| line).collect()
}

/// The command, where the complaint alone does not tell the failure.
fn command<'r>(run: &'r Run, why: &str) -> Option<&'r str> {
    (why.len() < TELLING).then_some(&*run.text)
}

/// The tool and the first word of its command.
fn kind(run: &str) -> &str {
    let end = run.match_indices(' ').nth(1).map_or(run.len(), |(i, _)| i);
    run.get(..end).unwrap_or(run)
}

fn failure(facts: &Facts, run: &Run, why: &str, passed: bool) -> String {
    let end = if passed { "later passed" } else { "open" };
    match remedy(facts, run) {
        Some(remedy) => format!("{why} → {} ({end})", clip(remedy, 200)),
        None => format!("{} → {why} ({end})", clip(&run.text, 120)),
    }
}

/// How soon after a failed call the model says what it was: the answer, and a look or two.
const SOON: u32 = 5;

/// The first finding or success that the model tells soon after a failure.
fn remedy<'l>(facts: &'l Facts, run: &Run) -> Option<&'l str> {
    let after = |list: &'l [Fact]| {
        let at = list.partition_point(|f| f.ordinal <= run.ordinal);
        let next = list.iter().skip(at).find(|f| f.voice == Voice::Model)?;
        (next.ordinal <= run.ordinal + SOON).then_some(next)
    };
    let found = [after(&facts.decisions), after(&facts.done)];
    let first = found.into_iter().flatten().min_by_key(|f| f.ordinal)?;
    Some(&first.text)
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
