//! The answer keys of the example sessions, each in a window of its own size: what the runtime still
//! shows of the planted facts when the session fills its window.
//!
//! Once played call by call, as an agent would, and once handed over at once, which is harder: then one
//! compaction has to tell everything.

use compact_core::message::Conversation;
use compact_core::token::{Chars4, Estimator, EstimatorExt, Tokens, Units};
use compact_runtime::parallel::map_on_all_cores;
use compact_runtime::replay::entries_text;
use compact_runtime::replay::play::{CallSnapshot, play_conversation, view_at_once};
use serde::Serialize;

use crate::compaction::{EvalEngine, EvalError, block_on};
use crate::example;
use crate::fact_check::parse_session;
use crate::generate::{GeneratedSession, PlantedFact};

/// How a session fills its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayMode {
    /// The session is played call by call.
    Played,
    /// The whole session is passed in one call.
    AtOnce,
}

/// The facts of an answer key that were found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnswerKeyResult {
    /// The kind of session.
    pub session: &'static str,
    /// How it was told.
    pub manner: PlayMode,
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

impl AnswerKeyResult {
    /// Returns the share that was found.
    pub fn found_share(&self) -> f64 {
        self.found as f64 / self.asked.max(1) as f64
    }
}

/// Looks for the facts of every example, told in both manners.
pub fn score_examples(engine: &EvalEngine) -> Result<Vec<AnswerKeyResult>, EvalError> {
    let names = ["coding", "support", "research"];
    let sessions: Vec<(&'static str, GeneratedSession)> =
        names.into_iter().zip(example::sessions()).collect();
    let cases: Vec<_> = sessions
        .iter()
        .flat_map(|s| [(s, PlayMode::Played), (s, PlayMode::AtOnce)])
        .collect();
    let found = map_on_all_cores(&cases, |((name, session), manner)| {
        score_session(name, session, *manner, engine)
    });
    found.into_iter().collect()
}

fn score_session(
    name: &'static str,
    session: &GeneratedSession,
    manner: PlayMode,
    engine: &EvalEngine,
) -> Result<AnswerKeyResult, EvalError> {
    let parsed = parse_session(session)?;
    let conversation = &parsed.conversation;
    let terms = engine.play_settings(conversation_tokens(conversation));
    let rules = parsed.document.rules();
    let mut shown = Vec::new();
    match manner {
        PlayMode::AtOnce => {
            let view = block_on(view_at_once(conversation, rules, &terms))?;
            shown = view.shown_entries(conversation);
        }
        PlayMode::Played => {
            let watch = |moment: &CallSnapshot<'_>| {
                shown = moment.view.shown_entries(moment.said);
                shown.extend(moment.answer.iter().cloned());
            };
            block_on(play_conversation(conversation, rules, &terms, watch))?;
        }
    }
    let text = entries_text(&shown);
    let facts = session.planted.facts.iter().filter(|f| f.is_live());
    let (found, lost): (Vec<&PlantedFact>, Vec<&PlantedFact>) =
        facts.partition(|fact| fact.is_in(&text));
    Ok(AnswerKeyResult {
        session: name,
        manner,
        window: terms.window.0,
        shown: Chars4
            .to_tokens(shown.iter().map(|e| Chars4.count_entry(e)).sum())
            .0,
        asked: found.len() + lost.len(),
        found: found.len(),
        lost: lost.iter().map(|fact| fact.id.clone()).collect(),
    })
}

fn conversation_tokens(conversation: &Conversation) -> Tokens {
    let entries = conversation.entries.iter().map(|e| Chars4.count_entry(e));
    let tools = conversation.tools.as_deref().unwrap_or_default();
    Chars4.to_tokens(entries.sum::<Units>() + Chars4.count_units(tools))
}

#[cfg(test)]
mod tests {
    use compact_core::policy::Policy;

    use super::*;

    #[test]
    fn each_example_keeps_nine_facts_in_ten_in_its_own_window() {
        let found = score_examples(&EvalEngine::new(Policy::default()).unwrap()).unwrap();
        assert_eq!(found.len(), 6);
        for found in &found {
            assert!(found.found_share() >= 0.9, "{found:?}");
            let filled = found.shown as f64 / found.window as f64;
            assert!((0.36..=0.75).contains(&filled), "{filled} {found:?}");
        }
    }
}
