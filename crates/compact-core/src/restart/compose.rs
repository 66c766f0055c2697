//! What the next session is told: the task in the user's words, the notes of the session before, and
//! what those notes left out.
//!
//! The agent's own checkpoint is held to the same proof as every summary. Where there is none, the
//! ledger of all sessions so far is told under the same headings. What a model wrote is quoted as
//! data: only the user's words stand as orders.

use crate::ledger::Ledger;
use crate::summarize::{self, FENCE, FENCE_HEAD, NameRanking, Style, SummaryBody, escape_line};
use crate::token::{Estimator, EstimatorExt, Tokens, Units};
use crate::verify::{self, Anchor};

/// What a checkpoint is made of.
pub struct CheckpointNotes<'a> {
    /// What the user asked for.
    pub task: &'a str,
    /// What the agent wrote, if it did.
    pub written: Option<&'a str>,
    /// What all sessions so far established.
    pub ledger: &'a Ledger,
    /// What the checkpoint may cost; the agent's own words may take as much again.
    pub room: Tokens,
    /// How that is counted.
    pub estimator: &'a dyn Estimator,
}

/// A checkpoint for the next session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The text.
    pub text: String,
    /// What was worth keeping of the sessions so far.
    pub anchors: usize,
    /// Of those, what the agent's own words and the task show.
    pub noted: usize,
    /// Of those, what the checkpoint shows.
    pub shown: usize,
}

const TASK: &str = "## Goal, in the user's words";

/// The task may take this part of the room, what is put back to an agent's notes another.
const PART: u64 = 3;

impl CheckpointNotes<'_> {
    /// The checkpoint.
    pub fn write_checkpoint(&self) -> Checkpoint {
        let room = self.estimator.to_units(self.room);
        let part = Units(room.0 / PART);
        let task = cut_opening(self.task.trim(), part, self.estimator);
        let mut text = format!("{TASK}\n{task}\n");
        let mut left = part;
        let notes = match self.written {
            Some(written) => escape_lines(&cut_opening(written, Units(room.0 * 2), self.estimator)),
            None => {
                left = room - self.estimator.count_units(&text);
                summarize::render_checkpoint(self.ledger, Units(left.0 * 2 / 3), self.estimator)
            }
        };
        if !notes.is_empty() {
            text = format!("{text}\n{FENCE_HEAD}\n{notes}\n{FENCE}");
        }
        if self.written.is_none() {
            left = room - self.estimator.count_units(&text);
        }
        self.complete_checkpoint(text, left)
    }

    /// The text with what it does not show yet of the ledger, the most needed first.
    fn complete_checkpoint(&self, text: String, room: Units) -> Checkpoint {
        let ranking = NameRanking::from_ledger(self.ledger, Style::TaskState, None);
        let anchors = verify::anchors(self.ledger, &ranking, &|_| true);
        let noted = verify::shown_anchors(&anchors, &text);
        let told = anchors.iter().zip(&noted);
        let missing: Vec<&Anchor> = told.filter(|(_, n)| !**n).map(|(a, _)| a).collect();
        let cost = self.estimator.count_units(&text);
        let summary = SummaryBody { text, cost };
        let repaired = verify::repair(self.ledger, &summary, &missing, room, self.estimator);
        let text = repaired.unwrap_or(summary).text;
        let count = |shown: &[bool]| shown.iter().filter(|shown| **shown).count();
        Checkpoint {
            anchors: anchors.len(),
            noted: count(&noted),
            shown: count(&verify::shown_anchors(&anchors, &text)),
            text,
        }
    }
}

/// Words that can neither end the quotation around them nor pose as a frame of ours.
fn escape_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escape_line).collect();
    lines.join("\n")
}

/// The beginning of a text that costs at most so much.
fn cut_opening(text: &str, most: Units, estimator: &dyn Estimator) -> String {
    let cost = estimator.count_units(text);
    if cost <= most {
        return text.to_owned();
    }
    let chars = text.chars().count() as u64;
    // A little less than the share that fits, since stretches cost unevenly.
    let keep = chars * most.0 / cost.0.max(1) * 9 / 10;
    let opening: String = text.chars().take(keep as usize).collect();
    format!("{}…", opening.trim_end())
}
