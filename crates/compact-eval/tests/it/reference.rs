//! The metric against numbers that an independent implementation gave for the example sessions.
//! The baselines do not depend on the engine, so they change only with the metric or the examples.

use std::path::Path;

use compact_core::policy::Policy;
use compact_eval::compaction::EvalEngine;
use compact_eval::dataset::Dataset;
use compact_eval::method::Method;
use compact_eval::retention::{CutPoints, CutResult, RetentionOptions, measure_dataset};

fn rows(example: &str) -> Vec<CutResult> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let dataset = Dataset::read(&folder.join(example), 1500, None).unwrap();
    let options = RetentionOptions {
        cuts: CutPoints::Shares {
            at: vec![0.5, 0.75],
            budgets: vec![0.1],
        },
        methods: vec![Method::KeepLast, Method::TrimTools, Method::EntityLedger],
        least_budget: 400,
    };
    measure_dataset(
        &dataset,
        &options,
        &EvalEngine::new(Policy::default()).unwrap(),
    )
}

/// Cut, method, tokens before, needed (all, strict), and shares of all, strict, bound in thousandths.
type RoundedRow = (f64, Method, usize, (usize, usize), [Option<f64>; 3]);

fn rounded_row(row: &CutResult) -> RoundedRow {
    let score = [row.score.all, row.score.strict, row.score.bound];
    let rounded = score.map(|share| share.map(|s| (s * 1000.0).round()));
    (row.cut, row.method, row.prefix, row.needed, rounded)
}

#[test]
fn the_coding_session_scores_as_the_reference_says() {
    use Method::{EntityLedger, KeepLast, TrimTools};
    let share = |all, strict, bound| [Some(all), Some(strict), Some(bound)];
    let (half, later) = ((172, 86), (88, 48));
    assert_eq!(
        rows("coding-session.jsonl")
            .iter()
            .map(rounded_row)
            .collect::<Vec<_>>(),
        [
            (0.5, KeepLast, 72795, half, share(477.0, 326.0, 279.0)),
            (0.5, TrimTools, 72795, half, share(471.0, 395.0, 384.0)),
            (0.5, EntityLedger, 72795, half, share(890.0, 860.0, 209.0)),
            (0.75, KeepLast, 109160, later, share(489.0, 333.0, 229.0)),
            (0.75, TrimTools, 109160, later, share(523.0, 354.0, 313.0)),
            (
                0.75,
                EntityLedger,
                109160,
                later,
                share(852.0, 833.0, 167.0)
            ),
        ]
    );
}

#[test]
fn the_research_session_scores_as_the_reference_says() {
    use Method::{EntityLedger, KeepLast, TrimTools};
    let share = |all, strict, bound| [Some(all), Some(strict), Some(bound)];
    let (half, later) = ((13, 11), (9, 8));
    assert_eq!(
        rows("research-session.jsonl")
            .iter()
            .map(rounded_row)
            .collect::<Vec<_>>(),
        [
            (0.5, KeepLast, 29777, half, share(308.0, 364.0, 364.0)),
            (0.5, TrimTools, 29777, half, share(308.0, 364.0, 364.0)),
            (0.5, EntityLedger, 29777, half, share(923.0, 909.0, 182.0)),
            (0.75, KeepLast, 43850, later, share(444.0, 500.0, 500.0)),
            (0.75, TrimTools, 43850, later, share(444.0, 500.0, 500.0)),
            (
                0.75,
                EntityLedger,
                43850,
                later,
                share(1000.0, 1000.0, 250.0)
            ),
        ]
    );
}
