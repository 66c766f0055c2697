//! What every sink must do. Call [`suite`] from the adapter's tests, also with a sink whose far
//! end fails or hangs.

#![allow(
    clippy::panic,
    reason = "a conformance suite reports a violation by panicking, like any test"
)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::EventSink;

/// The most that all the events of the suite may hold up their sender.
const PATIENCE: Duration = Duration::from_secs(2);

/// Emits good and odd events, from several threads, and checks that nothing waits or panics.
pub fn suite(sink: &dyn EventSink) {
    let start = Instant::now();
    let events = odd_events();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                events
                    .iter()
                    .cycle()
                    .take(400)
                    .for_each(|event| sink.emit(event))
            });
        }
    });
    let took = start.elapsed();
    assert!(took < PATIENCE, "emitting held up its sender for {took:?}");
}

/// The event of seed 002 §9, and things that are not quite events.
pub fn odd_events() -> Vec<Value> {
    vec![
        trigger_decision(),
        json!({}),
        json!(null),
        json!([1, "two"]),
        json!("text"),
        json!({"event": 7, "session_id": null, "t_est": "many", "max": 0, "kept": []}),
        json!({"event": "compact.\u{1b}[2J", "session_id": "a\nb\0c", "t_est": u64::MAX, "max": 1}),
        json!({"event": "compact.big", "session_id": "x".repeat(10_000)}),
    ]
}

/// A complete event.
pub fn trigger_decision() -> Value {
    json!({
        "ts": "2025-10-19T06:00:00Z",
        "session_id": "abc",
        "event": "compact.trigger_decision",
        "model": "gpt-5-reasoning",
        "t_est": 112_345,
        "max": 128_000,
        "policy": {"trigger_pct": 0.85, "buffer": 1500},
        "kept": {"pinned": 3, "recent_turns": 6, "tool_pairs": 4},
        "pruned_count": 47,
        "summary_tokens": 480,
    })
}
