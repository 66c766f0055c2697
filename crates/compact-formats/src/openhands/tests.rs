//! Features of OpenHands histories.

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};

use crate::{Format, ParsedTranscript, TranscriptScope, parse};

fn read(source: &str, scope: TranscriptScope) -> ParsedTranscript {
    parse(source.to_owned(), None, scope).unwrap()
}

fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn result(call: &str, content: &str) -> Block {
    Block::ToolResult {
        call: call.to_owned(),
        content: content.to_owned(),
        is_error: false,
    }
}

fn seen(parsed: &ParsedTranscript) -> Vec<(Role, Vec<Block>)> {
    let entries = parsed.conversation.entries.iter();
    entries.map(|e| (e.role, e.blocks.clone())).collect()
}

const EVENTS: &str = r#"[
  {"id":0,"source":"agent","action":"system","args":{"content":"be good","tools":[{"x":1}]}},
  {"id":1,"source":"user","action":"message","args":{"content":"go"}},
  {"id":2,"source":"environment","observation":"agent_state_changed","content":"","extras":{}},
  {"id":3,"source":"agent","message":"Running","action":"run","args":{"command":"ls","thought":"look","blocking":false}},
  {"id":4,"source":"agent","cause":3,"observation":"run","content":"a b","extras":{"command":"ls"}},
  {"id":5,"source":"agent","observation":"error","content":"no such tool","extras":{}},
  {"id":6,"source":"agent","action":"finish","args":{"thought":"done"}}
]"#;

fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

#[test]
fn actions_are_calls_and_what_they_cause_results() {
    let parsed = read(EVENTS, TranscriptScope::Live);
    assert_eq!(parsed.document.format(), Format::OpenHands);
    assert_eq!(parsed.conversation.tools.as_deref(), Some(r#"[{"x":1}]"#));
    let ls = call("event-3", "run", r#"{"command":"ls"}"#);
    assert_eq!(
        seen(&parsed),
        [
            (Role::System, vec![text("be good")]),
            (Role::User, vec![text("go")]),
            (Role::Assistant, vec![text("look"), ls]),
            (Role::Tool, vec![result("event-3", "a b")]),
            (Role::User, vec![text("no such tool")]),
            (Role::Assistant, vec![text("done")]),
        ]
    );
    assert_eq!(
        parsed.conversation.entries[4].meta.kind,
        EntryKind::Injected
    );
}

#[test]
fn pairs_of_the_first_version_are_read_and_stay_pairs() {
    let source = r#"{"issue":{},"history":[[{"action":"message","content":"go"},{"observation":"null","content":""}],[{"action":"run","command":"ls","thought":"look","keep_prompt":true},{"observation":"run","content":"a","command":"ls"}]]}"#;
    let parsed = read(source, TranscriptScope::Live);
    let ls = call("action-1.0", "run", r#"{"command":"ls"}"#);
    assert_eq!(
        seen(&parsed),
        [
            (Role::User, vec![text("go")]),
            (Role::Assistant, vec![text("look"), ls]),
            (Role::Tool, vec![result("action-1.0", "a")]),
        ]
    );
    let view = View {
        items: vec![
            ViewItem::Edited {
                entry: 1,
                edits: vec![(1, BlockEdit::SetText("{\"command\":\"cut\"}".to_owned()))],
            },
            ViewItem::Kept { entry: 2 },
        ],
    };
    let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"issue":{},"history":[[{"action":"run","keep_prompt":true,"thought":"look","command":"cut"}, {"observation":"run","content":"a","command":"ls"}]]}"#
    );
}

#[test]
fn a_condensation_forgets_and_tells_what_it_forgot() {
    let condensed = EVENTS.replace(
        "\n]",
        ",\n{\"id\":7,\"action\":\"condensation\",\"args\":{\"forgotten_events_start_id\":3,\"forgotten_events_end_id\":5,\"summary\":\"so far\",\"summary_offset\":2}}]",
    );
    let texts = |scope| -> Vec<String> {
        let entries = read(&condensed, scope).conversation.entries;
        entries.iter().map(Entry::plain_text).collect()
    };
    assert_eq!(
        texts(TranscriptScope::Live),
        ["be good", "go", "so far", "done"]
    );
    assert_eq!(texts(TranscriptScope::Whole).len(), 7);
}

#[test]
fn a_changed_event_does_not_repeat_what_it_said() {
    let parsed = read(EVENTS, TranscriptScope::Live);
    let view = View {
        items: vec![ViewItem::Edited {
            entry: 2,
            edits: vec![
                (0, BlockEdit::SetText("short".to_owned())),
                (1, BlockEdit::SetText("{\"command\":\"cut\"}".to_owned())),
            ],
        }],
    };
    let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
    let out: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        out[0],
        serde_json::json!({"id": 3, "source": "agent", "message": "", "action": "run",
            "args": {"blocking": false, "thought": "short", "command": "cut"}})
    );
}
