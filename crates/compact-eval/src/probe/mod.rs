//! Probes: does a compacted context still answer what the agent needs next?
//!
//! A probe is a question about a session, whose answer has elements; each element has *needles*, any of
//! which in a text shows that the element is there. Sessions are cut where the agent compacted, or anywhere
//! else; what stands before the cut is compacted, in the transcript's own format. No model answers: needles
//! show that an answer is present, not that a reader would find it.

mod record;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use compact_runtime::parallel::map_on_all_cores;
use compact_runtime::replay::entity::{MinDigits, find_entities};
use serde::Serialize;

pub(crate) use record::live_events;
pub use record::{Probe, ProbeError, ProbeSession, ProbeSet};

use crate::baseline;
use crate::compaction::{EvalEngine, EvalError};
use crate::method::Method;
use crate::text::count_tokens;

/// The size of what a method may keep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeBudget {
    /// The size that the set records for the session.
    Recorded,
    /// A share of the session's tokens.
    Share(f64),
}

/// One method on one session at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeResult {
    /// The method that was measured.
    pub method: Method,
    /// The size that it was given.
    pub budget: ProbeBudget,
    /// The session's name.
    pub session: String,
    /// The budget in tokens.
    pub allowed: usize,
    /// Tokens of the method's text; `None` where it failed.
    pub kept: Option<usize>,
    /// For each probe its kind and the share of its elements that was found.
    #[serde(skip)]
    pub found: Vec<(String, f64)>,
    /// The mean of those shares.
    pub score: f64,
}

/// One method over all sessions at one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeMean {
    /// The method that was measured.
    pub method: Method,
    /// The size that it was given.
    pub budget: ProbeBudget,
    /// The mean over sessions, each with the same weight.
    pub score: f64,
    /// The score of each session.
    pub sessions: BTreeMap<String, f64>,
    /// The mean over the probes of each kind.
    pub kinds: BTreeMap<String, f64>,
}

/// Measures methods on every session of a set at every size. A method that a session does not have (the
/// host's own summary) gives no row.
pub fn measure_probes(
    set: &ProbeSet,
    methods: &[Method],
    budgets: &[ProbeBudget],
    engine: &EvalEngine,
) -> Vec<ProbeResult> {
    let mut asked = Vec::new();
    for budget in budgets {
        for method in methods {
            asked.extend(set.sessions.iter().map(|s| (s, *method, *budget)));
        }
    }
    let rows = map_on_all_cores(&asked, |(session, method, budget)| {
        measure_session(session, *method, *budget, engine)
    });
    rows.into_iter().flatten().collect()
}

/// Returns the means of each method at each size, in the order of the rows.
pub fn aggregate_probes(rows: &[ProbeResult]) -> Vec<ProbeMean> {
    let mut groups: Vec<(Method, ProbeBudget, Vec<&ProbeResult>)> = Vec::new();
    for row in rows {
        let same = |(m, b, _): &&mut (Method, ProbeBudget, _)| *m == row.method && *b == row.budget;
        match groups.iter_mut().find(same) {
            Some((_, _, members)) => members.push(row),
            None => groups.push((row.method, row.budget, vec![row])),
        }
    }
    let groups = groups.into_iter();
    groups
        .map(|(method, budget, members)| ProbeMean {
            method,
            budget,
            score: mean(members.iter().map(|row| row.score)),
            sessions: members
                .iter()
                .map(|row| (row.session.clone(), row.score))
                .collect(),
            kinds: kind_means(&members),
        })
        .collect()
}

fn kind_means(rows: &[&ProbeResult]) -> BTreeMap<String, f64> {
    let mut shares: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (kind, share) in rows.iter().flat_map(|row| &row.found) {
        shares.entry(kind.clone()).or_default().push(*share);
    }
    let shares = shares.into_iter();
    shares
        .map(|(kind, shares)| (kind, mean(shares.into_iter())))
        .collect()
}

fn measure_session(
    session: &ProbeSession,
    method: Method,
    budget: ProbeBudget,
    engine: &EvalEngine,
) -> Option<ProbeResult> {
    let allowed = session.allowed_tokens(budget);
    let text = keep(session, method, budget, engine)?;
    let folded = fold(text.as_deref().unwrap_or_default());
    let probes = session.probes.iter();
    let found: Vec<(String, f64)> = probes
        .filter_map(|probe| Some((probe.kind.clone(), probe.found_share(&folded)?)))
        .collect();
    Some(ProbeResult {
        method,
        budget,
        session: session.id.clone(),
        allowed,
        kept: text.ok().map(|text| count_tokens(&text)),
        score: mean(found.iter().map(|(_, share)| *share)),
        found,
    })
}

/// Returns what a method keeps of a session; `None` for a method that has nothing to say about it.
fn keep(
    session: &ProbeSession,
    method: Method,
    budget: ProbeBudget,
    engine: &EvalEngine,
) -> Option<Result<String, EvalError>> {
    let (events, allowed) = (&session.events, session.allowed_tokens(budget));
    Some(Ok(match method {
        Method::Compact => return Some(engine.compact_transcript(&session.transcript, allowed)),
        Method::CompactLlm => return Some(engine.compact_with_prose(events, allowed)),
        Method::KeepLast => baseline::keep_last(baseline::event_texts(events), allowed),
        Method::HeadTail => baseline::head_tail(events, allowed),
        Method::TrimTools => baseline::trim_tools(events, allowed),
        Method::EntityLedger => {
            let digits = MinDigits::default();
            let named = events.iter().map(|e| find_entities(&e.text, digits));
            let named: Vec<_> = named.collect();
            let named: Vec<_> = named.iter().map(Vec::as_slice).collect();
            baseline::identifier_list(events, &named, allowed, digits)
        }
        // The host's summary has a size of its own.
        Method::Real if budget == ProbeBudget::Recorded => session.host_summary.clone()?,
        Method::Real | Method::Oracle => return None,
        Method::Whole => baseline::keep_all(events),
    }))
}

/// Folds a text for the search: lower case, once with its blanks run together and once as it is.
fn fold(text: &str) -> String {
    let text = text.to_lowercase();
    let joined: Vec<&str> = text.split_whitespace().collect();
    format!("{}\n{text}", joined.join(" "))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}
