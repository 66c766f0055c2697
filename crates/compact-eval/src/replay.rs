//! What a policy would have done to a recorded session: compactions, pressure, tokens, cost, and how
//! much of what the agent named next its view still carried.

use std::collections::HashSet;

use compact_core::message::{Conversation, Entry};
use compact_core::token::Tokens;
use compact_core::view::{View, ViewItem};
use compact_core::window::ModelPrice;
use compact_core::wire::WireRules;
use serde::Serialize;

use crate::compaction::EvalError;
use crate::fact_check::entries_text;
use crate::interval::mean_or_zero;
use crate::metric::entity::{MinDigits, find_entities};
use crate::play::{CallSnapshot, PlaySettings, PlayedCall, play_conversation};

/// A played session.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Each call.
    pub calls: Vec<PlayedCall>,
    /// For each call, the share of the things that the answer names and that were named before, that
    /// stood in the view; `None` where it names none.
    pub remembered: Vec<Option<f64>>,
    /// The window it was played in.
    pub window: Tokens,
}

/// The sums of one or more played sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Calls of the model.
    pub calls: usize,
    /// Compactions.
    pub compactions: usize,
    /// Compactions that failed when they were due.
    pub failures: usize,
    /// Requests larger than the window, which a provider refuses.
    pub overflows: usize,
    /// The highest share of the window, before a compaction lowered it.
    pub peak_pressure: f64,
    /// Tokens sent.
    pub tokens_sent: u64,
    /// Of those, tokens that the request before had begun with too.
    pub cached_tokens: u64,
    /// Tokens answered.
    pub tokens_answered: u64,
    /// US dollars, where the model's price is known.
    pub cost: Option<f64>,
    /// The mean retention that the receipts prove.
    pub retention: Option<f64>,
    /// The lowest.
    pub lowest_retention: Option<f64>,
    /// The mean share of what the agent named again that its view still carried, over the calls
    /// after the first compaction.
    pub remembered: Option<f64>,
}

/// Plays a conversation under some terms.
pub fn replay_conversation(
    conversation: &Conversation,
    rules: &WireRules,
    terms: &PlaySettings,
) -> Result<Replay, EvalError> {
    let mut memory = EntityMemory::default();
    let mut remembered = Vec::new();
    let played = play_conversation(conversation, rules, terms, |moment| {
        remembered.push(memory.score_call(moment));
    })?;
    Ok(Replay {
        calls: played.calls,
        remembered,
        window: terms.window,
    })
}

/// Which entities were named, and which of them the view shows.
#[derive(Default)]
struct EntityMemory {
    /// The entities of each entry said.
    named: Vec<Vec<String>>,
    known: HashSet<String>,
    shown: HashSet<String>,
    /// How many items of the view `shown` covers.
    items: usize,
}

impl EntityMemory {
    fn score_call(&mut self, moment: &CallSnapshot<'_>) -> Option<f64> {
        for entry in moment.said.entries.iter().skip(self.named.len()) {
            let names = entity_names(entry);
            self.known.extend(names.iter().cloned());
            self.named.push(names);
        }
        self.update_shown(moment.view, moment);
        let answer: HashSet<String> = moment.answer.iter().flat_map(entity_names).collect();
        let again: Vec<&String> = answer.iter().filter(|n| self.known.contains(*n)).collect();
        let there = again
            .iter()
            .filter(|name| self.shown.contains(**name))
            .count();
        (!again.is_empty()).then(|| there as f64 / again.len() as f64)
    }

    /// A view grows at its end until a compaction makes a new one.
    fn update_shown(&mut self, view: &View, moment: &CallSnapshot<'_>) {
        if moment.call.receipt.is_some() || view.items.len() < self.items {
            self.shown.clear();
            self.items = 0;
        }
        for item in view.items.iter().skip(self.items) {
            match item {
                ViewItem::Kept { entry } => {
                    let names = self.named.get(*entry).into_iter().flatten();
                    self.shown.extend(names.cloned());
                }
                other => self
                    .shown
                    .extend(other.shown_entry(moment.said).iter().flat_map(entity_names)),
            }
        }
        self.items = view.items.len();
    }
}

fn entity_names(entry: &Entry) -> Vec<String> {
    let text = entries_text(std::slice::from_ref(entry));
    let found = find_entities(&text, MinDigits::default()).into_iter();
    found.map(|(name, _)| name).collect()
}

impl Replay {
    /// The sums.
    pub fn totals(&self, price: Option<&ModelPrice>) -> Totals {
        let calls = || self.calls.iter();
        let receipts = || calls().filter_map(|call| call.receipt.as_ref());
        let scores: Vec<f64> = receipts().map(|r| r.retention.score).collect();
        let compacted = calls().position(|call| call.receipt.is_some());
        let after = self.remembered.iter().skip(compacted.unwrap_or(usize::MAX));
        let after: Vec<f64> = after.copied().flatten().collect();
        Totals {
            calls: self.calls.len(),
            compactions: receipts().count(),
            failures: calls().filter(|call| call.failure.is_some()).count(),
            overflows: calls().filter(|call| call.sent > self.window).count(),
            peak_pressure: calls().map(|call| call.pressure).fold(0.0, f64::max),
            tokens_sent: calls().map(|call| call.sent.0).sum(),
            cached_tokens: calls().map(|call| call.cached.0).sum(),
            tokens_answered: calls().map(|call| call.answered.0).sum(),
            cost: price.map(|price| calls().map(|call| call_cost(call, price)).sum()),
            retention: mean_or_none(&scores),
            lowest_retention: scores.iter().copied().reduce(f64::min),
            remembered: mean_or_none(&after),
        }
    }
}

fn mean_or_none(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| mean_or_zero(numbers.iter().copied()))
}

/// What a call costs: its known beginning is read from the cache, the rest is written to it where
/// writing has a price of its own.
pub fn call_cost(call: &PlayedCall, price: &ModelPrice) -> f64 {
    let new = (call.sent - call.cached).0 as f64;
    let read = call.cached.0 as f64 * price.cache_read.unwrap_or(price.input);
    let written = new * price.cache_write.unwrap_or(price.input);
    (read + written + call.answered.0 as f64 * price.output) / 1e6
}

impl Totals {
    /// The sums of both; shares are weighed by their compactions, or calls.
    pub fn merge(&self, other: &Totals) -> Totals {
        let weigh = |a: Option<f64>, n: usize, b: Option<f64>, m: usize| match (a, b) {
            (Some(a), Some(b)) => Some((a * n as f64 + b * m as f64) / (n + m).max(1) as f64),
            (one, none) => one.or(none),
        };
        let lower = [self.lowest_retention, other.lowest_retention];
        Totals {
            calls: self.calls + other.calls,
            compactions: self.compactions + other.compactions,
            failures: self.failures + other.failures,
            overflows: self.overflows + other.overflows,
            peak_pressure: self.peak_pressure.max(other.peak_pressure),
            tokens_sent: self.tokens_sent + other.tokens_sent,
            cached_tokens: self.cached_tokens + other.cached_tokens,
            tokens_answered: self.tokens_answered + other.tokens_answered,
            cost: self.cost.zip(other.cost).map(|(a, b)| a + b),
            retention: weigh(
                self.retention,
                self.compactions,
                other.retention,
                other.compactions,
            ),
            lowest_retention: lower.into_iter().flatten().reduce(f64::min),
            remembered: weigh(self.remembered, self.calls, other.remembered, other.calls),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use compact_core::policy::Policy;
    use compact_core::token::Chars4;
    use compact_core::wire::WireRules;

    use super::*;
    use crate::fact_check;

    fn played(policy: Policy, window: u64) -> Replay {
        let session = fact_check::Scenario::Support.generate(1);
        let parsed = fact_check::parse_session(&session).unwrap();
        let terms = PlaySettings {
            policy,
            window: Tokens(window),
            estimator: Arc::new(Chars4),
        };
        replay_conversation(&parsed.conversation, &WireRules::LENIENT, &terms).unwrap()
    }

    #[test]
    fn a_window_that_holds_everything_is_never_compacted() {
        let replay = played(Policy::default(), 1_000_000);
        let totals = replay.totals(None);
        assert_eq!(
            (totals.compactions, totals.overflows, totals.failures),
            (0, 0, 0)
        );
        assert!(
            replay
                .remembered
                .iter()
                .flatten()
                .all(|share| *share == 1.0)
        );
        // Each request begins with the whole request before it.
        let pairs = replay.calls.windows(2);
        assert!(pairs.clone().count() > 10);
        assert!(pairs.into_iter().all(|pair| pair[1].cached == pair[0].sent));
    }

    #[test]
    fn a_small_window_is_compacted_and_never_overflows() {
        let replay = played(Policy::default(), 8_000);
        let totals = replay.totals(None);
        assert!(totals.compactions >= 3, "{totals:?}");
        assert_eq!((totals.overflows, totals.failures), (0, 0), "{totals:?}");
        assert!(totals.peak_pressure <= 1.0, "{totals:?}");
        assert!(totals.retention.is_some() && totals.remembered.is_some());
    }

    #[test]
    fn without_compaction_a_small_window_overflows() {
        let never = Policy {
            trigger_pct: 1.1,
            ..Policy::default()
        };
        let totals = played(never, 8_000).totals(None);
        assert_eq!(totals.compactions, 0);
        assert!(totals.overflows > 0 && totals.peak_pressure > 1.0);
    }

    #[test]
    fn cached_tokens_are_read_and_new_ones_written() {
        let call = PlayedCall {
            entries: 0,
            pressure: 0.0,
            sent: Tokens(3_000_000),
            cached: Tokens(1_000_000),
            answered: Tokens(500_000),
            receipt: None,
            failure: None,
        };
        let price = |cache_read, cache_write| ModelPrice {
            input: 2.0,
            output: 10.0,
            cache_read,
            cache_write,
        };
        assert_eq!(
            call_cost(&call, &price(Some(0.5), Some(2.5))),
            0.5 + 5.0 + 5.0
        );
        assert_eq!(call_cost(&call, &price(None, None)), 2.0 + 4.0 + 5.0);
    }
}
