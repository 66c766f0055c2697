//! The twentieth compaction still knows what the first one knew.

use compact_eval::compaction::EvalEngine;
use compact_eval::decay::{DecayResult, compare_compactions};

/// The least share of what one compaction keeps of a session's beginning that twenty of them keep.
const LEAST_RATIO: f64 = 0.98;

#[test]
fn twenty_compactions_keep_what_one_keeps() {
    let engine = EvalEngine::new(Default::default()).unwrap();
    let results = compare_compactions(&engine, 1, &[0.1, 0.2], 32).unwrap();
    assert_eq!(results.len(), 6, "three kinds of session at two budgets");
    assert!(results.iter().all(|r| r.compactions >= 20), "{results:?}");
    // One session has a dozen early facts: kinds and budgets are taken together.
    let kept = |share: fn(&DecayResult) -> f64| -> f64 {
        let facts = results.iter().map(|r| share(r) * r.facts as f64);
        facts.sum()
    };
    let ratio = kept(|r| r.successive.mean) / kept(|r| r.once.mean);
    assert!(ratio >= LEAST_RATIO, "{ratio}: {results:#?}");
}
