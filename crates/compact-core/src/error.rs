//! Why a compaction was not made. The conversation is untouched in every case.

use crate::token::Tokens;

/// Why a compaction was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompactError {
    /// What must stay does not fit.
    #[error(
        "insufficient budget: {needed} tokens are needed ({pinned_tokens} of them pinned), the budget is {budget}; \
         {}", budget_advice(*pinned_tokens)
    )]
    InsufficientBudget {
        /// Tokens of pinned entries.
        pinned_tokens: Tokens,
        /// The smallest budget that would do.
        needed: Tokens,
        /// The budget that was given.
        budget: Tokens,
    },
    /// A pattern of the policy is not a regular expression.
    #[error("policy.protected_patterns: '{pattern}' is not a regular expression: {message}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        message: String,
    },
    /// The finished view broke a rule that it must keep: a defect of the engine, never sent.
    #[error("the view was rejected before use: {0}; nothing was changed, please report this")]
    InvalidView(String),
}

/// What to do about a budget that is too small.
fn budget_advice(pinned: Tokens) -> &'static str {
    match pinned {
        Tokens(0) => "raise the budget, or start a new session",
        Tokens(_) => "raise the budget, shorten the pinned entries, or start a new session",
    }
}
