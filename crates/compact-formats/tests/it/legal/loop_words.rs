//! Words that stand in one message with the results of a running tool loop: the loop goes on, and what the provider
//! bound to it must go back.

use compact_core::policy::Policy;
use compact_formats::validate::{Provider, Strictness, Violation, check};
use compact_formats::{Format, TranscriptScope, parse};
use serde_json::{Value, json};

use super::compacted;

const WISH: &str = "Also update the docs.";
const INTERRUPTION: &str = "[Request interrupted by user for tool use]";
const REMINDER: &str = "<system-reminder>\nThe file was changed.\n</system-reminder>";

/// A turn of many steps, with `texts` behind the newest results.
fn running_loop(mode: &Value, texts: &[&str]) -> Value {
    let steps = (0..30).flat_map(|n| {
        let id = format!("toolu_{n}");
        let thought = json!({"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"});
        let call = json!({"type": "tool_use", "id": id, "name": "run", "input": {"n": n}});
        let content = format!("src_{n}.rs: fine. ").repeat(60);
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        [
            json!({"role": "assistant", "content": [thought, call]}),
            json!({"role": "user", "content": [result]}),
        ]
    });
    let mut messages = vec![json!({"role": "user", "content": "Port the parser."})];
    messages.extend(steps);
    if let Some(last) = messages
        .last_mut()
        .and_then(|m| m["content"].as_array_mut())
    {
        last.extend(
            texts
                .iter()
                .map(|text| json!({"type": "text", "text": text})),
        );
    }
    json!({
        "model": "m", "max_tokens": 4096, "thinking": mode, "messages": messages,
        "tools": [{"name": "run", "input_schema": {"type": "object"}}],
    })
}

/// The rules that the view of a body breaks.
fn broken_rules(body: &Value) -> Vec<Violation> {
    let parsed = parse(
        body.to_string(),
        Some(Format::Anthropic),
        TranscriptScope::Live,
    );
    let parsed = parsed.unwrap();
    let rules = parsed.document.rules();
    let view = compacted(&parsed, rules, &Policy::default(), 0.3).unwrap();
    // There is one: the body is too long for its budget.
    check(Provider::Anthropic, Strictness::Vendor, &view.unwrap()).unwrap()
}

#[test]
fn a_loop_with_words_beside_its_results_begins_with_thinking() {
    let enabled = json!({"type": "enabled", "budget_tokens": 1024});
    for mode in [enabled, json!({"type": "adaptive"})] {
        for texts in [
            &[][..],
            &[WISH],
            &[REMINDER],
            &[INTERRUPTION, WISH],
            &[WISH, REMINDER],
        ] {
            let body = running_loop(&mode, texts);
            assert_eq!(broken_rules(&body), [], "{mode} {texts:?}");
        }
    }
}
