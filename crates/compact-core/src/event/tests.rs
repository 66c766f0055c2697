use serde_json::json;

use super::*;
use crate::redact::{RedactionBoundary, RedactionRules};
use crate::reset::{ResetEvent, TriggerReason};
use crate::trigger::Verdict;
use crate::usage::Usage;

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
    Event {
        receipt: ReceiptBrief {
            kept: KeptCounts {
                pinned: 3,
                recent_turns: 6,
                tool_pairs: 4,
                clipped: 2,
                newest_cut: 1,
            },
            pruned_count: 47,
            summary_tokens: Tokens(480),
            receipt_id: Some("7f3a".to_owned()),
        },
        ..plain(kind)
    }
}

fn usage(turn_cost_usd: Option<f64>) -> UsageReport {
    UsageReport {
        turn_input: 10,
        turn_output: 5,
        turn_cache_read: 90,
        input_tokens: 30,
        output_tokens: 15,
        cache_read_tokens: 270,
        cache_creation_tokens: 7,
        turn_cache_creation: 0,
        turn_cost_usd,
        tracking: true,
        pressure: 0.25,
    }
}

fn misses() -> [CacheMiss; 2] {
    let changed = CacheMiss {
        expected_tokens: Tokens(90_000),
        read_tokens: Tokens(2_048),
        idle_seconds: 12,
        origin: MissOrigin::Agent,
        change: Some(PromptChange {
            part: PromptPart::Message,
            message: Some(7),
            at_byte: 118,
        }),
        extra_usd: Some(0.125),
    };
    let expired = CacheMiss {
        read_tokens: Tokens(0),
        idle_seconds: 4_000,
        origin: MissOrigin::Expired,
        change: None,
        extra_usd: None,
        ..changed
    };
    [changed, expired]
}

fn reset(event: ResetEvent) -> Event {
    let scope = EventScope {
        model: Some("gpt-4o".to_owned()),
        cause: None,
        ..scope()
    };
    scope.event(EventKind::Reset(event), "2025-10-19T06:00:00Z")
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
            tokens_after: 9_500,
            max_tokens: 128_000,
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

const BEFORE: CategoryTokens = CategoryTokens {
    system: Tokens(100),
    tools: Tokens(50),
    history: Tokens(9000),
    memory: Tokens(0),
    user_input: Some(Tokens(20)),
    tool_results: Some(Tokens(700)),
};

const AFTER: CategoryTokens = CategoryTokens {
    history: Tokens(3000),
    memory: Tokens(480),
    user_input: None,
    tool_results: None,
    ..BEFORE
};

/// Every kind of event, in every shape that it has.
#[expect(clippy::too_many_lines, reason = "a sample of every event")]
fn samples() -> Vec<Event> {
    let bare = EventScope {
        call: None,
        model: None,
        cause: None,
        ..scope()
    };
    let mut child = plain(EventKind::Started);
    child.scope.call.as_mut().unwrap().parent_span_id = Some("b7ad6b7169203331".to_owned());
    let recalled = |found| EventKind::Recalled {
        duration_ms: 1.5,
        found,
    };
    let mut out = vec![
        plain(EventKind::TokenEstimate {
            tokens: Some(BEFORE),
        }),
        bare.event(
            EventKind::TokenEstimate { tokens: None },
            "2025-10-19T06:00:00Z",
        ),
        plain(EventKind::TriggerDecision {
            verdict: Verdict::CompactNow,
            reason: "88 % of the window".to_owned(),
            pressure: 0.88,
        }),
        child,
        counted(EventKind::Archived {
            pack: "p1".to_owned(),
            stored_bytes: 1234,
        }),
        counted(EventKind::NotArchived),
        counted(EventKind::PolicyApplied {
            rung: "recent".to_owned(),
        }),
        counted(EventKind::SummaryCreated {
            version: 2,
            summarizer: "deterministic".to_owned(),
            retention: Some(0.97),
        }),
        counted(EventKind::PrunedMessages),
        counted(EventKind::Completed {
            tokens_before: Tokens(9000),
            tokens_after: Tokens(3000),
            before: BEFORE,
            after: AFTER,
            retention: Some(0.97),
            duration_ms: 40.125,
        }),
        counted(EventKind::Repaired),
        plain(EventKind::Skipped { malformed: 2 }),
        plain(EventKind::FailedOpen {
            reason: "storage".to_owned(),
            detail: "the disk is full".to_owned(),
        }),
        plain(EventKind::ClientNudged {
            reported_tokens: Tokens(40_000),
            shown_tokens: Tokens(190_000),
        }),
        counted(EventKind::NewestCut { entries: 1 }),
        plain(EventKind::Failed {
            error: "no room left".to_owned(),
        }),
        plain(EventKind::Fallback {
            failed: FailedModel::Summarizer("http".to_owned()),
            reason: "timeout".to_owned(),
            fallback: Substitute::PruneOnly,
        }),
        plain(EventKind::Fallback {
            failed: FailedModel::Embedder("e5".to_owned()),
            reason: "1 vectors for 2 texts".to_owned(),
            fallback: Substitute::Words,
        }),
        plain(recalled(RecallCounts::Search {
            hits: 2,
            terms: 3,
            best_score: Some(0.75),
        })),
        plain(recalled(RecallCounts::Search {
            hits: 0,
            terms: 3,
            best_score: None,
        })),
        plain(recalled(RecallCounts::Expansion { entries: 1 })),
        plain(EventKind::CallEnded {
            call: "before_model_call".to_owned(),
            outcome: CallOutcome::Compacted,
            duration_ms: 12.5,
        }),
        plain(EventKind::RedactionDisabled {
            boundary: RedactionBoundary::Summary,
        }),
        plain(EventKind::TranscriptFailed {
            error: "disk full".to_owned(),
        }),
        plain(EventKind::Scheduled),
        counted(EventKind::Swapped { appended: 4 }),
        plain(EventKind::Discarded {
            reason: "it took too long".to_owned(),
            waited_seconds: Some(30),
        }),
        counted(EventKind::Discarded {
            reason: "the history before it was edited".to_owned(),
            waited_seconds: None,
        }),
        plain(EventKind::Overflowed {
            tokens: Some(Tokens(130_000)),
            limit: None,
            answer: OverflowAnswer::GivenUp,
        }),
        plain(EventKind::Overflowed {
            tokens: None,
            limit: Some(Tokens(128_000)),
            answer: OverflowAnswer::Smaller,
        }),
        plain(EventKind::Forecast {
            calls_left: 3,
            tokens_per_call: Tokens(4000),
            outruns_budget: false,
        }),
        plain(EventKind::Usage(usage(Some(0.25)))),
        plain(EventKind::UsageMissing(usage(None))),
        counted(EventKind::UsageReset),
    ];
    out.extend(misses().map(|miss| plain(EventKind::CacheMissed(miss))));
    out.extend(resets().into_iter().map(reset));
    out.extend(run_steps().into_iter().map(run));
    out.extend(hook_steps().into_iter().map(hook));
    out
}

fn run(step: RunStep) -> Event {
    let run_id = "r1".to_owned();
    plain(EventKind::Run(RunReport { run_id, step }))
}

fn run_steps() -> Vec<RunStep> {
    let used = Usage {
        input_tokens: 10,
        output_tokens: 5,
        cache_read_tokens: 90,
        cache_creation_tokens: 7,
    };
    let totals = || RunTotals {
        continuation_count: 2,
        seconds: 61.5,
        counters: RunCounters {
            sessions: 3,
            turns: 4,
            checkpoints_tagged: 2,
            usage: used,
            ..RunCounters::default()
        },
    };
    vec![
        RunStep::RunStarted {
            agent: "claude".to_owned(),
            continuation_count: 0,
        },
        RunStep::SessionStarted {
            number: 1,
            resumed: Some("s-0".to_owned()),
            prompt_tokens: Tokens(120),
        },
        RunStep::SessionNamed,
        RunStep::ContextUsage {
            turn: used,
            cumulative: used,
            limit: Tokens(128_000),
            pressure_ratio: 0.5,
        },
        RunStep::UsageMissing,
        RunStep::ContextPressure {
            input_tokens: 10,
            output_tokens: 5,
            cache_read_tokens: 90,
            pressure_ratio: 0.95,
        },
        RunStep::PromptTooLong,
        RunStep::CheckpointRequested,
        RunStep::Checkpoint {
            source: CheckpointSource::Built,
            reason: Some("no answer within 120 s".to_owned()),
            tokens_before: Tokens(121_000),
            tokens_after: Tokens(1_900),
            anchors: 40,
            noted: 0,
            shown: 38,
        },
        RunStep::ContextRestart {
            continuation_count: 1,
            pressure_ratio: Some(0.95),
            tokens_before: Some(Tokens(121_000)),
            tokens_after: Tokens(1_900),
        },
        RunStep::UsageReset {
            continuation_count: 1,
        },
        RunStep::RunFinished(totals()),
        RunStep::RunStopped(totals()),
        RunStep::RunFailed {
            error: "the agent failed: quota".to_owned(),
            totals: totals(),
        },
    ]
}

fn hook(step: HookStep) -> Event {
    plain(EventKind::Hook(HookReport {
        agent: "claude-code".to_owned(),
        moment: "PreCompact".to_owned(),
        step,
    }))
}

fn hook_steps() -> Vec<HookStep> {
    vec![
        HookStep::HookArchived {
            trigger: "auto".to_owned(),
            path: "archives/s.jsonl".to_owned(),
            bytes: 2_048,
            tokens_before: Some(Tokens(150_000)),
        },
        HookStep::HookCompacted {
            tokens_before: None,
            tokens_after: Tokens(9_000),
            anchors: 40,
            shown: 31,
            repeated_chars: 3_900,
        },
        HookStep::HookFailed {
            error: "no space left on device".to_owned(),
            unarchived: true,
        },
    ]
}

#[test]
fn what_is_over_is_an_error_and_what_goes_on_is_not() {
    let severities = |events: Vec<Event>| {
        let named = events
            .into_iter()
            .map(|event| (event.kind.name(), event.kind.severity()));
        let grave = named.filter(|(_, severity)| *severity >= Severity::High);
        grave.collect::<Vec<_>>()
    };
    let error = |name: &str| (name.to_owned(), Severity::Error);
    assert_eq!(
        severities(resets().into_iter().map(reset).collect()),
        [error("context_compaction_failed")]
    );
    assert_eq!(
        severities(run_steps().into_iter().map(run).collect()),
        [error("run_failed")]
    );
    let hooks = severities(hook_steps().into_iter().map(hook).collect());
    assert_eq!(hooks, [("hook_failed".to_owned(), Severity::High)]);
    let mut failed = resets().remove(2);
    if let ResetEvent::ContextCompactionFailed {
        context_exceeded, ..
    } = &mut failed
    {
        *context_exceeded = false;
    }
    assert_eq!(reset(failed).kind.severity(), Severity::Warning);
}

#[test]
fn the_json_of_every_event_is_the_documented_one() {
    let lines: String = samples()
        .iter()
        .map(|event| serde_json::to_string(event).unwrap() + "\n")
        .collect();
    assert_eq!(lines, GOLDEN);
}

#[test]
fn every_event_is_read_from_its_json() {
    let read: Vec<Event> = GOLDEN
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(read, samples());
    let foreign = json!({"event": "compact.of_the_host", "session_id": "abc"});
    assert!(serde_json::from_value::<Event>(foreign).is_err());
}

/// Every name in the JSON, each once.
fn names() -> Vec<String> {
    let mut names: Vec<String> = samples().iter().map(|event| event.kind.name()).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn every_event_has_a_sample_and_a_name() {
    // The match of `texts_mut` lists every kind; one more there is one more sample here.
    assert_eq!(names().len(), 49);
    let golden = GOLDEN.lines().map(|line| {
        let json: Value = serde_json::from_str(line).unwrap();
        json["event"].as_str().unwrap().to_owned()
    });
    let named = samples().into_iter().map(|event| event.kind.name());
    assert!(named.eq(golden));
}

#[test]
fn the_documentation_lists_every_event_and_no_other() {
    let page = include_str!("../../../../docs/observability.md");
    let table = page.split_once("## The events").unwrap().1;
    let rows = table.lines().skip_while(|line| !line.starts_with('|'));
    let mut listed: Vec<&str> = rows
        .take_while(|line| line.starts_with('|'))
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    listed.sort_unstable();
    assert_eq!(listed, names());
}

/// Words of ours that no redactor looks at, and that stay what they are.
const OURS: [&str; 11] = [
    "ts",
    "event",
    "type",
    "severity",
    "trace_id",
    "span_id",
    "parent_span_id",
    "receipt_id",
    "pack",
    "cause",
    "verdict",
];

/// Words of our own choice, of which there are a few.
const CHOICES: [&str; 8] = [
    "origin",
    "part",
    "source",
    "outcome",
    "fallback",
    "boundary",
    "answer",
    "trigger_reason",
];

#[test]
fn redaction_reaches_every_text_of_every_event() {
    let rules = RedactionRules {
        patterns: vec![".+".to_owned()],
        ..RedactionRules::default()
    };
    let redactor = rules.redactor(RedactionBoundary::Export).unwrap();
    for mut event in samples() {
        let before = serde_json::to_value(&event).unwrap();
        event.redact(&redactor);
        let after = serde_json::to_value(&event).unwrap();
        for (name, value) in after.as_object().unwrap() {
            let is_ours = OURS.contains(&name.as_str()) || CHOICES.contains(&name.as_str());
            let stays = is_ours || !value.is_string();
            assert_eq!(*value == before[name], stays, "{name} of {before}");
        }
    }
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
