//! Features of Copilot CLI sessions.

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};
use expect_test::expect;

use crate::{Format, ParsedTranscript, TranscriptScope, parse};

fn session(events: &[(&str, &str)]) -> ParsedTranscript {
    let mut lines = vec![
        r#"{"type":"session.start","data":{"sessionId":"s"},"id":"e0","timestamp":"T","parentId":null}"#
            .to_owned(),
    ];
    for (i, (kind, data)) in events.iter().enumerate() {
        let id = i + 1;
        lines.push(format!(
            r#"{{"type":"{kind}","data":{data},"id":"e{id}","timestamp":"T","parentId":"e{i}"}}"#
        ));
    }
    parse(lines.join("\n"), None, TranscriptScope::Live).unwrap()
}

const SYSTEM: (&str, &str) = ("system.message", r#"{"role":"system","content":"be good"}"#);
const USER: (&str, &str) = (
    "user.message",
    r#"{"content":"go","transformedContent":"<now/>go"}"#,
);
const REPLY: (&str, &str) = (
    "assistant.message",
    r#"{"model":"m","content":"","toolRequests":[{"toolCallId":"c1","name":"ls","arguments":{"p":1}}],"reasoningText":"hmm","reasoningOpaque":"op"}"#,
);
const START: (&str, &str) = (
    "tool.execution_start",
    r#"{"toolCallId":"c1","arguments":{"p":1}}"#,
);
const RESULT: (&str, &str) = (
    "tool.execution_complete",
    r#"{"toolCallId":"c1","success":true,"result":{"content":"a","detailedContent":"a"}}"#,
);

#[test]
fn messages_and_executions_are_entries() {
    let failed = (
        "tool.execution_complete",
        r#"{"toolCallId":"c1","success":false,"error":{"message":"no"}}"#,
    );
    let aside = (
        "assistant.message",
        r#"{"content":"sub","parentToolCallId":"c1"}"#,
    );
    let parsed = session(&[SYSTEM, USER, REPLY, START, failed, aside]);
    assert_eq!(parsed.document.format(), Format::Copilot);
    assert_eq!(parsed.conversation.session_id.as_deref(), Some("s"));
    assert_eq!(parsed.conversation.model.as_deref(), Some("m"));
    let seen: Vec<(Role, Vec<Block>)> = parsed
        .conversation
        .entries
        .into_iter()
        .map(|e| (e.role, e.blocks))
        .collect();
    let text = |text: &str| vec![Block::Text(text.to_owned())];
    let reply = vec![
        Block::Reasoning {
            text: "hmm".to_owned(),
            replay_bytes: 2,
        },
        Block::ToolCall {
            id: "c1".to_owned(),
            name: "ls".to_owned(),
            arguments: r#"{"p":1}"#.to_owned(),
        },
    ];
    let result = vec![Block::ToolResult {
        call: "c1".to_owned(),
        content: "no".to_owned(),
        is_error: true,
    }];
    assert_eq!(
        seen,
        [
            (Role::System, text("be good")),
            (Role::User, text("go")),
            (Role::Assistant, reply),
            (Role::Tool, result),
        ]
    );
}

#[test]
fn what_repeats_a_changed_text_changes_with_it() {
    let parsed = session(&[USER, REPLY, START, RESULT]);
    let set = |entry, at, text: &str| ViewItem::Edited {
        entry,
        edits: vec![(at, BlockEdit::SetText(text.to_owned()))],
    };
    let forget = ViewItem::Edited {
        entry: 1,
        edits: vec![(0, BlockEdit::Drop)],
    };
    let view = View {
        items: vec![set(0, 0, "went"), forget, set(2, 0, "cut")],
    };
    let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
    expect![[r#"
        {"type":"session.start","data":{"sessionId":"s"},"id":"e0","timestamp":"T","parentId":null}
        {"type":"user.message","data":{"content":"went","transformedContent":"went"},"id":"e1","timestamp":"T","parentId":"e0"}
        {"type":"assistant.message","data":{"model":"m","content":"","toolRequests":[{"toolCallId":"c1","name":"ls","arguments":{"p":1}}],"reasoningText":null,"reasoningOpaque":null},"id":"e2","timestamp":"T","parentId":"e1"}
        {"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":"cut","detailedContent":"cut"}},"id":"e4","timestamp":"T","parentId":"e2"}"#]]
    .assert_eq(&String::from_utf8(out).unwrap());
}

#[test]
fn a_compaction_leaves_the_systems_words_and_its_summary() {
    let compaction = (
        "session.compaction_complete",
        r#"{"success":true,"summaryContent":"so far"}"#,
    );
    let failed = ("session.compaction_complete", r#"{"success":false}"#);
    let parsed = session(&[SYSTEM, USER, compaction, USER, failed]);
    let texts: Vec<String> = parsed
        .conversation
        .entries
        .iter()
        .map(Entry::plain_text)
        .collect();
    assert_eq!(texts, ["be good", "so far", "go"]);
    assert_eq!(
        parsed.conversation.entries[1].meta.kind,
        EntryKind::ForeignSummary
    );
    let view = View {
        items: vec![ViewItem::Kept { entry: 2 }, ViewItem::Kept { entry: 1 }],
    };
    let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
    let again = parse(out, None, TranscriptScope::Live)
        .unwrap()
        .conversation
        .entries;
    assert_eq!(again[1].meta.kind, EntryKind::ForeignSummary);
}
