//! Features of SWE-agent trajectories.

use compact_core::message::{Block, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};

use crate::{Format, TranscriptScope, parse};

const TEXT_ACTIONS: &str = r#"{
  "environment": "swe_main",
  "trajectory": [
    {"action": "ls\n", "observation": "a.py", "response": "look\n```\nls\n```", "thought": "look"},
    {"action": "cat a.py\n", "observation": "pass", "response": "read\n```\ncat a.py\n```", "thought": "read"}
  ],
  "history": [
    {"role": "system", "content": "be good", "agent": "main"},
    {"role": "user", "content": "a demonstration", "agent": "main", "is_demo": true},
    {"role": "user", "content": "fix the bug", "agent": "main"},
    {"role": "assistant", "content": "look\n```\nls\n```", "thought": "look", "action": "ls\n", "agent": "main"},
    {"role": "user", "content": "a.py", "agent": "main"},
    {"role": "assistant", "content": "read\n```\ncat a.py\n```", "thought": "read", "action": "cat a.py\n", "agent": "main"},
    {"role": "user", "content": "pass", "agent": "main"}
  ],
  "info": {"exit_status": "submitted"}
}
"#;

#[test]
fn what_commands_print_is_not_the_user_speaking() {
    let parsed = parse(TEXT_ACTIONS, None, TranscriptScope::Live).unwrap();
    assert_eq!(parsed.document.format(), Format::SweAgent);
    let kinds: Vec<(Role, EntryKind)> = parsed
        .conversation
        .entries
        .into_iter()
        .map(|entry| (entry.role, entry.meta.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            (Role::System, EntryKind::Message),
            (Role::User, EntryKind::Injected),
            (Role::User, EntryKind::Message),
            (Role::Assistant, EntryKind::Message),
            (Role::User, EntryKind::Injected),
            (Role::Assistant, EntryKind::Message),
            (Role::User, EntryKind::Injected),
        ]
    );
}

#[test]
fn the_log_keeps_the_steps_that_are_shown_as_they_were() {
    let parsed = parse(TEXT_ACTIONS, None, TranscriptScope::Live).unwrap();
    let kept = |entry| ViewItem::Kept { entry };
    let clip = |entry| ViewItem::Edited {
        entry,
        edits: vec![(0, BlockEdit::SetText("short".to_owned()))],
    };
    let steps = |items: Vec<ViewItem>| {
        let view = View { items };
        let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
        let out: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let thoughts = out["trajectory"].as_array().unwrap().iter();
        (
            thoughts
                .map(|step| step["thought"].clone())
                .collect::<Vec<_>>(),
            out["history"].clone(),
        )
    };
    assert_eq!(steps(vec![kept(0), kept(2), kept(5), kept(6)]).0, ["read"]);
    assert_eq!(steps(vec![kept(0), kept(2)]).0.len(), 0);
    let (log, history) = steps(vec![kept(2), clip(3), kept(4), kept(5), kept(6)]);
    assert_eq!(log, ["read"]);
    assert_eq!(
        history[1],
        serde_json::json!({"role": "assistant", "content": "short", "agent": "main"})
    );
}

#[test]
fn a_list_of_call_ids_answers_its_first() {
    let source = r#"{"history":[
        {"role":"assistant","content":"t","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]},
        {"role":"tool","content":"a.py","tool_call_ids":["c1"]}]}"#;
    let parsed = parse(source, None, TranscriptScope::Live).unwrap();
    assert_eq!(parsed.problems, vec![]);
    assert_eq!(
        parsed.conversation.entries[1].blocks,
        [Block::ToolResult {
            call: "c1".to_owned(),
            content: "a.py".to_owned(),
            is_error: false
        }]
    );
}
