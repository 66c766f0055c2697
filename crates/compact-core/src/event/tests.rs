use serde_json::json;

use super::*;
use crate::reset::{ResetEvent, TriggerReason};

/// The documented JSON of every kind of event, one a line, in the order of [`samples`].
const GOLDEN: &str = include_str!("testdata/events.jsonl");

fn scope() -> EventScope {
    EventScope {
        session_id: "abc".to_owned(),
        model: Some("gpt-5-reasoning".to_owned()),
        window: Tokens(128_000),
        policy: PolicyBrief {
            trigger_pct: 0.85,
            buffer: 1500,
        },
        tokens: Tokens(112_345),
        cause: Some(CompactionCause::Threshold),
        call: TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    }
}

fn plain(kind: EventKind) -> Event {
    scope().event(kind, "2025-10-19T06:00:00Z")
}

fn counted(kind: EventKind) -> Event {
    let mut event = plain(kind);
    event.kept = KeptCounts {
        pinned: 3,
        recent_turns: 6,
        tool_pairs: 4,
        clipped: 2,
        newest_cut: 1,
    };
    event.pruned_count = 47;
    event.summary_tokens = Tokens(480);
    event.with("receipt_id", "7f3a")
}

fn usage(kind: EventKind, cost: Option<f64>) -> Event {
    plain(kind)
        .with("turn_input", 10)
        .with("turn_output", 5)
        .with("turn_cache_read", 90)
        .with("input_tokens", 30)
        .with("output_tokens", 15)
        .with("cache_read_tokens", 270)
        .with("cache_creation_tokens", 7)
        .with("turn_cache_creation", 0)
        .with("turn_cost_usd", cost)
        .with("tracking", true)
        .with("pressure", 0.25)
}

fn reset(event: &ResetEvent) -> Event {
    let Ok(Value::Object(fields)) = serde_json::to_value(event) else {
        panic!("an event is an object");
    };
    let mut out = plain(event.kind());
    out.detail = fields;
    out.model = out
        .detail
        .shift_remove("model")
        .and_then(|m| m.as_str().map(str::to_owned));
    out
}

fn resets() -> Vec<ResetEvent> {
    let model = || "gpt-4o".to_owned();
    vec![
        ResetEvent::ContextCompactionStarted {
            tokens_before: 171_000,
            max_tokens: 128_000,
            trigger_reason: TriggerReason::ProviderUsage,
            model: model(),
        },
        ResetEvent::ContextCompacted {
            tokens_before: 171_000,
            trigger_reason: TriggerReason::ProviderUsage,
            model: model(),
            transcript_path: Some("t".to_owned()),
            summarizer_input_path: Some("i".to_owned()),
            summary_path: None,
            compaction_count: 2,
        },
        ResetEvent::ContextCompactionFailed {
            error: "busy".to_owned(),
            context_exceeded: true,
            tokens_current: 130_000,
            max_tokens: 128_000,
            trigger_reason: TriggerReason::Heuristic,
            model: model(),
            transcript_path: Some("t".to_owned()),
            summarizer_input_path: None,
        },
    ]
}

/// Every kind of event, in every shape that it has.
fn samples() -> Vec<Event> {
    let before = json!({"system": 100, "tools": 50, "history": 9000, "memory": 0,
        "user_input": 20, "tool_results": 700});
    let after = json!({"system": 100, "tools": 50, "history": 3000, "memory": 480});
    let mut estimate = plain(EventKind::TokenEstimate);
    estimate.detail.extend(before.as_object().unwrap().clone());
    let mut bare = plain(EventKind::TokenEstimate);
    bare = Event {
        call: None,
        model: None,
        ..bare
    };
    bare.detail.clear();
    let mut child = plain(EventKind::Started);
    child.call.as_mut().unwrap().parent_span_id = Some("b7ad6b7169203331".to_owned());
    let mut out = vec![
        estimate,
        bare,
        plain(EventKind::TriggerDecision)
            .with("verdict", "compact_now")
            .with("reason", "88 % of the window")
            .with("pressure", 0.88),
        child,
        counted(EventKind::Archived)
            .with("pack", "p1")
            .with("stored_bytes", 1234),
        counted(EventKind::NotArchived),
        counted(EventKind::PolicyApplied).with("rung", "recent"),
        counted(EventKind::SummaryCreated)
            .with("version", 2)
            .with("summarizer", "deterministic")
            .with("retention", 0.97),
        counted(EventKind::PrunedMessages),
        counted(EventKind::Completed)
            .with("tokens_before", 9000)
            .with("tokens_after", 3000)
            .with("before", before)
            .with("after", after)
            .with("retention", 0.97)
            .with("duration_ms", 40.125),
        counted(EventKind::Repaired),
        counted(EventKind::NewestCut).with("entries", 1),
        plain(EventKind::Failed).with("error", "no room left"),
        plain(EventKind::Fallback)
            .with("summarizer", "http")
            .with("reason", "timeout")
            .with("fallback", "prune_only"),
        plain(EventKind::Fallback)
            .with("embedder", "e5")
            .with("reason", "1 vectors for 2 texts")
            .with("fallback", "words"),
        plain(EventKind::Recalled)
            .with("duration_ms", 1.5)
            .with("hits", 2)
            .with("terms", 3)
            .with("best_score", 0.75),
        plain(EventKind::Recalled)
            .with("duration_ms", 1.5)
            .with("hits", 0)
            .with("terms", 3)
            .with("best_score", None::<f64>),
        plain(EventKind::Recalled)
            .with("duration_ms", 1.5)
            .with("entries", 1),
        plain(EventKind::CallEnded)
            .with("call", "before_model_call")
            .with("outcome", "compacted")
            .with("duration_ms", 12.5),
        plain(EventKind::RedactionDisabled).with("boundary", "summary"),
        plain(EventKind::TranscriptFailed).with("error", "disk full"),
        plain(EventKind::Scheduled),
        counted(EventKind::Swapped).with("appended", 4),
        plain(EventKind::Discarded)
            .with("reason", "it took too long")
            .with("waited_seconds", 30),
        counted(EventKind::Discarded).with("reason", "the history before it was edited"),
        plain(EventKind::Overflowed)
            .with("tokens", 130_000)
            .with("limit", None::<u64>)
            .with("answer", "given_up"),
        plain(EventKind::Overflowed)
            .with("tokens", None::<u64>)
            .with("limit", 128_000)
            .with("answer", "smaller"),
        plain(EventKind::Forecast)
            .with("calls_left", 3)
            .with("tokens_per_call", 4000)
            .with("outruns_budget", false),
        usage(EventKind::Usage, Some(0.25)),
        usage(EventKind::UsageMissing, None),
        counted(EventKind::UsageReset),
    ];
    out.extend(resets().iter().map(reset));
    out
}

#[test]
fn the_json_of_every_event_is_the_documented_one() {
    let lines: String = samples()
        .iter()
        .map(|event| format!("{}\n", serde_json::to_value(event).unwrap()))
        .collect();
    assert_eq!(lines, GOLDEN);
}

#[test]
fn a_trace_context_is_read_and_anything_else_is_not() {
    let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let call = TraceContext::parse(&format!("00-{trace}-{span}-01")).unwrap();
    assert_eq!(
        (call.trace_id.as_str(), call.span_id.as_str()),
        (trace, span)
    );
    for odd in [
        String::new(),
        format!("01-{trace}-{span}-01"),
        format!("00-{trace}-{span}"),
        format!("00-{trace}-{span}-01-x"),
        format!("00-{}-{span}-01", "0".repeat(32)),
        format!("00-{span}-{trace}-01"),
        format!("00-{trace}-{span}-é"),
    ] {
        assert_eq!(TraceContext::parse(&odd), None, "{odd}");
    }
}
