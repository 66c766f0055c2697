//! The view of any valid history, under any policy and budget, is valid for its provider.

mod anthropic;
mod chat;
mod conversion;
mod gemini;
mod history;
mod loop_words;
mod pinned;
mod pinned_exchange;
mod responses;

use compact_core::engine::{self, CompactionInput, CompactionOutcome, Originals};
use compact_core::error::CompactError;
use compact_core::identity::EntryHash;
use compact_core::policy::{KeepRecent, Policy, Prune};
use compact_core::redact::Redactor;
use compact_core::token::{Heuristic, TokenAccount, TokenCache, Tokens};
use compact_core::wire::{Placement, WireRules};
use compact_formats::validate::{Provider, Strictness, Violation, check};
use compact_formats::{Format, ParsedTranscript, TranscriptScope, parse};
use proptest::prelude::*;
use serde_json::{Value, json};

use chat::Dialect;
use history::{End, History, history};

fn policy() -> impl Strategy<Value = Policy> {
    (
        1u32..8,
        1u32..6,
        prop_oneof![
            Just(Prune::Fifo),
            Just(Prune::Recency),
            Just(Prune::StageAware),
            Just(Prune::Semantic)
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
    parsed: &ParsedTranscript,
    rules: &WireRules,
    policy: &Policy,
    share: f64,
) -> Result<Option<Vec<u8>>, TestCaseError> {
    let conversation = &parsed.conversation;
    let hashes = EntryHash::from_entries(&conversation.entries);
    let account = TokenAccount::count_conversation(
        conversation,
        &hashes,
        &Heuristic,
        &mut TokenCache::default(),
    );
    let ledger = engine::session_ledger(conversation, &hashes, None, &Redactor::default());
    let budget = Tokens(((account.history.0 as f64 * share) as u64).max(150));
    let input = CompactionInput::new(conversation, &hashes, &account, &ledger, &Heuristic, budget)
        .policy(policy)
        .rules(rules)
        .originals(Originals::Archived);
    match engine::compact(&input) {
        Ok(CompactionOutcome::Compacted(made)) => {
            let out = parsed.document.emit(conversation, &made.view);
            Ok(Some(out.map_err(|e| TestCaseError::fail(e.to_string()))?))
        }
        Ok(CompactionOutcome::Unchanged) | Err(CompactError::InsufficientBudget { .. }) => Ok(None),
        // A loop that waits for results cannot always be cut; that is said, not worked around.
        Err(CompactError::InvalidView(why)) if why.contains("once the calls are answered") => {
            Ok(None)
        }
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

/// A provider's body under test.
struct Case<'a> {
    provider: Provider,
    format: Format,
    history: &'a History,
    body: Value,
    /// The rules that calls without their results break.
    unanswered: &'static [&'static str],
    strictness: Strictness,
}

/// The rules of a provider that calls without their results break.
fn unanswered(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::OpenAiChat => &["C2"],
        Provider::OpenAiResponses => &["R2"],
        Provider::Anthropic => &["A1"],
        Provider::Gemini => &["G2", "G3c"],
    }
}

impl Case<'_> {
    /// Neither the body nor its view breaks a rule, those aside that calls which still wait for their
    /// results break; and a view mends what an interruption left behind.
    fn stays_legal(&self, policy: &Policy, share: f64) -> Result<(), TestCaseError> {
        let source = self.body.to_string();
        let waits = self.history.end == End::Waiting;
        if !self.history.interrupted {
            self.check(source.as_bytes(), waits)?;
        }
        let parsed = parse(source, Some(self.format), TranscriptScope::Live).unwrap();
        let mut policy = policy.clone();
        if self.history.interrupted {
            // What is both protected and broken stays as it is: protected means untouched.
            policy.protected_patterns.clear();
        }
        let rules = match self.strictness {
            Strictness::Vendor => parsed.document.rules(),
            Strictness::Strict => parsed.document.strict_rules(),
        };
        match compacted(&parsed, rules, &policy, share)? {
            Some(out) => self.check(&out, waits),
            None => Ok(()),
        }
    }

    /// The first message of a body that may hold calls which wait: the last one, or where each call
    /// is an item, as many as the last exchange has.
    fn waiting_from(&self, body: &[u8]) -> usize {
        let body: Value = serde_json::from_slice(body).unwrap();
        let lists = ["messages", "input", "contents"];
        let list = lists.iter().find_map(|key| body[key].as_array()).unwrap();
        let last = self.history.turns.last().unwrap().exchanges.last();
        let calls = last.map_or(1, |exchange| exchange.calls.len());
        let is_item = self.provider == Provider::OpenAiResponses;
        list.len().saturating_sub(if is_item { calls } else { 1 })
    }

    fn check(&self, body: &[u8], excused: bool) -> Result<(), TestCaseError> {
        let violations = check(self.provider, self.strictness, body).unwrap();
        let waiting = self.waiting_from(body);
        let excused = |v: &&Violation| {
            excused && self.unanswered.contains(&v.rule.id) && v.entry >= Some(waiting)
        };
        if let Some(found) = violations.iter().find(|v| !excused(v)) {
            let text: String = String::from_utf8_lossy(body).chars().take(6000).collect();
            let name = found.rule.name;
            return Err(TestCaseError::fail(format!(
                "{} {name}: {}\n{text}",
                found.rule.id, found.message
            )));
        }
        Ok(())
    }
}

/// As many cases as `PROPTEST_CASES` says, else enough for every day.
fn cases() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(150),
    }
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
    #![proptest_config(cases())]

    #[test]
    fn anthropic_bodies(
        history in history(),
        mode in thinking(),
        policy in policy(),
        share in 0.02f64..0.9,
    ) {
        let history = history.thinking_as(&mode);
        let case = Case {
            provider: Provider::Anthropic,
            format: Format::Anthropic,
            body: anthropic::body(&history, &mode),
            history: &history,
            unanswered: unanswered(Provider::Anthropic),
            strictness: Strictness::Vendor,
        };
        case.stays_legal(&policy, share)?;
    }

    #[test]
    fn responses_bodies(
        history in history(),
        store in any::<bool>(),
        sealed in any::<bool>(),
        policy in policy(),
        share in 0.02f64..0.9,
    ) {
        let case = Case {
            provider: Provider::OpenAiResponses,
            format: Format::OpenAiResponses,
            body: responses::body(&history, store || !sealed, sealed),
            history: &history,
            unanswered: unanswered(Provider::OpenAiResponses),
            strictness: Strictness::Vendor,
        };
        case.stays_legal(&policy, share)?;
    }

    #[test]
    fn gemini_bodies(
        history in history(),
        named in any::<bool>(),
        policy in policy(),
        share in 0.02f64..0.9,
    ) {
        let case = Case {
            provider: Provider::Gemini,
            format: Format::Gemini,
            body: gemini::body(&history, named),
            history: &history,
            unanswered: unanswered(Provider::Gemini),
            strictness: Strictness::Vendor,
        };
        case.stays_legal(&policy, share)?;
    }

    #[test]
    fn chat_bodies(
        history in history(),
        dialect in prop::sample::select(&Dialect::ALL[..]),
        policy in policy(),
        share in 0.02f64..0.9,
    ) {
        let case = Case {
            provider: Provider::OpenAiChat,
            format: Format::OpenAiChat,
            body: chat::body(&history, dialect),
            history: &history,
            unanswered: unanswered(Provider::OpenAiChat),
            strictness: Strictness::Vendor,
        };
        case.stays_legal(&policy, share)?;
    }

    #[test]
    fn chat_bodies_for_strict_servers(
        history in history(),
        dialect in prop::sample::select(&Dialect::ALL[..]),
        policy in policy(),
        share in 0.02f64..0.9,
    ) {
        let history = history.strict();
        let case = Case {
            provider: Provider::OpenAiChat,
            format: Format::OpenAiChat,
            body: chat::body(&history, dialect),
            history: &history,
            unanswered: &["C2", "C5a"],
            strictness: Strictness::Strict,
        };
        case.stays_legal(&policy, share)?;
    }

    #[test]
    fn anthropic_bodies_for_strict_servers(
        history in history(),
        mode in thinking(),
        policy in policy(),
        share in 0.02f64..0.9,
    ) {
        let history = history.strict().thinking_as(&mode);
        let case = Case {
            provider: Provider::Anthropic,
            format: Format::Anthropic,
            body: anthropic::body(&history, &mode),
            history: &history,
            unanswered: &["A1", "A7b"],
            strictness: Strictness::Strict,
        };
        case.stays_legal(&policy, share)?;
    }

    #[test]
    fn gemini_and_responses_bodies_for_strict_servers(
        history in history(),
        policy in policy(),
        share in 0.02f64..0.9,
    ) {
        let gemini = Case {
            provider: Provider::Gemini,
            format: Format::Gemini,
            body: gemini::without_thoughts(gemini::body(&history, true)),
            history: &history,
            unanswered: unanswered(Provider::Gemini),
            strictness: Strictness::Strict,
        };
        gemini.stays_legal(&policy, share)?;
        let responses = Case {
            provider: Provider::OpenAiResponses,
            format: Format::OpenAiResponses,
            body: responses::body(&history, true, true),
            unanswered: unanswered(Provider::OpenAiResponses),
            ..gemini
        };
        responses.stays_legal(&policy, share)?;
    }
}
