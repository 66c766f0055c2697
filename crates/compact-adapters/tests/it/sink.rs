//! Whoever is told of events cannot hold up or break what they tell of.

use std::sync::Arc;
use std::time::Duration;

use compact_core::wire::WireRules;
use compact_runtime::Session;

use crate::place;

#[tokio::test]
async fn sinks_that_hang_or_break_affect_no_compaction() {
    let dir = tempfile::tempdir().unwrap();
    let manager = place::manager(dir.path());
    let mut live = Session::new(Arc::clone(&manager), "deaf", &WireRules::LENIENT);
    // More events than any queue holds.
    for n in 0..600 {
        live.append([place::entry(n)]).unwrap();
        live.preflight().await.unwrap();
    }
    live.wait_for_background(Duration::from_secs(60)).await;
    assert!(
        manager
            .catalog()
            .session_records("deaf")
            .await
            .unwrap()
            .len()
            > 3
    );
}
