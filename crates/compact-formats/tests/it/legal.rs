//! The view of any valid history, under any policy and budget, is valid for its provider.

mod anthropic;
mod history;

use std::collections::BTreeSet;

use compact_core::engine::{self, Beyond, Input, Outcome};
use compact_core::error::CompactError;
use compact_core::identity::EntryHash;
use compact_core::policy::{KeepRecent, Policy, Prune};
use compact_core::redact::Redactor;
use compact_core::token::{Account, Heuristic, TokenCache, Tokens};
use compact_core::wire::Placement;
use compact_formats::validate::{Provider, Strictness, check};
use compact_formats::{Format, Parsed, Scope, parse};
use proptest::prelude::*;
use serde_json::{Value, json};

use history::{End, History, history};

fn policy() -> impl Strategy<Value = Policy> {
    (
        1u32..8,
        1u32..6,
        prop_oneof![
            Just(Prune::Fifo),
            Just(Prune::Recency),
            Just(Prune::StageAware)
        ],
        prop_oneof![
            4 => Just(KeepRecent::Recent),
            1 => Just(KeepRecent::LastUserMessage),
            1 => Just(KeepRecent::None)
        ],
        prop_oneof![
            Just(Placement::AssistantMessage),
            Just(Placement::UserMessage),
            Just(Placement::SystemSuffix),
            Just(Placement::ToolPair),
            Just(Placement::NewSessionPrompt)
        ],
        prop::option::weighted(0.2, Just("deploy/prod".to_owned())),
    )
        .prop_map(
            |(keep_recent_turns, keep_tool_io_pairs, prune, keep_recent, placement, pattern)| {
                Policy {
                    keep_recent_turns,
                    keep_tool_io_pairs,
                    prune,
                    keep_recent,
                    placement,
                    protected_patterns: pattern.into_iter().collect(),
                    ..Policy::default()
                }
            },
        )
}

/// The view of a body as a body; nothing when there is nothing to do or no room to do it.
fn compacted(
    parsed: &Parsed,
    policy: &Policy,
    share: f64,
) -> Result<Option<Vec<u8>>, TestCaseError> {
    let conversation = &parsed.conversation;
    let hashes = EntryHash::all(&conversation.entries);
    let account = Account::of(
        conversation,
        &hashes,
        &Heuristic,
        &mut TokenCache::default(),
    );
    let made = engine::compact(&Input {
        conversation,
        session_id: "s",
        hashes: &hashes,
        account: &account,
        prior: None,
        ledger: &engine::session_ledger(conversation, &hashes, None),
        policy,
        budget: Tokens(((account.history.0 as f64 * share) as u64).max(150)),
        summary_limit: None,
        original: "",
        estimator: &Heuristic,
        rules: parsed.document.rules(),
        redactor: &Redactor::default(),
        beyond: Beyond::Archived,
        note: None,
    });
    match made {
        Ok(Outcome::Compacted(made)) => {
            let out = parsed.document.emit(conversation, &made.view);
            Ok(Some(out.map_err(|e| TestCaseError::fail(e.to_string()))?))
        }
        Ok(Outcome::Unchanged) | Err(CompactError::InsufficientBudget { .. }) => Ok(None),
        // A loop that waits for results cannot always be cut; that is said, not worked around.
        Err(CompactError::InvalidView(why)) if why.contains("once the calls are answered") => {
            Ok(None)
        }
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

/// The rules that a body breaks.
fn broken(provider: Provider, strictness: Strictness, body: &[u8]) -> BTreeSet<&'static str> {
    let violations = check(provider, strictness, body).unwrap();
    violations
        .iter()
        .map(|violation| violation.rule.id)
        .collect()
}

/// Compacts a body and compares what the provider says of it before and after.
fn stays_legal(
    (provider, format): (Provider, Format),
    body: &Value,
    (policy, share): (&Policy, f64),
) -> Result<(), TestCaseError> {
    let source = body.to_string();
    let before = broken(provider, Strictness::Vendor, source.as_bytes());
    let parsed = parse(source, Some(format), Scope::Live).unwrap();
    let Some(out) = compacted(&parsed, policy, share)? else {
        return Ok(());
    };
    let text: String = String::from_utf8_lossy(&out).chars().take(4000).collect();
    let after = check(provider, Strictness::Vendor, &out).unwrap();
    for violation in after {
        prop_assert!(
            before.contains(violation.rule.id),
            "{} {}: {}\n{text}",
            violation.rule.id,
            violation.rule.name,
            violation.message
        );
    }
    Ok(())
}

/// What a generated history may break by itself: calls at its end wait for results.
fn excused(history: &History, rule: &'static str, broken: &BTreeSet<&'static str>) -> bool {
    let expected: BTreeSet<_> = (history.end == End::Waiting)
        .then_some(rule)
        .into_iter()
        .collect();
    *broken == expected
}

fn thinking() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!({"type": "enabled", "budget_tokens": 1024})),
        Just(json!({"type": "adaptive"})),
        Just(
            json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}})
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn anthropic_bodies(
        history in history(),
        mode in thinking(),
        policy in policy(),
        share in 0.02f64..0.9,
    ) {
        let mut history = history;
        if mode["type"] == "enabled" && history.thinking == history::Thinking::Never {
            history.thinking = history::Thinking::Interleaved;
        }
        let body = anthropic::body(&history, &mode);
        let found = broken(Provider::Anthropic, Strictness::Vendor, body.to_string().as_bytes());
        prop_assert!(excused(&history, "A1", &found), "{found:?}");
        stays_legal((Provider::Anthropic, Format::Anthropic), &body, (&policy, share))?;
    }
}
