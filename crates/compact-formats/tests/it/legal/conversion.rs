//! What is converted for a provider is what that provider accepts, and nothing said is lost.

use compact_core::message::{Block, Conversation};
use compact_formats::validate::{Provider, Strictness, Violation, check};
use compact_formats::{Format, TranscriptScope, convert, parse};
use proptest::prelude::*;
use serde_json::Value;

use super::chat::Dialect;
use super::history::{End, History, history};
use super::{Case, anthropic, chat, gemini, responses, unanswered};
use crate::promise::kept_by_conversion;
use crate::sample::{format, steps, transcript};

/// A history in the words of a provider.
fn converted_body(provider: Provider, history: &History) -> Value {
    match provider {
        Provider::OpenAiChat => chat::body(history, Dialect::OpenRouter),
        Provider::OpenAiResponses => responses::body(history, true, false),
        Provider::Anthropic => anthropic::body(history, &Value::Null),
        Provider::Gemini => gemini::body(history, true),
    }
}

/// Fails when a provider refuses a history that was converted for it. Calls with which it ends may
/// wait.
fn accepted(
    conversation: &Conversation,
    history: &History,
    provider: Provider,
) -> Result<(), TestCaseError> {
    let body = convert(conversation, provider.format()).unwrap().bytes;
    let case = Case {
        provider,
        format: provider.format(),
        history,
        body: Value::Null,
        unanswered: unanswered(provider),
        strictness: Strictness::Vendor,
    };
    case.check(&body, history.end == End::Waiting)
}

fn provider() -> impl Strategy<Value = Provider> {
    prop::sample::select(Provider::ALL.to_vec())
}

/// Ids that some agents make and no provider takes.
fn with_odd_ids(mut conversation: Conversation) -> Conversation {
    for block in conversation.entries.iter_mut().flat_map(|e| &mut e.blocks) {
        if let Block::ToolCall { id, .. } | Block::ToolResult { call: id, .. } = block {
            *id = format!("{id}|fc/{}", "9".repeat(70));
        }
    }
    conversation
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Interrupted calls, parallel calls, asides, instructions and images included.
    #[test]
    fn any_valid_history_converts_to_one_that_is_valid(
        history in history(),
        from in provider(),
        to in provider(),
        is_odd in any::<bool>(),
    ) {
        let source = converted_body(from, &history).to_string();
        let said = parse(source, Some(from.format()), TranscriptScope::Live).unwrap().conversation;
        let said = if is_odd { with_odd_ids(said) } else { said };
        accepted(&said, &history, to)?;
    }

    /// Sessions that begin with the model, end with it, or have two speak in a row.
    #[test]
    fn any_session_converts_to_a_valid_history(from in format(), to in provider(), steps in steps()) {
        let said = parse(transcript(from, &steps), Some(from), TranscriptScope::Live).unwrap().conversation;
        prop_assume!(!kept_by_conversion(&said).concat().is_empty());
        let body = convert(&said, to.format()).unwrap().bytes;
        let refused: Vec<_> = check(to, Strictness::Vendor, &body).unwrap();
        // White space at the end of the model's last words is refused where they are a prefill.
        let refused: Vec<_> = refused.iter().filter(|v| v.rule.id != "A7c").collect();
        prop_assert_eq!(refused, Vec::<&Violation>::new());
    }

    #[test]
    fn a_claude_code_session_comes_back_whole(steps in steps()) {
        let own = Format::ClaudeCode;
        let said = parse(transcript(own, &steps), Some(own), TranscriptScope::Live).unwrap().conversation;
        for provider in Provider::ALL {
            let there = convert(&said, provider.format()).unwrap().bytes;
            let Ok(read) = parse(there, Some(provider.format()), TranscriptScope::Live) else {
                prop_assert!(kept_by_conversion(&said).concat().is_empty());
                continue;
            };
            let back = convert(&read.conversation, own).unwrap().bytes;
            let back = parse(back, Some(own), TranscriptScope::Live).map(|p| p.conversation).unwrap_or_default();
            prop_assert_eq!(kept_by_conversion(&back), kept_by_conversion(&said));
        }
    }
}
