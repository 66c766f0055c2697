//! A list that grew is read as if it had been read at once.

use compact_formats::{Format, ParsedTranscript, TranscriptScope, parse};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::sample::{Step, steps, transcript};

const LISTS: [&str; 3] = ["messages", "input", "contents"];

/// A body without its list, under which name that stands, and its messages.
pub(crate) fn split(format: Format, steps: &[Step]) -> (Value, Option<&'static str>, Vec<String>) {
    let mut body: Value = serde_json::from_slice(&transcript(format, steps)).unwrap();
    let key = LISTS.into_iter().find(|key| body.get(key).is_some());
    let list = match key {
        Some(key) => body.as_object_mut().unwrap().remove(key).unwrap(),
        None => body.take(),
    };
    let list = list.as_array().unwrap().iter().map(Value::to_string);
    (body, key, list.collect())
}

fn join(body: &Value, key: Option<&str>, messages: &[String]) -> String {
    let list = messages.join(",");
    match key {
        None => format!("[{list}]"),
        Some(key) => {
            let head = body.to_string();
            let head = head.strip_suffix('}').unwrap();
            let comma = if head.ends_with('{') { "" } else { "," };
            format!("{head}{comma}\"{key}\":[{list}]}}")
        }
    }
}

fn read(source: String, format: Format) -> ParsedTranscript {
    parse(source, Some(format), TranscriptScope::Live).unwrap()
}

/// Everything that a reader gets to know of a document.
pub(crate) fn seen_of(parsed: &ParsedTranscript) -> impl PartialEq + std::fmt::Debug + use<> {
    let document = &parsed.document;
    let entries = 0..parsed.conversation.entries.len();
    let bytes = |found: Option<&[u8]>| found.map(<[u8]>::to_vec);
    let places: Vec<_> = entries
        .map(|at| {
            (
                bytes(document.entry_bytes(at)),
                bytes(document.record_bytes(at)),
            )
        })
        .collect();
    let messages: Vec<_> = (0..99)
        .map(|at| bytes(document.message_bytes(at)))
        .collect();
    (
        document.original().to_vec(),
        parsed.conversation.clone(),
        places,
        messages,
        document.rules().name,
    )
}

/// Reads some messages and adds the rest; `None` where all must be read at once.
fn grow(
    format: Format,
    steps: &[Step],
    first: usize,
) -> Option<(ParsedTranscript, ParsedTranscript)> {
    let (body, key, messages) = split(format, steps);
    // A session in which nobody spoke has nothing to begin with.
    let first = 1 + first.checked_rem(messages.len())?;
    let whole = read(join(&body, key, &messages), format);
    let mut grown = read(join(&body, key, &messages[..first]), format);
    let added: Vec<&str> = messages[first..].iter().map(String::as_str).collect();
    let entries = grown.document.grow(&grown.conversation, &added)?;
    grown.conversation.entries.extend(entries);
    Some((grown, whole))
}

proptest! {
    #[test]
    fn what_grew_is_read_as_if_it_had_been_read_at_once(
        steps in steps(),
        first in 0_usize..99,
        format in prop::sample::select(&[
            Format::OpenAiChat,
            Format::Messages,
            Format::Anthropic,
            Format::OpenAiResponses,
            Format::Gemini,
        ][..]),
    ) {
        if let Some((grown, whole)) = grow(format, &steps, first) {
            prop_assert_eq!(seen_of(&grown), seen_of(&whole));
        }
    }
}

/// One more turn, with calls and without, is what most calls add: it must not be read with everything before it.
#[test]
fn an_ordinary_turn_is_read_alone() {
    let exchange = || Step::Exchange {
        thought: "why".to_owned(),
        results: vec!["one".to_owned(), "two".to_owned()],
    };
    let turn = || {
        [
            Step::User("do it".to_owned()),
            exchange(),
            Step::Assistant("done".to_owned()),
        ]
    };
    let steps: Vec<Step> = turn().into_iter().chain(turn()).collect();
    for format in [
        Format::OpenAiChat,
        Format::Messages,
        Format::Anthropic,
        Format::Gemini,
    ] {
        let (_, _, half) = split(format, &turn());
        let made = grow(format, &steps, half.len() - 1);
        assert!(made.is_some(), "{format}");
    }
}

#[test]
fn what_depends_on_earlier_messages_is_left_to_a_reader_of_all() {
    let first = r#"[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"x","content":"1"}]"#;
    let rows = [
        (
            json!({"role": "tool", "tool_call_id": "x", "content": "again"}),
            false,
        ),
        (json!({"role": "tool", "content": "whose?"}), false),
        (
            json!({"role": "function", "name": "f", "content": "2"}),
            false,
        ),
        (json!({"role": "nobody", "content": "?"}), false),
        (json!("no message"), false),
        (json!({"role": "user", "content": "go on"}), true),
    ];
    for (message, expected) in rows {
        let mut parsed = read(first.to_owned(), Format::OpenAiChat);
        let before = parsed.document.original().to_vec();
        let grown = parsed
            .document
            .grow(&parsed.conversation, &[&message.to_string()]);
        assert_eq!(grown.is_some(), expected, "{message}");
        if grown.is_none() {
            assert_eq!(parsed.document.original(), before, "nothing has changed");
        }
    }
}
