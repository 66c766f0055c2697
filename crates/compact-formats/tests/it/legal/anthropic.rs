//! Histories as Anthropic bodies.

use serde_json::{Value, json};

use super::history::{Exchange, History, Turn};

/// The body, its thinking set to `mode`.
pub(super) fn body(history: &History, mode: &Value) -> Value {
    let mut teller = Teller {
        history,
        messages: Vec::new(),
        count: 0,
        thinks: !mode.is_null(),
    };
    for (t, turn) in history.turns.iter().enumerate() {
        teller.turn(t, turn);
    }
    let mut body = json!({
        "model": "m", "max_tokens": 4096, "messages": teller.messages,
        "tools": [{"name": "run", "input_schema": {"type": "object"}}, {"type": "web_search_20250305", "name": "web_search"}],
    });
    if !mode.is_null() {
        body["thinking"] = mode.clone();
    }
    if let Some(system) = &history.system {
        body["system"] =
            json!([{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]);
    }
    body
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image() -> Value {
    json!({"type": "image", "source": {"type": "url", "url": "https://x/y.png"}})
}

struct Teller<'h> {
    history: &'h History,
    messages: Vec<Value>,
    count: usize,
    thinks: bool,
}

impl Teller<'_> {
    fn say(&mut self, role: &str, content: &[Value]) {
        self.messages
            .push(json!({"role": role, "content": content}));
    }

    fn thought(&self, is_first: bool) -> Vec<Value> {
        match self.history.thinks(is_first) && self.thinks {
            true => vec![json!({"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"})],
            false => Vec::new(),
        }
    }

    fn turn(&mut self, t: usize, turn: &Turn) {
        let mut words = vec![text(&turn.words)];
        if turn.image {
            words.push(image());
        }
        self.say("user", &words);
        let replies = !turn.exchanges.is_empty() || turn.reply.is_some();
        if let Some(instruction) = turn.instruction.as_ref().filter(|_| replies) {
            self.messages
                .push(json!({"role": "system", "content": instruction}));
        }
        let mut is_first = true;
        for (e, exchange) in turn.exchanges.iter().enumerate() {
            self.exchange(exchange, is_first, self.history.answered(t, e));
            is_first = exchange.aside.is_some();
        }
        if let Some(reply) = &turn.reply {
            let mut blocks = self.thought(is_first);
            blocks.push(text(reply));
            self.say("assistant", &blocks);
        }
    }

    fn exchange(&mut self, exchange: &Exchange, is_first: bool, answered: usize) {
        let mut blocks = self.thought(is_first);
        blocks.extend(exchange.words.as_deref().map(text));
        if exchange.hosted {
            let id = format!("srvtoolu_{}", self.count);
            blocks.push(json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "x"}}));
            blocks
                .push(json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []}));
        }
        let mut answers = Vec::new();
        for (n, (arguments, result)) in exchange.calls.iter().enumerate() {
            self.count += 1;
            let id = format!("toolu_{}", self.count);
            blocks.push(
                json!({"type": "tool_use", "id": id, "name": "run", "input": {"cmd": arguments}}),
            );
            let content = match exchange.image && n == 0 {
                true => json!([text(result), image()]),
                false => json!(result),
            };
            answers.push(json!({"type": "tool_result", "tool_use_id": id, "content": content}));
        }
        answers.truncate(answered);
        answers.extend(exchange.aside.as_deref().map(text));
        self.say("assistant", &blocks);
        if !answers.is_empty() {
            self.say("user", &answers);
        }
    }
}
