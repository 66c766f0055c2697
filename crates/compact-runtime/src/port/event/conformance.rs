//! What every sink must do. Call [`suite`] from the adapter's tests, also with a sink whose far
//! end fails or hangs.

#![allow(
    clippy::panic,
    reason = "a conformance suite reports a violation by panicking, like any test"
)]

use std::time::{Duration, Instant};

use compact_core::event::{Event, EventKind, EventScope, PolicyBrief, ReceiptBrief};
use compact_core::receipt::KeptCounts;
use compact_core::token::Tokens;
use compact_core::trigger::{CompactionCause, Verdict};

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

/// The founding document's event, and events with odd values.
pub fn odd_events() -> Vec<Event> {
    let with_scope = |scope| Event {
        scope,
        ..trigger_decision()
    };
    let with_pressure = |pressure| Event {
        kind: EventKind::TriggerDecision {
            verdict: Verdict::Exceeded,
            reason: String::new(),
            pressure,
        },
        ..trigger_decision()
    };
    let error = "no\nline\0is\u{1b}[2J\u{202e}safe".to_owned();
    let undated = EventScope::default().event(EventKind::Failed { error }, "yesterday");
    vec![
        trigger_decision(),
        with_scope(EventScope::default()),
        with_scope(EventScope {
            session_id: "a\nb\0c\u{1b}[2J".to_owned(),
            tokens: Tokens(u64::MAX),
            window: Tokens(1),
            ..EventScope::default()
        }),
        with_scope(EventScope {
            session_id: "x".repeat(10_000),
            ..EventScope::default()
        }),
        with_pressure(f64::INFINITY),
        with_pressure(f64::NAN),
        undated,
    ]
}

/// A complete event.
pub fn trigger_decision() -> Event {
    Event {
        ts: "2025-10-19T06:00:00Z".to_owned(),
        kind: EventKind::TriggerDecision {
            verdict: Verdict::CompactNow,
            reason: "88 % of the window".to_owned(),
            pressure: 0.88,
        },
        scope: EventScope {
            session_id: "abc".to_owned(),
            call: None,
            model: Some("gpt-5-reasoning".to_owned()),
            tokens: Tokens(112_345),
            window: Tokens(128_000),
            policy: PolicyBrief {
                trigger_pct: 0.85,
                buffer: 1500,
            },
            cause: Some(CompactionCause::Threshold),
        },
        receipt: ReceiptBrief {
            kept: KeptCounts {
                pinned: 3,
                recent_turns: 6,
                tool_pairs: 4,
                clipped: 0,
                newest_cut: 0,
            },
            pruned_count: 47,
            summary_tokens: Tokens(480),
            receipt_id: None,
        },
    }
}
