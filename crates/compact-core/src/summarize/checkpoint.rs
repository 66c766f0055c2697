//! The ledger told as a checkpoint, under the headings that an agent is asked for.
//!
//! For the session that follows one which could not speak for itself. The user's own words are not
//! told here: they stand before the checkpoint, whole.

use std::fmt::Write;

use super::fact_line::{self, FactLine};
use super::layout::escape_line;
use super::revoke::RevokedRules;
use super::root::RootDirectory;
use super::template::SectionTopic;
use crate::ledger::{Ledger, ToolRunOutcome};
use crate::token::{Estimator, Units};

/// One section: its heading, its share of the room, and which lines are told in it.
struct CheckpointSection {
    heading: &'static str,
    share: f64,
    tells: fn(&FactLine) -> bool,
}

const SECTIONS: [CheckpointSection; 5] = [
    CheckpointSection {
        heading: "Completed Work",
        share: 0.25,
        tells: |line| matches!(line.topic, SectionTopic::Files | SectionTopic::Made),
    },
    CheckpointSection {
        heading: "Remaining Tasks",
        share: 0.25,
        tells: |line| {
            let is_left = || is_step(line, "in progress: ") || is_step(line, "open: ");
            line.topic == SectionTopic::Open || is_left()
        },
    },
    CheckpointSection {
        heading: "Do Not Redo",
        share: 0.2,
        tells: |line| line.topic == SectionTopic::Done || is_step(line, "done: "),
    },
    CheckpointSection {
        heading: "Key Decisions",
        share: 0.15,
        tells: |line| line.topic == SectionTopic::Decisions,
    },
    CheckpointSection {
        heading: "Failures",
        share: 0.1,
        tells: |line| line.topic == SectionTopic::Failures,
    },
];

fn is_step(line: &FactLine, prefix: &str) -> bool {
    line.topic == SectionTopic::Plan && line.text.starts_with(prefix)
}

/// How many of the last steps are told as what was going on.
const LAST_STEPS: usize = 4;

/// The sections of a checkpoint within a budget; empty when nothing was done.
pub fn render_checkpoint(ledger: &Ledger, budget: Units, estimator: &dyn Estimator) -> String {
    let revoked = RevokedRules::from_facts(&ledger.facts);
    let root = RootDirectory::from_ledger(ledger);
    let mut lines = fact_line::fact_lines(ledger, &revoked, &root, &|_| false);
    lines.extend(fact_line::file_lines(ledger, &root));
    lines.extend(fact_line::executed_lines(ledger, &root));
    let mut out = String::new();
    for section in &SECTIONS {
        let told = lines.iter().filter(|line| (section.tells)(line));
        let room = Units((budget.0 as f64 * section.share) as u64);
        push_lines(
            &mut out,
            section.heading,
            &lines_within_room(told, room, estimator),
        );
    }
    push_lines(&mut out, "In-Flight Work", &in_flight(ledger));
    out.truncate(out.trim_end().len());
    out
}

/// The lines that fit, in the order of the session.
fn lines_within_room<'l>(
    lines: impl Iterator<Item = &'l FactLine>,
    room: Units,
    estimator: &dyn Estimator,
) -> Vec<String> {
    let mut spent = Units(0);
    let mut taken: Vec<&FactLine> = lines
        .take_while(|line| {
            spent += estimator.count_units(&line.text) + Units(estimator.units_per_token());
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
        ToolRunOutcome::Pending => format!("{} → no answer yet", run.text),
        ToolRunOutcome::Ok => format!("{} → ok", run.text),
        ToolRunOutcome::Failed(why) => format!("{} → failed: {why}", run.text),
        ToolRunOutcome::Refused(why) => {
            format!("{} → {}", run.text, fact_line::refusal_text(why))
        }
    });
    told.collect()
}

fn push_lines(out: &mut String, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "## {heading}");
    for line in lines {
        let _ = writeln!(out, "- {}", escape_line(line));
    }
    out.push('\n');
}
