//! Usage and pressure: what a provider counted, what its numbers mean, and how full that makes the
//! window.
//!
//! A report is normalised before it comes here ([`Usage`]: cached tokens apart from fresh ones) and
//! comes with what it measured ([`Semantics`]). [`ContextUsage`] gathers reports, [`gauge`] adds what
//! was said since the last of them. Nothing here reads a provider's JSON or decides what to do.

mod context;
pub mod forecast;
pub mod gauge;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::token::Tokens;

pub use context::{ContextPressure, ContextUsage};

/// One report of a provider, normalised: no token is counted under two names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// Prompt tokens that were neither read from a cache nor written to one.
    pub input_tokens: u64,
    /// Tokens of the answer, its reasoning included.
    pub output_tokens: u64,
    /// Prompt tokens read from a cache.
    pub cache_read_tokens: u64,
    /// Prompt tokens written to a cache.
    pub cache_creation_tokens: u64,
}

impl Usage {
    /// A turn as a host counts it; what is below zero counts as zero.
    pub fn of_turn(input: i64, output: i64, cache_read: i64) -> Usage {
        let clamped = |n: i64| u64::try_from(n).unwrap_or(0);
        Usage {
            input_tokens: clamped(input),
            output_tokens: clamped(output),
            cache_read_tokens: clamped(cache_read),
            cache_creation_tokens: 0,
        }
    }

    /// The whole prompt: fresh, read from a cache and written to one.
    pub fn prompt_tokens(&self) -> Tokens {
        Tokens(self.input_tokens)
            + Tokens(self.cache_read_tokens)
            + Tokens(self.cache_creation_tokens)
    }

    /// Each counter combined with its like.
    fn zip(self, other: Usage, combine: fn(u64, u64) -> u64) -> Usage {
        Usage {
            input_tokens: combine(self.input_tokens, other.input_tokens),
            output_tokens: combine(self.output_tokens, other.output_tokens),
            cache_read_tokens: combine(self.cache_read_tokens, other.cache_read_tokens),
            cache_creation_tokens: combine(self.cache_creation_tokens, other.cache_creation_tokens),
        }
    }

    /// Both reports together.
    pub fn plus(self, other: Usage) -> Usage {
        self.zip(other, u64::saturating_add)
    }

    /// What this report has beyond an earlier one.
    pub fn less(self, earlier: Usage) -> Usage {
        self.zip(earlier, u64::saturating_sub)
    }

    /// This report, brought up to date by a later one of the same request that may leave counters out.
    pub fn updated(self, later: Usage) -> Usage {
        self.zip(later, |old, new| if new == 0 { old } else { new })
    }
}

/// What reported numbers measure. Whoever reads a provider's numbers declares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Semantics {
    /// The last request alone: its prompt is the context.
    #[default]
    LastRequest,
    /// What was used since the report before; the sum is the context.
    PerTurnDelta,
    /// Everything used since the context began.
    Cumulative,
    /// Nothing that can be relied on.
    None,
}

/// Which counters fill the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Formula {
    /// The whole prompt: fresh, read from a cache and written to one.
    #[default]
    Prompt,
    /// Fresh input and output; caches are telemetry.
    InputOutput,
    /// Fresh input alone.
    InputOnly,
    /// The local estimate, whatever is reported.
    Estimate,
    /// The larger of `prompt` and `estimate`.
    Max,
}

/// What happens when a provider reports no usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnMissing {
    /// Pressure is not tracked: it reads zero and triggers nothing.
    Disable,
    /// A quick guess by characters.
    Heuristic,
    /// The configured estimator.
    #[default]
    Estimator,
}

/// How pressure is read from what providers report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UsagePolicy {
    /// What reported numbers measure; unset, what their source declares.
    pub semantics: Option<Semantics>,
    /// Which counters fill the window.
    pub formula: Formula,
    /// What happens when a provider reports no usage.
    pub on_missing: OnMissing,
    /// Whether a report switches tracking on again after a missing one switched it off.
    pub reenable_on_usage: bool,
}

/// `tokens` as a share of `window`; an empty window is no window, so there is no pressure.
pub fn window_share(tokens: Tokens, window: Tokens) -> f64 {
    if window.0 == 0 {
        return 0.0;
    }
    tokens.0 as f64 / window.0 as f64
}
