//! What happens to a task that an agent carries from session to session.
//!
//! Counts, names and reasons only. What the agent says and does is its conversation, and no part of an
//! event.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Severity;
use crate::token::Tokens;
use crate::usage::Usage;

/// One thing that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// The run.
    pub run_id: String,
    /// What happened.
    #[serde(flatten)]
    pub step: RunStep,
}

/// Where a checkpoint came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointSource {
    /// The agent wrote it, in tags.
    Tagged,
    /// The agent answered without tags: its whole answer.
    Raw,
    /// The agent gave none: it was drawn from the ledger.
    Built,
}

/// What happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunStep {
    /// A run began, or goes on.
    RunStarted {
        /// Its agent.
        agent: String,
        /// Restarts so far.
        continuation_count: u32,
    },
    /// A session is opened.
    SessionStarted {
        /// Which, from 1.
        number: u32,
        /// The session that it takes up again, where it is not a fresh one.
        resumed: Option<String>,
        /// What its first prompt costs.
        prompt_tokens: Tokens,
    },
    /// More is known about the session: its name, its model or its window.
    SessionNamed,
    /// A request was counted.
    ContextUsage {
        /// This report.
        turn: Usage,
        /// Every request of the session so far.
        cumulative: Usage,
        /// The window.
        limit: Tokens,
        /// How full that makes it.
        pressure_ratio: f64,
    },
    /// The agent reports no usage.
    UsageMissing,
    /// The context is full.
    ContextPressure {
        /// Fresh prompt tokens of the session.
        input_tokens: u64,
        /// Answered tokens.
        output_tokens: u64,
        /// Tokens read from a cache.
        cache_read_tokens: u64,
        /// How full it is.
        pressure_ratio: f64,
    },
    /// The provider refused a prompt because of its size.
    PromptTooLong,
    /// The session is asked for its checkpoint.
    CheckpointRequested,
    /// There is a checkpoint.
    Checkpoint {
        /// Where it came from.
        source: CheckpointSource,
        /// Why not from the agent.
        reason: Option<String>,
        /// The context that it stands for.
        tokens_before: Tokens,
        /// What the continuation costs.
        tokens_after: Tokens,
        /// What was worth keeping.
        anchors: usize,
        /// Of those, what the agent's own words show.
        noted: usize,
        /// Of those, what the continuation shows.
        shown: usize,
    },
    /// A fresh session goes on.
    ContextRestart {
        /// Which restart, from 1.
        continuation_count: u32,
        /// How full the last session was; unknown when the provider refused it.
        pressure_ratio: Option<f64>,
        /// What the last session's context cost; unknown where another process saw it.
        tokens_before: Option<Tokens>,
        /// What the fresh one begins with.
        tokens_after: Tokens,
    },
    /// Usage is counted from zero.
    UsageReset {
        /// Which restart.
        continuation_count: u32,
    },
    /// The task is finished.
    RunFinished(RunTotals),
    /// A person stopped the run, which can go on later.
    RunStopped(RunTotals),
    /// The run ended without its task being finished.
    RunFailed {
        /// Why.
        error: String,
        /// What was counted until then.
        #[serde(flatten)]
        totals: RunTotals,
    },
}

/// What a run comes to when it ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunTotals {
    /// Restarts.
    pub continuation_count: u32,
    /// How long all sessions took.
    pub seconds: f64,
    /// What was counted.
    pub counters: RunCounters,
}

/// What a run counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunCounters {
    /// Sessions that were opened.
    pub sessions: u32,
    /// Turns that ended.
    pub turns: u32,
    /// Checkpoints in their tags.
    pub checkpoints_tagged: u32,
    /// Answers that were taken whole for one.
    pub checkpoints_raw: u32,
    /// Checkpoints drawn from the ledger.
    pub checkpoints_built: u32,
    /// Tokens of all requests.
    pub usage: Usage,
}

impl RunCounters {
    /// Counts a checkpoint by where it came from.
    pub fn count_checkpoint(&mut self, source: CheckpointSource) {
        let counter = match source {
            CheckpointSource::Tagged => &mut self.checkpoints_tagged,
            CheckpointSource::Raw => &mut self.checkpoints_raw,
            CheckpointSource::Built => &mut self.checkpoints_built,
        };
        *counter += 1;
    }
}

impl RunReport {
    pub(super) fn severity(&self) -> Severity {
        match &self.step {
            RunStep::RunFailed { .. } => Severity::Error,
            RunStep::UsageMissing | RunStep::PromptTooLong => Severity::Warning,
            _ => Severity::Info,
        }
    }

    pub(super) fn texts_mut(&mut self) -> Vec<&mut String> {
        match &mut self.step {
            RunStep::RunStarted { agent, .. } => vec![agent],
            RunStep::Checkpoint { reason, .. } => reason.iter_mut().collect(),
            RunStep::RunFailed { error, .. } => vec![error],
            RunStep::SessionStarted { .. }
            | RunStep::SessionNamed
            | RunStep::ContextUsage { .. }
            | RunStep::UsageMissing
            | RunStep::ContextPressure { .. }
            | RunStep::PromptTooLong
            | RunStep::CheckpointRequested
            | RunStep::ContextRestart { .. }
            | RunStep::UsageReset { .. }
            | RunStep::RunFinished(_)
            | RunStep::RunStopped(_) => Vec::new(),
        }
    }

    pub(super) fn names_mut(&mut self) -> Vec<&mut String> {
        let resumed = match &mut self.step {
            RunStep::SessionStarted { resumed, .. } => resumed.as_mut(),
            _ => None,
        };
        resumed.into_iter().chain([&mut self.run_id]).collect()
    }
}
