//! Conversions, small enough to read.

use compact_core::message::{Block, Conversation, Entry, Role};

use super::{ConversionLoss, convert, convert_document};
use crate::validate::{Provider, Strictness, check};
use crate::{Format, TranscriptScope, parse};

fn call(id: &str) -> Block {
    Block::ToolCall {
        id: id.to_owned(),
        name: "run".to_owned(),
        arguments: "{\"a\": 1}".to_owned(),
    }
}

fn result(call: &str, is_error: bool) -> Block {
    Block::ToolResult {
        call: call.to_owned(),
        content: format!("of {call}"),
        is_error,
    }
}

fn entry(id: &str, role: Role, blocks: Vec<Block>) -> Entry {
    Entry {
        blocks,
        ..Entry::from_text(id, role, "")
    }
}

fn conversation() -> Conversation {
    let mut said = entry("3", Role::Assistant, vec![call("b")]);
    let reasoning = Block::Reasoning {
        text: "hmm".to_owned(),
        replay_bytes: 9,
    };
    let mut asked = entry("2", Role::Assistant, vec![reasoning, call("a")]);
    said.meta.group = Some("g".to_owned());
    asked.meta.group = Some("g".to_owned());
    Conversation {
        session_id: Some("s".to_owned()),
        model: Some("m".to_owned()),
        entries: vec![
            Entry::from_text("0", Role::System, "be good"),
            Entry::from_text("1", Role::User, "do it"),
            asked,
            said,
            entry("4", Role::Tool, vec![result("a", false)]),
            entry("5", Role::Tool, vec![result("b", true)]),
            Entry::from_text("6", Role::Assistant, "done"),
        ],
        tools: Some("[{\"name\":\"run\"}]".to_owned()),
    }
}

/// Texts, calls and results in order.
fn said(conversation: &Conversation) -> Vec<Block> {
    let blocks = conversation.entries.iter().flat_map(|e| e.blocks.clone());
    let kept = |b: &Block| !matches!(b, Block::Reasoning { .. });
    blocks.filter(kept).collect()
}

#[test]
fn every_format_keeps_texts_calls_and_results() {
    let source = conversation();
    for &format in Format::ALL {
        let converted = convert(&source, format).unwrap();
        let read = parse(converted.bytes, Some(format), TranscriptScope::Live).unwrap();
        let mut expected = said(&source);
        let has_errors = !converted
            .losses
            .iter()
            .any(|loss| loss.what.contains("error mark"));
        for block in &mut expected {
            if let Block::ToolResult { is_error, .. } = block {
                *is_error &= has_errors;
            }
        }
        assert_eq!(said(&read.conversation), expected, "{format}");
        assert_eq!(read.problems, vec![], "{format}");
    }
}

#[test]
fn what_is_lost_is_listed() {
    let loss = |entry: Option<usize>, what: &str| ConversionLoss {
        entry,
        what: what.to_owned(),
    };
    assert_eq!(
        convert(&conversation(), Format::OpenAiChat).unwrap().losses,
        [
            loss(None, "the session's id"),
            loss(None, "the tool schemas"),
            loss(Some(2), "reasoning with a signature of 9 bytes"),
            loss(Some(5), "the error mark of the result of call b"),
        ]
    );
    assert_eq!(
        convert(&conversation(), Format::ClaudeCode).unwrap().losses,
        [
            loss(None, "the tool schemas"),
            loss(Some(0), "the role system, written as user"),
            loss(Some(2), "reasoning with a signature of 9 bytes"),
        ]
    );
}

#[test]
fn parallel_calls_stand_in_one_message() {
    let converted = convert(&conversation(), Format::Messages).unwrap();
    let messages: serde_json::Value = serde_json::from_slice(&converted.bytes).unwrap();
    let roles: Vec<&str> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "tool", "assistant"]
    );
}

#[test]
fn nothing_converts_to_a_document_of_nothing() {
    for &format in Format::ALL {
        let converted = convert(&Conversation::default(), format).unwrap();
        assert_eq!(converted.losses, vec![], "{format}");
    }
}

#[test]
fn an_id_that_is_used_again_is_told_apart() {
    let pair = |n: usize| {
        [
            entry(&format!("{n}"), Role::Assistant, vec![call("x")]),
            entry(&format!("{n}r"), Role::Tool, vec![result("x", false)]),
        ]
    };
    let source = Conversation {
        entries: [pair(0), pair(1)].concat(),
        ..Conversation::default()
    };
    let converted = convert(&source, Format::Messages).unwrap();
    let read = parse(converted.bytes, None, TranscriptScope::Live).unwrap();
    let ids: Vec<&str> = read
        .conversation
        .entries
        .iter()
        .flat_map(|e| e.call_ids().chain(e.result_ids()))
        .collect();
    assert_eq!(ids, ["x", "x", "x_2", "x_2"]);
    assert_eq!(
        converted.losses,
        [ConversionLoss {
            entry: Some(2),
            what: "the id of call x, written as x_2".to_owned()
        }]
    );
}

/// Roles and blocks of what a conversation reads as once it was converted.
fn there(entries: Vec<Entry>, to: Format) -> Vec<(Role, Vec<Block>)> {
    let source = Conversation {
        entries,
        ..Conversation::default()
    };
    let converted = convert(&source, to).unwrap();
    let read = parse(converted.bytes, Some(to), TranscriptScope::Live).unwrap();
    let entries = read.conversation.entries.into_iter();
    entries.map(|entry| (entry.role, entry.blocks)).collect()
}

#[test]
fn results_stand_behind_their_calls_in_order() {
    let words = Block::Text("wait".to_owned());
    let said = there(
        vec![
            Entry::from_text("0", Role::User, "do it"),
            entry("1", Role::Assistant, vec![call("a"), call("b")]),
            Entry::from_text("2", Role::User, "wait"),
            entry("3", Role::Tool, vec![result("b", false)]),
            entry("4", Role::Tool, vec![result("a", false)]),
        ],
        Format::Gemini,
    );
    assert_eq!(
        said[1..],
        [
            (Role::Assistant, vec![call("a"), call("b")]),
            // One content, because sides alternate; beside responses nobody is known to be the person.
            (
                Role::Tool,
                vec![result("a", false), result("b", false), words]
            ),
        ]
    );
}

#[test]
fn half_a_pair_is_made_whole_and_listed() {
    let source = Conversation {
        entries: vec![
            entry("0", Role::Tool, vec![result("gone", false)]),
            entry("1", Role::Assistant, vec![call("x|y")]),
            Entry::from_text("2", Role::User, "stop"),
        ],
        ..Conversation::default()
    };
    let converted = convert(&source, Format::Anthropic).unwrap();
    let losses: Vec<&str> = converted.losses.iter().map(|l| l.what.as_str()).collect();
    assert_eq!(
        losses,
        [
            "the id of call x|y, written as x_y",
            "call x_y without a result; one that says so was written",
            "the result of gone without a call; one of unknown_tool was written",
        ]
    );
    let found = check(Provider::Anthropic, Strictness::Vendor, &converted.bytes).unwrap();
    assert_eq!(found, []);
}

#[test]
fn a_transcript_is_judged_as_it_is_and_converted_as_it_should_be() {
    let line = |kind: &str, message: &str| {
        format!(r#"{{"type":"{kind}","sessionId":"s","message":{message}}}"#)
    };
    let session = [
        line("user", r#"{"role":"user","content":"go"}"#),
        line("assistant", r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"ls","input":{}}]}"#),
        line("user", r#"{"role":"user","content":"never mind"}"#),
    ]
    .join("\n");
    let found = check(Provider::Anthropic, Strictness::Vendor, session.as_bytes()).unwrap();
    let found: Vec<&str> = found.iter().map(|violation| violation.rule.id).collect();
    assert_eq!(found, ["A1"]);
    let said = parse(session, None, TranscriptScope::Live)
        .unwrap()
        .conversation;
    let body = convert(&said, Format::Anthropic).unwrap().bytes;
    assert_eq!(
        check(Provider::Anthropic, Strictness::Vendor, &body).unwrap(),
        []
    );
}

/// A session of Claude Code: an entry a second.
fn claude_code() -> String {
    let line = |second: usize, role: &str| {
        format!(
            "{{\"parentUuid\":null,\"isSidechain\":false,\"sessionId\":\"s\",\"type\":\"{role}\",\
             \"cwd\":\"/src/shop\",\"version\":\"2.1.325\",\"gitBranch\":\"main\",\"uuid\":\"u{second}\",\
             \"timestamp\":\"2026-11-16T08:00:0{second}.000Z\",\
             \"message\":{{\"role\":\"{role}\",\"content\":\"word {second}\"}}}}\n"
        )
    };
    line(1, "user") + &line(2, "assistant") + &line(3, "user")
}

#[test]
fn a_session_goes_to_its_own_format_as_it_is() {
    let source = claude_code();
    let parsed = parse(source.clone(), None, TranscriptScope::Live).unwrap();
    let converted = convert_document(&parsed, Format::ClaudeCode).unwrap();
    assert_eq!(converted.bytes, source.as_bytes());
    assert_eq!(converted.losses, []);
}

#[test]
fn moments_go_along_to_every_agent_that_writes_them_and_are_listed_elsewhere() {
    let parsed = parse(claude_code(), None, TranscriptScope::Live).unwrap();
    let others = Format::ALL.iter().copied();
    for format in others.filter(|format| *format != Format::ClaudeCode) {
        let converted = convert_document(&parsed, format).unwrap();
        let text = String::from_utf8(converted.bytes).unwrap();
        let has = |what: &str| converted.losses.iter().any(|loss| loss.what == what);
        let carries = matches!(
            format,
            Format::CodexRollout | Format::GeminiCli | Format::Pi | Format::Copilot
        );
        for second in 1..=3 {
            let moment = format!("2026-11-16T08:00:0{second}.000Z");
            assert_eq!(text.contains(&moment), carries, "{format}: {text}");
        }
        assert!(!carries || !text.contains("1970"), "{format}: {text}");
        assert_eq!(has("the timestamps of 3 entries"), !carries, "{format}");
        let has_folder = matches!(format, Format::CodexRollout | Format::Pi);
        assert_eq!(text.contains("/src/shop"), has_folder, "{format}: {text}");
        assert_eq!(has("the session's cwd: /src/shop"), !has_folder, "{format}");
        assert!(has("the session's version: 2.1.325"), "{format}");
        assert!(has("the session's gitBranch: main"), "{format}");
    }
}
