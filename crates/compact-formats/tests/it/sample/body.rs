//! Request bodies of providers, made from the same steps.

use serde_json::{Value, json};

use super::Step;

pub fn anthropic(steps: &[Step]) -> Value {
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
