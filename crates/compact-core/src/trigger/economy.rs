//! Weigh: what a compaction costs and saves where prompts are cached.
//!
//! A view must be written to the cache before it is read from there, and every later request reads the
//! view instead of the history. With H and V for the tokens of history and view, w and r for what writing
//! to and reading from the cache cost in multiples of the input price, S for a model's summary and W for
//! what the agent will look up again, a compaction pays when more requests follow than
//!
//! - warm: n* = (V·(w − r) + S + W) ÷ ((H − V)·r)
//! - cold: n* = (S + W − (H − V)·(w − r)) ÷ ((H − V)·r), which is below zero for a view made without a model
//!
//! A session goes on growing, so one compaction is followed by others, and each of them costs that much again. With g
//! tokens more in each request, the cheapest is to wait until H − V = √(2·(V·(w − r) + S + W)·g ÷ r): sooner, views are
//! written too often, later, too much is read.
//!
//! The numbers are passed in: nothing here knows a clock, a provider or how often an agent asks.

mod lifetime;

use std::fmt;

use serde::Serialize;

use super::{CompactionCause, TriggerDecision, Verdict};
use crate::policy::EconomyMode;
use crate::token::Tokens;
use crate::window::ModelPrice;

pub use lifetime::SessionLifetimes;

/// What cached prompt tokens cost, in multiples of the input price.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CacheMultiples {
    /// Read from the cache.
    pub read: f64,
    /// Written to it.
    pub write: f64,
}

impl CacheMultiples {
    /// Where nothing is cached, everything costs the input price.
    pub const UNCACHED: CacheMultiples = CacheMultiples {
        read: 1.0,
        write: 1.0,
    };

    /// Those of a model; `None` where its prices say nothing.
    pub fn from_price(price: &ModelPrice) -> Option<CacheMultiples> {
        let multiple = |dollars: f64| (price.input > 0.0).then(|| dollars / price.input);
        Some(CacheMultiples {
            read: multiple(price.cache_read?)?,
            write: multiple(price.cache_write.unwrap_or(price.input))?,
        })
    }
}

/// The provider's cache, as far as it was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheWarmth {
    /// It holds what was sent last.
    Warm,
    /// What was sent last has expired.
    Cold,
    /// The provider reads nothing from a cache.
    Unused,
}

impl CacheWarmth {
    fn as_str(self) -> &'static str {
        match self {
            CacheWarmth::Warm => "warm",
            CacheWarmth::Cold => "cold",
            CacheWarmth::Unused => "unused",
        }
    }
}

/// What a decision is weighed by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EconomyNumbers {
    /// The next request as it stands.
    pub history: Tokens,
    /// The next request after a compaction.
    pub view: Tokens,
    /// What the model's cache costs.
    pub multiples: CacheMultiples,
    /// Its state.
    pub warmth: CacheWarmth,
    /// Requests that are expected from now on, the next one included.
    pub further_requests: f64,
    /// Tokens by which each request is larger than the one before, on average.
    pub growth: f64,
    /// What a model's summary costs, in tokens at the input price; zero for one made without a model.
    pub summary_cost: f64,
    /// What the agent is expected to look up again, in tokens at the input price.
    pub rework: f64,
}

/// What came of weighing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EconomyBalance {
    /// The numbers.
    pub numbers: EconomyNumbers,
    /// n*: a compaction pays when more requests than this follow; infinite when none pays ever.
    pub break_even: f64,
    /// What it saves over the expected requests, in tokens at the input price; below zero, what it costs.
    pub saving: f64,
    /// The tokens that it must leave out for its cost not to come again too soon.
    pub least_less: f64,
}

impl EconomyNumbers {
    /// Weighs a compaction now against none.
    pub fn weigh(self) -> EconomyBalance {
        let (read, write) = (self.effective().read, self.effective().write);
        let (history, view) = (self.history.0 as f64, self.view.0 as f64);
        let less = history - view;
        // What the next request costs more, beyond what it would with its prompt read from the cache.
        let extra = self.summary_cost
            + self.rework
            + match self.warmth {
                CacheWarmth::Warm => view * (write - read),
                CacheWarmth::Cold | CacheWarmth::Unused => -less * (write - read),
            };
        let per_request = less * read;
        let break_even = match less > 0.0 && per_request > 0.0 {
            true => extra / per_request,
            false => f64::INFINITY,
        };
        EconomyBalance {
            numbers: self,
            break_even: break_even.max(0.0),
            saving: per_request * self.further_requests - extra,
            least_less: match read > 0.0 {
                true => (2.0 * extra.max(0.0) * self.growth.max(0.0) / read).sqrt(),
                false => 0.0,
            },
        }
    }

    fn effective(&self) -> CacheMultiples {
        match self.warmth {
            CacheWarmth::Unused => CacheMultiples::UNCACHED,
            CacheWarmth::Warm | CacheWarmth::Cold => self.multiples,
        }
    }
}

impl EconomyBalance {
    /// Whether a compaction now saves more than it costs.
    pub fn pays(&self) -> bool {
        let EconomyNumbers { history, view, .. } = self.numbers;
        let is_enough = view < history && (history - view).0 as f64 >= self.least_less;
        is_enough && self.saving > 0.0 && self.numbers.further_requests > self.break_even
    }
}

impl fmt::Display for EconomyBalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EconomyNumbers {
            history,
            view,
            warmth,
            further_requests,
            ..
        } = self.numbers;
        let CacheMultiples { read, write } = self.numbers.effective();
        let pays = if self.pays() { "pays" } else { "does not pay" };
        write!(
            f,
            "a compaction {pays}: n* = {:.1}, n = {further_requests:.0} expected requests ({} cache, read \
             {read:.2}, write {write:.2}, {history} → {view} tokens)",
            self.break_even,
            warmth.as_str(),
        )
    }
}

/// Adds to a decision what the price of cached prompts says. What a threshold decided stays decided.
pub fn decide_economy(
    decision: TriggerDecision,
    mode: EconomyMode,
    numbers: Option<EconomyNumbers>,
) -> TriggerDecision {
    let Some(numbers) = numbers.filter(|_| mode != EconomyMode::Off) else {
        return decision;
    };
    let balance = numbers.weigh();
    let acts = mode == EconomyMode::Act && balance.pays() && !decision.verdict.is_now();
    if !acts {
        let reason = format!("{}; {balance}", decision.reason);
        return TriggerDecision { reason, ..decision };
    }
    TriggerDecision {
        verdict: Verdict::CompactNow,
        reason: balance.to_string(),
        cause: Some(CompactionCause::Economy),
        ..decision
    }
}

#[cfg(test)]
mod tests;
