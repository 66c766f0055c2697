use proptest::prelude::*;
use serde_json::Value;

use super::canonical::canonical_form;
use super::*;
use crate::message::{EntryId, EntryMeta, Role};

fn call(arguments: &str) -> Entry {
    let block = Block::ToolCall {
        id: "c".to_owned(),
        name: "write".to_owned(),
        arguments: arguments.to_owned(),
    };
    entry(Role::Assistant, block)
}

fn answer(content: &str) -> Entry {
    let block = Block::ToolResult {
        call: "c".to_owned(),
        content: content.to_owned(),
        is_error: false,
    };
    entry(Role::Tool, block)
}

fn entry(role: Role, block: Block) -> Entry {
    Entry {
        id: EntryId("e".to_owned()),
        role,
        blocks: vec![block],
        meta: EntryMeta::default(),
    }
}

#[test]
fn json_has_one_spelling() {
    let spellings = [
        r#"{"path":"café/a.rs","n":[1.0,1e3],"text":"a\n\"b\" \\ \u001b 😀"}"#,
        "{ \"path\" : \"caf\\u00E9\\/a.rs\",\n\t\"n\": [1.0, 1e3], \"text\": \"a\\u000a\\u0022b\\u0022 \\u005c \\u001B \\ud83d\\ude00\" }\r\n",
    ];
    for spelling in spellings {
        assert_eq!(canonical_form(spelling), spellings[0]);
        assert_eq!(
            EntryHash::from_entry(&call(spelling)),
            EntryHash::from_entry(&call(spellings[0]))
        );
        assert_eq!(
            EntryHash::from_entry(&answer(spelling)),
            EntryHash::from_entry(&answer(spellings[0]))
        );
    }
    assert_eq!(
        canonical_form(r#"["\uD800 \udc00x"]"#),
        r#"["\ud800 \udc00x"]"#
    );
}

#[test]
fn what_is_no_json_or_says_something_else_stays_apart() {
    let texts = [
        "{ a }",
        "{a}",
        "{\"a\": 1",
        "{\"a\":1",
        "[1, 2] and",
        "[1,2] and",
        "a b",
        "ab",
        " \"a\"",
        "\"a\"",
        "{\"a\":1}",
        "{\"a\":1.0}",
        "{\"b\":1,\"a\":1}",
        "{\"a\":1,\"b\":1}",
        "{\"a\":\"x y\"}",
        "{\"a\":\"xy\"}",
        "",
        " ",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\",
        "{\"\\u12",
    ];
    for (i, one) in texts.iter().enumerate() {
        assert_eq!(canonical_form(one), *one);
        for other in texts.iter().skip(i + 1) {
            assert_ne!(
                EntryHash::from_entry(&call(one)),
                EntryHash::from_entry(&call(other)),
                "{one} {other}"
            );
        }
    }
}

/// What was on record before is found again as long as its JSON was in this form.
#[test]
fn the_canonical_form_has_the_hash_it_had() {
    let (plain, spaced) = (call(r#"{"a":"é\n"}"#), call(r#"{"a": "é\n"}"#));
    assert_eq!(EntryHash::from_entry(&plain), EntryHash::as_written(&plain));
    assert_ne!(
        EntryHash::from_entry(&spaced),
        EntryHash::as_written(&spaced)
    );
    assert_eq!(
        EntryHash::from_entry(&spaced).to_string(),
        "ca0b485439a8de57a023388b49a72f3d"
    );
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[\\x00-\\x7f\u{2028}é😀\"\\\\/]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// JSON with blanks between its tokens and every other character escaped that may be.
fn respelt(value: &Value) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut units = [0; 2];
    let escaped = pretty.chars().map(|c| match c.is_ascii() {
        true => c.to_string(),
        false => c
            .encode_utf16(&mut units)
            .iter()
            .map(|u| format!("\\u{u:04X}"))
            .collect(),
    });
    escaped.collect()
}

proptest! {
    #[test]
    fn a_client_that_writes_json_again_changes_nothing(value in json()) {
        let list = Value::Array(vec![value]);
        let plain = list.to_string();
        let other = respelt(&list);
        prop_assert_eq!(canonical_form(&other), plain.as_str());
        prop_assert!(matches!(canonical_form(&plain), Cow::Borrowed(_)));
    }

    #[test]
    fn any_text_has_a_form_that_says_the_same(text in "[\\[{\"\\\\u0-9a-f\\]}:, \n]{0,40}") {
        let form = canonical_form(&text);
        prop_assert_eq!(canonical_form(&form), &*form);
        let read = |text: &str| serde_json::from_str::<Value>(text).ok();
        prop_assert_eq!(read(&form), read(&text));
    }
}
