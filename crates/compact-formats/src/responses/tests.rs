//! Features of Responses bodies, one small body each.

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::{BlockEdit, View, ViewItem};
use serde_json::{Value, json};

use crate::media::tests::PNG;
use crate::{Format, ParsedTranscript, TranscriptScope, parse};

fn read(body: &Value) -> ParsedTranscript {
    parse(
        body.to_string(),
        Some(Format::OpenAiResponses),
        TranscriptScope::Live,
    )
    .unwrap()
}

fn items(items: &Value) -> Vec<Entry> {
    read(items).conversation.entries
}

fn emitted(parsed: &ParsedTranscript, items: Vec<ViewItem>) -> Value {
    let out = parsed
        .document
        .emit(&parsed.conversation, &View { items })
        .unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn kept(entries: impl IntoIterator<Item = usize>) -> Vec<ViewItem> {
    let item = |entry| ViewItem::Kept { entry };
    entries.into_iter().map(item).collect()
}

fn set(entry: usize, text: &str) -> ViewItem {
    ViewItem::Edited {
        entry,
        edits: vec![(0, BlockEdit::SetText(text.to_owned()))],
    }
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

fn response() -> Value {
    json!({"instructions": "be good", "input": [
        {"role": "user", "content": "go"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "abcd"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rust"}},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "found", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "run", "arguments": "{}", "namespace": "n"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    ]})
}

#[test]
fn every_call_has_its_output() {
    let cases = [
        (
            json!({"type": "function_call", "call_id": "c", "name": "run", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": "c", "output": "ok"}),
            call("c", "run", "{}"),
        ),
        (
            json!({"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "free"}),
            json!({"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "ok"}]}),
            call("c", "patch", "free"),
        ),
        (
            json!({"type": "local_shell_call", "id": "l", "call_id": "c", "action": {"type": "exec"}}),
            json!({"type": "local_shell_call_output", "id": "c", "output": "ok"}),
            call("c", "local_shell", "{\"type\":\"exec\"}"),
        ),
        (
            json!({"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}),
            json!({"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "ok", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}),
            call("c", "shell", "{\"commands\":[\"ls\"]}"),
        ),
        (
            json!({"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}}),
            json!({"type": "apply_patch_call_output", "call_id": "c", "status": "completed", "output": "ok"}),
            call(
                "c",
                "apply_patch",
                "{\"type\":\"delete_file\",\"path\":\"a\"}",
            ),
        ),
        (
            json!({"type": "program", "id": "p", "call_id": "c", "code": "1", "fingerprint": "f"}),
            json!({"type": "program_output", "id": "q", "call_id": "c", "result": "ok", "status": "completed"}),
            call("c", "program", "1"),
        ),
        (
            json!({"type": "mcp_approval_request", "id": "c", "name": "drop", "arguments": "{}", "server_label": "s"}),
            json!({"type": "mcp_approval_response", "approval_request_id": "c", "approve": true, "reason": "ok"}),
            call("c", "drop", "{}"),
        ),
    ];
    for (asked, answered, block) in cases {
        let entries = items(&json!([asked, answered]));
        let blocks: Vec<Block> = entries.into_iter().flat_map(|e| e.blocks).collect();
        assert_eq!(blocks, [block, result("c", "ok")]);
    }
}

#[test]
fn outputs_without_words_are_weighed() {
    let picture = items(&json!([
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": "data:"}},
    ]));
    assert!(matches!(
        picture[0].blocks.as_slice(),
        [Block::ToolResult { .. }, Block::Media { .. }]
    ));
    let hosted = items(&json!([{"type": "tool_search_output", "id": "t", "tools": []}]));
    assert!(matches!(
        hosted[0].blocks.as_slice(),
        [Block::Opaque { .. }]
    ));
}

#[test]
fn pictures_cost_by_their_size() {
    let made = items(&json!([
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG},
        {"type": "image_generation_call", "id": "ig_2", "status": "failed", "result": null},
    ]));
    let costs: Vec<&[Block]> = made.iter().map(|entry| entry.blocks.as_slice()).collect();
    let picture = |tokens| Block::Media {
        label: "image".to_owned(),
        tokens,
    };
    assert_eq!(costs, [[picture(425)], [picture(765)]]);
}

#[test]
fn a_response_is_one_group_and_a_whole_one_keeps_its_ids() {
    let parsed = read(&response());
    let groups: Vec<Option<&str>> = parsed
        .conversation
        .entries
        .iter()
        .map(|e| e.meta.group.as_deref())
        .collect();
    let group = Some("response-1");
    assert_eq!(groups, [None, None, group, group, group, group, None]);
    let body = emitted(&parsed, kept([0, 2, 3, 4, 5, 6]));
    assert_eq!(
        body["input"].as_array().unwrap()[..],
        response()["input"].as_array().unwrap()[1..]
    );
}

#[test]
fn without_its_reasoning_a_response_loses_its_ids() {
    let parsed = read(&response());
    let body = emitted(&parsed, kept([0, 1, 3, 4, 5, 6]));
    assert_eq!(
        body["input"],
        json!([
            {"role": "user", "content": "go"},
            {"type": "message", "role": "assistant", "content": "web_search {\"type\":\"search\",\"query\":\"rust\"}"},
            {"type": "message", "role": "assistant", "content": "found"},
            {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}", "namespace": "n"},
            {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        ])
    );
}

#[test]
fn a_hosted_call_that_is_cut_takes_the_reasoning_along() {
    let parsed = read(&response());
    let mut items = kept([0, 1, 2]);
    items.push(set(3, "searched"));
    items.extend(kept([4, 5, 6]));
    let body = emitted(&parsed, items);
    let kinds: Vec<&str> = body["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap_or("easy"))
        .collect();
    assert_eq!(
        kinds,
        [
            "easy",
            "message",
            "message",
            "function_call",
            "function_call_output"
        ]
    );
}

#[test]
fn a_cut_action_keeps_its_shape() {
    let diff = "+line\n".repeat(40);
    let parsed = read(&json!([
        {"type": "apply_patch_call", "call_id": "c", "status": "completed",
         "operation": {"type": "update_file", "path": "src/a.rs", "diff": diff}},
        {"type": "shell_call_output", "call_id": "d", "output": [
            {"stdout": "one", "stderr": "two", "outcome": {"type": "timeout"}}]},
    ]));
    let items = vec![
        set(0, "{\"type\":\"…\",\"path\":\"…\",\"diff\":\"+line …\"}"),
        set(1, "short"),
    ];
    assert_eq!(
        emitted(&parsed, items),
        json!([
            {"type": "apply_patch_call", "call_id": "c", "status": "completed",
             "operation": {"type": "update_file", "path": "src/a.rs", "diff": "+line …"}},
            {"type": "shell_call_output", "call_id": "d", "output": [
                {"stdout": "short", "stderr": "", "outcome": {"type": "timeout"}}]},
        ])
    );
    assert_eq!(
        emitted(&parsed, vec![set(0, "{}")])[0]["operation"],
        json!({"type": "update_file", "path": "src/a.rs", "diff": ""})
    );
}

#[test]
fn a_string_is_a_prompt_until_something_joins_it() {
    let parsed = read(&json!({"model": "m", "input": "go"}));
    let summary = ViewItem::New(Entry::from_text("s", Role::System, "so far"));
    let mut items = vec![summary];
    items.extend(kept([0]));
    assert_eq!(
        emitted(&parsed, items),
        json!({"model": "m", "input": [
            {"type": "message", "role": "system", "content": "so far"},
            {"type": "message", "role": "user", "content": "go"},
        ]})
    );
}

#[test]
fn a_compaction_item_is_sealed_and_the_applications_items_are_its_own() {
    let entries = items(&json!([
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "abc"},
        {"type": "reasoning", "summary": []},
        {"type": "compaction_trigger"},
    ]));
    assert_eq!(entries[0].meta.kind, EntryKind::ForeignSummary);
    assert_eq!(entries[0].meta.group, None);
    assert_eq!(entries[2].role, Role::Developer);
    assert_eq!(entries[2].meta.kind, EntryKind::Message);
}

#[test]
fn a_history_on_the_server_is_not_rewritten() {
    let parsed = read(&json!({"previous_response_id": "resp_1", "input": [
        {"type": "function_call_output", "call_id": "c", "output": "ok"}, {"role": "user", "content": "x"}]}));
    assert_eq!(
        parsed.problems[0].message,
        "`previous_response_id`: the server holds the history before this input"
    );
    let view = View { items: kept([1]) };
    let error = parsed.document.emit(&parsed.conversation, &view);
    assert!(error.unwrap_err().to_string().contains("on the server"));
    let identity = View::identity(&parsed.conversation);
    assert!(
        parsed
            .document
            .emit(&parsed.conversation, &identity)
            .is_ok()
    );
}

#[test]
fn reasoning_that_nobody_stored_is_known() {
    let rules = |store: bool, reasoning: Value| {
        let body = json!({"store": store, "input": [reasoning, {"role": "user", "content": "x"}]});
        read(&body).document.rules().name
    };
    let bare = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let sealed =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"});
    assert_eq!(rules(false, bare.clone()), "openai-responses-unstored");
    assert_eq!(rules(true, bare), "openai-responses");
    assert_eq!(rules(false, sealed), "openai-responses");
}

#[test]
fn a_body_is_told_by_its_input() {
    let told = |body: Value| crate::detect(body.to_string().as_bytes()).unwrap();
    assert_eq!(
        told(json!({"model": "m", "input": "hi"})),
        Format::OpenAiResponses
    );
    assert_eq!(told(response()), Format::OpenAiResponses);
    assert_eq!(told(response()["input"].clone()), Format::OpenAiResponses);
}
