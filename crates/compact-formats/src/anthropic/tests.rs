//! Features of Anthropic messages, one small body each.

use compact_core::message::{Block, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};
use serde_json::{Value, json};

use crate::{Format, ParsedTranscript, TranscriptScope, parse};

fn read(body: &Value) -> ParsedTranscript {
    parse(
        body.to_string(),
        Some(Format::Anthropic),
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

fn new(role: Role, text: &str) -> ViewItem {
    ViewItem::New(compact_core::message::Entry::from_text("n", role, text))
}

fn tool_loop() -> Value {
    json!({
        "system": "be good",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "abcd"},
                {"type": "tool_use", "id": "t1", "name": "run", "input": {"cmd": "ls"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "a.rs", "is_error": true},
                {"type": "text", "text": "<system-reminder>tick</system-reminder>"},
                {"type": "text", "text": "now stop"},
            ]},
        ],
    })
}

#[test]
fn words_after_results_are_a_message_of_their_own() {
    let entries = read(&tool_loop()).conversation.entries;
    let roles: Vec<Role> = entries.iter().map(|e| e.role).collect();
    assert_eq!(
        roles,
        [
            Role::System,
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::User
        ]
    );
    let continues: Vec<bool> = entries.iter().map(|e| e.meta.continues).collect();
    assert_eq!(continues, [false, false, false, false, true]);
    assert!(entries[4].is_user_message());
    assert_eq!(
        entries[2].blocks,
        [
            Block::Reasoning {
                text: "hm".to_owned(),
                replay_bytes: 4
            },
            Block::ToolCall {
                id: "t1".to_owned(),
                name: "run".to_owned(),
                arguments: "{\"cmd\":\"ls\"}".to_owned()
            }
        ]
    );
}

#[test]
fn a_reminder_after_results_stays_with_them() {
    let mut body = tool_loop();
    body["messages"][2]["content"].as_array_mut().unwrap().pop();
    assert_eq!(read(&body).conversation.entries.len(), 4);
}

#[test]
fn results_and_words_are_written_together_or_alone() {
    let parsed = read(&tool_loop());
    let whole = emitted(&parsed, kept([0, 2, 3, 4]));
    assert_eq!(whole["messages"][1], tool_loop()["messages"][2]);
    let words = emitted(&parsed, kept([0, 1, 4]));
    assert_eq!(
        words["messages"][1]["content"],
        json!([{"type": "text", "text": "now stop"}])
    );
    let results = emitted(&parsed, kept([0, 1, 2, 3]));
    assert_eq!(
        results["messages"][2]["content"],
        json!([{"type": "tool_result", "tool_use_id": "t1", "content": "a.rs", "is_error": true},
               {"type": "text", "text": "<system-reminder>tick</system-reminder>"}])
    );
}

#[test]
fn a_summary_after_the_system_prompt_becomes_a_block_of_it() {
    let parsed = read(&tool_loop());
    let mut items = kept([0]);
    items.push(new(Role::System, "so far"));
    items.extend(kept([1]));
    let body = emitted(&parsed, items);
    assert_eq!(
        body["system"],
        json!([{"type": "text", "text": "be good"}, {"type": "text", "text": "so far"}])
    );
    let bare = parse(
        json!({"messages": [{"role": "user", "content": "hi"}]}).to_string(),
        Some(Format::Anthropic),
        TranscriptScope::Live,
    )
    .unwrap();
    let body = emitted(
        &bare,
        vec![new(Role::System, "so far"), kept([0]).remove(0)],
    );
    assert_eq!(
        body,
        json!({"messages": [{"role": "user", "content": "hi"}],
               "system": [{"type": "text", "text": "so far"}]})
    );
}

#[test]
fn a_compaction_block_is_an_entry_that_nobody_rewrites() {
    let body = json!({"messages": [
        {"role": "assistant", "content": [
            {"type": "compaction", "content": "so far", "signature": "x"},
            {"type": "text", "text": "going on"},
        ]},
        {"role": "user", "content": "next"},
    ]});
    let parsed = read(&body);
    let entries = &parsed.conversation.entries;
    assert_eq!(entries[0].meta.kind, EntryKind::ForeignSummary);
    assert_eq!(entries[1].blocks, [Block::Text("going on".to_owned())]);
    let without = emitted(&parsed, kept([1, 2]));
    assert_eq!(
        without["messages"][0]["content"],
        json!([{"type": "text", "text": "going on"}])
    );
}

#[test]
fn the_body_says_which_reasoning_survives() {
    let rules = |thinking: Value| {
        let body = json!({"thinking": thinking, "messages": []});
        read(&body).document.rules().name
    };
    assert_eq!(
        rules(json!({"type": "enabled", "budget_tokens": 2000})),
        "anthropic-manual-thinking"
    );
    assert_eq!(rules(json!({"type": "adaptive"})), "anthropic");
    assert_eq!(
        rules(
            json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}})
        ),
        "anthropic-drop-block"
    );
    let list = parse(
        json!([{"role": "user", "content": "hi"}]).to_string(),
        Some(Format::Anthropic),
        TranscriptScope::Live,
    )
    .unwrap();
    assert_eq!(list.document.rules().name, "anthropic-messages");
    assert_eq!(
        crate::rules_named("anthropic-messages"),
        Some(list.document.rules())
    );
}

#[test]
fn the_session_is_the_one_that_the_client_names() {
    let of = |user: &str| {
        let body = json!({"metadata": {"user_id": user}, "messages": []});
        read(&body).conversation.session_id
    };
    assert_eq!(of("{\"session_id\":\"s-1\"}"), Some("s-1".to_owned()));
    assert_eq!(of("user_1_account__session_s-2"), Some("s-2".to_owned()));
    assert_eq!(of("someone"), None);
}

#[test]
fn edits_keep_what_stands_beside_them() {
    let parsed = read(&tool_loop());
    let mut items = kept([0, 1]);
    items.push(ViewItem::Edited {
        entry: 2,
        edits: vec![
            (0, BlockEdit::Drop),
            (1, BlockEdit::SetText("{\"cmd\":\"…\"}".to_owned())),
        ],
    });
    items.push(ViewItem::Edited {
        entry: 3,
        edits: vec![(0, BlockEdit::SetText("short".to_owned()))],
    });
    let body = emitted(&parsed, items);
    assert_eq!(
        body["messages"][1]["content"],
        json!([{"type": "tool_use", "id": "t1", "name": "run", "input": {"cmd": "…"}}])
    );
    assert_eq!(
        body["messages"][2]["content"],
        json!([{"type": "tool_result", "tool_use_id": "t1", "content": "short", "is_error": true},
               {"type": "text", "text": "<system-reminder>tick</system-reminder>"}])
    );
}

#[test]
fn a_body_is_told_from_a_chat_body() {
    let told = |body: Value| crate::detect(body.to_string().as_bytes()).unwrap();
    let plain = json!([{"role": "user", "content": "hi"}]);
    assert_eq!(
        told(json!({"messages": plain, "system": "x"})),
        Format::Anthropic
    );
    assert_eq!(
        told(json!({"messages": plain, "model": "m"})),
        Format::OpenAiChat
    );
    assert_eq!(told(tool_loop()), Format::Anthropic);
    assert_eq!(told(tool_loop()["messages"].clone()), Format::Anthropic);
    assert_eq!(
        told(json!({"messages": [{"role": "assistant", "tool_calls": []}], "system": 1})),
        Format::OpenAiChat
    );
}

#[test]
fn the_last_four_breakpoints_stay() {
    let marked =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    let said = |text: &str| json!({"role": "user", "content": [marked(text)]});
    let body = json!({
        "system": [marked("be good")],
        "messages": [said("0"), said("1"), said("2"), said("3"), said("4")],
    });
    let parsed = read(&body);
    let view = emitted(&parsed, kept([0, 1, 2, 3, 4]));
    let marks: Vec<bool> = view["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"][0].get("cache_control").is_some())
        .collect();
    assert_eq!(marks, [false, true, true, true]);
    assert_eq!(view["system"], body["system"]);
}
