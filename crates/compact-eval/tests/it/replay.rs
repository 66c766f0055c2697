//! Generated sessions, replayed: what a window does to them.

use std::sync::Arc;

use compact_core::policy::Policy;
use compact_core::token::{Chars4, Tokens};
use compact_core::wire::WireRules;
use compact_eval::fact_check::Scenario;
use compact_formats::TranscriptScope;
use compact_runtime::replay::play::PlaySettings;
use compact_runtime::replay::{Replay, replay_conversation};

async fn played(policy: Policy, window: u64) -> Replay {
    let session = Scenario::Support.generate(1);
    let parsed = compact_formats::parse(session.text, None, TranscriptScope::Live).unwrap();
    let terms = PlaySettings {
        policy,
        window: Tokens(window),
        estimator: Arc::new(Chars4),
        redactor: Arc::default(),
    };
    replay_conversation(&parsed.conversation, &WireRules::LENIENT, &terms)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_window_that_holds_everything_is_never_compacted() {
    let replay = played(Policy::default(), 1_000_000).await;
    let totals = replay.totals(None);
    assert_eq!(
        (totals.compactions, totals.overflows, totals.failures),
        (0, 0, 0)
    );
    assert!(
        replay
            .remembered
            .iter()
            .flatten()
            .all(|share| *share == 1.0)
    );
    // Each request begins with the whole request before it.
    let pairs = replay.calls.windows(2);
    assert!(pairs.clone().count() > 10);
    assert!(pairs.into_iter().all(|pair| pair[1].cached == pair[0].sent));
}

#[tokio::test]
async fn a_small_window_is_compacted_and_never_overflows() {
    let replay = played(Policy::default(), 8_000).await;
    let totals = replay.totals(None);
    assert!(totals.compactions >= 3, "{totals:?}");
    assert_eq!((totals.overflows, totals.failures), (0, 0), "{totals:?}");
    assert!(totals.peak_pressure <= 1.0, "{totals:?}");
    assert!(totals.retention.is_some() && totals.remembered.is_some());
}

#[tokio::test]
async fn without_compaction_a_small_window_overflows() {
    let never = Policy {
        trigger_pct: 1.1,
        ..Policy::default()
    };
    let totals = played(never, 8_000).await.totals(None);
    assert_eq!(totals.compactions, 0);
    assert!(totals.overflows > 0 && totals.peak_pressure > 1.0);
}
