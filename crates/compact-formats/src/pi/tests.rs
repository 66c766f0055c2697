//! Features of pi sessions.

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};

use crate::{BoundaryStamp, Format, ParsedTranscript, TranscriptScope, parse};

const HEAD: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"T","cwd":"/x"}"#;

fn line(id: &str, parent: &str, body: &str) -> String {
    let parent = match parent {
        "" => "null".to_owned(),
        parent => format!("\"{parent}\""),
    };
    format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"T",{body}}}"#)
}

fn user(id: &str, parent: &str, text: &str) -> String {
    let body = format!(r#""message":{{"role":"user","content":"{text}"}}"#);
    line(id, parent, &body)
}

fn read(lines: &[String], scope: TranscriptScope) -> ParsedTranscript {
    parse(lines.join("\n"), None, scope).unwrap()
}

fn texts(parsed: &ParsedTranscript) -> Vec<String> {
    let entries = parsed.conversation.entries.iter();
    entries.map(Entry::plain_text).collect()
}

#[test]
fn the_context_is_the_way_to_the_last_line() {
    let lines = [
        HEAD.to_owned(),
        user("a", "", "one"),
        user("b", "a", "left"),
        user("c", "b", "left too"),
        user("d", "a", "two"),
    ];
    let live = read(&lines, TranscriptScope::Live);
    assert_eq!(live.document.format(), Format::Pi);
    assert_eq!(texts(&live), ["one", "two"]);
    assert_eq!(
        texts(&read(&lines, TranscriptScope::Whole)),
        ["one", "left", "left too", "two"]
    );
    // The view is one branch, whatever the lines hung on.
    let view = View {
        items: vec![ViewItem::Kept { entry: 1 }],
    };
    let out = live.document.emit(&live.conversation, &view).unwrap();
    let line = String::from_utf8(out).unwrap();
    assert!(line.ends_with(&user("d", "", "two")), "{line}");
}

#[test]
fn a_compaction_comes_first_and_keeps_what_it_says() {
    let compaction = r#"{"type":"compaction","id":"k","parentId":"c","timestamp":"T","summary":"so far","firstKeptEntryId":"c","tokensBefore":9}"#;
    let lines = [
        HEAD.to_owned(),
        user("a", "", "gone"),
        user("b", "a", "gone too"),
        user("c", "b", "kept"),
        compaction.to_owned(),
        user("d", "k", "after"),
    ];
    let live = read(&lines, TranscriptScope::Live);
    assert_eq!(texts(&live), ["so far", "kept", "after"]);
    assert_eq!(
        live.conversation.entries[0].meta.kind,
        EntryKind::ForeignSummary
    );
    // In a view the summary is a message: as a boundary it would hide what stands before it.
    let view = View {
        items: vec![ViewItem::Kept { entry: 1 }, ViewItem::Kept { entry: 0 }],
    };
    let out = live.document.emit(&live.conversation, &view).unwrap();
    let again = parse(out, None, TranscriptScope::Live).unwrap();
    assert_eq!(texts(&again), ["kept", "so far"]);
    assert_eq!(
        again.conversation.entries[1].meta.kind,
        EntryKind::ForeignSummary
    );
}

#[test]
fn calls_results_and_commands_are_blocks() {
    let reply = r#""message":{"role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hmm","thinkingSignature":"sig"},{"type":"toolCall","id":"c1","name":"ls","arguments":{"p":1}}],"usage":{"input":1,"cacheRead":2,"cacheWrite":3}}"#;
    let result = r#""message":{"role":"toolResult","toolCallId":"c1","content":[{"type":"text","text":"a"}],"details":{"long":"a"},"isError":true}"#;
    let command = r#""message":{"role":"bashExecution","command":"ls","output":"a","exitCode":0}"#;
    let aborted = r#""message":{"role":"assistant","content":[],"stopReason":"aborted"}"#;
    let parsed = read(
        &[
            HEAD.to_owned(),
            line("a", "", reply),
            line("b", "a", result),
            line("c", "b", command),
            line("d", "c", aborted),
        ],
        TranscriptScope::Live,
    );
    let entries = &parsed.conversation.entries;
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[0].meta.usage.map(|u| u.prompt_tokens().0), Some(6));
    assert_eq!(entries[2].meta.kind, EntryKind::Injected);
    let view = View {
        items: vec![
            ViewItem::Kept { entry: 0 },
            ViewItem::Edited {
                entry: 1,
                edits: vec![(0, BlockEdit::SetText("cut".to_owned()))],
            },
        ],
    };
    let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains(r#""details":null"#), "{out}");
    let again = parse(out, None, TranscriptScope::Live).unwrap();
    assert_eq!(
        again.conversation.entries[1].blocks,
        [Block::ToolResult {
            call: "c1".to_owned(),
            content: "cut".to_owned(),
            is_error: true
        }]
    );
}

#[test]
fn a_session_of_the_first_version_has_no_ids() {
    let line = |text: &str| {
        format!(
            r#"{{"type":"message","timestamp":"T","message":{{"role":"user","content":"{text}"}}}}"#
        )
    };
    let lines = [HEAD.to_owned(), line("one"), line("two")];
    let parsed = read(&lines, TranscriptScope::Live);
    let view = View {
        items: vec![
            ViewItem::New(Entry::from_text("n", Role::User, "so far")),
            ViewItem::Kept { entry: 1 },
        ],
    };
    let stamp = BoundaryStamp {
        timestamp: "T2",
        receipt: "r",
        tokens_before: 9,
        tokens_after: 1,
    };
    let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
    assert!(!String::from_utf8(out).unwrap().contains("parentId"));
    let out = parsed.document.append(&parsed.conversation, &view, &stamp);
    let live = parse(out.unwrap(), None, TranscriptScope::Live).unwrap();
    assert_eq!(texts(&live), ["so far", "two"]);
}
