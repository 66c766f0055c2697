//! The answer keys of the example sessions, each in a window of its own size: what the runtime still
//! shows of the planted facts when the session fills its window.
//!
//! Once played call by call, as an agent would, and once handed over at once, which is harder: then one
//! compaction has to tell everything.

use std::sync::Arc;

use compact_core::message::Conversation;
use compact_core::policy::Policy;
use compact_core::token::{Chars4, Estimator, EstimatorExt, Tokens, Units};
use serde::Serialize;

use crate::compaction::EngineError;
use crate::example;
use crate::generate::{Fact, Session};
use crate::generated::{read, text_of};
use crate::parallel;
use crate::play::{Terms, at_once, play};

/// How a session came to fill its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// Call by call.
    Played,
    /// In one call.
    AtOnce,
}

/// What was found of an answer key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The kind of session.
    pub session: &'static str,
    /// How it was told.
    pub manner: Manner,
    /// The window: what the whole session takes.
    pub window: u64,
    /// Tokens of the view.
    pub shown: u64,
    /// Facts of the key that are in force.
    pub asked: usize,
    /// Those that the view carries.
    pub found: usize,
    /// Names of the others.
    pub lost: Vec<String>,
}

impl Found {
    /// The share that was found.
    pub fn share(&self) -> f64 {
        self.found as f64 / self.asked.max(1) as f64
    }
}

/// Looks for the facts of every example, told in both manners.
pub fn run(policy: &Policy) -> Result<Vec<Found>, EngineError> {
    let names = ["coding", "support", "research"];
    let sessions: Vec<(&'static str, Session)> =
        names.into_iter().zip(example::sessions()).collect();
    let cases: Vec<_> = sessions
        .iter()
        .flat_map(|s| [(s, Manner::Played), (s, Manner::AtOnce)])
        .collect();
    let found = parallel::map(&cases, |((name, session), manner)| {
        look(name, session, *manner, policy)
    });
    found.into_iter().collect()
}

fn look(
    name: &'static str,
    session: &Session,
    manner: Manner,
    policy: &Policy,
) -> Result<Found, EngineError> {
    let parsed = read(session)?;
    let conversation = &parsed.conversation;
    let terms = Terms {
        policy: policy.clone(),
        window: size(conversation),
        estimator: Arc::new(Chars4),
    };
    let rules = parsed.document.rules();
    let mut shown = Vec::new();
    match manner {
        Manner::AtOnce => shown = at_once(conversation, rules, &terms)?.entries(conversation),
        Manner::Played => {
            play(conversation, rules, &terms, |moment| {
                shown = moment.view.entries(moment.said);
                shown.extend(moment.answer.iter().cloned());
            })?;
        }
    }
    let text = text_of(&shown);
    let facts = session.planted.facts.iter().filter(|f| f.is_live());
    let (found, lost): (Vec<&Fact>, Vec<&Fact>) = facts.partition(|fact| fact.is_in(&text));
    Ok(Found {
        session: name,
        manner,
        window: terms.window.0,
        shown: Chars4.tokens(shown.iter().map(|e| Chars4.entry(e)).sum()).0,
        asked: found.len() + lost.len(),
        found: found.len(),
        lost: lost.iter().map(|fact| fact.id.clone()).collect(),
    })
}

fn size(conversation: &Conversation) -> Tokens {
    let entries = conversation.entries.iter().map(|e| Chars4.entry(e));
    let tools = conversation.tools.as_deref().unwrap_or_default();
    Chars4.tokens(entries.sum::<Units>() + Chars4.units(tools))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_example_keeps_nine_facts_in_ten_in_its_own_window() {
        let found = run(&Policy::default()).unwrap();
        assert_eq!(found.len(), 6);
        for found in &found {
            assert!(found.share() >= 0.9, "{found:?}");
            let filled = found.shown as f64 / found.window as f64;
            assert!((0.36..=0.75).contains(&filled), "{filled} {found:?}");
        }
    }
}
