//! *Future reference*: what an agent really named after a cut, looked for in what a method kept of
//! the part before it. No model is asked, and the answer is the same on every machine.
//!
//! A session is a list of events: who, and what text. It is cut; of the entities that the agent
//! writes after the cut, those that occurred before it are *needed*. *strict* counts only those that
//! nobody handed back after the cut, so that the agent had to remember them. *bound* asks more: the
//! entity must still stand among the words that gave it its meaning, which a bare list of
//! identifiers does not give. Tokens are code points by four, rounded up.

pub mod need;
pub mod score;
#[cfg(test)]
mod tests;

use compact_runtime::replay::entity::{ClassedEntity, MinDigits, find_entities};

use crate::text::count_tokens;

/// The author of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventVoice {
    /// The host's instructions.
    System,
    /// The user's words.
    User,
    /// The model's words.
    Assistant,
    /// A tool call of the model: its name and arguments.
    Call,
    /// What a tool answered.
    Result,
    /// A summary that the agent itself wrote when it compacted.
    Summary,
    /// The place of such a compaction. It has no text in the context.
    Boundary,
}

impl EventVoice {
    /// Returns true for what the model writes.
    pub fn is_agent(self) -> bool {
        matches!(self, EventVoice::Assistant | EventVoice::Call)
    }
}

/// A text of a session and its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricEvent {
    /// The author of the text.
    pub voice: EventVoice,
    /// The text itself.
    pub text: String,
}

impl MetricEvent {
    /// Makes an event from its author and text.
    pub fn new(voice: EventVoice, text: impl Into<String>) -> MetricEvent {
        let text = text.into();
        MetricEvent { voice, text }
    }
}

/// A session with what the metric knows of each event.
#[derive(Clone, Debug)]
pub struct MetricSession {
    /// The events in order.
    pub events: Vec<MetricEvent>,
    /// The entities of each.
    pub entities: Vec<Vec<ClassedEntity>>,
    /// The tokens of each.
    pub tokens: Vec<usize>,
}

impl MetricSession {
    /// Reads the entities of every event.
    pub fn new(events: Vec<MetricEvent>, min_digits: MinDigits) -> MetricSession {
        let spoken = |e: &&MetricEvent| e.voice != EventVoice::Boundary;
        let of = |e: &MetricEvent| match spoken(&e) {
            true => (find_entities(&e.text, min_digits), count_tokens(&e.text)),
            false => (Vec::new(), 0),
        };
        let (entities, tokens) = events.iter().map(of).unzip();
        MetricSession {
            events,
            entities,
            tokens,
        }
    }

    /// Returns the tokens of all events.
    pub fn total_tokens(&self) -> usize {
        self.tokens.iter().sum()
    }

    /// Returns the first event after so large a share of the tokens; never between a call and its result.
    pub fn cut_index(&self, share: f64) -> usize {
        let goal = self.total_tokens() as f64 * share;
        let mut sum = 0;
        let reached = self.tokens.iter().position(|tokens| {
            sum += tokens;
            sum as f64 >= goal
        });
        let Some(at) = reached else {
            return self.events.len();
        };
        let rest = self.events.get(at + 1..).unwrap_or_default();
        at + 1
            + rest
                .iter()
                .take_while(|e| e.voice == EventVoice::Result)
                .count()
    }
}
