//! Features of chat messages, one small body each.

use compact_core::message::{Block, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};

use crate::{Format, ParsedTranscript, TranscriptScope, parse};

fn read(source: &str) -> ParsedTranscript {
    parse(source.to_owned(), None, TranscriptScope::Live).unwrap()
}

fn blocks(source: &str) -> Vec<Block> {
    read(source)
        .conversation
        .entries
        .into_iter()
        .flat_map(|entry| entry.blocks)
        .collect()
}

fn edited(source: &str, entry: usize, edits: Vec<(usize, BlockEdit)>) -> String {
    let parsed = read(source);
    let mut view = View::identity(&parsed.conversation);
    view.items[entry] = ViewItem::Edited { entry, edits };
    String::from_utf8(parsed.document.emit(&parsed.conversation, &view).unwrap()).unwrap()
}

fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

#[test]
fn a_request_body_names_its_model_and_tools() {
    let parsed = read(
        r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}],"tools":[ {"a":1} ]}"#,
    );
    assert_eq!(parsed.document.format(), Format::OpenAiChat);
    assert_eq!(parsed.conversation.model.as_deref(), Some("gpt-4o"));
    assert_eq!(parsed.conversation.tools.as_deref(), Some(r#"[ {"a":1} ]"#));
}

#[test]
fn tools_tell_chat_from_plain_messages() {
    let plain = r#"[{"role":"user","content":"what is \"tool_calls\"?"}]"#;
    assert_eq!(read(plain).document.format(), Format::Messages);
    let chat = r#"[{"role":"assistant","content":null,"tool_calls":[]}]"#;
    assert_eq!(read(chat).document.format(), Format::OpenAiChat);
    assert_eq!(
        read("{\"role\":\"user\",\"content\":\"hi\"}\n")
            .document
            .format(),
        Format::MessagesJsonl
    );
    assert_eq!(
        read("{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"hi\"}\n")
            .document
            .format(),
        Format::OpenAiChat
    );
}

#[test]
fn every_role_is_read() {
    let source = r#"[{"role":"system","content":"a"},{"role":"developer","content":"b"},{"role":"user","content":"c"},
        {"role":"assistant","content":"d"},{"role":"tool","content":"e"}]"#;
    let roles: Vec<Role> = read(source)
        .conversation
        .entries
        .iter()
        .map(|entry| entry.role)
        .collect();
    assert_eq!(
        roles,
        [
            Role::System,
            Role::Developer,
            Role::User,
            Role::Assistant,
            Role::Tool
        ]
    );
}

#[test]
fn an_unknown_role_is_noted_and_kept() {
    let parsed = read(r#"[{"role":"narrator","content":"meanwhile"}]"#);
    assert_eq!(parsed.conversation.entries[0].role, Role::User);
    assert_eq!(
        parsed.problems[0].message,
        "unknown role `narrator`, read as user"
    );
}

#[test]
fn truthy_meta_keys_are_flags() {
    let source = r#"[{"role":"user","content":"a","meta":{"protected":true,"tool_name":"x","turn_id":0,"seen":false}},
        {"role":"user","content":"b","protected":true},{"role":"user","content":"c","meta":7}]"#;
    let flags: Vec<Vec<String>> = read(source)
        .conversation
        .entries
        .into_iter()
        .map(|entry| entry.meta.flags.into_iter().collect())
        .collect();
    assert_eq!(
        flags,
        [
            vec!["protected".to_owned(), "tool_name".to_owned()],
            vec!["protected".to_owned()],
            vec![]
        ]
    );
}

#[test]
fn content_may_be_null_missing_a_string_or_parts() {
    let source = r#"[{"role":"assistant","content":null},{"role":"assistant"},{"role":"user","content":""},
        {"role":"user","content":["bare",{"type":"text","text":"part"},{"type":"refusal","refusal":"no"},
        {"type":"image_url","image_url":{"url":"data:"}},{"type":"file","file":{"filename":"a.pdf"}},{"type":"hologram"}]}]"#;
    assert_eq!(
        blocks(source),
        [
            text("bare"),
            text("part"),
            text("no"),
            Block::Media {
                label: "image".to_owned(),
                tokens: 765
            },
            Block::Media {
                label: "file a.pdf".to_owned(),
                tokens: 1365
            },
            Block::Opaque {
                kind: "hologram".to_owned(),
                bytes: 19
            },
        ]
    );
}

#[test]
fn reasoning_comes_before_what_it_led_to() {
    let source = r#"[{"role":"assistant","content":"so","reasoning_content":"hmm"}]"#;
    let reasoning = Block::Reasoning {
        text: "hmm".to_owned(),
        replay_bytes: 0,
    };
    assert_eq!(blocks(source), [reasoning, text("so")]);
}

#[test]
fn legacy_functions_pair_by_their_place() {
    let source = r#"[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
        {"role":"function","name":"f","content":"done"}]"#;
    let id = "function_call_0".to_owned();
    assert_eq!(
        blocks(source),
        [
            Block::ToolCall {
                id: id.clone(),
                name: "f".to_owned(),
                arguments: "{}".to_owned()
            },
            Block::ToolResult {
                call: id,
                content: "done".to_owned(),
                is_error: false
            },
        ]
    );
    assert_eq!(read(source).problems, []);
}

#[test]
fn broken_pairs_are_problems() {
    let source = r#"[{"role":"tool","tool_call_id":"x","content":"a"},
        {"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"f","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"1","content":"b"},{"role":"tool","tool_call_id":"1","content":"b"},
        {"role":"user","content":"c"}]"#;
    let parsed = read(source);
    let notes: Vec<(Option<usize>, String)> = parsed
        .problems
        .into_iter()
        .map(|problem| (problem.entry, problem.message))
        .collect();
    assert_eq!(
        notes,
        [
            (
                None,
                "another result of call 1; the first one counts".to_owned()
            ),
            (
                Some(0),
                "result of call x, which is not in the context".to_owned()
            ),
            (Some(1), "call 2 has no result".to_owned()),
        ]
    );
    assert_eq!(parsed.conversation.entries.len(), 4);
}

#[test]
fn an_id_used_again_opens_a_new_pair() {
    let pair = r#"{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"1","content":"b"}"#;
    let parsed = read(&format!("[{pair},{pair}]"));
    assert_eq!(
        (parsed.conversation.entries.len(), parsed.problems),
        (4, vec![])
    );
}

#[test]
fn a_call_at_the_end_may_still_run() {
    let source = r#"[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}]"#;
    assert_eq!(read(source).problems, []);
}

#[test]
fn ids_are_the_wires_own_or_the_place() {
    let source = r#"[{"role":"user","content":"a","id":"m1"},{"role":"user","content":"b"},{"role":"user","content":"c","id":"m1"}]"#;
    let ids: Vec<String> = read(source)
        .conversation
        .entries
        .into_iter()
        .map(|entry| entry.id.0)
        .collect();
    assert_eq!(ids, ["m1", "m1'", "m2"]);
}

#[test]
fn a_frame_is_what_anybody_may_write() {
    let source = r#"[{"role":"assistant","content":"<COMPACT-SUMMARY v3>\nreceipt: abc\nx\n</COMPACT-SUMMARY>"}]"#;
    let kind = &read(source).conversation.entries[0].meta.kind;
    assert_eq!(*kind, EntryKind::Message);
}

/// An agent's history is the same in its provider's format.
#[test]
fn what_an_agent_says_in_the_users_place_is_no_request() {
    let kind = |content: &str| {
        let source = serde_json::json!([{ "role": "user", "content": content }]);
        read(&source.to_string()).conversation.entries[0]
            .meta
            .kind
            .clone()
    };
    for injected in [
        "<environment_context>\n  <cwd>/srv</cwd>\n</environment_context>",
        "<system-reminder>Mind the time.</system-reminder>\n<command-name>/cost</command-name>",
        "[Request interrupted by user for tool use]",
        "System: Please continue.",
    ] {
        assert_eq!(kind(injected), EntryKind::Injected, "{injected}");
    }
    for said in [
        "Why does <environment_context></environment_context> say nothing?",
        "<command-name>/fix</command-name><command-args>the login</command-args>",
        "<notes>Mine.</notes>",
        "System: Please continue. And mend the tests.",
        "[Request interrupted by user]\nDo the other one first.",
        // They may hold orders.
        "# AGENTS.md instructions for /srv\n\nUse tabs.",
        "<user_instructions>Never push.</user_instructions>",
        "",
    ] {
        assert_eq!(kind(said), EntryKind::Message, "{said}");
    }
}

#[test]
fn an_edit_changes_only_its_own_string() {
    let source = r#"{"n": 1.0, "messages": [ {"z":1e2, "role":"tool", "tool_call_id":"1", "content": "long" ,"a":{"b":[]}} ], "x":2}"#;
    assert_eq!(
        edited(
            source,
            0,
            vec![(0, BlockEdit::SetText("a \"b\"".to_owned()))]
        ),
        r#"{"n": 1.0, "messages": [ {"z":1e2, "role":"tool", "tool_call_id":"1", "content": "a \"b\"" ,"a":{"b":[]}} ], "x":2}"#
    );
}

#[test]
fn a_dropped_block_leaves_a_message_that_the_wire_accepts() {
    let call = |id| format!(r#"{{"id":"{id}","function":{{"name":"f","arguments":"{{}}"}}}}"#);
    let source = format!(
        r#"[{{"role":"assistant","reasoning_content":"r","content":"c","tool_calls":[{},{}]}}]"#,
        call(1),
        call(2)
    );
    let drop = |blocks: &[usize]| {
        edited(
            &source,
            0,
            blocks
                .iter()
                .map(|block| (*block, BlockEdit::Drop))
                .collect(),
        )
    };
    let message = |inner: String| format!(r#"[{{"role":"assistant",{inner}}}]"#);
    assert_eq!(
        drop(&[0]),
        message(format!(
            r#""content":"c","tool_calls":[{},{}]"#,
            call(1),
            call(2)
        ))
    );
    assert_eq!(
        drop(&[0, 1, 2]),
        message(format!(r#""content":null,"tool_calls":[{}]"#, call(2)))
    );
    assert_eq!(
        drop(&[0, 3]),
        message(format!(r#""content":"c","tool_calls":[{}]"#, call(1)))
    );
    assert_eq!(
        drop(&[2, 3]),
        message(r#""reasoning_content":"r","content":"c""#.to_owned())
    );
    assert_eq!(drop(&[0, 1, 2, 3]), "[]");
}

#[test]
fn a_result_of_parts_keeps_its_images() {
    let source = r#"[{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"a"},{"type":"image_url"},{"type":"text","text":"b"}]}]"#;
    assert_eq!(
        edited(source, 0, vec![(0, BlockEdit::SetText("short".to_owned()))]),
        r#"[{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"short"},{"type":"image_url"}]}]"#
    );
}

#[test]
fn the_layout_around_messages_stays() {
    let source = "\u{feff}[\r\n  {\"role\":\"user\",\"content\":\"a\"},\r\n  {\"role\":\"user\",\"content\":\"b\"},\r\n  {\"role\":\"user\",\"content\":\"c\"}\r\n]\r\n";
    let parsed = read(source);
    let view = View {
        items: vec![ViewItem::Kept { entry: 0 }, ViewItem::Kept { entry: 2 }],
    };
    let out = parsed.document.emit(&parsed.conversation, &view).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "\u{feff}[\r\n  {\"role\":\"user\",\"content\":\"a\"},\r\n  {\"role\":\"user\",\"content\":\"c\"}\r\n]\r\n"
    );
}
