//! What a session remembers of its compactions, and when it may try again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::token::Tokens;

/// Growth since a failed attempt that allows another in the same turn.
const REARM_GROWTH: f64 = 1.05;

/// What the tokens of a trigger rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TriggerReason {
    /// The provider's count of the last request, and the growth since by estimate.
    ProviderUsage,
    /// The estimate alone: the provider has not counted this context.
    #[default]
    Heuristic,
}

/// One session's compactions, in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CompactionState {
    /// Whether compaction was attempted in this turn.
    pub attempted_this_turn: bool,
    /// How many compactions the session has had.
    pub compaction_count: u32,
    /// The provider's last count of a prompt, as long as that prompt is what is being continued.
    pub last_input_tokens: Option<u64>,
    /// The estimate of the context that the provider counted.
    #[serde(skip)]
    pub(super) counted: Tokens,
    /// The size of the context when an attempt failed.
    #[serde(skip)]
    pub(super) failed_at: Tokens,
}

impl CompactionState {
    /// A new turn begins: it has its own attempt.
    pub fn begin_turn(&mut self) {
        self.attempted_this_turn = false;
    }

    /// The provider counted `input_tokens` for a context that the estimator counts as `estimate`.
    pub fn report(&mut self, input_tokens: u64, estimate: Tokens) {
        self.last_input_tokens = Some(input_tokens);
        self.counted = estimate;
    }

    /// What the next request would cost: the provider's number lags, so what was added since is
    /// estimated on top of it.
    pub fn pressure(&self, estimate: Tokens) -> (Tokens, TriggerReason) {
        match self.last_input_tokens {
            Some(reported) => (
                Tokens(reported) + (estimate - self.counted),
                TriggerReason::ProviderUsage,
            ),
            None => (estimate, TriggerReason::Heuristic),
        }
    }

    /// Whether a compaction may be attempted now: once in a turn, unless the context has grown
    /// since so much that the attempt is another one.
    pub fn may_attempt(&self, tokens: Tokens) -> bool {
        let grown = self.failed_at.0 as f64 * REARM_GROWTH;
        !self.attempted_this_turn || (self.failed_at > Tokens(0) && tokens.0 as f64 >= grown)
    }

    /// An attempt begins. It counts as failed until it has succeeded, whatever interrupts it.
    pub fn attempt(&mut self, tokens: Tokens) {
        self.attempted_this_turn = true;
        self.failed_at = tokens;
    }

    /// The history was reset. No count of the old context says anything about the new one.
    pub fn succeed(&mut self) {
        *self = CompactionState {
            compaction_count: self.compaction_count + 1,
            ..CompactionState::default()
        };
    }

    /// A person asked for another attempt.
    pub fn retry(&mut self) {
        self.attempted_this_turn = false;
    }
}
