//! The ledger told as a checkpoint, under the headings that an agent is asked for.
//!
//! For the session that follows one which could not speak for itself. The user's own words are not
//! told here: they stand before the checkpoint, whole.

use std::fmt::Write;

use super::layout::harmless;
use super::revoke::Revoked;
use super::root::Root;
use super::tell::{self, Line};
use super::template::Topic;
use crate::ledger::{Ledger, Outcome};
use crate::token::{Estimator, Units};

/// One section: its heading, its share of the room, and which lines are told in it.
struct Section {
    heading: &'static str,
    share: f64,
    tells: fn(&Line) -> bool,
}

const SECTIONS: [Section; 5] = [
    Section {
        heading: "Completed Work",
        share: 0.25,
        tells: |line| matches!(line.topic, Topic::Files | Topic::Made),
    },
    Section {
        heading: "Remaining Tasks",
        share: 0.25,
        tells: |line| line.topic == Topic::Open || is_step(line, "open: "),
    },
    Section {
        heading: "Do Not Redo",
        share: 0.2,
        tells: |line| line.topic == Topic::Done || is_step(line, "done: "),
    },
    Section {
        heading: "Key Decisions",
        share: 0.15,
        tells: |line| line.topic == Topic::Decisions,
    },
    Section {
        heading: "Failures",
        share: 0.1,
        tells: |line| line.topic == Topic::Failures,
    },
];

fn is_step(line: &Line, prefix: &str) -> bool {
    line.topic == Topic::Plan && line.text.starts_with(prefix)
}

/// How many of the last steps are told as what was going on.
const LAST_STEPS: usize = 4;

/// The sections of a checkpoint within a budget; empty when nothing was done.
pub fn checkpoint(ledger: &Ledger, budget: Units, estimator: &dyn Estimator) -> String {
    let revoked = Revoked::of(&ledger.facts);
    let lines = tell::lines(ledger, std::iter::empty(), &revoked, &Root::of(ledger));
    let mut out = String::new();
    for section in &SECTIONS {
        let told = lines.iter().filter(|line| (section.tells)(line));
        let room = Units((budget.0 as f64 * section.share) as u64);
        push(&mut out, section.heading, &afford(told, room, estimator));
    }
    push(&mut out, "In-Flight Work", &in_flight(ledger));
    out.truncate(out.trim_end().len());
    out
}

/// The lines that fit, in the order of the session.
fn afford<'l>(
    lines: impl Iterator<Item = &'l Line>,
    room: Units,
    estimator: &dyn Estimator,
) -> Vec<String> {
    let mut spent = Units(0);
    let mut taken: Vec<&Line> = lines
        .take_while(|line| {
            spent += estimator.units(&line.text) + Units(estimator.units_per_token());
            spent <= room
        })
        .collect();
    taken.sort_by_key(|line| line.ordinal);
    taken.iter().map(|line| line.text.clone()).collect()
}

/// The calls that nobody answered, and the last ones that somebody did.
fn in_flight(ledger: &Ledger) -> Vec<String> {
    let runs = ledger.facts.runs.iter();
    let last = runs.skip(ledger.facts.runs.len().saturating_sub(LAST_STEPS));
    let told = last.map(|run| match &run.outcome {
        Outcome::Pending => format!("{} → no answer yet", run.text),
        Outcome::Ok => format!("{} → ok", run.text),
        Outcome::Failed(why) => format!("{} → failed: {why}", run.text),
    });
    told.collect()
}

fn push(out: &mut String, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "## {heading}");
    for line in lines {
        let _ = writeln!(out, "- {}", harmless(line));
    }
    out.push('\n');
}
