//! Features of Claude Code sessions, one small session each.

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};
use expect_test::expect;

use crate::{BoundaryStamp, Format, ParsedTranscript, TranscriptScope, parse};

fn read(lines: &[&str], scope: TranscriptScope) -> ParsedTranscript {
    parse(lines.join("\n"), Some(Format::ClaudeCode), scope).unwrap()
}

/// A line with its place in the chain: `parent` is empty for a root.
fn line(uuid: &str, parent: &str, rest: &str) -> String {
    let parent = if parent.is_empty() {
        "null".to_owned()
    } else {
        format!("\"{parent}\"")
    };
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"sessionId":"s1","uuid":"{uuid}","timestamp":"T-{uuid}",{rest}}}"#
    )
}

fn user(uuid: &str, parent: &str, text: &str) -> String {
    line(
        uuid,
        parent,
        &format!(r#""type":"user","message":{{"role":"user","content":"{text}"}}"#),
    )
}

fn says(uuid: &str, parent: &str, block: &str) -> String {
    line(
        uuid,
        parent,
        &format!(
            r#""type":"assistant","message":{{"id":"msg1","model":"claude-x","role":"assistant","content":[{block}],"usage":{{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":500,"output_tokens":9}}}}"#
        ),
    )
}

fn result(uuid: &str, parent: &str, call: &str, content: &str) -> String {
    line(
        uuid,
        parent,
        &format!(
            r#""type":"user","message":{{"role":"user","content":[{{"tool_use_id":"{call}","type":"tool_result","content":{content}}}]}},"toolUseResult":{{"stdout":"repeated"}}"#
        ),
    )
}

fn boundary(uuid: &str, metadata: &str) -> String {
    line(
        uuid,
        "",
        &format!(r#""type":"system","subtype":"compact_boundary","compactMetadata":{metadata}"#),
    )
}

fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(Entry::plain_text).collect()
}

fn session() -> Vec<String> {
    vec![
        r#"{"type":"summary","summary":"title","leafUuid":"elsewhere"}"#.to_owned(),
        user("u1", "", "do it"),
        says(
            "a1",
            "u1",
            r#"{"type":"thinking","thinking":"hmm","signature":"abcd"}"#,
        ),
        says(
            "a2",
            "a1",
            r#"{"type":"tool_use","id":"t1","name":"Read","input":{"path": "x"}}"#,
        ),
        says(
            "a3",
            "a2",
            r#"{"type":"tool_use","id":"t2","name":"Read","input":{}}"#,
        ),
        result("r1", "a2", "t1", r#""one""#),
        result(
            "r2",
            "a3",
            "t2",
            r#"[{"type":"text","text":"two"},{"type":"image","source":{}}]"#,
        ),
        line(
            "d1",
            "r2",
            r#""type":"system","subtype":"turn_duration","durationMs":5"#,
        ),
        user("u2", "d1", "thanks"),
    ]
}

fn read_session(scope: TranscriptScope) -> ParsedTranscript {
    parse(session().join("\n"), None, scope).unwrap()
}

#[test]
fn a_message_over_several_lines_is_one_group() {
    let parsed = read_session(TranscriptScope::Live);
    let conversation = parsed.conversation;
    assert_eq!(
        (parsed.document.format(), parsed.problems),
        (Format::ClaudeCode, vec![])
    );
    assert_eq!(conversation.session_id.as_deref(), Some("s1"));
    assert_eq!(conversation.model.as_deref(), Some("claude-x"));
    let seen: Vec<(String, Role, Option<String>, Option<u64>)> = conversation
        .entries
        .into_iter()
        .map(|entry| {
            (
                entry.id.0,
                entry.role,
                entry.meta.group,
                entry.meta.usage.map(|u| u.prompt_tokens().0),
            )
        })
        .collect();
    let spoken = |id: &str| {
        (
            id.to_owned(),
            Role::Assistant,
            Some("msg1".to_owned()),
            Some(543),
        )
    };
    let heard = |id: &str, role| (id.to_owned(), role, None, None);
    assert_eq!(
        seen,
        [
            heard("u1", Role::User),
            spoken("a1"),
            spoken("a2"),
            spoken("a3"),
            heard("r1", Role::Tool),
            heard("r2", Role::Tool),
            heard("u2", Role::User),
        ]
    );
}

#[test]
fn blocks_are_read_as_they_are() {
    let blocks: Vec<Block> = read_session(TranscriptScope::Live)
        .conversation
        .entries
        .into_iter()
        .skip(1)
        .flat_map(|entry| entry.blocks)
        .collect();
    let call = |id: &str, arguments: &str| Block::ToolCall {
        id: id.to_owned(),
        name: "Read".to_owned(),
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
                text: "hmm".to_owned(),
                replay_bytes: 4
            },
            call("t1", r#"{"path": "x"}"#),
            call("t2", "{}"),
            result("t1", "one"),
            result("t2", "two"),
            Block::Media {
                label: "image".to_owned(),
                tokens: 1600
            },
            Block::Text("thanks".to_owned()),
        ]
    );
}

#[test]
fn what_is_no_context_is_left_out() {
    let sidechain =
        user("x1", "u1", "sub-agent").replace("\"isSidechain\":false", "\"isSidechain\":true");
    let error = says("x2", "u1", r#"{"type":"text","text":"overloaded"}"#).replace(
        "\"type\":\"assistant\"",
        "\"isApiErrorMessage\":true,\"type\":\"assistant\"",
    );
    let new = r#"{"type":"tomorrow","message":"is a string here"}"#;
    let lines = [
        &user("u1", "", "hi"),
        &sidechain,
        &error,
        new,
        &user("u2", "u1", "there"),
    ];
    assert_eq!(
        texts(&read(&lines, TranscriptScope::Whole).conversation.entries),
        ["hi", "there"]
    );
}

#[test]
fn the_clients_words_are_not_the_users() {
    let kinds = |text: &str| {
        read(&[&user("u1", "", text)], TranscriptScope::Live)
            .conversation
            .entries[0]
            .meta
            .kind
            .clone()
    };
    assert_eq!(
        kinds("<command-name>/exit</command-name>\\n <command-args></command-args>"),
        EntryKind::Injected
    );
    assert_eq!(
        kinds("<local-command-stdout>bye</local-command-stdout>"),
        EntryKind::Injected
    );
    assert_eq!(
        kinds("[Request interrupted by user for tool use]"),
        EntryKind::Injected
    );
    assert_eq!(
        kinds("<system-reminder>x</system-reminder>"),
        EntryKind::Injected
    );
    assert_eq!(
        kinds("<system-reminder>x</system-reminder> fix it"),
        EntryKind::Message
    );
    assert_eq!(
        kinds("<command-name>/fix</command-name><command-args>the parser</command-args>"),
        EntryKind::Message
    );
    let meta =
        user("u1", "", "hi").replace("\"type\":\"user\"", "\"type\":\"user\",\"isMeta\":true");
    assert_eq!(
        read(&[&meta], TranscriptScope::Live).conversation.entries[0]
            .meta
            .kind,
        EntryKind::Injected
    );
}

#[test]
fn attachments_speak_when_they_carry_words() {
    let lines = [
        line(
            "q",
            "",
            r#""type":"attachment","attachment":{"type":"queued_command","prompt":"also this"}"#,
        ),
        line(
            "f",
            "q",
            r#""type":"attachment","attachment":{"type":"file","content":{"text":"inside"}}"#,
        ),
        line(
            "n",
            "f",
            r#""type":"attachment","attachment":{"type":"todo_reminder"}"#,
        ),
        line(
            "s",
            "n",
            r#""type":"attachment","attachment":{"type":"skill_listing","content":"- loop: runs again"}"#,
        ),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let seen: Vec<(EntryKind, String)> = read(&lines, TranscriptScope::Live)
        .conversation
        .entries
        .iter()
        .map(|entry| (entry.meta.kind.clone(), entry.plain_text()))
        .collect();
    assert_eq!(
        seen,
        [
            (EntryKind::Message, "also this".to_owned()),
            (EntryKind::Injected, r#"{"text":"inside"}"#.to_owned()),
        ]
    );
}

#[test]
fn the_last_boundary_opens_the_live_context() {
    let summary = |uuid: &str, parent: &str, text: &str| {
        user(uuid, parent, text).replace(
            "\"type\":\"user\"",
            "\"type\":\"user\",\"isCompactSummary\":true",
        )
    };
    let lines = [
        user("u1", "", "old"),
        boundary("b1", "{}"),
        summary("s1", "b1", "Continued: ..."),
        user("u2", "s1", "newer"),
        boundary("b2", "{}"),
        summary(
            "s2",
            "b2",
            "<COMPACT-SUMMARY v2>\\nreceipt: r9\\n.\\n</COMPACT-SUMMARY>",
        ),
        user("u3", "s2", "newest"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let live = read(&lines, TranscriptScope::Live).conversation.entries;
    assert_eq!(live[0].meta.kind, EntryKind::ForeignSummary);
    assert_eq!(live[1].plain_text(), "newest");
    let whole = read(&lines, TranscriptScope::Whole).conversation.entries;
    assert_eq!(whole[1].meta.kind, EntryKind::ForeignSummary);
    assert_eq!(whole.len(), 5);
}

#[test]
fn a_boundary_may_preserve_lines_before_it() {
    for metadata in [
        r#"{"preservedSegment":{"headUuid":"u2","anchorUuid":"s1","tailUuid":"a2"}}"#,
        r#"{"preservedMessages":{"anchorUuid":"s1","uuids":["u2","a2"],"allUuids":["u2","a2"]}}"#,
    ] {
        let lines = [
            user("u1", "", "old"),
            user("u2", "u1", "kept"),
            says("a2", "u2", r#"{"type":"text","text":"kept too"}"#),
            boundary("b1", metadata),
            user("s1", "b1", "summary"),
            user("u3", "a2", "new"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(
            texts(&read(&lines, TranscriptScope::Live).conversation.entries),
            ["summary", "kept", "kept too", "new"]
        );
    }
}

/// A client that compacts twice writes what the first compaction closed once more, and hangs a line on that.
#[test]
fn lines_that_are_written_again_leave_no_boundary_behind() {
    let lines = [
        user("u1", "", "old"),
        boundary("b1", "{}"),
        user("s1", "b1", "summary"),
        user("u2", "s1", "newer"),
        user("u1", "", "old"),
        line(
            "d1",
            "u1",
            r#""type":"system","subtype":"stop_hook_summary""#,
        ),
        boundary(
            "b2",
            r#"{"preservedSegment":{"headUuid":"u2","anchorUuid":"s2","tailUuid":"u2"}}"#,
        ),
        user("s2", "b2", "second summary"),
        user("u3", "u2", "newest"),
    ];
    let [live, whole] = both_scopes(&lines);
    assert_eq!(live, ["second summary", "newer", "newest"]);
    for text in ["old", "summary", "newer", "newest"] {
        assert!(whole.iter().any(|said| said == text), "{text}: {whole:?}");
    }
}

/// What a session says, and what it said from its beginning on.
fn both_scopes(lines: &[String]) -> [Vec<String>; 2] {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    [TranscriptScope::Live, TranscriptScope::Whole]
        .map(|scope| texts(&read(&lines, scope).conversation.entries))
}

#[test]
fn a_rewind_past_a_boundary_leaves_it_behind() {
    let summary = |uuid: &str, parent: &str| {
        user(uuid, parent, &format!("summary {uuid}")).replace(
            "\"type\":\"user\"",
            "\"isCompactSummary\":true,\"type\":\"user\"",
        )
    };
    let answer = |uuid: &str, parent: &str| {
        says(
            uuid,
            parent,
            &format!(r#"{{"type":"text","text":"answer {uuid}"}}"#),
        )
    };
    let opening = vec![
        user("u1", "", "first"),
        answer("a1", "u1"),
        user("u2", "a1", "wrong turn"),
        answer("a2", "u2"),
        boundary("b1", "{}"),
        summary("s1", "b1"),
        user("u3", "s1", "goes on"),
        answer("a3", "u3"),
    ];
    let with = |more: &[String]| both_scopes(&[&opening, more].concat());

    let before = with(&[user("u4", "a1", "right turn"), answer("a4", "u4")]);
    let said = ["first", "answer a1", "right turn", "answer a4"];
    assert_eq!(before, [said, said]);

    let at_the_last = with(&[answer("a4", "a2"), user("u5", "a4", "unaware of it")]);
    let said = [
        "first",
        "answer a1",
        "wrong turn",
        "answer a2",
        "answer a4",
        "unaware of it",
    ];
    assert_eq!(at_the_last, [said, said]);

    let back = with(&[user("u4", "a1", "right turn"), user("u5", "s1", "instead")]);
    let whole = [
        "first",
        "answer a1",
        "wrong turn",
        "answer a2",
        "summary s1",
        "instead",
    ];
    assert_eq!(back, [&whole[4..], &whole[..]]);

    let next = [
        boundary("b2", "{}"),
        summary("s2", "b2"),
        user("u4", "a3", "later turn"),
    ];
    let whole = [
        "first",
        "answer a1",
        "wrong turn",
        "answer a2",
        "summary s1",
        "goes on",
        "answer a3",
        "later turn",
    ];
    assert_eq!(with(&next), [&whole[4..], &whole[..]]);
}

#[test]
fn a_prompt_that_rewinds_leaves_the_branch_behind() {
    let lines = [
        user("u1", "", "first"),
        says("a1", "u1", r#"{"type":"text","text":"answer"}"#),
        user("u2", "a1", "wrong turn"),
        says("a2", "u2", r#"{"type":"text","text":"lost"}"#),
        user("u3", "a1", "right turn"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(
        texts(&read(&lines, TranscriptScope::Live).conversation.entries),
        ["first", "answer", "right turn"]
    );
}

#[test]
fn a_line_that_is_written_again_is_no_rewind() {
    let lines = [
        user("u1", "", "one"),
        user("u2", "u1", "two"),
        user("u1", "", "one"),
        user("u2", "u1", "two"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let ids: Vec<String> = read(&lines, TranscriptScope::Live)
        .conversation
        .entries
        .into_iter()
        .map(|entry| entry.id.0)
        .collect();
    assert_eq!(ids, ["u1", "u2", "m2", "m3"]);
}

#[test]
fn a_repeated_result_counts_once() {
    let mut lines = session();
    lines.push(result("r3", "u2", "t1", r#""again""#));
    let parsed = parse(lines.join("\n"), None, TranscriptScope::Live).unwrap();
    assert_eq!(parsed.conversation.entries.len(), 7);
    assert_eq!(parsed.problems[0].line, Some(10));
}

#[test]
fn a_torn_last_line_is_noted_and_kept() {
    let source = format!("{}\n{{\"type\":\"user\",\"mess", user("u1", "", "hi"));
    let parsed = parse(source.clone(), None, TranscriptScope::Live).unwrap();
    assert_eq!(
        parsed.problems[0].message,
        "the last line is torn; it is kept but not read"
    );
    let view = View::identity(&parsed.conversation);
    assert_eq!(
        parsed.document.emit(&parsed.conversation, &view).unwrap(),
        source.as_bytes()
    );
    let appended = parsed
        .document
        .append(&parsed.conversation, &view, &STAMP)
        .unwrap();
    assert!(appended.starts_with(source.as_bytes()));
    let again = parse(appended, None, TranscriptScope::Live).unwrap();
    assert_eq!(texts(&again.conversation.entries), ["hi"]);
    // With its newline the line is finished, and wrong.
    assert!(parse(format!("{source}\n"), None, TranscriptScope::Live).is_err());
}

const STAMP: BoundaryStamp<'static> = BoundaryStamp {
    timestamp: "2026-02-02T00:00:00.000Z",
    receipt: "r1",
    tokens_before: 100,
    tokens_after: 10,
};

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

/// The first prompt, a summary, the second call with its result clipped, the last prompt.
fn view() -> View {
    View {
        items: vec![
            ViewItem::Kept { entry: 0 },
            summary(),
            ViewItem::Kept { entry: 3 },
            ViewItem::Edited {
                entry: 5,
                edits: vec![(0, BlockEdit::SetText("clip".to_owned()))],
            },
            ViewItem::Kept { entry: 6 },
        ],
    }
}

#[test]
fn a_view_is_chained_where_its_parents_are_gone() {
    let parsed = read_session(TranscriptScope::Live);
    let out = parsed.document.emit(&parsed.conversation, &view()).unwrap();
    let out = String::from_utf8(out).unwrap();
    expect![[r#"
        {"parentUuid":null,"isSidechain":false,"sessionId":"s1","uuid":"u1","timestamp":"T-u1","type":"user","message":{"role":"user","content":"do it"}}
        {"parentUuid":"u1","isSidechain":false,"userType":"external","cwd":"","sessionId":"s1","version":"","gitBranch":"","type":"user","message":{"role":"user","content":"<COMPACT-SUMMARY v1>\n</COMPACT-SUMMARY>"},"isVisibleInTranscriptOnly":true,"isCompactSummary":true,"uuid":"1f92b04c-c50f-837c-8576-41f3ecf0a561","timestamp":"T-u1"}
        {"parentUuid":"1f92b04c-c50f-837c-8576-41f3ecf0a561","isSidechain":false,"sessionId":"s1","uuid":"a3","timestamp":"T-a3","type":"assistant","message":{"id":"msg1","model":"claude-x","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Read","input":{}}],"usage":{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":500,"output_tokens":9}}}
        {"parentUuid":"a3","isSidechain":false,"sessionId":"s1","uuid":"r2","timestamp":"T-r2","type":"user","message":{"role":"user","content":[{"tool_use_id":"t2","type":"tool_result","content":[{"type":"text","text":"clip"},{"type":"image","source":{}}]}]}}
        {"parentUuid":"r2","isSidechain":false,"sessionId":"s1","uuid":"d1","timestamp":"T-d1","type":"system","subtype":"turn_duration","durationMs":5}
        {"parentUuid":"d1","isSidechain":false,"sessionId":"s1","uuid":"u2","timestamp":"T-u2","type":"user","message":{"role":"user","content":"thanks"}}"#]].assert_eq(&out);
}

#[test]
fn an_appended_view_is_a_boundary_and_lines_of_its_own() {
    let parsed = read_session(TranscriptScope::Live);
    let out = parsed
        .document
        .append(&parsed.conversation, &view(), &STAMP)
        .unwrap();
    let out = String::from_utf8(out).unwrap();
    expect![[r#"

        {"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"","sessionId":"s1","version":"","gitBranch":"","logicalParentUuid":"u2","type":"system","subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,"level":"info","compactMetadata":{"trigger":"manual","preTokens":100,"postTokens":10,"receipt":"r1"},"uuid":"7b2f1418-e596-8f8e-815d-d0ac920522aa","timestamp":"2026-02-02T00:00:00.000Z"}
        {"parentUuid":"7b2f1418-e596-8f8e-815d-d0ac920522aa","isSidechain":false,"sessionId":"s1","uuid":"20334326-7c98-8c77-8c23-6688b76cb83a","timestamp":"2026-02-02T00:00:00.000Z","type":"user","message":{"role":"user","content":"do it"},"compactedFrom":"u1"}
        {"parentUuid":"20334326-7c98-8c77-8c23-6688b76cb83a","isSidechain":false,"userType":"external","cwd":"","sessionId":"s1","version":"","gitBranch":"","type":"user","message":{"role":"user","content":"<COMPACT-SUMMARY v1>\n</COMPACT-SUMMARY>"},"isVisibleInTranscriptOnly":true,"isCompactSummary":true,"uuid":"f57d4b48-a589-8e37-89bc-e996a5ba2332","timestamp":"2026-02-02T00:00:00.000Z"}
        {"parentUuid":"f57d4b48-a589-8e37-89bc-e996a5ba2332","isSidechain":false,"sessionId":"s1","uuid":"65be7163-5484-8a98-8b0f-33bc29278343","timestamp":"2026-02-02T00:00:00.000Z","type":"assistant","message":{"id":"msg_65be7163-5484-8a98-8b0f-33bc29278343","model":"claude-x","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Read","input":{}}],"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}},"compactedFrom":"a3"}
        {"parentUuid":"65be7163-5484-8a98-8b0f-33bc29278343","isSidechain":false,"sessionId":"s1","uuid":"017319bf-7800-86a5-88b5-389f7c95a031","timestamp":"2026-02-02T00:00:00.000Z","type":"user","message":{"role":"user","content":[{"tool_use_id":"t2","type":"tool_result","content":[{"type":"text","text":"clip"},{"type":"image","source":{}}]}]},"compactedFrom":"r2"}
        {"parentUuid":"017319bf-7800-86a5-88b5-389f7c95a031","isSidechain":false,"sessionId":"s1","uuid":"93e7c8d3-5b2d-8b12-8916-f8730999c6a9","timestamp":"2026-02-02T00:00:00.000Z","type":"user","message":{"role":"user","content":"thanks"},"compactedFrom":"u2"}
    "#]].assert_eq(out.strip_prefix(&session().join("\n")).unwrap());
}

/// Claude Code takes lines together that have one message id, wherever they stand.
#[test]
fn a_copy_shares_no_id_with_what_it_repeats_and_lines_of_one_message_still_share_one() {
    let parsed = read_session(TranscriptScope::Live);
    let view = View::identity(&parsed.conversation);
    let lines = parsed
        .document
        .lines_to_append(&parsed.conversation, &view, &STAMP)
        .unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let ids = |text: &str, pointer: &str| -> Vec<String> {
        let values = text.lines().filter(|line| !line.is_empty());
        let values = values.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let ids = values.filter_map(|value| value.pointer(pointer)?.as_str().map(str::to_owned));
        ids.collect()
    };
    let before = session().join("\n");
    for pointer in ["/uuid", "/message/id"] {
        let old = ids(&before, pointer);
        assert!(
            ids(&lines, pointer).iter().all(|id| !old.contains(id)),
            "{pointer}"
        );
    }
    // The shape of the groups is that of the original.
    let shape = |ids: &[String]| -> Vec<usize> {
        let first = |id: &String| ids.iter().position(|other| other == id).unwrap();
        ids.iter().map(first).collect()
    };
    let (old, new) = (ids(&before, "/message/id"), ids(&lines, "/message/id"));
    assert_eq!(shape(&new), shape(&old));
    assert!(
        shape(&new).windows(2).any(|pair| pair[0] == pair[1]),
        "{new:?}"
    );
}

#[test]
fn an_attachment_that_is_cut_is_not_repeated_as_it_was_sent() {
    let attachment = r#"{"parentUuid":"u1","uuid":"x1","sessionId":"s1","type":"attachment","attachment":{"type":"file","content":"many words"},"rendered":[{"content":"many words"}]}"#;
    let source = format!("{}\n{attachment}\n", user("u1", "", "hi"));
    let parsed = parse(source, None, TranscriptScope::Live).unwrap();
    let items = vec![
        ViewItem::Kept { entry: 0 },
        ViewItem::Edited {
            entry: 1,
            edits: vec![(0, BlockEdit::SetText("cut".to_owned()))],
        },
    ];
    let view = View { items };
    let lines = parsed
        .document
        .lines_to_append(&parsed.conversation, &view, &STAMP)
        .unwrap();
    let lines = String::from_utf8(lines).unwrap();
    assert!(
        lines.contains("\"content\":\"cut\"") && !lines.contains("many words"),
        "{lines}"
    );
}

/// Only what stands beside the message says that the person refused: a tool may answer with the same text.
#[test]
fn a_refusal_is_what_the_client_says_beside_the_message() {
    let rows = [
        (r#""toolUseResult":"User rejected tool use""#, true),
        (
            r#""toolUseResult":"Error: The user rejected it","toolDenialKind":"user-rejected""#,
            true,
        ),
        (r#""toolUseResult":"Error: User rejected tool use""#, false),
        (r#""toolDenialKind":"interrupted""#, false),
        (
            r#""toolUseResult":{"stdout":"User rejected tool use"}"#,
            false,
        ),
    ];
    for (beside, refused) in rows {
        let content = r#"[{"tool_use_id":"c","type":"tool_result","is_error":true,"content":"User rejected tool use"}]"#;
        let rest =
            format!(r#""type":"user","message":{{"role":"user","content":{content}}},{beside}"#);
        let reading = super::read::read(line("r1", "", &rest).as_bytes(), TranscriptScope::Live);
        let refusals: Vec<bool> = reading
            .unwrap()
            .drafts
            .iter()
            .map(|d| d.meta.refused)
            .collect();
        assert_eq!(refusals, [refused], "{beside}");
    }
}
