//! No decay: what the first tenth of a session said, after many compactions and after one.
//!
//! A session is played forward in parts. Each part is added to the view of those before it and the
//! whole is compacted again, each time to the same budget. What the last view still carries of the
//! first tenth's facts is compared with one compaction of the whole session.

use compact_core::engine::{CompactionOutcome, Prior};
use compact_core::message::{Conversation, Entry};
use compact_core::token::Tokens;
use compact_runtime::parallel::map_on_all_cores;
use serde::Serialize;

use crate::compaction::{CompactionStep, EvalEngine, EvalError};
use crate::fact_check::{Scenario, ViewText, history_tokens, parse_session};
use crate::generate::{GeneratedSession, PlantedFact};
use crate::interval::{Interval, SessionScores};

/// How deep a fact may lie to belong to the beginning.
const BEGINNING: f64 = 0.1;

/// One kind of session at one budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecayResult {
    /// The kind of session.
    pub arc: Scenario,
    /// The budget as a share of the history.
    pub budget: f64,
    /// The fewest compactions of a session.
    pub compactions: usize,
    /// How many facts the beginnings hold.
    pub facts: usize,
    /// The share of them after one compaction of the whole.
    pub once: Interval,
    /// The share of them after all compactions.
    pub successive: Interval,
    /// The share kept by successive compactions over the share kept by one.
    pub ratio: f64,
}

/// Compares on so many sessions of each kind, each played in so many parts.
pub fn compare_compactions(
    engine: &EvalEngine,
    seeds: u64,
    budgets: &[f64],
    parts: usize,
) -> Result<Vec<DecayResult>, EvalError> {
    let mut lines = Vec::new();
    for arc in Scenario::ALL {
        let sessions: Vec<GeneratedSession> = (0..seeds).map(|seed| arc.generate(seed)).collect();
        for budget in budgets {
            let played =
                map_on_all_cores(&sessions, |s| DecayRun::measure(s, *budget, parts, engine));
            let played = played.into_iter().collect::<Result<Vec<_>, _>>()?;
            lines.extend(compare_runs(arc, *budget, &played));
        }
    }
    Ok(lines)
}

fn compare_runs(arc: Scenario, budget: f64, played: &[DecayRun]) -> Option<DecayResult> {
    let sample = |of: fn(&DecayRun) -> &Vec<f64>| -> SessionScores {
        played.iter().map(|p| of(p).clone()).collect()
    };
    let once = Interval::from_scores(&sample(|p| &p.once))?;
    let successive = Interval::from_scores(&sample(|p| &p.successive))?;
    Some(DecayResult {
        arc,
        budget,
        compactions: played.iter().map(|p| p.compactions).min().unwrap_or(0),
        facts: played.iter().map(|p| p.once.len()).sum(),
        ratio: successive.mean / once.mean.max(f64::MIN_POSITIVE),
        once,
        successive,
    })
}

/// One session, compacted once and many times.
struct DecayRun {
    compactions: usize,
    once: Vec<f64>,
    successive: Vec<f64>,
}

impl DecayRun {
    fn measure(
        session: &GeneratedSession,
        share: f64,
        parts: usize,
        engine: &EvalEngine,
    ) -> Result<DecayRun, EvalError> {
        let early = |fact: &&PlantedFact| fact.depth <= BEGINNING && fact.is_live();
        let facts: Vec<&PlantedFact> = session.planted.facts.iter().filter(early).collect();
        let found = |look: &ViewText| -> Vec<f64> {
            let there = facts.iter().map(|fact| fact.is_in(&look.view));
            there.map(|there| f64::from(u8::from(there))).collect()
        };
        let (last, compactions) = compact_repeatedly(session, share, parts, engine)?;
        Ok(DecayRun {
            compactions,
            once: found(&ViewText::from_session(session, share, engine)?),
            successive: found(&last),
        })
    }
}

/// Returns the last view of a session that is compacted after each part, and how often it was.
fn compact_repeatedly(
    session: &GeneratedSession,
    share: f64,
    parts: usize,
    engine: &EvalEngine,
) -> Result<(ViewText, usize), EvalError> {
    let parsed = parse_session(session)?;
    let budget = Tokens((history_tokens(&parsed.conversation) as f64 * share) as u64);
    let mut live = Conversation {
        entries: Vec::new(),
        ..parsed.conversation.clone()
    };
    let mut prior: Option<Prior> = None;
    let mut compactions = 0;
    for part in split(&parsed.conversation.entries, parts) {
        live.entries.extend_from_slice(part);
        let step = CompactionStep {
            conversation: &live,
            rules: parsed.document.rules(),
            prior: prior.as_ref(),
            budget,
        };
        let (outcome, next) = engine.compact_step(&step)?;
        if let CompactionOutcome::Compacted(made) = outcome {
            live.entries = made.view.shown_entries(&live);
            prior = next;
            compactions += 1;
        }
    }
    Ok((ViewText::from_entries(&live.entries), compactions))
}

/// Splits entries into about equal parts, none of which begins with the answer to a call in the part
/// before.
fn split(entries: &[Entry], parts: usize) -> Vec<&[Entry]> {
    let size = entries.len().div_ceil(parts.max(1)).max(1);
    let mut out = Vec::new();
    let mut rest = entries;
    while !rest.is_empty() {
        let behind = rest.iter().skip(size);
        let end = (size
            + behind
                .take_while(|e| e.has_results() || e.meta.continues)
                .count())
        .min(rest.len());
        let (part, next) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        out.push(part);
        rest = next;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_and_keep_results_with_their_calls() {
        let session = Scenario::Support.generate(1);
        let entries = parse_session(&session).unwrap().conversation.entries;
        let parts = split(&entries, 14);
        assert!(parts.len() >= 12, "{}", parts.len());
        assert_eq!(parts.concat(), entries);
        assert!(
            parts
                .iter()
                .all(|part| part.first().is_some_and(|e| !e.has_results()))
        );
    }

    #[test]
    fn a_session_is_compacted_ten_times() {
        let engine = EvalEngine::new(Default::default()).unwrap();
        let played = DecayRun::measure(&Scenario::Support.generate(1), 0.1, 14, &engine).unwrap();
        assert!(played.compactions >= 10, "{}", played.compactions);
        assert_eq!(played.once.len(), played.successive.len());
        assert!(!played.once.is_empty());
    }
}
