use compact_core::token::Tokens;
use compact_core::usage::{ContextUsage, Formula};
use serde_json::json;

use super::*;

fn read(source: UsageSource, value: &Value) -> Option<(u64, u64, u64, u64)> {
    let reported = source.read(value)?;
    assert_eq!(reported.semantics, source.semantics());
    let usage = reported.usage;
    Some((
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_creation_tokens,
    ))
}

/// Answers and events with their counters: input, output, cache read, cache written.
const SAMPLES: &str = include_str!("samples.jsonl");

#[test]
fn every_source_tells_fresh_tokens_from_cached_ones() {
    let mut seen = Vec::new();
    for line in SAMPLES.lines() {
        let sample: Value = serde_json::from_str(line).unwrap();
        let named = |s: &UsageSource| sample["source"] == format!("{s:?}");
        let source = UsageSource::ALL.into_iter().find(named).unwrap();
        let expected = serde_json::from_value(sample["expected"].clone()).unwrap();
        assert_eq!(read(source, &sample["value"]), Some(expected), "{line}");
        seen.push(source);
    }
    assert!(
        UsageSource::ALL.iter().all(|s| seen.contains(s)),
        "{seen:?}"
    );
}

#[test]
fn the_last_message_pass_is_the_context_and_a_compaction_is_not() {
    let usage = json!({"usage": {
    "input_tokens": 900, "output_tokens": 90, "cache_read_input_tokens": 0,
    "iterations": [
        {"type": "message", "input_tokens": 300, "output_tokens": 30},
        {"type": "message", "input_tokens": 600, "output_tokens": 60, "cache_read_input_tokens": 5},
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
    ]}});
    assert_eq!(read(UsageSource::Anthropic, &usage), Some((600, 60, 5, 0)));
}

#[test]
fn a_stream_is_brought_up_to_date_event_by_event() {
    let events = [
        json!({"type": "message_start", "message": {"usage":
            {"input_tokens": 7, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 0, "output_tokens": 1}}}),
        json!({"type": "content_block_delta", "delta": {"text": "usage"}}),
        json!({"type": "message_delta", "usage": {"output_tokens": 40}}),
        json!({"type": "message_delta", "usage": {"output_tokens": 55, "input_tokens": 7}}),
    ];
    let reports = events
        .iter()
        .filter_map(|event| UsageSource::Anthropic.read(event));
    let whole = reports.reduce(ReportedUsage::updated).unwrap();
    assert_eq!(
        whole.usage,
        Usage {
            cache_read_tokens: 90,
            ..Usage::of_turn(7, 55, 90)
        }
    );
}

#[test]
fn missing_counters_are_zero_and_no_counters_are_no_report() {
    use UsageSource::*;
    assert_eq!(
        read(
            AgentResult,
            &json!({"usage": {"input_tokens": 5, "output_tokens": null}})
        ),
        Some((5, 0, 0, 0))
    );
    assert_eq!(
        read(
            Anthropic,
            &json!({"usage": {"input_tokens": -5, "output_tokens": 2.9, "cache_read_input_tokens": "many"}})
        ),
        Some((0, 2, 0, 0))
    );
    for source in UsageSource::ALL {
        for value in [
            json!(null),
            json!(7),
            json!("usage"),
            json!([]),
            json!({}),
            json!({"usage": null}),
            json!({"usage": {}}),
            json!({"usage": [1]}),
            json!({"message": {"usage": 3}}),
            json!({"modelUsage": {"m": 1}}),
        ] {
            assert_eq!(read(source, &value), None, "{source:?} {value}");
        }
    }
    let empty = json!({"usage": {"prompt_tokens": 0, "completion_tokens": 0}});
    assert_eq!(read(OpenAiChat, &empty), None);
}

#[test]
fn a_cache_never_held_more_than_the_prompt() {
    let odd = json!({"usage": {"prompt_tokens": 10, "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 400, "cache_write_tokens": 9}}});
    assert_eq!(read(UsageSource::OpenAiChat, &odd), Some((0, 1, 10, 0)));
}

/// A host that feeds the results of an SDK to a usage, as the seed's stream processor does.
fn after_results(results: &[Value]) -> ContextUsage {
    let mut usage = ContextUsage::new(Semantics::PerTurnDelta, Formula::InputOutput);
    for result in results {
        match UsageSource::AgentResult.read(result) {
            Some(reported) => usage.record(reported.usage, reported.semantics),
            None => usage.disable_tracking(),
        }
    }
    usage
}

fn result(input: u64, output: u64, cache_read: u64) -> Value {
    json!({"type": "result", "usage": {"input_tokens": input, "output_tokens": output, "cache_read_input_tokens": cache_read}})
}

#[test]
fn results_accumulate() {
    let usage = after_results(&[result(500, 1000, 10_000), result(600, 1200, 20_000)]);
    let totals = (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
    );
    assert_eq!(totals, (1100, 2200, 30_000));
    assert_eq!(usage.check(Some("s"), Tokens(10_000), 0.34), Ok(()));
    assert!(usage.check(Some("s"), Tokens(10_000), 0.33).is_err());
}

#[test]
fn a_huge_cache_read_restarts_nothing() {
    let usage = after_results(&[result(487, 5_880, 1_432_262)]);
    assert_eq!(usage.check(Some("s"), Tokens(200_000), 0.7), Ok(()));
    assert_eq!(usage.pressure_ratio(Tokens(200_000)), 0.031835);
}

#[test]
fn the_error_of_two_results_carries_their_sum() {
    let usage = after_results(&[result(200, 200, 11), result(100, 100, 22)]);
    let error = usage.check(Some("s"), Tokens(1_000), 0.5).unwrap_err();
    assert_eq!(
        (
            error.input_tokens,
            error.output_tokens,
            error.cache_read_tokens
        ),
        (300, 300, 33)
    );
}

#[test]
fn a_result_without_usage_switches_tracking_off() {
    let usage = after_results(&[
        result(200, 200, 0),
        json!({"type": "result", "usage": null}),
        result(9, 9, 9),
    ]);
    assert!(!usage.is_tracking_enabled());
    assert_eq!(usage.pressure_ratio(Tokens(1)), 0.0);
    assert_eq!((usage.input_tokens, usage.output_tokens), (200, 200));
}

/// The observed behaviour of the SDK: call n reports input = 100 n.
#[test]
fn the_three_numbers_of_the_agent_sdk_are_read_as_what_they_are() {
    let mut by_message = ContextUsage::new(Semantics::LastRequest, Formula::Prompt);
    let mut by_model = ContextUsage::new(Semantics::Cumulative, Formula::Prompt);
    for (call, total) in [(100, 100), (200, 300), (300, 600), (400, 1_000)] {
        let message = json!({"message": {"usage": {"input_tokens": call, "output_tokens": 1}}});
        let models = json!({"modelUsage": {"m": {"inputTokens": total, "outputTokens": 1}}});
        for (usage, source, value) in [
            (&mut by_message, UsageSource::AgentMessage, message),
            (&mut by_model, UsageSource::AgentModels, models),
        ] {
            let reported = source.read(&value).unwrap();
            usage.record(reported.usage, reported.semantics);
        }
    }
    // The last call is the context; the session's total is not, and its last step is.
    assert_eq!(by_message.live_tokens(), Tokens(400));
    assert_eq!(by_model.live_tokens(), Tokens(1_000));
    assert_eq!(by_model.last().map(|u| u.input_tokens), Some(400));
}

proptest::proptest! {
    #[test]
    fn no_number_breaks_a_reader(a in proptest::num::f64::ANY, b in proptest::num::i64::ANY, c in proptest::num::u64::ANY) {
        for source in UsageSource::ALL {
            let value = json!({"usage": {"input_tokens": a, "prompt_tokens": b, "output_tokens": c, "completion_tokens": a,
                "cache_read_input_tokens": c, "cache_creation_input_tokens": c, "prompt_tokens_details": {"cached_tokens": c}}});
            if let Some(reported) = source.read(&value) {
                proptest::prop_assert!(reported.usage.prompt_tokens().0 >= reported.usage.cache_read_tokens);
            }
        }
    }
}
