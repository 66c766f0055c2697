//! Why a compaction was not made, and how errors of all crates carry what to do about them. The
//! conversation is untouched in every case.

use crate::token::Tokens;

/// An error that keeps what is wrong apart from what to do about it. Its `Display` is both in one
/// sentence, for whoever has room for one text only.
pub trait Hinted {
    /// Returns what is wrong, and where.
    fn message(&self) -> String;

    /// Returns what to do about it, where the message does not contain it already.
    fn hint(&self) -> Option<String>;

    /// Returns both in one sentence.
    fn sentence(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{}; {hint}", self.message()),
            None => self.message(),
        }
    }
}

/// Why a compaction was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub enum CompactError {
    /// What must stay does not fit.
    InsufficientBudget {
        /// Tokens of pinned entries.
        pinned_tokens: Tokens,
        /// The smallest budget that would do.
        needed: Tokens,
        /// The budget that was given.
        budget: Tokens,
    },
    /// The system prompt and the tools, which the host sends with every request, leave too little room.
    InstructionsTooLarge {
        /// Tokens of the system prompt and other leading instructions.
        system: Tokens,
        /// Tokens of the tools' schemas.
        tools: Tokens,
        /// What the smallest view needs beside them.
        needed: Tokens,
        /// The window less the buffer.
        available: Tokens,
    },
    /// A pattern of the policy is not a regular expression.
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        message: String,
    },
    /// The finished view broke a rule that it must keep: a defect of the engine, never sent.
    InvalidView(String),
}

impl Hinted for CompactError {
    fn message(&self) -> String {
        match self {
            CompactError::InsufficientBudget {
                pinned_tokens,
                needed,
                budget,
            } => format!(
                "insufficient budget: at least {needed} tokens are needed ({pinned_tokens} of them pinned), \
                 the budget is {budget}"
            ),
            CompactError::InstructionsTooLarge {
                system,
                tools,
                needed,
                available,
            } => format!(
                "insufficient budget: the system prompt takes {system} tokens and the tools {tools}; \
                 the smallest view needs {needed} more, and the window less its buffer is {available}"
            ),
            CompactError::BadPattern { pattern, message } => format!(
                "policy.protected_patterns: '{pattern}' is not a regular expression: {message}"
            ),
            CompactError::InvalidView(reason) => format!(
                "the view was rejected before use: {reason}; nothing was changed, please report this"
            ),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            CompactError::InsufficientBudget { pinned_tokens, .. } => {
                Some(budget_hint(*pinned_tokens).to_owned())
            }
            CompactError::InstructionsTooLarge { system, tools, .. } => {
                let larger = if tools > system {
                    "remove tools"
                } else {
                    "shorten the system prompt"
                };
                Some(format!("{larger}, or use a model with a larger window"))
            }
            CompactError::BadPattern { .. } | CompactError::InvalidView(_) => None,
        }
    }
}

/// What to do about a budget that is too small.
fn budget_hint(pinned: Tokens) -> &'static str {
    match pinned {
        Tokens(0) => "raise the budget, or start a new session",
        Tokens(_) => "raise the budget, shorten the pinned entries, or start a new session",
    }
}
