//! Rows summed up: one line per dataset, method and budget, and one over all datasets.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::interval::{Interval, SessionScores};
use crate::method::Method;
use crate::metric::score::RetentionScore;
use crate::retention::CutResult;

/// The name of the line over all datasets.
pub const ALL_DATASETS: &str = "ALL";

/// One method at one budget on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodResult {
    /// The name of the dataset.
    pub dataset: String,
    /// The method that was measured.
    pub method: Method,
    /// The budget as a share of the prefix; `None` for the size of the real summary.
    pub budget: Option<f64>,
    /// How many sessions have a cut that counts.
    pub sessions: usize,
    /// How many cuts count.
    pub cuts: usize,
    /// How often the method made nothing.
    pub failed: usize,
    /// How often it made more than it was allowed.
    pub over_budget: usize,
    /// The mean tokens of what it made.
    pub tokens: f64,
    /// Of what the agent named after the cut, the share that is still there.
    pub all: Option<Interval>,
    /// Of what nobody handed back.
    pub strict: Option<Interval>,
    /// Of what nobody handed back, with its context.
    pub bound: Option<Interval>,
}

/// The datasets' rows by name.
pub type MeasuredDatasets = Vec<(String, Vec<CutResult>)>;

/// Sums up: the lines of each dataset, then those over all when there are several.
pub fn aggregate_results(measured: &MeasuredDatasets) -> Vec<MethodResult> {
    let mut lines = Vec::new();
    for (name, rows) in measured {
        lines.extend(
            group_rows(rows)
                .values()
                .map(|rows| aggregate_group(name, &[rows])),
        );
    }
    if measured.len() > 1 {
        lines.extend(aggregate_all(measured));
    }
    lines
}

/// A budget and a method, in the order of a table.
type GroupKey = (u64, Method);

fn group_rows(rows: &[CutResult]) -> BTreeMap<GroupKey, Vec<&CutResult>> {
    let mut groups: BTreeMap<GroupKey, Vec<&CutResult>> = BTreeMap::new();
    for row in rows {
        let budget = row.budget.map_or(0, f64::to_bits);
        groups.entry((budget, row.method)).or_default().push(row);
    }
    groups
}

fn aggregate_all(measured: &MeasuredDatasets) -> Vec<MethodResult> {
    let groups: Vec<_> = measured.iter().map(|(_, rows)| group_rows(rows)).collect();
    let keys: BTreeSet<GroupKey> = groups.iter().flat_map(BTreeMap::keys).copied().collect();
    let lines = keys.iter().map(|key| {
        let parts: Vec<&Vec<&CutResult>> = groups.iter().filter_map(|g| g.get(key)).collect();
        aggregate_group(ALL_DATASETS, &parts)
    });
    lines.collect()
}

/// Returns the line of some datasets' rows, all of one method and budget.
fn aggregate_group(name: &str, parts: &[&Vec<&CutResult>]) -> MethodResult {
    let rows = || parts.iter().flat_map(|rows| rows.iter().copied());
    let first = rows().next();
    let sessions = parts.iter().map(|rows| {
        let distinct: BTreeSet<usize> = rows.iter().map(|row| row.session).collect();
        distinct.len()
    });
    let over = |of: fn(&RetentionScore) -> Option<f64>| {
        let samples: Vec<SessionScores> = parts
            .iter()
            .map(|rows| scores_by_session(rows, of))
            .collect();
        Interval::over_datasets(&samples)
    };
    let kept = rows().filter_map(|row| row.kept).map(|kept| kept as f64);
    MethodResult {
        dataset: name.to_owned(),
        method: first.map_or(Method::Compact, |row| row.method),
        budget: first.and_then(|row| row.budget),
        sessions: sessions.sum(),
        cuts: rows().count(),
        failed: rows().filter(|row| row.kept.is_none()).count(),
        over_budget: rows().filter(|row| row.is_over_budget()).count(),
        tokens: crate::interval::mean_or_zero(kept),
        all: over(|score| score.all),
        strict: over(|score| score.strict),
        bound: over(|score| score.bound),
    }
}

/// Returns the scores by session.
fn scores_by_session(rows: &[&CutResult], of: fn(&RetentionScore) -> Option<f64>) -> SessionScores {
    let mut sessions: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for row in rows {
        sessions
            .entry(row.session)
            .or_default()
            .extend(of(&row.score));
    }
    sessions.into_values().collect()
}
