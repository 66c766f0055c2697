//! The usage of one context: totals for people and bills, the last request for pressure.

use super::window_share;
use crate::token::Tokens;

use super::{Formula, Semantics, Usage};

/// Gathers reports of one context, until it is reset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextUsage {
    /// Fresh prompt tokens of the context so far.
    pub input_tokens: u64,
    /// Answered tokens so far.
    pub output_tokens: u64,
    /// Tokens read from a cache so far.
    pub cache_read_tokens: u64,
    /// Tokens written to a cache so far.
    pub cache_creation_tokens: u64,
    /// The local estimate of the next request, for the formulas that ask for one.
    pub estimate: Tokens,
    last: Option<Usage>,
    semantics: Semantics,
    formula: Formula,
    tracking: Tracking,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tracking {
    #[default]
    Enabled,
    Disabled,
}

impl ContextUsage {
    /// A context that nothing is known of yet.
    pub fn new(semantics: Semantics, formula: Formula) -> Self {
        ContextUsage {
            semantics,
            formula,
            ..ContextUsage::default()
        }
    }

    /// Adds what a turn used to the totals; does nothing while tracking is off.
    pub fn add_turn(&mut self, turn: Usage) {
        if self.is_tracking_enabled() {
            self.set_totals(self.totals().plus(turn));
            self.last = Some(turn);
        }
    }

    /// Takes a report as what it is said to measure; does nothing while tracking is off.
    pub fn record(&mut self, report: Usage, semantics: Semantics) {
        self.semantics = semantics;
        match semantics {
            Semantics::None => {}
            Semantics::LastRequest | Semantics::PerTurnDelta => self.add_turn(report),
            Semantics::Cumulative if self.is_tracking_enabled() => {
                let before = self.totals();
                // Counters that went back started anew.
                let anew = report.prompt_tokens() < before.prompt_tokens();
                self.last = Some(if anew { report } else { report.less(before) });
                self.set_totals(report);
            }
            Semantics::Cumulative => {}
        }
    }

    /// Forgets all counters, as a new context begins; tracking stays as it is.
    pub fn reset(&mut self) {
        *self = ContextUsage {
            semantics: self.semantics,
            formula: self.formula,
            tracking: self.tracking,
            ..ContextUsage::default()
        };
    }

    /// Stops tracking: pressure reads zero; the totals stay for telemetry.
    pub fn disable_tracking(&mut self) {
        self.tracking = Tracking::Disabled;
    }

    /// Tracks again.
    pub fn enable_tracking(&mut self) {
        self.tracking = Tracking::Enabled;
    }

    /// False when no pressure is to be read from this.
    pub fn is_tracking_enabled(&self) -> bool {
        self.tracking == Tracking::Enabled
    }

    /// The totals as one report.
    pub fn totals(&self) -> Usage {
        Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cache_read_tokens: self.cache_read_tokens,
            cache_creation_tokens: self.cache_creation_tokens,
        }
    }

    fn set_totals(&mut self, totals: Usage) {
        self.input_tokens = totals.input_tokens;
        self.output_tokens = totals.output_tokens;
        self.cache_read_tokens = totals.cache_read_tokens;
        self.cache_creation_tokens = totals.cache_creation_tokens;
    }

    /// What the last report said of the last turn.
    pub fn last(&self) -> Option<Usage> {
        self.last
    }

    /// Which counters fill the window.
    pub fn formula(&self) -> Formula {
        self.formula
    }

    /// The tokens in the window: of the last request, or of all turns where each reports its own.
    pub fn live_tokens(&self) -> Tokens {
        let seen = match self.semantics {
            Semantics::LastRequest => self.last.unwrap_or_default(),
            Semantics::None => Usage::default(),
            Semantics::PerTurnDelta | Semantics::Cumulative => self.totals(),
        };
        match self.formula {
            Formula::Prompt => seen.prompt_tokens(),
            Formula::InputOutput => Tokens(seen.input_tokens) + Tokens(seen.output_tokens),
            Formula::InputOnly => Tokens(seen.input_tokens),
            Formula::Estimate => self.estimate,
            Formula::Max => seen.prompt_tokens().max(self.estimate),
        }
    }

    /// Live tokens as a share of the limit; may exceed one. Zero while tracking is off or without
    /// a limit.
    pub fn pressure_ratio(&self, context_limit: Tokens) -> f64 {
        if self.is_tracking_enabled() {
            window_share(self.live_tokens(), context_limit)
        } else {
            0.0
        }
    }

    /// An error with the totals when the pressure reaches `threshold`.
    pub fn check(
        &self,
        session_id: Option<&str>,
        context_limit: Tokens,
        threshold: f64,
    ) -> Result<(), ContextPressure> {
        let pressure_ratio = self.pressure_ratio(context_limit);
        if !self.is_tracking_enabled() || pressure_ratio < threshold {
            return Ok(());
        }
        Err(ContextPressure {
            session_id: session_id.unwrap_or_default().to_owned(),
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cache_read_tokens: self.cache_read_tokens,
            pressure_ratio,
        })
    }
}

/// A context is fuller than it should be; the counters are totals of the context.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "session '{session_id}' fills {:.1} % of its context (input {input_tokens}, output {output_tokens}, \
     cache read {cache_read_tokens}): continue in a new one",
    pressure_ratio * 100.0
)]
pub struct ContextPressure {
    /// The session; empty when it has no name yet.
    pub session_id: String,
    /// Fresh prompt tokens of the context.
    pub input_tokens: u64,
    /// Answered tokens of the context.
    pub output_tokens: u64,
    /// Tokens read from a cache.
    pub cache_read_tokens: u64,
    /// Live tokens over the limit.
    pub pressure_ratio: f64,
}
