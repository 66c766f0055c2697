//! Request bodies of providers, made from the same steps.

use serde_json::{Value, json};

use super::Step;

pub(super) fn anthropic(steps: &[Step]) -> Value {
    let mut messages = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        anthropic_step(i, step, &mut messages);
    }
    json!({
        "model": "m", "max_tokens": 1e3, "messages": messages,
        "system": [{"type": "text", "text": "be good", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "run", "input_schema": {"type": "object"}}], "new": {"b": 1, "a": 2},
    })
}

fn anthropic_step(i: usize, step: &Step, out: &mut Vec<Value>) {
    let mut say = |role: &str, content: Value| out.push(json!({"role": role, "content": content}));
    let text = |text: &str| json!({"type": "text", "text": text});
    match step {
        Step::User(words) => say("user", json!(words)),
        Step::Assistant(words) => {
            let search =
                json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
            let found =
                json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
            say("assistant", json!([search, found, text(words)]));
        }
        Step::Exchange { thought, results } => {
            let mut blocks =
                vec![json!({"type": "thinking", "thinking": thought, "signature": "sig"})];
            let mut answers = Vec::new();
            for (n, result) in results.iter().enumerate() {
                let id = format!("c{i}-{n}");
                blocks
                    .push(json!({"type": "tool_use", "id": id, "name": "run", "input": {"a": 1}}));
                answers.push(json!({"type": "tool_result", "tool_use_id": id, "content": result}));
            }
            // A person may speak in the message that carries the results.
            if results.len() == 2 {
                answers.push(text(thought));
            }
            say("assistant", json!(blocks));
            say("user", json!(answers));
        }
        Step::Image(words) => {
            let id = format!("i{i}");
            let call = json!({"type": "tool_use", "id": id, "name": "look", "input": {}});
            say("assistant", json!([call]));
            let image = json!({"type": "image", "source": {"type": "url", "url": "https://x"}});
            let content = json!([text(words), image, text("more")]);
            let answer = json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": false});
            say("user", json!([answer]));
        }
        Step::Furniture => {}
    }
}

pub(super) fn responses(steps: &[Step]) -> Value {
    let mut input = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        responses_step(i, step, &mut input);
    }
    json!({"model": "m", "instructions": "be good", "input": input, "store": false, "n": 1e0})
}

fn responses_step(i: usize, step: &Step, out: &mut Vec<Value>) {
    match step {
        Step::User(words) => out.push(json!({"role": "user", "content": words, "x": {"b": 1}})),
        Step::Assistant(words) => {
            let part = json!({"type": "output_text", "text": words, "annotations": []});
            out.push(json!({"type": "message", "id": format!("msg_{i}"), "role": "assistant", "status": "completed", "content": [part]}));
        }
        Step::Exchange { thought, results } => {
            out.push(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": thought}]}));
            for n in 0..results.len() {
                out.push(json!({"type": "function_call", "id": format!("fc_{i}-{n}"), "call_id": format!("c{i}-{n}"), "name": "run", "arguments": "{\"a\":1}"}));
            }
            for (n, result) in results.iter().enumerate() {
                out.push(json!({"type": "function_call_output", "call_id": format!("c{i}-{n}"), "output": result}));
            }
        }
        Step::Image(words) => {
            out.push(json!({"type": "web_search_call", "id": format!("ws_{i}"), "action": {"query": words}}));
            out.push(json!({"type": "custom_tool_call", "call_id": format!("i{i}"), "name": "look", "input": words}));
            let image = json!({"type": "input_image", "image_url": "data:"});
            out.push(json!({"type": "custom_tool_call_output", "call_id": format!("i{i}"), "output": [{"type": "input_text", "text": words}, image]}));
        }
        Step::Furniture => out.push(json!({"type": "item_reference", "id": format!("x_{i}")})),
    }
}

pub(super) fn gemini(steps: &[Step]) -> Value {
    let mut contents = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        gemini_step(i, step, &mut contents);
    }
    json!({
        "contents": contents, "systemInstruction": {"role": "user", "parts": [{"text": "be good"}]},
        "generationConfig": {"temperature": 1e0},
    })
}

fn gemini_step(i: usize, step: &Step, out: &mut Vec<Value>) {
    let mut say = |role: &str, parts: Value| out.push(json!({"role": role, "parts": parts}));
    match step {
        Step::User(words) => say("user", json!([{"text": words}])),
        Step::Assistant(words) => {
            let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}});
            let outcome = json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}});
            say("model", json!([code, outcome, {"text": words}]));
        }
        Step::Exchange { thought, results } => {
            let mut calls = vec![json!({"text": thought, "thought": true})];
            let mut answers = Vec::new();
            for (n, result) in results.iter().enumerate() {
                calls.push(json!({"functionCall": {"id": format!("c{i}-{n}"), "name": "run", "args": {"a": 1}}, "thoughtSignature": "c2ln"}));
                answers.push(json!({"functionResponse": {"id": format!("c{i}-{n}"), "name": "run", "response": {"output": result, "code": n}}}));
            }
            // A person may speak in the content that carries the responses.
            if results.len() == 2 {
                answers.push(json!({"text": thought}));
            }
            say("model", json!(calls));
            say("user", json!(answers));
        }
        Step::Image(words) => {
            let id = format!("i{i}");
            say(
                "model",
                json!([{"functionCall": {"id": id, "name": "look", "args": {}}}]),
            );
            let image = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
            say(
                "user",
                json!([{"functionResponse": {"id": id, "name": "look", "response": {"output": words}, "parts": [image]}}]),
            );
        }
        Step::Furniture => {}
    }
}
