//! Histories as chat bodies.

use serde_json::{Value, json};

use super::history::{Exchange, History, Turn};

pub fn body(history: &History) -> Value {
    let mut messages = Vec::new();
    if let Some(system) = &history.system {
        messages.push(json!({"role": "system", "content": system}));
    }
    for (t, turn) in history.turns.iter().enumerate() {
        tell(history, t, turn, &mut messages);
    }
    json!({"model": "m", "messages": messages})
}

fn tell(history: &History, t: usize, turn: &Turn, out: &mut Vec<Value>) {
    let mut words = vec![json!({"type": "text", "text": turn.words})];
    if turn.image {
        words.push(json!({"type": "image_url", "image_url": {"url": "https://x/y.png"}}));
    }
    out.push(json!({"role": "user", "content": words}));
    if let Some(instruction) = &turn.instruction {
        out.push(json!({"role": "developer", "content": instruction}));
    }
    for (e, exchange) in turn.exchanges.iter().enumerate() {
        let prefix = format!("call_{t}_{e}");
        call(exchange, &prefix, history.answered(t, e), out);
    }
    if let Some(reply) = &turn.reply {
        out.push(json!({"role": "assistant", "content": reply}));
    }
}

fn call(exchange: &Exchange, prefix: &str, answered: usize, out: &mut Vec<Value>) {
    let calls: Vec<Value> = exchange
        .calls
        .iter()
        .enumerate()
        .map(|(n, (arguments, _))| {
            json!({"id": format!("{prefix}_{n}"), "type": "function",
                   "function": {"name": "run", "arguments": json!({"cmd": arguments}).to_string()}})
        })
        .collect();
    out.push(json!({"role": "assistant", "content": exchange.words, "tool_calls": calls}));
    for (n, (_, result)) in exchange.calls.iter().enumerate().take(answered) {
        out.push(
            json!({"role": "tool", "tool_call_id": format!("{prefix}_{n}"), "content": result}),
        );
    }
    if let Some(aside) = &exchange.aside {
        out.push(json!({"role": "user", "content": aside}));
    }
}
