//! Transcripts made up from a list of steps, the same steps for every format.

mod body;

use compact_formats::Format;
use proptest::prelude::*;
use serde_json::{Value, json};

/// One thing that happens in a session.
#[derive(Clone, Debug)]
pub(crate) enum Step {
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

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z \"\\\\\n/]{1,40}",
        "\\PC{1,20}",
        Just("ünïcödé 漢字 🙂\u{0}\u{7f}".to_owned()),
    ]
    .prop_filter("says something", |text| !text.trim().is_empty())
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
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

/// True where a call and its result stand in one object.
pub(crate) fn joins_results(format: Format) -> bool {
    matches!(format, Format::GeminiCli | Format::OpenCode)
}

pub(crate) fn format() -> impl Strategy<Value = Format> {
    prop::sample::select(Format::ALL)
}

/// The steps as a transcript.
pub(crate) fn transcript(format: Format, steps: &[Step]) -> Vec<u8> {
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
        Format::OpenAiResponses => serde_json::to_vec(&body::responses(steps)).unwrap(),
        Format::Gemini => serde_json::to_vec_pretty(&body::gemini(steps)).unwrap(),
        Format::ClaudeCode => lines(claude(steps)),
        Format::CodexRollout => lines(codex(steps)),
        Format::GeminiCli => {
            let chat = json!({"sessionId": "s", "projectHash": "h", "messages": gemini_cli(steps), "startTime": "T"});
            serde_json::to_vec_pretty(&chat).unwrap()
        }
        Format::OpenCode => {
            let export =
                json!({"info": {"id": "ses_1", "version": "1"}, "messages": opencode(steps)});
            serde_json::to_vec_pretty(&export).unwrap()
        }
        Format::Pi => lines(pi(steps)),
        Format::Copilot => lines(copilot(steps)),
        Format::OpenHands => serde_json::to_vec_pretty(&openhands(steps)).unwrap(),
        Format::SweAgent => {
            let run =
                json!({"environment": "e", "trajectory": [], "history": chat(steps), "info": {}});
            serde_json::to_vec_pretty(&run).unwrap()
        }
        Format::TauBench => {
            serde_json::to_vec(&json!({"task_id": 1, "reward": 0.0, "traj": chat(steps)})).unwrap()
        }
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

fn gemini_cli(steps: &[Step]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut message = |kind: &str, members: Value| {
        let mut all = json!({"id": format!("u{}", out.len()), "timestamp": "T", "type": kind});
        let fields = members.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(fields);
        out.push(all);
    };
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => message("user", json!({"content": text})),
            Step::Assistant(text) => message(
                "gemini",
                json!({"content": text, "model": "g", "tokens": {"input": 5, "cached": 1}}),
            ),
            Step::Exchange { thought, results } => {
                let calls: Vec<Value> = results
                    .iter()
                    .enumerate()
                    .map(|(n, text)| {
                        let id = format!("c{i}-{n}");
                        json!({"id": id, "name": "run", "args": {"a": 1}, "status": "success",
                               "result": [{"functionResponse": {"id": id, "name": "run", "response": {"output": text}}}],
                               "resultDisplay": text})
                    })
                    .collect();
                let thoughts = json!([{"subject": "s", "description": thought, "timestamp": "T"}]);
                message(
                    "gemini",
                    json!({"content": "", "thoughts": thoughts, "toolCalls": calls}),
                );
            }
            Step::Image(text) => {
                let result = json!([{"functionResponse": {"id": "x", "name": "look", "response": {"seen": text}}},
                                    {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]);
                message(
                    "gemini",
                    json!({"content": [{"text": text}], "toolCalls": [
                        {"id": format!("i{i}"), "name": "look", "args": {}, "result": result, "status": "success"}]}),
                );
            }
            Step::Furniture => message("info", json!({"content": "update available"})),
        }
    }
    out
}

/// Messages of which some hold two steps.
fn opencode(steps: &[Step]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut message = |role: &str, parts: Vec<Value>| {
        let id = format!("msg_{:04}", out.len());
        out.push(json!({"info": {"id": id, "role": role, "sessionID": "ses_1", "time": {"created": 1}}, "parts": parts}));
    };
    let tool = |id: String, text: &str| {
        json!({"type": "tool", "callID": id, "tool": "run", "state":
            {"status": "completed", "input": {"a": 1}, "output": text, "title": "", "metadata": {"output": text}}})
    };
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => message("user", vec![json!({"type": "text", "text": text})]),
            Step::Assistant(text) => message(
                "assistant",
                vec![
                    json!({"type": "step-start"}),
                    json!({"type": "text", "text": text}),
                    json!({"type": "new-kind", "y": 1}),
                    json!({"type": "step-finish"}),
                ],
            ),
            Step::Exchange { thought, results } => {
                let mut parts = vec![
                    json!({"type": "step-start", "snapshot": "abc"}),
                    json!({"type": "reasoning", "text": thought, "metadata": {"k": "v"}}),
                ];
                for (n, text) in results.iter().enumerate() {
                    parts.push(tool(format!("c{i}-{n}"), text));
                }
                parts.push(json!({"type": "step-finish"}));
                parts.push(json!({"type": "step-start"}));
                parts.push(json!({"type": "text", "text": thought}));
                message("assistant", parts);
            }
            Step::Image(text) => {
                let mut part = tool(format!("i{i}"), text);
                part["state"]["attachments"] = json!([{"mime": "image/png", "url": "data:"}]);
                message("assistant", vec![part]);
            }
            Step::Furniture => {
                message("user", vec![json!({"type": "compaction", "auto": true})]);
            }
        }
    }
    out
}

fn pi(steps: &[Step]) -> Vec<Value> {
    let mut out =
        vec![json!({"type": "session", "version": 3, "id": "s", "timestamp": "T", "cwd": "/x"})];
    let mut parent = Value::Null;
    let mut line = |kind: &str, members: Value| {
        let id = format!("e{}", out.len());
        let mut all = json!({"type": kind, "id": id, "parentId": parent, "timestamp": "T"});
        all.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        out.push(all);
        parent = json!(id);
    };
    let message = |role: &str, content: Value| json!({"message": {"role": role, "content": content, "timestamp": 1}});
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => line("message", message("user", json!(text))),
            Step::Assistant(text) => line(
                "message",
                message("assistant", json!([{"type": "text", "text": text}])),
            ),
            Step::Exchange { thought, results } => {
                let mut content = vec![
                    json!({"type": "thinking", "thinking": thought, "thinkingSignature": "sig"}),
                ];
                for n in 0..results.len() {
                    content.push(json!({"type": "toolCall", "id": format!("c{i}-{n}"), "name": "run", "arguments": {"a": 1}}));
                }
                line("message", message("assistant", json!(content)));
                for (n, text) in results.iter().enumerate() {
                    let content = [json!({"type": "text", "text": text})];
                    line(
                        "message",
                        json!({"message": {"role": "toolResult", "toolCallId": format!("c{i}-{n}"), "toolName": "run",
                               "content": content, "details": {"diff": text}, "isError": false}}),
                    );
                }
            }
            Step::Image(text) => {
                let parts = json!([{"type": "text", "text": text}, {"type": "image", "data": "", "mimeType": "image/png"}]);
                line("message", message("user", parts));
            }
            Step::Furniture => line("thinking_level_change", json!({"thinkingLevel": "off"})),
        }
    }
    out
}

fn copilot(steps: &[Step]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut parent = Value::Null;
    let mut event = |kind: &str, data: Value| {
        let id = format!("e{}", out.len());
        out.push(
            json!({"type": kind, "data": data, "id": id, "timestamp": "T", "parentId": parent}),
        );
        parent = json!(id);
    };
    event("session.start", json!({"sessionId": "s", "version": 1}));
    event(
        "system.message",
        json!({"role": "system", "content": "be good"}),
    );
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => event(
                "user.message",
                json!({"content": text, "transformedContent": format!("<now>T</now>{text}"), "attachments": []}),
            ),
            Step::Assistant(text) => event(
                "assistant.message",
                json!({"messageId": "m", "content": text, "toolRequests": []}),
            ),
            Step::Exchange { thought, results } => {
                let requests: Vec<Value> = (0..results.len())
                    .map(|n| json!({"toolCallId": format!("c{i}-{n}"), "name": "run", "arguments": {"a": 1}}))
                    .collect();
                event(
                    "assistant.message",
                    json!({"messageId": "m", "content": "", "toolRequests": requests, "reasoningText": thought, "reasoningOpaque": "op"}),
                );
                for (n, text) in results.iter().enumerate() {
                    let id = format!("c{i}-{n}");
                    event(
                        "tool.execution_start",
                        json!({"toolCallId": id, "arguments": {"a": 1}}),
                    );
                    event(
                        "tool.execution_complete",
                        json!({"toolCallId": id, "success": true, "result": {"content": text, "detailedContent": text}}),
                    );
                }
            }
            Step::Image(text) => event(
                "user.message",
                json!({"content": text, "attachments": [{"type": "file", "path": "x"}]}),
            ),
            Step::Furniture => event("hook.start", json!({"hookType": "x", "input": {}})),
        }
    }
    out
}

/// Events alone and in pairs.
fn openhands(steps: &[Step]) -> Vec<Value> {
    let mut id = 0;
    let mut next = || {
        id += 1;
        id
    };
    let mut out = vec![
        json!({"id": 0, "source": "agent", "action": "system", "args": {"content": "be good", "tools": [{}]}}),
    ];
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::User(text) => out.push(json!({"id": next(), "source": "user", "message": text, "action": "message", "args": {"content": text}})),
            Step::Assistant(text) => out.push(json!({"id": next(), "source": "agent", "message": text, "action": "message", "args": {"content": text}})),
            Step::Exchange { thought, results } => {
                for (n, text) in results.iter().enumerate() {
                    let metadata = json!({"function_name": "run", "tool_call_id": format!("c{i}-{n}")});
                    let action = json!({"id": next(), "source": "agent", "action": "run", "tool_call_metadata": metadata,
                                        "args": {"a": 1, "thought": thought, "blocking": false}});
                    let seen = json!({"id": next(), "source": "agent", "observation": "run", "content": text,
                                      "tool_call_metadata": metadata, "extras": {"command": "x"}});
                    if n % 2 == 0 {
                        out.push(json!([action, seen]));
                    } else {
                        out.extend([action, seen]);
                    }
                }
            }
            Step::Image(text) => out.push(json!({"id": next(), "source": "environment", "observation": "recall", "content": text, "extras": {}})),
            Step::Furniture => out.push(json!({"id": next(), "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}})),
        }
    }
    out
}
