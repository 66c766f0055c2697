//! What a run goes on from: small enough to be kept at every step, and enough for another process.

use std::time::Duration;

use compact_core::event::{RunCounters, RunTotals};
use compact_core::ledger::Ledger;
use compact_core::restart::RestartLimits;
use serde::{Deserialize, Serialize};

/// What a run does next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum NextStep {
    /// Begin the task.
    #[default]
    Begin,
    /// Go on in a fresh session from this prompt. It carries no session: the old one is full.
    Continue {
        /// The continuation.
        prompt: String,
        /// Which restart that is, from 1.
        restart: u32,
    },
    /// Take up a session that was cut off.
    Resume {
        /// Its name.
        session_id: String,
    },
    /// Nothing: the task is finished.
    Nothing,
}

/// A run between two steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunState {
    /// Who holds the locks: the same in every session.
    pub run_id: String,
    /// What the user asked for.
    pub task: String,
    /// The words by which an answer says that the task is finished; without them, every answer does.
    pub until: Option<String>,
    /// How far the task may be carried.
    pub limits: RestartLimits,
    /// How long it took so far.
    pub spent: Duration,
    /// How many sessions followed the first.
    pub continuation_count: u32,
    /// How full the last session was, if that is why it ended.
    pub pressure: Option<f64>,
    /// Whether the last checkpoint was made as small as it gets.
    pub narrowed: bool,
    /// What comes next.
    pub next: NextStep,
    /// What was counted.
    pub counters: RunCounters,
    /// What all sessions so far established.
    pub ledger: Ledger,
}

impl RunState {
    /// A run that has not begun.
    pub fn new(run_id: impl Into<String>, task: impl Into<String>) -> RunState {
        RunState {
            run_id: run_id.into(),
            task: task.into(),
            ..RunState::default()
        }
    }

    pub(super) fn is_finished(&self, answer: &str) -> bool {
        let until = self.until.as_deref();
        until.is_none_or(|until| answer.contains(until))
    }

    /// What the run came to so far.
    pub(super) fn totals(&self) -> RunTotals {
        RunTotals {
            continuation_count: self.continuation_count,
            seconds: self.spent.as_secs_f64(),
            counters: self.counters.clone(),
        }
    }
}
