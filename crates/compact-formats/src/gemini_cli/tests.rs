//! Features of Gemini CLI chats.

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};
use expect_test::expect;

use crate::media::tests::PNG;
use crate::{Format, ParsedTranscript, TranscriptScope, parse};

fn chat(messages: &str) -> ParsedTranscript {
    let source = format!(
        r#"{{"sessionId":"s","projectHash":"h","messages":[{messages}],"lastUpdated":"T"}}"#
    );
    parse(source, None, TranscriptScope::Live).unwrap()
}

const USER: &str = r#"{"id":"a","timestamp":"T","type":"user","content":"go"}"#;
const REPLY: &str = r#"{"id":"b","timestamp":"T","type":"gemini","content":"on it","thoughts":[{"subject":"s","description":"hmm"}],"toolCalls":[{"id":"c1","name":"ls","args":{"p":"."},"result":[{"functionResponse":{"id":"c1","name":"ls","response":{"output":"a b"}}}],"status":"success","resultDisplay":"a b"}],"tokens":{"input":9},"model":"g"}"#;

fn emit(parsed: &ParsedTranscript, items: Vec<ViewItem>) -> String {
    let out = parsed.document.emit(&parsed.conversation, &View { items });
    String::from_utf8(out.unwrap()).unwrap()
}

#[test]
fn a_message_is_what_was_said_and_what_was_answered() {
    let parsed = chat(&format!(
        "{USER},{REPLY},{}",
        r#"{"id":"i","type":"info","content":"update"}"#
    ));
    assert_eq!(parsed.document.format(), Format::GeminiCli);
    assert_eq!(parsed.conversation.model.as_deref(), Some("g"));
    let seen: Vec<(String, Role, Vec<Block>, Option<u64>)> = parsed
        .conversation
        .entries
        .into_iter()
        .map(|e| {
            (
                e.id.0,
                e.role,
                e.blocks,
                e.meta.usage.map(|u| u.prompt_tokens().0),
            )
        })
        .collect();
    let said = vec![
        Block::Reasoning {
            text: "hmm".to_owned(),
            replay_bytes: 0,
        },
        Block::Text("on it".to_owned()),
        Block::ToolCall {
            id: "c1".to_owned(),
            name: "ls".to_owned(),
            arguments: r#"{"p":"."}"#.to_owned(),
        },
    ];
    let answered = vec![Block::ToolResult {
        call: "c1".to_owned(),
        content: "a b".to_owned(),
        is_error: false,
    }];
    let asked = vec![Block::Text("go".to_owned())];
    assert_eq!(
        seen,
        [
            ("a".to_owned(), Role::User, asked, None),
            ("b".to_owned(), Role::Assistant, said, Some(9)),
            ("b.1".to_owned(), Role::Tool, answered, None),
        ]
    );
}

#[test]
fn edits_of_both_entries_are_written_into_one_message() {
    let parsed = chat(&format!("{USER},{REPLY}"));
    let set = |text: &str| BlockEdit::SetText(text.to_owned());
    let items = vec![
        ViewItem::Edited {
            entry: 1,
            edits: vec![(0, BlockEdit::Drop), (1, BlockEdit::Drop), (2, set("{}"))],
        },
        ViewItem::Edited {
            entry: 2,
            edits: vec![(0, set("cut"))],
        },
    ];
    expect![[r#"{"sessionId":"s","projectHash":"h","messages":[{"id":"b","timestamp":"T","type":"gemini","content":"","toolCalls":[{"id":"c1","name":"ls","args":{},"result":[{"functionResponse":{"id":"c1","name":"ls","response":{"output":"cut"}}}],"status":"success","resultDisplay":""}],"tokens":{"input":9},"model":"g"}],"lastUpdated":"T"}"#]]
    .assert_eq(&emit(&parsed, items));
}

#[test]
fn an_answer_and_its_copy_beside_another_call_stay_alike() {
    let response = |id: &str, says: &str| {
        format!(
            r#"{{"functionResponse":{{"id":"{id}","name":"ls","response":{{"output":"{says}"}}}}}}"#
        )
    };
    let call = |id: &str, one: &str, two: &str| {
        let results = [response("c1", one), response("c2", two)].join(",");
        format!(
            r#"{{"id":"{id}","name":"ls","args":{{}},"result":[{results}],"status":"success"}}"#
        )
    };
    let reply = |one: &str, two: &str| {
        let calls = [call("c1", one, two), call("c2", one, two)].join(",");
        format!(r#"{{"id":"b","type":"gemini","content":"","toolCalls":[{calls}]}}"#)
    };
    let parsed = chat(&format!("{USER},{}", reply("one", "two")));
    let answers: Vec<String> = parsed.conversation.entries[2]
        .blocks
        .iter()
        .map(|block| match block {
            Block::ToolResult { call, content, .. } => format!("{call}: {content}"),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(answers, ["c1: one", "c2: two"]);
    let items = vec![
        ViewItem::Kept { entry: 1 },
        ViewItem::Edited {
            entry: 2,
            edits: vec![(0, BlockEdit::SetText("cut".to_owned()))],
        },
    ];
    let written = emit(&parsed, items);
    assert!(written.contains(&reply("cut", "two")), "{written}");
    // What bears the id and says something else is no copy: it is counted.
    let calls = [call("c1", "one", "two"), call("c2", "other", "two")].join(",");
    let odd = format!(r#"{{"id":"b","type":"gemini","content":"","toolCalls":[{calls}]}}"#);
    let entries = chat(&format!("{USER},{odd}")).conversation.entries;
    assert!(matches!(
        entries[2].blocks[..],
        [_, _, Block::Opaque { .. }]
    ));
}

#[test]
fn a_new_pair_becomes_one_message() {
    let parsed = chat(USER);
    let call = Block::ToolCall {
        id: "x".to_owned(),
        name: "recall".to_owned(),
        arguments: "{}".to_owned(),
    };
    let result = Block::ToolResult {
        call: "x".to_owned(),
        content: "all".to_owned(),
        is_error: true,
    };
    let entry = |id: &str, role, block| Entry {
        blocks: vec![block],
        ..Entry::from_text(id, role, "")
    };
    let items = vec![
        ViewItem::Kept { entry: 0 },
        ViewItem::New(entry("n1", Role::Assistant, call.clone())),
        ViewItem::New(entry("n2", Role::Tool, result.clone())),
    ];
    let again = parse(emit(&parsed, items), None, TranscriptScope::Live).unwrap();
    let blocks: Vec<Vec<Block>> = again
        .conversation
        .entries
        .into_iter()
        .map(|e| e.blocks)
        .collect();
    assert_eq!(blocks[1..], [vec![call], vec![result]]);
}

#[test]
fn what_is_not_the_user_speaking_is_told() {
    let user = |text: &str| format!(r#"{{"type":"user","content":"{text}"}}"#);
    let parsed = chat(
        &[
            user("<state_snapshot>all</state_snapshot>"),
            user("System: Please continue."),
            user("go on"),
        ]
        .join(","),
    );
    let kinds: Vec<EntryKind> = parsed
        .conversation
        .entries
        .into_iter()
        .map(|e| e.meta.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            EntryKind::ForeignSummary,
            EntryKind::Injected,
            EntryKind::Message
        ]
    );
}

#[test]
fn data_costs_what_gemini_charges() {
    let data = format!(r#"{{"inlineData":{{"mimeType":"image/png","data":"{PNG}"}}}}"#);
    let user = format!(r#"{{"id":"a","type":"user","content":[{{"text":"see"}},{data}]}}"#);
    let reply = format!(
        r#"{{"id":"b","type":"gemini","content":"","toolCalls":[{{"id":"c","name":"see","args":{{}},"result":[{{"functionResponse":{{"id":"c","name":"see","response":{{"output":"a"}}}}}},{data}],"status":"success"}}]}}"#
    );
    let entries = chat(&format!("{user},{reply}")).conversation.entries;
    let picture = Block::Media {
        label: "image/png".to_owned(),
        tokens: 2064,
    };
    assert_eq!(entries[0].blocks[1], picture);
    assert_eq!(entries[2].blocks[1], picture);
}

const HEAD: &str = r#"{"sessionId":"s","projectHash":"h","startTime":"T","kind":"main"}"#;

fn lines(records: &[&str], scope: TranscriptScope) -> ParsedTranscript {
    let source: String = records.iter().map(|record| format!("{record}\n")).collect();
    parse(source, None, scope).unwrap()
}

fn texts(parsed: &ParsedTranscript) -> Vec<String> {
    let said = parsed.conversation.entries.iter();
    said.map(|entry| entry.blocks.iter().flat_map(Block::text_parts).collect())
        .collect()
}

#[test]
fn a_chat_of_lines_is_what_is_left_of_its_records() {
    let said =
        |id: &str, text: &str| format!(r#"{{"id":"{id}","type":"user","content":"{text}"}}"#);
    let (a, b, c) = (said("a", "go"), said("b", "stop"), said("c", "rather this"));
    let grown = said("a", "go on");
    let records = [
        HEAD,
        &a,
        r#"{"$set":{"lastUpdated":"T"}}"#,
        &b,
        r#"{"$rewindTo":"b"}"#,
        &c,
        &grown,
    ];
    let parsed = lines(&records, TranscriptScope::Live);
    assert_eq!(parsed.document.format(), Format::GeminiCli);
    assert_eq!(parsed.conversation.session_id.as_deref(), Some("s"));
    assert_eq!(texts(&parsed), ["go on", "rather this"]);
}

#[test]
fn a_compression_replaces_the_context_and_not_what_was_said() {
    let snapshot = r#"{"$set":{"messages":[{"id":"n","type":"user","content":[{"text":"<state_snapshot>short</state_snapshot>"}]},{"id":"z","type":"user","content":"and now?"}]}}"#;
    let last = r#"{"id":"z","type":"user","content":"and now?"}"#;
    let records = [HEAD, USER, REPLY, last, snapshot];
    let live = lines(&records, TranscriptScope::Live);
    assert_eq!(
        texts(&live),
        ["<state_snapshot>short</state_snapshot>", "and now?"]
    );
    assert_eq!(
        live.conversation.entries[0].meta.kind,
        EntryKind::ForeignSummary
    );
    let whole = lines(&records, TranscriptScope::Whole);
    assert_eq!(whole.conversation.entries.len(), 5);
}

#[test]
fn what_tools_answered_is_read_once() {
    let again = r#"{"id":"b_response","type":"user","content":[{"functionResponse":{"id":"c1","name":"ls","response":{"output":"a b"}}}]}"#;
    let records = [HEAD, USER, REPLY, again];
    assert_eq!(
        lines(&records, TranscriptScope::Live)
            .conversation
            .entries
            .len(),
        3
    );
}

const STAMP: crate::BoundaryStamp<'static> = crate::BoundaryStamp {
    timestamp: "2026-01-01T00:00:00.000Z",
    receipt: "r",
    tokens_before: 2,
    tokens_after: 1,
};

#[test]
fn a_torn_line_is_still_read_over_once_a_view_is_appended() {
    let (torn, _) = REPLY.split_at(40);
    let parsed = parse([HEAD, USER, torn].join("\n"), None, TranscriptScope::Live).unwrap();
    let view = View {
        items: vec![ViewItem::New(Entry::from_text("n", Role::User, "summary"))],
    };
    let appended = parsed.document.append(&parsed.conversation, &view, &STAMP);
    let again = parse(appended.unwrap(), None, TranscriptScope::Live).unwrap();
    assert_eq!(texts(&again), ["summary"]);
}

#[test]
fn a_chat_without_a_head_that_is_torn_within_a_character_gives_a_view() {
    let mut source = format!("{USER}\n{REPLY}\n").into_bytes();
    source.extend(&b"{\"id\":\"x\",\"type\":\"user\",\"content\":\"caf\xc3"[..]);
    let parsed = parse(source, Some(Format::GeminiCli), TranscriptScope::Live).unwrap();
    let view = View {
        items: vec![
            ViewItem::New(Entry::from_text("n", Role::User, "summary")),
            ViewItem::Kept { entry: 1 },
        ],
    };
    assert_eq!(emit(&parsed, view.items).lines().count(), 2);
}

#[test]
fn views_of_lines_are_lines_and_boundaries_what_gemini_writes() {
    let parsed = lines(&[HEAD, USER, REPLY], TranscriptScope::Live);
    let view = View {
        items: vec![
            ViewItem::New(Entry::from_text("n", Role::User, "summary")),
            ViewItem::Kept { entry: 1 },
            ViewItem::Kept { entry: 2 },
        ],
    };
    let written = emit(&parsed, view.items.clone());
    assert!(
        written.starts_with(HEAD) && written.lines().count() == 3,
        "{written}"
    );
    let appended = parsed.document.append(&parsed.conversation, &view, &STAMP);
    let appended = String::from_utf8(appended.unwrap()).unwrap();
    for text in [written, appended.clone()] {
        let again = parse(text, None, TranscriptScope::Live).unwrap();
        assert_eq!(texts(&again)[0], "summary");
        assert_eq!(
            again.conversation.entries[1..],
            parsed.conversation.entries[1..]
        );
    }
    assert!(appended.starts_with(std::str::from_utf8(parsed.document.original()).unwrap()));
    let later = lines(
        &[
            HEAD,
            USER,
            REPLY,
            r#"{"id":"z","type":"user","content":"more"}"#,
        ],
        TranscriptScope::Live,
    );
    let joined = parsed
        .document
        .extend(&later.document, &later.conversation, 3)
        .unwrap();
    assert_eq!(joined, later.document.original());
}
