//! Histories that each provider takes or refuses, one per line of `validate/*.jsonl`.
//!
//! `expect` names the rules that a history breaks, none for one that is fine; `strict` asks for the
//! stricter servers too.

use std::collections::BTreeSet;

use compact_formats::FormatError;
use compact_formats::validate::{Provider, Strictness, Violation, check, rules};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case<'a> {
    name: &'a str,
    expect: Vec<String>,
    #[serde(default)]
    strict: bool,
    #[serde(borrow)]
    body: &'a RawValue,
}

impl Case<'_> {
    fn found(&self, provider: Provider) -> Vec<Violation> {
        let strictness = match self.strict {
            true => Strictness::Strict,
            false => Strictness::Vendor,
        };
        check(provider, strictness, self.body.get().as_bytes()).unwrap()
    }
}

fn cases(provider: Provider) -> Vec<Case<'static>> {
    let lines = match provider {
        Provider::OpenAiChat => include_str!("validate/chat.jsonl"),
        Provider::OpenAiResponses => include_str!("validate/responses.jsonl"),
        Provider::Anthropic => include_str!("validate/anthropic.jsonl"),
        Provider::Gemini => include_str!("validate/gemini.jsonl"),
    };
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

#[test]
fn each_history_breaks_what_it_says_and_nothing_else() {
    let mut wrong = Vec::new();
    for provider in Provider::ALL {
        for case in cases(provider) {
            let violations = case.found(provider);
            let found: BTreeSet<&str> = violations.iter().map(|v| v.rule.id).collect();
            let expected: BTreeSet<&str> = case.expect.iter().map(String::as_str).collect();
            if found != expected {
                wrong.push(format!("{provider} {}: {violations:#?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_are_forty_of_each_and_every_rule_is_broken_once() {
    for provider in Provider::ALL {
        let cases = cases(provider);
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
        assert_eq!(
            names.len(),
            cases.len(),
            "{provider}: two cases of one name"
        );
        let valid = cases.iter().filter(|case| case.expect.is_empty()).count();
        let invalid = cases.iter().filter(|case| case.expect.len() == 1).count();
        assert!(
            valid >= 40 && invalid >= 40,
            "{provider}: {valid} valid, {invalid} invalid"
        );
        let broken: BTreeSet<&str> = cases
            .iter()
            .flat_map(|c| &c.expect)
            .map(String::as_str)
            .collect();
        // A history of 100,001 messages has a test of its own.
        let checked = rules(provider)
            .iter()
            .filter(|rule| rule.is_checked() && rule.id != "A20");
        let unbroken: Vec<&str> = checked
            .map(|r| r.id)
            .filter(|id| !broken.contains(id))
            .collect();
        assert!(
            unbroken.is_empty(),
            "{provider}: no case breaks {unbroken:?}"
        );
    }
}

#[test]
fn rules_have_names_and_sources() {
    for provider in Provider::ALL {
        let all = rules(provider);
        let ids: BTreeSet<&str> = all.iter().map(|rule| rule.id).collect();
        let names: BTreeSet<&str> = all.iter().map(|rule| rule.name).collect();
        assert_eq!(
            (ids.len(), names.len()),
            (all.len(), all.len()),
            "{provider}"
        );
        for rule in all {
            assert_eq!(rule.provider, provider);
            assert!(
                !rule.summary.is_empty() && !rule.source.is_empty(),
                "{rule:?}"
            );
            assert!(rule.is_checked() || rule.unseen.is_some(), "{rule:?}");
        }
    }
}

#[test]
fn a_body_a_list_and_lines_are_the_same_history() {
    let lines = "{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"x\"}\n";
    let list = "[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"x\"}]";
    let body = format!("\u{feff}{{\"model\":\"m\",\"messages\":{list}}}");
    let found =
        |source: &str| check(Provider::OpenAiChat, Strictness::Vendor, source.as_bytes()).unwrap();
    let violations = found(list);
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].rule.name, "result-needs-call");
    assert_eq!(violations[0].entry, Some(1));
    assert_eq!(found(lines), violations);
    assert_eq!(found(&body), violations);
}

#[test]
fn anthropic_takes_100_000_messages_and_not_one_more() {
    let of = |pairs: usize| {
        let pair =
            "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n";
        let source = pair.repeat(pairs);
        check(Provider::Anthropic, Strictness::Vendor, source.as_bytes()).unwrap()
    };
    assert_eq!(of(50_000), []);
    let ids: Vec<&str> = of(50_001).iter().map(|v| v.rule.id).collect();
    assert_eq!(ids, ["A20"]);
}

#[test]
fn what_is_not_json_is_an_error_with_its_place() {
    let fails = |source: &[u8]| check(Provider::Anthropic, Strictness::Vendor, source).unwrap_err();
    assert!(matches!(fails(b" \n"), FormatError::Empty));
    assert!(matches!(fails(b"\xff"), FormatError::Utf8 { .. }));
    let error = fails(b"{\"messages\": [\n  {\"role\": user}\n]}");
    assert_eq!(
        error.to_string(),
        "line 2, column 12: not valid JSON: expected value; fix or remove it"
    );
    let error = fails(b"{\"role\":\"user\"}\n{\"role\":\n{\"role\":\"user\"}\n");
    assert_eq!(
        error.to_string(),
        "line 2, column 8: not valid JSON: EOF while parsing a value; fix or remove it"
    );
}

/// A Claude Code session whose only call has no result.
const OPEN_SESSION: &str = r#"{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user","uuid":"u1","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"hi"}}
{"parentUuid":"u1","isSidechain":false,"sessionId":"s","type":"assistant","uuid":"u2","timestamp":"2026-01-01T00:00:01.000Z","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}]}}
"#;

#[test]
fn an_agents_transcript_is_checked_as_the_provider_would_get_it() {
    for (provider, id) in [
        (Provider::Anthropic, "A1"),
        (Provider::OpenAiChat, "C2"),
        (Provider::OpenAiResponses, "R2"),
        (Provider::Gemini, "G2"),
    ] {
        let found = check(provider, Strictness::Vendor, OPEN_SESSION.as_bytes()).unwrap();
        let ids: Vec<&str> = found.iter().map(|v| v.rule.id).collect();
        assert_eq!(ids, [id], "{found:?}");
    }
}

/// Every value in the place of every other value: found or not, but never a panic.
#[test]
fn no_shape_makes_a_rule_panic() {
    let odd = [
        "null", "true", "0", "-1.5e300", "\"\"", "\"a\"", "[]", "{}", "[null]", "[[]]",
    ];
    for provider in Provider::ALL {
        for case in cases(provider) {
            let body: serde_json::Value = serde_json::from_str(case.body.get()).unwrap();
            let paths = pointers(&body);
            for (i, path) in paths.iter().enumerate() {
                let mut body = body.clone();
                let value = serde_json::from_str(odd[i % odd.len()]).unwrap();
                *body.pointer_mut(path).unwrap() = value;
                let source = body.to_string();
                check(provider, Strictness::Strict, source.as_bytes()).unwrap();
            }
        }
    }
}

fn pointers(value: &serde_json::Value) -> Vec<String> {
    let children: Vec<(String, &serde_json::Value)> = match value {
        serde_json::Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(i, v)| (i.to_string(), v))
            .collect(),
        serde_json::Value::Object(fields) => fields
            .iter()
            .map(|(k, v)| (k.replace('~', "~0").replace('/', "~1"), v))
            .collect(),
        _ => Vec::new(),
    };
    let below = children
        .iter()
        .flat_map(|(key, v)| pointers(v).into_iter().map(move |p| format!("/{key}{p}")));
    std::iter::once(String::new()).chain(below).collect()
}
