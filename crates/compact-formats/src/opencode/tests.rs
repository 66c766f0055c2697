//! Features of opencode exports.

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};

use crate::media::tests::PNG;
use crate::{Format, ParsedTranscript, TranscriptScope, parse};

fn export(messages: &[&str], scope: TranscriptScope) -> ParsedTranscript {
    let messages = messages.join(",");
    let source = format!(r#"{{"info":{{"id":"ses_1"}},"messages":[{messages}]}}"#);
    parse(source, None, scope).unwrap()
}

const USER: &str = r#"{"info":{"id":"msg_1","role":"user"},"parts":[{"type":"text","text":"go"}]}"#;
const STEPS: &str = r#"{"info":{"id":"msg_2","role":"assistant","modelID":"m","tokens":{"input":3,"cache":{"read":4,"write":0}}},"parts":[
    {"type":"step-start"},{"type":"reasoning","text":"hmm","metadata":{}},
    {"type":"tool","callID":"c1","tool":"ls","state":{"status":"completed","input":{"p":1},"output":"a","metadata":{"output":"a"}}},
    {"type":"step-finish"},{"type":"step-start"},
    {"type":"tool","callID":"c2","tool":"rm","state":{"status":"error","input":{},"error":"no"}},
    {"type":"text","text":"failed"},{"type":"patch","files":[]}]}"#;

fn roles(parsed: &ParsedTranscript) -> Vec<(Role, usize)> {
    let entries = parsed.conversation.entries.iter();
    entries.map(|e| (e.role, e.blocks.len())).collect()
}

#[test]
fn a_message_of_two_steps_is_two_exchanges() {
    let parsed = export(&[USER, STEPS], TranscriptScope::Live);
    assert_eq!(parsed.document.format(), Format::OpenCode);
    assert_eq!(
        roles(&parsed),
        [
            (Role::User, 1),
            (Role::Assistant, 2),
            (Role::Tool, 1),
            (Role::Assistant, 2),
            (Role::Tool, 1),
        ]
    );
    assert_eq!(
        parsed.conversation.entries[3]
            .meta
            .usage
            .map(|u| u.prompt_tokens().0),
        Some(7)
    );
    assert_eq!(
        parsed.conversation.entries[4].blocks,
        [Block::ToolResult {
            call: "c2".to_owned(),
            content: "no".to_owned(),
            is_error: true
        }]
    );
}

#[test]
fn a_step_that_is_not_shown_leaves_its_message() {
    let parsed = export(&[USER, STEPS], TranscriptScope::Live);
    let view = View {
        items: vec![
            ViewItem::Kept { entry: 0 },
            ViewItem::Kept { entry: 1 },
            ViewItem::Edited {
                entry: 2,
                edits: vec![(0, BlockEdit::SetText("cut".to_owned()))],
            },
        ],
    };
    let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
    let out: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let parts = out["messages"][1]["parts"].as_array().unwrap();
    let kinds: Vec<&str> = parts.iter().map(|p| p["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "step-start",
            "reasoning",
            "tool",
            "step-finish",
            "step-start",
            "patch"
        ]
    );
    assert_eq!(parts[2]["state"]["output"], "cut");
    assert_eq!(parts[2]["state"]["metadata"], serde_json::json!({}));
}

#[test]
fn the_context_begins_with_the_last_summary() {
    let asked = r#"{"info":{"id":"msg_3","role":"user"},"parts":[{"type":"compaction"}]}"#;
    let told = r#"{"info":{"id":"msg_4","role":"assistant","summary":true},"parts":[{"type":"text","text":"so far"}]}"#;
    let messages = [USER, STEPS, asked, told, USER];
    let live = export(&messages, TranscriptScope::Live)
        .conversation
        .entries;
    let kinds: Vec<EntryKind> = live.into_iter().map(|e| e.meta.kind).collect();
    assert_eq!(kinds, [EntryKind::ForeignSummary, EntryKind::Message]);
    assert_eq!(
        export(&messages, TranscriptScope::Whole)
            .conversation
            .entries
            .len(),
        7
    );
    // Without its summary a compaction has not happened.
    let pending = export(&[USER, asked], TranscriptScope::Live)
        .conversation
        .entries;
    assert_eq!(pending.len(), 1);
}

#[test]
fn a_new_message_sorts_after_the_one_before_it() {
    let parsed = export(&[USER, STEPS], TranscriptScope::Live);
    let view = View {
        items: vec![
            ViewItem::Kept { entry: 0 },
            ViewItem::New(Entry::from_text("n", Role::User, "so far")),
            ViewItem::Kept { entry: 3 },
        ],
    };
    let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
    let out: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let ids: Vec<&str> = out["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["info"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.is_sorted(), "{ids:?}");
}

#[test]
fn a_message_that_grew_takes_the_place_of_its_earlier_self() {
    let running = STEPS.replace("\"completed\"", "\"running\"");
    let running = running.split(",\n    {\"type\":\"step-finish\"}").next();
    let first = export(
        &[USER, &format!("{}]}}", running.unwrap())],
        TranscriptScope::Live,
    );
    assert_eq!(roles(&first), [(Role::User, 1), (Role::Assistant, 2)]);
    let later = export(&[USER, STEPS, USER], TranscriptScope::Live);
    let joined = first
        .document
        .extend(&later.document, &later.conversation, 2)
        .unwrap();
    let joined = parse(joined, None, TranscriptScope::Live).unwrap();
    assert_eq!(roles(&joined), roles(&later));
}

#[test]
fn files_cost_what_the_model_charges() {
    let file =
        format!(r#"{{"type":"file","mime":"image/png","url":"data:image/png;base64,{PNG}"}}"#);
    let user = |model: &str| {
        let model = format!(r#"{{"providerID":"p","modelID":"{model}"}}"#);
        format!(r#"{{"info":{{"id":"msg_1","role":"user","model":{model}}},"parts":[{file}]}}"#)
    };
    for (model, tokens) in [("claude-x", 667), ("gemini-x", 2064), ("gpt-x", 425)] {
        let parsed = export(&[&user(model)], TranscriptScope::Live);
        let label = "image/png".to_owned();
        let expected = [Block::Media { label, tokens }];
        assert_eq!(parsed.conversation.entries[0].blocks, expected, "{model}");
    }
    let tool = format!(
        r#"{{"info":{{"id":"msg_2","role":"assistant","modelID":"claude-x"}},"parts":[{{"type":"tool","callID":"c","tool":"see","state":{{"status":"completed","input":{{}},"output":"a","attachments":[{file}]}}}}]}}"#
    );
    let parsed = export(&[USER, &tool], TranscriptScope::Live);
    let blocks = &parsed.conversation.entries[2].blocks;
    assert!(matches!(
        blocks.as_slice(),
        [_, Block::Media { tokens: 667, .. }]
    ));
}
