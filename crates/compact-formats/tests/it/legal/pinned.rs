//! Any history, any of its messages protected, any policy and budget: what is protected stands in
//! the view as it stood, compaction after compaction, or there is no view.

use std::collections::HashSet;

use compact_core::identity::EntryHash;
use compact_core::message::{Block, Conversation, Entry};
use compact_core::policy::Policy;
use compact_formats::validate::{Provider, Strictness, check};
use compact_formats::{Format, ParsedTranscript, TranscriptScope, parse};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::chat::Dialect;
use super::history::{End, History, Thinking, history};
use super::{anthropic, chat, compacted, gemini, policy, responses};

/// How often the view is compacted again, with more said behind it.
const COMPACTIONS: usize = 6;

const LISTS: [&str; 3] = ["messages", "input", "contents"];

fn list(body: &Value) -> &'static str {
    LISTS.into_iter().find(|key| body[*key].is_array()).unwrap()
}

/// The messages of a body, as they stand in it.
fn raw(body: &[u8]) -> Vec<String> {
    let members: std::collections::BTreeMap<String, &RawValue> =
        serde_json::from_slice(body).unwrap();
    let key = LISTS.into_iter().find(|key| members.contains_key(*key));
    let elements: Vec<&RawValue> = serde_json::from_str(members[key.unwrap()].get()).unwrap();
    elements.iter().map(|e| e.get().to_owned()).collect()
}

/// The body with some of its messages protected.
fn protect(mut body: Value, chosen: &[bool]) -> Value {
    let key = list(&body);
    for (message, chosen) in body[key].as_array_mut().unwrap().iter_mut().zip(chosen) {
        if *chosen {
            message["meta"] = json!({"protected": true, "turn_id": 7});
        }
    }
    body
}

fn is_protected(message: &str) -> bool {
    message.contains(r#""meta":{"protected":true"#)
}

/// What is said, in an order of its own: identity without ids and reasoning.
fn words(entry: &Entry) -> (EntryHash, usize) {
    let is_seen = |b: &&Block| matches!(b, Block::Media { .. } | Block::Opaque { .. });
    (
        EntryHash::from_entry(entry),
        entry.blocks.iter().filter(is_seen).count(),
    )
}

fn protected_words(conversation: &Conversation) -> HashSet<(EntryHash, usize)> {
    let protected = |e: &&Entry| e.meta.flags.contains("protected");
    let speaks = |e: &&Entry| {
        e.blocks
            .iter()
            .any(|b| !matches!(b, Block::Reasoning { .. }))
    };
    let entries = conversation.entries.iter();
    entries
        .filter(protected)
        .filter(speaks)
        .map(words)
        .collect()
}

fn read(body: &[u8], format: Format) -> ParsedTranscript {
    parse(body.to_vec(), Some(format), TranscriptScope::Live).unwrap()
}

/// What a person and the model say next, in the words of the provider.
fn more(provider: Provider, round: usize) -> Vec<Value> {
    let (ask, reply) = (format!("and now {round}?"), "so it is ".repeat(60 + round));
    match provider {
        Provider::Gemini => vec![
            json!({"role": "model", "parts": [{"text": reply}]}),
            json!({"role": "user", "parts": [{"text": ask}]}),
        ],
        _ => vec![
            json!({"role": "assistant", "content": reply}),
            json!({"role": "user", "content": ask}),
        ],
    }
}

struct Chain<'a> {
    provider: Provider,
    policy: &'a Policy,
    /// True when nothing of a message is bound to what stands before it.
    is_free: bool,
}

impl Chain<'_> {
    fn run(&self, body: &Value, shares: &[f64]) -> Result<(), TestCaseError> {
        let mut body = body.to_string().into_bytes();
        for (round, share) in shares.iter().enumerate() {
            let parsed = read(&body, self.provider.format());
            let rules = parsed.document.rules();
            if let Some(view) = compacted(&parsed, rules, self.policy, *share)? {
                self.check(&parsed, &body, &view)?;
                body = view;
            }
            let mut grown: Value = serde_json::from_slice(&body).unwrap();
            let key = list(&grown);
            grown[key]
                .as_array_mut()
                .unwrap()
                .extend(more(self.provider, round));
            body = grown.to_string().into_bytes();
        }
        Ok(())
    }

    fn check(
        &self,
        parsed: &ParsedTranscript,
        before: &[u8],
        view: &[u8],
    ) -> Result<(), TestCaseError> {
        let shown = raw(view);
        let after = read(view, self.provider.format());
        let wanted = protected_words(&parsed.conversation);
        let mut entries = parsed.conversation.entries.iter();
        let is_read = entries.any(|e| e.meta.flags.contains("protected"));
        prop_assert_eq!(is_read, raw(before).iter().any(|m| is_protected(m)));
        let said: HashSet<_> = after.conversation.entries.iter().map(words).collect();
        prop_assert!(wanted.is_subset(&said));
        if self.is_free {
            prop_assert_eq!(
                &wanted,
                &protected_words(&after.conversation),
                "{}\n{}",
                String::from_utf8_lossy(before),
                String::from_utf8_lossy(view)
            );
            let before = raw(before);
            let is_as_it_was = |m: &&String| !is_protected(m) || before.contains(m);
            prop_assert_eq!(shown.iter().find(|m| !is_as_it_was(m)), None);
        }
        let bare = after.document.without_flags().unwrap();
        let found = check(self.provider, Strictness::Vendor, &bare).unwrap();
        let own = found.iter().find(|v| v.rule.name == "known-members");
        prop_assert!(own.is_none(), "{own:?}");
        prop_assert!(!raw(&bare).iter().any(|m| is_protected(m)));
        Ok(())
    }
}

/// How many histories are tried; `COMPACT_TRIALS` asks for more.
fn trials() -> u32 {
    let given = std::env::var("COMPACT_TRIALS").ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(100)
}

fn flags() -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec(prop::bool::weighted(0.25), 60)
}

fn shares() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.1f64..0.95, COMPACTIONS)
}

/// Histories that go on: none of their calls wait.
fn settled() -> impl Strategy<Value = History> {
    history().prop_map(|mut history| {
        history.interrupted = false;
        if history.end == End::Waiting {
            history.end = End::Answered;
        }
        history
    })
}

fn body(provider: Provider, history: &History) -> Value {
    match provider {
        Provider::OpenAiChat => chat::body(history, Dialect::OpenAi),
        Provider::OpenAiResponses => responses::body(history, true, true),
        Provider::Anthropic => anthropic::body(history, &json!({"type": "adaptive"})),
        Provider::Gemini => gemini::body(history, true),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(trials()))]

    #[test]
    fn what_is_protected_stands_as_it_stood(
        history in settled(),
        provider in prop::sample::select(&Provider::ALL[..]),
        chosen in flags(),
        mut policy in policy(),
        shares in shares(),
    ) {
        let is_free = history.thinking == Thinking::Never;
        if is_free {
            // Of what is protected twice, by a flag and by a pattern, either may stand.
            policy.protected_patterns.clear();
        }
        let chain = Chain {
            provider,
            policy: &policy,
            is_free,
        };
        chain.run(&protect(body(provider, &history), &chosen), &shares)?;
    }
}
