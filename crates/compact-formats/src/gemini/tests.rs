//! Features of Gemini bodies, one small body each.

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};
use serde_json::{Value, json};

use crate::{Format, ParsedTranscript, TranscriptScope, parse};

fn read(body: &Value) -> ParsedTranscript {
    parse(
        body.to_string(),
        Some(Format::Gemini),
        TranscriptScope::Live,
    )
    .unwrap()
}

fn emitted(parsed: &ParsedTranscript, items: Vec<ViewItem>) -> Value {
    let out = parsed
        .document
        .emit(&parsed.conversation, &View { items })
        .unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn kept(entries: impl IntoIterator<Item = usize>) -> Vec<ViewItem> {
    let item = |entry| ViewItem::Kept { entry };
    entries.into_iter().map(item).collect()
}

/// Two calls of one function and one of another, answered out of order and without ids.
fn parallel() -> Value {
    json!([
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [
            {"text": "hm", "thought": true},
            {"functionCall": {"name": "a", "args": {"n": 1}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "b"}},
            {"functionCall": {"name": "a", "args": {"n": 2}}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "b", "response": {"error": "no"}}},
            {"functionResponse": {"name": "a", "response": {"output": "one"}}},
            {"functionResponse": {"name": "a", "response": {"rows": [2]}}},
            {"text": "now stop"},
        ]},
    ])
}

#[test]
fn calls_without_ids_are_paired_by_name_and_order() {
    let entries = read(&parallel()).conversation.entries;
    let calls: Vec<&str> = entries[1].call_ids().collect();
    assert_eq!(calls, ["call-1-1", "call-1-2", "call-1-3"]);
    let results: Vec<&str> = entries[2].result_ids().collect();
    assert_eq!(results, ["call-1-2", "call-1-1", "call-1-3"]);
    assert_eq!(
        entries[2].blocks[0],
        Block::ToolResult {
            call: "call-1-2".to_owned(),
            content: "no".to_owned(),
            is_error: true
        }
    );
    assert_eq!(entries[2].blocks[2].text_parts()[0], "{\"rows\":[2]}");
}

/// Clients put there what a tool read; whose words they are cannot be seen, so they are not the user's.
#[test]
fn words_after_responses_stay_with_them() {
    let parsed = read(&parallel());
    let entries = &parsed.conversation.entries;
    assert_eq!((entries.len(), entries[2].role), (3, Role::Tool));
    assert_eq!(entries[2].blocks[3], Block::Text("now stop".to_owned()));
    assert_eq!(emitted(&parsed, kept([1, 2]))[1], parallel()[2]);
}

#[test]
fn a_response_with_an_id_answers_a_call_without_one() {
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let answer = |id: &str, name: &str| json!({"functionResponse": {"id": id, "name": name, "response": {"output": name}}});
    let parsed = read(&json!([
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": [call("a"), call("b")]},
        {"role": "user", "parts": [answer("x#0", "b"), answer("x#1", "a")]},
    ]));
    let entries = &parsed.conversation.entries;
    let calls = entries[1].blocks.iter().filter_map(|block| match block {
        Block::ToolCall { id, .. } => Some(id.as_str()),
        _ => None,
    });
    let answered = entries[2].blocks.iter().filter_map(|block| match block {
        Block::ToolResult { call, .. } => Some(call.as_str()),
        _ => None,
    });
    let calls: Vec<&str> = calls.collect();
    assert_eq!(answered.collect::<Vec<_>>(), [calls[1], calls[0]]);
    assert!(entries.iter().all(|entry| !entry.meta.malformed));
}

#[test]
fn a_response_stays_an_object_and_a_signature_where_it_is() {
    let parsed = read(&parallel());
    let set = |at: usize, text: &str| (at, BlockEdit::SetText(text.to_owned()));
    let items = vec![
        ViewItem::Edited {
            entry: 1,
            edits: vec![set(1, "{\"n\":0}")],
        },
        ViewItem::Edited {
            entry: 2,
            edits: vec![set(1, "short"), set(2, "cut")],
        },
    ];
    let contents = emitted(&parsed, items);
    assert_eq!(
        contents[0]["parts"][1],
        json!({"functionCall": {"name": "a", "args": {"n": 0}}, "thoughtSignature": "c2ln"})
    );
    assert_eq!(
        contents[1]["parts"],
        json!([
            {"functionResponse": {"name": "b", "response": {"error": "no"}}},
            {"functionResponse": {"name": "a", "response": {"output": "short"}}},
            {"functionResponse": {"name": "a", "response": {"output": "cut"}}},
            {"text": "now stop"},
        ])
    );
}

#[test]
fn snake_case_reads_alike() {
    let parsed = read(&json!({
        "system_instruction": {"parts": [{"text": "be good"}]},
        "contents": [
            {"parts": [{"text": "go"}, {"inline_data": {"mime_type": "image/png", "data": "AA"}}]},
            {"role": "model", "parts": [{"function_call": {"id": "c", "name": "a", "args": {}}, "thought_signature": "x"}]},
            {"role": "user", "parts": [{"function_response": {"id": "c", "name": "a", "response": {}}}]},
        ],
    }));
    let entries = &parsed.conversation.entries;
    let roles: Vec<Role> = entries.iter().map(|e| e.role).collect();
    assert_eq!(
        roles,
        [Role::System, Role::User, Role::Assistant, Role::Tool]
    );
    assert!(matches!(&entries[1].blocks[1], Block::Media { label, .. } if label == "image/png"));
    assert_eq!(entries[3].result_ids().collect::<Vec<_>>(), ["c"]);
    let mut items = kept([0]);
    items.push(ViewItem::New(Entry::from_text("s", Role::System, "so far")));
    items.extend(kept([1]));
    assert_eq!(
        emitted(&parsed, items)["system_instruction"],
        json!({"parts": [{"text": "be good"}, {"text": "so far"}]})
    );
}

#[test]
fn a_call_of_ours_is_signed_once() {
    let call = |id: &str| Block::ToolCall {
        id: id.to_owned(),
        name: "a".to_owned(),
        arguments: "{}".to_owned(),
    };
    let mut entry = Entry::from_text("n", Role::Assistant, "");
    entry.blocks = vec![call("1"), call("2")];
    let parsed = read(&parallel());
    assert_eq!(
        emitted(&parsed, vec![ViewItem::New(entry)])[0]["parts"],
        json!([
            {"functionCall": {"id": "1", "name": "a", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"},
            {"functionCall": {"id": "2", "name": "a", "args": {}}},
        ])
    );
}

#[test]
fn what_the_client_wrote_is_not_the_user_speaking() {
    let kind = |text: &str| {
        let body = json!([{"role": "user", "parts": [{"text": text}]}]);
        read(&body).conversation.entries[0].meta.kind.clone()
    };
    assert_eq!(
        kind("<session_context>x</session_context>"),
        EntryKind::Injected
    );
    assert_eq!(
        kind("<state_snapshot>x</state_snapshot>"),
        EntryKind::ForeignSummary
    );
    assert_eq!(kind("go"), EntryKind::Message);
}

#[test]
fn cached_instructions_are_not_written_over() {
    let body = json!({"cachedContent": "cachedContents/1", "contents": []});
    assert_eq!(read(&body).document.rules().name, "gemini-contents");
}

#[test]
fn a_body_is_told_by_its_contents() {
    let told = |body: Value| crate::detect(body.to_string().as_bytes()).unwrap();
    assert_eq!(told(json!({"contents": parallel()})), Format::Gemini);
    assert_eq!(told(parallel()), Format::Gemini);
}
