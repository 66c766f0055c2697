use compact_core::message::{Block, Role};
use compact_core::token::Tokens;
use compact_core::usage::{Semantics, Usage};
use serde_json::{Value, json};

use super::*;

fn read_activities(dialect: StreamDialect, lines: &[Value]) -> Vec<AgentActivity> {
    let mut reader = StreamReader::new(dialect);
    let read = lines
        .iter()
        .map(|line| reader.read_line(&line.to_string()).unwrap());
    read.flatten().collect()
}

fn entry(id: &str, role: Role, block: Block) -> AgentActivity {
    AgentActivity::Said(Entry {
        id: EntryId(id.to_owned()),
        role,
        blocks: vec![block],
        meta: EntryMeta::default(),
    })
}

fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn result(call: &str, content: &str, is_error: bool) -> Block {
    Block::ToolResult {
        call: call.to_owned(),
        content: content.to_owned(),
        is_error,
    }
}

fn used(input: u64, output: u64, read: u64, measures: Option<Semantics>) -> AgentActivity {
    AgentActivity::Used(UsageReport {
        usage: Usage {
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: read,
            cache_creation_tokens: 0,
        },
        measures,
    })
}

fn about(id: &str) -> SessionDetails {
    SessionDetails {
        id: Some(id.to_owned()),
        ..SessionDetails::default()
    }
}

/// Lines as Claude Code 2.1.325 prints them, shortened.
#[test]
fn a_turn_of_claude_code() {
    let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 70, "output_tokens": 1});
    let lines = [
        json!({"type": "system", "subtype": "init", "session_id": "e2", "model": "m", "tools": []}),
        json!({"type": "assistant", "parent_tool_use_id": null, "message": {"id": "msg_1",
            "content": [{"type": "text", "text": "step"}], "usage": usage}}),
        json!({"type": "assistant", "parent_tool_use_id": null, "message": {"id": "msg_1",
            "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}], "usage": usage}}),
        json!({"type": "assistant", "parent_tool_use_id": "t1", "message": {
            "content": [{"type": "text", "text": "a subagent"}], "usage": {"input_tokens": 9999}}}),
        json!({"type": "user", "parent_tool_use_id": null, "message": {"role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.rs"}], "is_error": false}]}}),
        json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}}),
        json!({"type": "control_response", "response": {"subtype": "success", "request_id": "r1"}}),
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "done", "session_id": "e2",
            "usage": {"input_tokens": 6, "cache_read_input_tokens": 140, "output_tokens": 22},
            "modelUsage": {"small": {"inputTokens": 1, "contextWindow": 8000}, "m": {"inputTokens": 60, "outputTokens": 22, "contextWindow": 200_000}}}),
    ];
    let last = Some(Semantics::LastRequest);
    assert_eq!(
        read_activities(StreamDialect::ClaudeCode, &lines),
        [
            AgentActivity::Session(SessionDetails {
                model: Some("m".to_owned()),
                ..about("e2")
            }),
            entry("0", Role::Assistant, Block::Text("step".to_owned())),
            used(3, 1, 70, last),
            entry(
                "1",
                Role::Assistant,
                call("t1", "Bash", r#"{"command":"ls"}"#)
            ),
            used(3, 1, 70, last),
            entry("2", Role::Tool, result("t1", "a.rs", false)),
            AgentActivity::Session(SessionDetails {
                window: Some(Tokens(200_000)),
                ..about("e2")
            }),
            used(6, 22, 140, Some(Semantics::PerTurnDelta)),
            used(61, 22, 0, Some(Semantics::Cumulative)),
            AgentActivity::Ended(TurnEnd::Done(Some("done".to_owned()))),
        ]
    );
}

#[test]
fn claude_code_says_that_a_prompt_is_too_long() {
    let said = json!({"type": "assistant", "is_api_error_message": true, "message": {
        "model": "<synthetic>", "content": [{"type": "text", "text": "Prompt is too long"}]}});
    let result = json!({"type": "result", "subtype": "success", "is_error": true,
        "result": "Prompt is too long", "terminal_reason": "prompt_too_long"});
    let other = json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "errors": ["broken"]});
    let ends = |line: &Value| {
        read_activities(StreamDialect::ClaudeCode, std::slice::from_ref(line))
            .pop()
            .unwrap()
    };
    assert_eq!(read_activities(StreamDialect::ClaudeCode, &[said]), []);
    assert_eq!(ends(&result), AgentActivity::Ended(TurnEnd::TooLong));
    assert_eq!(
        ends(&other),
        AgentActivity::Ended(TurnEnd::Failed("broken".to_owned()))
    );
}

/// Lines as Codex 0.166 prints them.
#[test]
fn a_turn_of_codex() {
    let command = |status: &str, output: &str, exit: Value| {
        json!({"id": "item_2", "type": "command_execution", "command": "ls",
            "aggregated_output": output, "exit_code": exit, "status": status})
    };
    let lines = [
        json!({"type": "thread.started", "thread_id": "01a"}),
        json!({"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found."}}),
        json!({"type": "turn.started"}),
        json!({"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "step"}}),
        json!({"type": "item.started", "item": command("in_progress", "", Value::Null)}),
        json!({"type": "item.completed", "item": command("completed", "no such file\n", json!(2))}),
        json!({"type": "item.completed", "item": {"id": "item_3", "type": "file_change", "status": "completed",
            "changes": [{"path": "src/a.rs", "kind": "add"}, {"path": "src/b.rs", "kind": "update"}]}}),
        json!({"type": "item.completed", "item": {"id": "item_4", "type": "todo_list",
            "items": [{"text": "one", "completed": true}, {"text": "two", "completed": false}]}}),
        json!({"type": "turn.completed", "usage": {"input_tokens": 10_000, "cached_input_tokens": 400, "output_tokens": 40}}),
    ];
    let plan =
        r#"{"plan":[{"step":"one","status":"completed"},{"step":"two","status":"pending"}]}"#;
    assert_eq!(
        read_activities(StreamDialect::Codex, &lines),
        [
            AgentActivity::Session(about("01a")),
            entry("0", Role::Assistant, Block::Text("step".to_owned())),
            entry(
                "1",
                Role::Assistant,
                call("item_2", "shell", r#"{"command":"ls"}"#)
            ),
            entry("2", Role::Tool, result("item_2", "no such file\n", true)),
            entry(
                "3",
                Role::Assistant,
                call(
                    "item_3",
                    "apply_patch",
                    "*** Add File: src/a.rs\n*** Update File: src/b.rs"
                )
            ),
            entry("4", Role::Tool, result("item_3", "", false)),
            entry(
                "5",
                Role::Assistant,
                call("item_4-plan", "update_plan", plan)
            ),
            entry("6", Role::Tool, result("item_4-plan", "", false)),
            used(9_600, 40, 400, Some(Semantics::Cumulative)),
            AgentActivity::Ended(TurnEnd::Done(None)),
        ]
    );
}

#[test]
fn codex_says_that_it_ran_out_of_room() {
    let failed = |message: &str| json!({"type": "turn.failed", "error": {"message": message}});
    let room = "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.";
    assert_eq!(
        read_activities(StreamDialect::Codex, &[failed(room), failed("no network")]),
        [
            AgentActivity::Ended(TurnEnd::TooLong),
            AgentActivity::Ended(TurnEnd::Failed("no network".to_owned()))
        ]
    );
}

#[test]
fn the_rollout_tells_the_last_request_and_the_window() {
    let line = json!({"type": "event_msg", "payload": {"type": "token_count", "info": {
        "total_token_usage": {"input_tokens": 3000}, "model_context_window": 258_400,
        "last_token_usage": {"input_tokens": 2000, "cached_input_tokens": 100, "output_tokens": 10}}}});
    let (report, window) = read_token_count(&line.to_string()).unwrap();
    assert_eq!(
        AgentActivity::Used(report),
        used(1900, 10, 100, Some(Semantics::LastRequest))
    );
    assert_eq!(window, Some(Tokens(258_400)));
    assert_eq!(
        read_token_count(r#"{"payload":{"type":"token_count","info":null}}"#),
        None
    );
    assert_eq!(read_token_count("\"token_count\" {"), None);
}

#[test]
fn any_other_agent_speaks_in_lines() {
    let lines = [
        json!({"type": "session", "id": "s", "model": "m", "window": 1000}),
        json!({"type": "text", "text": "hello"}),
        json!({"type": "tool_call", "id": "c", "name": "run", "arguments": {"command": "ls"}}),
        json!({"type": "tool_result", "id": "c", "content": "a.rs"}),
        json!({"type": "usage", "input_tokens": 5, "output_tokens": 2}),
        json!({"type": "usage", "input_tokens": 5, "measures": "per_turn_delta"}),
        json!({"type": "something new", "at": 3}),
        json!({"type": "result", "text": "bye"}),
        json!({"type": "result", "is_error": true, "message": "prompt is too long: 9 tokens > 8 maximum"}),
        json!({"type": "result", "is_error": true, "message": "no key"}),
    ];
    assert_eq!(
        read_activities(StreamDialect::Lines, &lines),
        [
            AgentActivity::Session(SessionDetails {
                id: Some("s".to_owned()),
                model: Some("m".to_owned()),
                window: Some(Tokens(1000)),
            }),
            entry("0", Role::Assistant, Block::Text("hello".to_owned())),
            entry(
                "1",
                Role::Assistant,
                call("c", "run", r#"{"command":"ls"}"#)
            ),
            entry("2", Role::Tool, result("c", "a.rs", false)),
            used(5, 2, 0, None),
            used(5, 0, 0, Some(Semantics::PerTurnDelta)),
            AgentActivity::Ended(TurnEnd::Done(Some("bye".to_owned()))),
            AgentActivity::Ended(TurnEnd::TooLong),
            AgentActivity::Ended(TurnEnd::Failed("no key".to_owned())),
        ]
    );
}

#[test]
fn what_is_no_stream_is_said_to_be_none() {
    for dialect in [
        StreamDialect::ClaudeCode,
        StreamDialect::Codex,
        StreamDialect::Lines,
    ] {
        let mut reader = StreamReader::new(dialect);
        for line in ["Welcome!", "", "[1]", "{\"a\":1}", "{\"type\":3}", "{"] {
            assert!(reader.read_line(line).is_err(), "{line}");
        }
        let shown = reader.read_line(&"é".repeat(500)).unwrap_err().0;
        assert_eq!(shown.chars().count(), 120);
        // Whatever the fields hold, it is no reason to fail.
        for line in [
            json!({"type": "assistant", "message": 3}),
            json!({"type": "result", "usage": "many", "modelUsage": []}),
            json!({"type": "item.completed", "item": {"id": 3}}),
            json!({"type": "turn.completed", "usage": null}),
            json!({"type": "tool_call"}),
        ] {
            assert!(reader.read_line(&line.to_string()).is_ok(), "{line}");
        }
    }
}
