//! What a policy would have done to a recorded session: compactions, pressure, tokens, cost, and how
//! much of what the agent named next its view still carried.
//!
//! A session is played over stores in memory and forgotten; nothing of it is kept, and no model is asked.

pub mod entity;
pub mod play;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use compact_core::message::{Block, Conversation, Entry};
use compact_core::token::Tokens;
use compact_core::view::{View, ViewItem};
use compact_core::window::ModelPrice;
use compact_core::wire::WireRules;
use serde::Serialize;

use crate::error::Error;
use entity::{MinDigits, find_entities};
use play::{CallSnapshot, PlaySettings, PlayedCall, play_conversation};

/// A session that was played forward.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The calls in order.
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
    /// The number of compactions.
    pub compactions: usize,
    /// Compactions that failed when they were due.
    pub failures: usize,
    /// Requests larger than the window, which a provider refuses.
    pub overflows: usize,
    /// The highest share of the window, before a compaction lowered it.
    pub peak_pressure: f64,
    /// The tokens of all requests.
    pub tokens_sent: u64,
    /// Of those, tokens that the request before had begun with too.
    pub cached_tokens: u64,
    /// The tokens of all answers.
    pub tokens_answered: u64,
    /// US dollars, where the model's price is known.
    pub cost: Option<f64>,
    /// The mean retention that the receipts prove.
    pub retention: Option<f64>,
    /// The lowest retention of a compaction.
    pub lowest_retention: Option<f64>,
    /// The mean share of what the agent named again that its view still carried, over the calls
    /// after the first compaction.
    pub remembered: Option<f64>,
}

/// Plays a conversation under some terms.
pub async fn replay_conversation(
    conversation: &Conversation,
    rules: &WireRules,
    terms: &PlaySettings,
) -> Result<Replay, Error> {
    let mut memory = EntityMemory::default();
    let mut remembered = Vec::new();
    let played = play_conversation(conversation, rules, terms, |moment| {
        remembered.push(memory.score_call(moment));
    })
    .await?;
    Ok(Replay {
        calls: played.calls,
        remembered,
        window: terms.window,
    })
}

/// The entities that were named so far, and those that the view shows.
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

    /// Updates what was shown: a view grows at its end until a compaction makes a new one.
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

/// Returns the words of some entries as a reader meets them: all but reasoning, a line between two parts.
pub fn entries_text(entries: &[Entry]) -> String {
    let blocks = entries.iter().flat_map(|entry| &entry.blocks);
    let parts = blocks
        .filter(|block| !matches!(block, Block::Reasoning { .. }))
        .flat_map(Block::text_parts)
        .filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

fn entity_names(entry: &Entry) -> Vec<String> {
    let text = entries_text(std::slice::from_ref(entry));
    let found = find_entities(&text, MinDigits::default()).into_iter();
    found.map(|(name, _)| name).collect()
}

impl Replay {
    /// Sums up all calls; without a price, without cost.
    pub fn totals(&self, price: Option<&ModelPrice>) -> Totals {
        let calls = || self.calls.iter();
        let receipts = || calls().filter_map(|call| call.receipt.as_ref());
        let scores: Vec<f64> = receipts().filter_map(|r| r.retention.score).collect();
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
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// Returns what a call costs: its known beginning is read from the cache, the rest is written to it where
/// writing has a price of its own.
pub fn call_cost(call: &PlayedCall, price: &ModelPrice) -> f64 {
    let new = (call.sent - call.cached).0 as f64;
    let read = call.cached.0 as f64 * price.cache_read.unwrap_or(price.input);
    let written = new * price.cache_write.unwrap_or(price.input);
    (read + written + call.answered.0 as f64 * price.output) / 1e6
}

impl Totals {
    /// Returns the sums of both; shares are weighed by their compactions, or calls.
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
