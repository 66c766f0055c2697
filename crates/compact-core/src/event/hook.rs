//! What the hook of an agent did at one moment of the agent's session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Severity;
use crate::token::Tokens;

/// One thing that a hook did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookReport {
    /// The agent that called.
    pub agent: String,
    /// The agent's own name of the moment.
    pub moment: String,
    /// What the hook did.
    #[serde(flatten)]
    pub step: HookStep,
}

/// What a hook did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum HookStep {
    /// The transcript was archived, because its agent is about to compact.
    HookArchived {
        /// What set the compaction off, in the agent's word.
        trigger: String,
        /// The archive's file.
        path: String,
        /// Its bytes.
        bytes: u64,
        /// The context so far, as the provider counted it last; unknown where the transcript does not tell.
        tokens_before: Option<Tokens>,
    },
    /// The agent compacted, and its new context was held against what it should know.
    HookCompacted {
        /// The context before, as the provider counted it last.
        tokens_before: Option<Tokens>,
        /// The messages after, by estimate; what the agent sends beside them is not known.
        tokens_after: Tokens,
        /// What was worth keeping.
        anchors: usize,
        /// Of those, what the new context shows.
        shown: usize,
        /// How many characters were told again.
        repeated_chars: u64,
    },
    /// Something was left undone; the agent went on without it.
    HookFailed {
        /// Why.
        error: String,
        /// True where the original was not archived.
        unarchived: bool,
    },
}

impl HookReport {
    pub(super) fn severity(&self) -> Severity {
        match &self.step {
            HookStep::HookArchived { .. } | HookStep::HookCompacted { .. } => Severity::Info,
            HookStep::HookFailed { unarchived, .. } => match unarchived {
                true => Severity::High,
                false => Severity::Warning,
            },
        }
    }

    pub(super) fn texts_mut(&mut self) -> Vec<&mut String> {
        let mut texts = match &mut self.step {
            HookStep::HookArchived { trigger, path, .. } => vec![trigger, path],
            HookStep::HookFailed { error, .. } => vec![error],
            HookStep::HookCompacted { .. } => Vec::new(),
        };
        texts.extend([&mut self.agent, &mut self.moment]);
        texts
    }
}
