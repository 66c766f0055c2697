//! No decay: what the first tenth of a session said, after many compactions and after one.
//!
//! A session is played forward in parts. Each part is added to the view of those before it and the
//! whole is compacted again, each time to the same budget. What the last view still carries of the
//! first tenth's facts is compared with one compaction of the whole session.

use compact_core::engine::{Outcome, Prior};
use compact_core::message::{Conversation, Entry};
use compact_core::token::Tokens;
use serde::Serialize;

use crate::compaction::{Engine, EngineError, Step};
use crate::generate::{Fact, Session};
use crate::generated::{Arc, Look, history, read};
use crate::interval::{Interval, Sample};
use crate::parallel;

/// How deep a fact may lie to belong to the beginning.
const BEGINNING: f64 = 0.1;

/// One kind of session at one budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The kind of session.
    pub arc: Arc,
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
    /// Successive by once.
    pub ratio: f64,
}

/// Compares on so many sessions of each kind, each played in so many parts.
pub fn run(
    engine: &Engine,
    seeds: u64,
    budgets: &[f64],
    parts: usize,
) -> Result<Vec<Line>, EngineError> {
    let mut lines = Vec::new();
    for arc in Arc::ALL {
        let sessions: Vec<Session> = (0..seeds).map(|seed| arc.session(seed)).collect();
        for budget in budgets {
            let played = parallel::map(&sessions, |s| Played::of(s, *budget, parts, engine));
            let played = played.into_iter().collect::<Result<Vec<_>, _>>()?;
            lines.extend(line(arc, *budget, &played));
        }
    }
    Ok(lines)
}

fn line(arc: Arc, budget: f64, played: &[Played]) -> Option<Line> {
    let sample =
        |of: fn(&Played) -> &Vec<f64>| -> Sample { played.iter().map(|p| of(p).clone()).collect() };
    let once = Interval::of(&sample(|p| &p.once))?;
    let successive = Interval::of(&sample(|p| &p.successive))?;
    Some(Line {
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
struct Played {
    compactions: usize,
    once: Vec<f64>,
    successive: Vec<f64>,
}

impl Played {
    fn of(
        session: &Session,
        share: f64,
        parts: usize,
        engine: &Engine,
    ) -> Result<Played, EngineError> {
        let early = |fact: &&Fact| fact.depth <= BEGINNING && fact.is_live();
        let facts: Vec<&Fact> = session.planted.facts.iter().filter(early).collect();
        let found = |look: &Look| -> Vec<f64> {
            let there = facts.iter().map(|fact| fact.is_in(&look.view));
            there.map(|there| f64::from(u8::from(there))).collect()
        };
        let (last, compactions) = successive(session, share, parts, engine)?;
        Ok(Played {
            compactions,
            once: found(&Look::at(session, share, engine)?),
            successive: found(&last),
        })
    }
}

/// The last view of a session that is compacted after each part, and how often it was.
fn successive(
    session: &Session,
    share: f64,
    parts: usize,
    engine: &Engine,
) -> Result<(Look, usize), EngineError> {
    let parsed = read(session)?;
    let budget = Tokens((history(&parsed.conversation) as f64 * share) as u64);
    let mut live = Conversation {
        entries: Vec::new(),
        ..parsed.conversation.clone()
    };
    let mut prior: Option<Prior> = None;
    let mut compactions = 0;
    for part in split(&parsed.conversation.entries, parts) {
        live.entries.extend_from_slice(part);
        let step = Step {
            conversation: &live,
            rules: parsed.document.rules(),
            prior: prior.as_ref(),
            budget,
        };
        let (outcome, next) = engine.step(&step)?;
        if let Outcome::Compacted(made) = outcome {
            live.entries = made.view.entries(&live);
            prior = next;
            compactions += 1;
        }
    }
    Ok((Look::of(&live.entries), compactions))
}

/// About equal parts; none begins with the answer to a call of the part before.
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
        let session = Arc::Support.session(1);
        let entries = read(&session).unwrap().conversation.entries;
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
        let engine = Engine::new(Default::default()).unwrap();
        let played = Played::of(&Arc::Support.session(1), 0.1, 14, &engine).unwrap();
        assert!(played.compactions >= 10, "{}", played.compactions);
        assert_eq!(played.once.len(), played.successive.len());
        assert!(!played.once.is_empty());
    }
}
