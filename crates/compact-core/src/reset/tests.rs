use serde_json::json;

use super::*;
use crate::token::Tokens;

/// A system prompt with a summary as its last section.
fn continued(summary: &str) -> String {
    let section = prompt::SECTION.trim_end().replacen("{summary}", summary, 1);
    format!("You are Qbit.\n\n{section}")
}

#[test]
fn the_summary_is_read_from_the_last_section() {
    let continued = continued("Logs are rotated.");
    assert_eq!(
        continued,
        "You are Qbit.\n\n## Continuation\nThis is a continuation of a previous session. The \
         conversation so far has been compacted into the summary below.\n\n<summary>\nLogs are \
         rotated.\n</summary>"
    );
    assert_eq!(summary_of(&continued), "Logs are rotated.");
}

#[test]
fn a_summary_may_name_its_own_place() {
    let odd = "see <summary> and </summary> and {summary}";
    assert_eq!(summary_of(&continued(odd)), odd);
    assert_eq!(summary_of("plain"), "plain");
}

#[test]
fn one_attempt_in_a_turn() {
    let mut state = CompactionState::default();
    assert!(state.may_attempt(Tokens(100)));
    state.attempt(Tokens(100));
    assert!(state.attempted_this_turn);
    assert!(!state.may_attempt(Tokens(100)));
    assert!(!state.may_attempt(Tokens(104)));
    // Grown by a twentieth, it is another context.
    assert!(state.may_attempt(Tokens(105)));
}

#[test]
fn turn_reset_and_retry_allow_the_next_attempt() {
    let again: [fn(&mut CompactionState); 3] = [
        CompactionState::begin_turn,
        CompactionState::succeed,
        CompactionState::retry,
    ];
    for allow in again {
        let mut state = CompactionState::default();
        state.attempt(Tokens(100));
        allow(&mut state);
        assert!(!state.attempted_this_turn);
        assert!(state.may_attempt(Tokens(100)));
    }
}

#[test]
fn a_reset_is_counted_and_voids_the_providers_count() {
    let mut state = CompactionState::default();
    state.report(90_000, Tokens(70_000));
    assert_eq!(state.last_input_tokens, Some(90_000));
    state.attempt(Tokens(90_000));
    state.succeed();
    assert_eq!(
        state,
        CompactionState {
            compaction_count: 1,
            ..CompactionState::default()
        }
    );
    assert_eq!(
        serde_json::to_value(&state).unwrap(),
        json!({"attempted_this_turn": false, "compaction_count": 1, "last_input_tokens": null})
    );
}

#[test]
fn the_providers_count_rules_and_growth_is_estimated() {
    let mut state = CompactionState::default();
    assert_eq!(
        state.pressure(Tokens(700)),
        (Tokens(700), TriggerReason::Heuristic)
    );
    state.report(1_000, Tokens(700));
    assert_eq!(
        state.pressure(Tokens(750)),
        (Tokens(1_050), TriggerReason::ProviderUsage)
    );
    // The last request's number replaces the one before.
    state.report(1_200, Tokens(900));
    assert_eq!(state.pressure(Tokens(900)).0, Tokens(1_200));
}

#[test]
fn events_have_the_fields_of_the_seed() {
    let compacted = ResetEvent::ContextCompacted {
        tokens_before: 171_000,
        tokens_after: 9_500,
        max_tokens: 128_000,
        trigger_reason: TriggerReason::ProviderUsage,
        model: "gpt-4o".to_owned(),
        transcript_path: Some("t".to_owned()),
        summarizer_input_path: Some("i".to_owned()),
        summary_path: None,
        compaction_count: 2,
    };
    let value = json!({
        "type": "context_compacted",
        "tokens_before": 171_000,
        "tokens_after": 9_500,
        "max_tokens": 128_000,
        "trigger_reason": "provider_usage",
        "model": "gpt-4o",
        "transcript_path": "t",
        "summarizer_input_path": "i",
        "summary_path": null,
        "compaction_count": 2,
    });
    assert_eq!(serde_json::to_value(&compacted).unwrap(), value);
    assert_eq!(
        serde_json::from_value::<ResetEvent>(value).unwrap(),
        compacted
    );
    let failed = ResetEvent::ContextCompactionFailed {
        error: "busy".to_owned(),
        context_exceeded: true,
        tokens_current: 130_000,
        max_tokens: 128_000,
        trigger_reason: TriggerReason::Heuristic,
        model: "unknown".to_owned(),
        transcript_path: None,
        summarizer_input_path: None,
    };
    assert_eq!(
        serde_json::to_value(&failed).unwrap(),
        json!({
            "type": "context_compaction_failed",
            "error": "busy",
            "context_exceeded": true,
            "tokens_current": 130_000,
            "max_tokens": 128_000,
            "trigger_reason": "heuristic",
            "model": "unknown",
            "transcript_path": null,
            "summarizer_input_path": null,
        })
    );
}
