//! Transcripts made up from a list of steps, the same steps for every format.

mod body;

use compact_formats::Format;
use proptest::prelude::*;
use serde_json::{Value, json};

/// One thing that happens in a session.
#[derive(Clone, Debug)]
pub enum Step {
    User(String),
    Assistant(String),
    /// Parallel calls with their results, and what the model thought before them.
    Exchange {
        thought: String,
        results: Vec<String>,
    },
    /// A result that is a list of a text and an image.
    Image(String),
    /// A line that is no message.
    Furniture,
}

pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z \"\\\\\n/]{1,40}",
        "\\PC{1,20}",
        Just("ünïcödé 漢字 🙂\u{0}\u{7f}".to_owned()),
    ]
    .prop_filter("says something", |text| !text.trim().is_empty())
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        text().prop_map(Step::User),
        text().prop_map(Step::Assistant),
        (text(), prop::collection::vec(text(), 1..4))
            .prop_map(|(thought, results)| Step::Exchange { thought, results }),
        text().prop_map(Step::Image),
        Just(Step::Furniture),
    ];
    prop::collection::vec(step, 1..12)
}

pub const FORMATS: [Format; 6] = [
    Format::Anthropic,
    Format::OpenAiChat,
    Format::ClaudeCode,
    Format::CodexRollout,
    Format::Messages,
    Format::MessagesJsonl,
];

pub fn format() -> impl Strategy<Value = Format> {
    prop::sample::select(FORMATS.to_vec())
}

/// The steps as a transcript.
pub fn transcript(format: Format, steps: &[Step]) -> Vec<u8> {
    let lines = |values: Vec<Value>| -> Vec<u8> {
        let lines: Vec<String> = values.iter().map(Value::to_string).collect();
        lines.join("\n").into_bytes()
    };
    match format {
        Format::OpenAiChat => {
            let body = json!({
                "model": "m", "temperature": 0.10, "messages": chat(steps),
                "tools": [{"type": "function"}], "n": 1e0,
            });
            serde_json::to_vec_pretty(&body).unwrap()
        }
        Format::Messages => serde_json::to_vec(&chat(steps)).unwrap(),
        Format::MessagesJsonl => [lines(chat(steps)), b"\n".to_vec()].concat(),
        Format::Anthropic => serde_json::to_vec(&body::anthropic(steps)).unwrap(),
        Format::ClaudeCode => lines(claude(steps)),
        Format::CodexRollout => lines(codex(steps)),
        other => panic!("no sample of {other}"),
    }
}

fn chat(steps: &[Step]) -> Vec<Value> {
    let mut out = vec![json!({"role": "system", "content": "be good"})];
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => {
                out.push(json!({"role": "user", "content": text, "x": {"b": 1, "a": 2}}))
            }
            Step::Assistant(text) => {
                let part = json!({"type": "text", "text": text});
                out.push(json!({"role": "assistant", "content": [part, {"type": "new", "y": 1}]}));
            }
            Step::Exchange { thought, results } => {
                let calls: Vec<Value> = (0..results.len())
                    .map(|n| {
                        json!({"id": format!("c{i}-{n}"), "type": "function",
                                    "function": {"name": "run", "arguments": "{\"a\":1}"}})
                    })
                    .collect();
                out.push(json!({"role": "assistant", "reasoning_content": thought, "content": null, "tool_calls": calls}));
                for (n, result) in results.iter().enumerate() {
                    out.push(json!({"role": "tool", "tool_call_id": format!("c{i}-{n}"), "content": result}));
                }
            }
            Step::Image(text) => {
                let image = json!({"type": "image_url", "image_url": {"url": "data:"}});
                out.push(
                    json!({"role": "user", "content": [image, {"type": "text", "text": text}]}),
                );
            }
            Step::Furniture => {}
        }
    }
    out
}

/// Lines of a session, each hung on the one before it.
fn claude(steps: &[Step]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut parent = Value::Null;
    let mut line = |kind: &str, message: Value| {
        let uuid = format!("u{}", out.len());
        out.push(json!({
            "parentUuid": parent, "isSidechain": false, "cwd": "/x", "sessionId": "s",
            "type": kind, "message": message, "uuid": uuid, "timestamp": "2026-01-01T00:00:00.000Z",
        }));
        parent = json!(uuid);
    };
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => line("user", json!({"role": "user", "content": text})),
            Step::Assistant(text) => line(
                "assistant",
                json!({"id": format!("m{i}"), "role": "assistant", "model": "claude", "content": [{"type": "text", "text": text}],
                       "usage": {"input_tokens": 5}}),
            ),
            Step::Exchange { thought, results } => {
                let message = |block: Value| json!({"id": format!("m{i}"), "role": "assistant", "content": [block]});
                line(
                    "assistant",
                    message(json!({"type": "thinking", "thinking": thought, "signature": "sig"})),
                );
                for n in 0..results.len() {
                    line(
                        "assistant",
                        message(
                            json!({"type": "tool_use", "id": format!("c{i}-{n}"), "name": "run", "input": {"a": 1}}),
                        ),
                    );
                }
                let blocks: Vec<Value> = results
                    .iter()
                    .enumerate()
                    .map(|(n, text)| json!({"tool_use_id": format!("c{i}-{n}"), "type": "tool_result", "content": text}))
                    .collect();
                line("user", json!({"role": "user", "content": blocks}));
            }
            Step::Image(text) => {
                let call =
                    json!({"type": "tool_use", "id": format!("i{i}"), "name": "look", "input": {}});
                line(
                    "assistant",
                    json!({"id": format!("m{i}"), "role": "assistant", "content": [call]}),
                );
                let content = json!([{"type": "text", "text": text}, {"type": "image", "source": {}}, {"type": "text", "text": "more"}]);
                line(
                    "user",
                    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("i{i}"), "content": content}]}),
                );
            }
            Step::Furniture => line("progress", json!({"any": [1, {"z": null}]})),
        }
    }
    // A session is told by its lines, so that one of nothing but furniture is one too.
    out.push(json!({"type": "file-history-snapshot", "messageId": "u0", "snapshot": {}}));
    out
}

fn codex(steps: &[Step]) -> Vec<Value> {
    let line = |kind: &str, payload: Value| json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload});
    let message = |role: &str, kind: &str, text: &str| {
        line(
            "response_item",
            json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}),
        )
    };
    let mut out = vec![line(
        "session_meta",
        json!({"id": "s", "base_instructions": {"text": "be good"}}),
    )];
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => out.push(message("user", "input_text", text)),
            Step::Assistant(text) => out.push(message("assistant", "output_text", text)),
            Step::Exchange { thought, results } => {
                out.push(line("response_item", json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}], "encrypted_content": "abc"})));
                for n in 0..results.len() {
                    out.push(line("response_item", json!({"type": "function_call", "name": "run", "arguments": "{\"a\":1}", "call_id": format!("c{i}-{n}")})));
                }
                out.push(line("event_msg", json!({"type": "token_count", "info": {"last_token_usage": {"input_tokens": 7}}})));
                for (n, text) in results.iter().enumerate() {
                    out.push(line("response_item", json!({"type": "function_call_output", "call_id": format!("c{i}-{n}"), "output": text})));
                }
            }
            Step::Image(text) => {
                out.push(line(
                    "response_item",
                    json!({"type": "web_search_call", "action": {"query": text}}),
                ));
                out.push(line("response_item", json!({"type": "custom_tool_call", "call_id": format!("i{i}"), "name": "look", "input": text})));
                out.push(line("response_item", json!({"type": "custom_tool_call_output", "call_id": format!("i{i}"), "output": [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": "data:"}]})));
            }
            Step::Furniture => out.push(line("event_msg", json!({"type": "task_started"}))),
        }
    }
    out
}
