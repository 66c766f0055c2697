//! Features of Codex rollouts, one small rollout each.

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};
use expect_test::expect;

use crate::{BoundaryStamp, Format, ParsedTranscript, TranscriptScope, parse};

fn line(kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"T","type":"{kind}","payload":{payload}}}"#)
}

fn item(payload: &str) -> String {
    line("response_item", payload)
}

fn message(role: &str, text: &str) -> String {
    item(&format!(
        r#"{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":"{text}"}}]}}"#
    ))
}

fn call(id: &str) -> String {
    item(&format!(
        r#"{{"type":"function_call","name":"exec","arguments":"{{\"cmd\":\"ls\"}}","call_id":"{id}"}}"#
    ))
}

fn output(id: &str, text: &str) -> String {
    item(&format!(
        r#"{{"type":"function_call_output","call_id":"{id}","output":"{text}"}}"#
    ))
}

fn tokens(count: u64) -> String {
    line(
        "event_msg",
        &format!(
            r#"{{"type":"token_count","info":{{"last_token_usage":{{"input_tokens":{count}}}}}}}"#
        ),
    )
}

fn meta() -> String {
    line(
        "session_meta",
        r#"{"id":"s1","base_instructions":{"text":"be good"},"git":{}}"#,
    )
}

fn read(lines: &[String], scope: TranscriptScope) -> ParsedTranscript {
    parse(lines.join("\n"), None, scope).unwrap()
}

fn rollout() -> Vec<String> {
    vec![
        meta(),
        message("developer", "rules"),
        message(
            "user",
            "<environment_context>\\n<cwd>/x</cwd>\\n</environment_context>",
        ),
        line("turn_context", r#"{"model":"gpt-x"}"#),
        message("user", "do it"),
        item(
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hmm"}],"encrypted_content":"abcd"}"#,
        ),
        call("c1"),
        call("c2"),
        tokens(77),
        line("event_msg", r#"{"type":"exec_command_end","call_id":"c1"}"#),
        output("c1", "one"),
        output("c2", "two"),
        item(
            r#"{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}"#,
        ),
        message("user", "thanks"),
    ]
}

fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(Entry::plain_text).collect()
}

#[test]
fn a_rollout_is_read_item_by_item() {
    let parsed = read(&rollout(), TranscriptScope::Live);
    let conversation = parsed.conversation;
    assert_eq!(
        (parsed.document.format(), parsed.problems),
        (Format::CodexRollout, vec![])
    );
    assert_eq!(conversation.session_id.as_deref(), Some("s1"));
    assert_eq!(conversation.model.as_deref(), Some("gpt-x"));
    assert_eq!(conversation.leading_instructions(), 2);
    let seen: Vec<(Role, EntryKind, Option<String>, Option<u64>)> = conversation
        .entries
        .into_iter()
        .map(|e| {
            (
                e.role,
                e.meta.kind,
                e.meta.group,
                e.meta.usage.map(|u| u.prompt_tokens().0),
            )
        })
        .collect();
    let said = |role, kind| (role, kind, None, None);
    let response = |from: &str, tokens| {
        (
            Role::Assistant,
            EntryKind::Message,
            Some(from.to_owned()),
            tokens,
        )
    };
    assert_eq!(
        seen,
        [
            said(Role::System, EntryKind::Message),
            said(Role::Developer, EntryKind::Message),
            said(Role::User, EntryKind::Injected),
            said(Role::User, EntryKind::Message),
            response("response-5", None),
            response("response-5", None),
            response("response-5", Some(77)),
            said(Role::Tool, EntryKind::Message),
            said(Role::Tool, EntryKind::Message),
            (
                Role::Assistant,
                EntryKind::HostedTool,
                Some("response-12".to_owned()),
                None,
            ),
            said(Role::User, EntryKind::Message),
        ]
    );
}

#[test]
fn items_of_every_kind_are_blocks() {
    let items = [
        item(
            r#"{"type":"reasoning","summary":[{"text":"a"},{"text":"b"}],"content":null,"encrypted_content":"abcd"}"#,
        ),
        item(r#"{"type":"custom_tool_call","call_id":"1","name":"patch","input":"*** Begin"}"#),
        item(
            r#"{"type":"custom_tool_call_output","call_id":"1","output":[{"type":"input_text","text":"x"},{"type":"input_image"}]}"#,
        ),
        item(r#"{"type":"local_shell_call","call_id":"2","action":{"command":["ls"]}}"#),
        item(
            r#"{"type":"function_call_output","call_id":"2","output":{"content":"y","success":true}}"#,
        ),
        item(r#"{"type":"web_search_call","action":{"query":"q"}}"#),
        item(r#"{"type":"ghost_snapshot","ghost_commit":{}}"#),
        item(r#"{"type":"hologram"}"#),
    ];
    let parsed = read(&items, TranscriptScope::Live);
    assert_eq!(parsed.problems, []);
    let blocks: Vec<Block> = parsed
        .conversation
        .entries
        .into_iter()
        .flat_map(|entry| entry.blocks)
        .collect();
    let call = |id: &str, name: &str, arguments: &str| Block::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let result = |call: &str, content: &str| Block::ToolResult {
        call: call.to_owned(),
        content: content.to_owned(),
        is_error: false,
    };
    assert_eq!(
        blocks,
        [
            Block::Reasoning {
                text: "a\nb".to_owned(),
                replay_bytes: 4
            },
            call("1", "patch", "*** Begin"),
            result("1", "x"),
            Block::Media {
                label: "image".to_owned(),
                tokens: 765
            },
            call("2", "local_shell", r#"{"command":["ls"]}"#),
            result("2", "y"),
            Block::Text(r#"web_search {"query":"q"}"#.to_owned()),
            Block::Opaque {
                kind: "hologram".to_owned(),
                bytes: 19
            },
        ]
    );
}

fn compacted(payload: &str) -> Vec<String> {
    let mut lines = rollout();
    lines.push(line("compacted", payload));
    lines.push(tokens(9));
    lines.push(message("user", "next"));
    lines
}

#[test]
fn a_replacement_history_is_the_live_context() {
    let lines = compacted(
        r#"{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"kept"}]},{"type":"compaction","encrypted_content":"zzz"}]}"#,
    );
    let live = read(&lines, TranscriptScope::Live).conversation.entries;
    assert_eq!(texts(&live), ["be good", "kept", "", "next"]);
    assert_eq!(live[2].meta.kind, EntryKind::ForeignSummary);
    assert!(live.iter().all(|entry| entry.meta.usage.is_none()));
    // Over the whole, what the history repeats was said before.
    let whole = read(&lines, TranscriptScope::Whole).conversation.entries;
    assert_eq!(whole.len(), 11 + 2);
}

#[test]
fn a_compaction_without_a_history_keeps_the_users_words() {
    let lines = compacted(r#"{"message":"what was done"}"#);
    let live = read(&lines, TranscriptScope::Live).conversation.entries;
    assert_eq!(
        texts(&live),
        [
            "be good",
            "rules",
            "do it",
            "thanks",
            "what was done",
            "next"
        ]
    );
    assert_eq!(live[4].meta.kind, EntryKind::ForeignSummary);
}

fn summary() -> ViewItem {
    let mut entry = Entry::from_text(
        "summary-r1",
        Role::User,
        "<COMPACT-SUMMARY v1>\n</COMPACT-SUMMARY>",
    );
    entry.meta.kind = EntryKind::Summary {
        version: 1,
        receipt: None,
    };
    ViewItem::New(entry)
}

/// Instructions, the request, a summary, the second call with its result clipped.
fn view() -> View {
    View {
        items: vec![
            ViewItem::Kept { entry: 0 },
            ViewItem::Kept { entry: 1 },
            ViewItem::Kept { entry: 3 },
            summary(),
            ViewItem::Kept { entry: 6 },
            ViewItem::Edited {
                entry: 8,
                edits: vec![(0, BlockEdit::SetText("clip".to_owned()))],
            },
            ViewItem::Edited {
                entry: 9,
                edits: vec![(0, BlockEdit::SetText("searched".to_owned()))],
            },
        ],
    }
}

#[test]
fn a_view_is_a_rollout_without_its_counts() {
    let parsed = read(&rollout(), TranscriptScope::Live);
    let out = parsed.document.emit(&parsed.conversation, &view()).unwrap();
    expect![[r#"
        {"timestamp":"T","type":"session_meta","payload":{"id":"s1","base_instructions":{"text":"be good"},"git":{}}}
        {"timestamp":"T","type":"turn_context","payload":{"model":"gpt-x"}}
        {"timestamp":"T","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}}
        {"timestamp":"T","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]}}
        {"timestamp":"T","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<COMPACT-SUMMARY v1>\n</COMPACT-SUMMARY>"}]}}
        {"timestamp":"T","type":"response_item","payload":{"type":"function_call","name":"exec","arguments":"{\"cmd\":\"ls\"}","call_id":"c2"}}
        {"timestamp":"T","type":"response_item","payload":{"type":"function_call_output","call_id":"c2","output":"clip"}}
        {"timestamp":"T","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"searched"}]}}"#]].assert_eq(&String::from_utf8(out).unwrap());
}

#[test]
fn instructions_that_a_view_leaves_out_are_gone() {
    let parsed = read(&rollout(), TranscriptScope::Live);
    let view = View {
        items: vec![ViewItem::Kept { entry: 3 }],
    };
    let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
    let again = parse(out, None, TranscriptScope::Live).unwrap();
    assert_eq!(texts(&again.conversation.entries), ["do it"]);
    assert_eq!(again.conversation.session_id.as_deref(), Some("s1"));
}

#[test]
fn entries_of_a_history_become_lines() {
    let lines = compacted(
        r#"{"message":"sum","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"kept"}]}]}"#,
    );
    let parsed = read(&lines, TranscriptScope::Live);
    let view = View {
        items: [0, 1, 2].map(|entry| ViewItem::Kept { entry }).to_vec(),
    };
    let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
    assert_eq!(
        texts(
            &parse(out, None, TranscriptScope::Live)
                .unwrap()
                .conversation
                .entries
        ),
        ["be good", "kept", "sum"]
    );
}

#[test]
fn an_appended_view_is_a_replacement_history() {
    let parsed = read(&rollout(), TranscriptScope::Live);
    let stamp = BoundaryStamp {
        timestamp: "2026-02-02T00:00:00.000Z",
        receipt: "r1",
        tokens_before: 100,
        tokens_after: 10,
    };
    let out = parsed
        .document
        .append(&parsed.conversation, &view(), &stamp)
        .unwrap();
    let out = String::from_utf8(out).unwrap();
    expect![[r#"

        {"timestamp":"2026-02-02T00:00:00.000Z","type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"<COMPACT-SUMMARY v1>\n</COMPACT-SUMMARY>"}]},{"type":"function_call","name":"exec","arguments":"{\"cmd\":\"ls\"}","call_id":"c2"},{"type":"function_call_output","call_id":"c2","output":"clip"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"searched"}]}]}}
    "#]].assert_eq(out.strip_prefix(&rollout().join("\n")).unwrap());
}

/// Codex resumes no rollout whose numbers have a gap, and tells its surroundings anew after a compaction.
#[test]
fn an_appended_view_goes_on_counting_and_leaves_out_what_codex_tells_anew() {
    let message = |ordinal: usize, role: &str, text: &str| {
        format!(
            r#"{{"timestamp":"T","ordinal":{ordinal},"type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
        )
    };
    let state = r#"{"timestamp":"T","ordinal":4,"type":"world_state","payload":{"full":true}}"#;
    let lines = [
        r#"{"timestamp":"T","ordinal":0,"type":"session_meta","payload":{"id":"s1"}}"#.to_owned(),
        message(
            1,
            "developer",
            "<permissions instructions>all</permissions instructions>",
        ),
        message(2, "developer", "what a hook said"),
        message(3, "user", "<environment_context>here</environment_context>"),
        state.to_owned(),
        message(5, "user", "do it"),
    ];
    let stamp = BoundaryStamp {
        timestamp: "2026-02-02T00:00:00.000Z",
        receipt: "r1",
        tokens_before: 100,
        tokens_after: 10,
    };
    let appended = |lines: &[String]| {
        let parsed = read(lines, TranscriptScope::Live);
        let view = View::identity(&parsed.conversation);
        let lines = parsed
            .document
            .lines_to_append(&parsed.conversation, &view, &stamp);
        String::from_utf8(lines.unwrap()).unwrap()
    };
    expect![[r#"

        {"timestamp":"2026-02-02T00:00:00.000Z","ordinal":6,"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"what a hook said"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"do it"}]}]}}
    "#]].assert_eq(&appended(&lines));
    // One that keeps no track of them may not tell them again.
    let untracked: Vec<String> = lines.into_iter().filter(|line| line != state).collect();
    assert!(appended(&untracked).contains("environment_context"));
}

#[test]
fn a_summary_that_the_history_holds_is_read_once() {
    let lines = compacted(
        r#"{"message":"the sum","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"the sum"}]}]}"#,
    );
    for scope in [TranscriptScope::Live, TranscriptScope::Whole] {
        let parsed = read(&lines, scope);
        let said = texts(&parsed.conversation.entries);
        let times = said.iter().filter(|text| **text == "the sum").count();
        assert_eq!(times, 1, "{said:?}");
    }
}
