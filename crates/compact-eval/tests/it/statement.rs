//! What a user says in passing, in any wording, is in the view of a long session: most of that is what tools
//! answered, and all that was said takes a few percent of it.

use compact_eval::compaction::EvalEngine;
use compact_eval::fact_check::ViewText;
use compact_eval::generate::{self, PlantedKind};

/// The least share of the user's sentences that stands word for word in a view of a tenth.
const STATED: f64 = 0.4;

#[test]
fn what_the_user_stated_is_in_a_view_of_a_tenth() {
    let engine = EvalEngine::new(Default::default()).unwrap();
    for seed in [41, 42] {
        let session = generate::talkative_session(seed, 200_000);
        let view = ViewText::from_session(&session, 0.1, &engine).unwrap();
        let stated: Vec<_> = session.planted.facts_of(PlantedKind::Statement).collect();
        assert!(stated.len() >= 80, "{} statements", stated.len());
        let missing: Vec<&str> = stated
            .iter()
            .filter(|fact| !fact.is_in(&view.view))
            .map(|fact| fact.text.as_str())
            .collect();
        let share = 1.0 - missing.len() as f64 / stated.len() as f64;
        assert!(
            share >= STATED,
            "{share:.3} of seed {seed}; missing: {missing:#?}"
        );
    }
}
