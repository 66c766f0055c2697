//! Histories as Responses bodies, every kind of call in turn.

use serde_json::{Value, json};

use super::history::{Exchange, History, Turn};

/// The body; `store` says whether the provider keeps it, and reasoning is sealed when it does not.
pub(super) fn body(history: &History, store: bool, sealed: bool) -> Value {
    let mut teller = Teller {
        history,
        sealed,
        items: Vec::new(),
        count: 0,
    };
    for (t, turn) in history.turns.iter().enumerate() {
        teller.turn(t, turn);
    }
    let mut body = json!({"model": "m", "input": teller.items, "store": store});
    if let Some(system) = &history.system {
        body["instructions"] = json!(system);
    }
    body
}

struct Teller<'h> {
    history: &'h History,
    sealed: bool,
    items: Vec<Value>,
    count: usize,
}

impl Teller<'_> {
    fn id(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}_{}", self.count)
    }

    fn think(&mut self, is_first: bool) {
        if self.history.thinks(is_first) {
            let mut item = json!({"type": "reasoning", "id": self.id("rs"), "summary": []});
            if self.sealed {
                item["encrypted_content"] = json!("c2VhbGVk");
            }
            self.items.push(item);
        }
    }

    fn turn(&mut self, t: usize, turn: &Turn) {
        let mut words = vec![json!({"type": "input_text", "text": turn.words})];
        if turn.image {
            words.push(
                json!({"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"}),
            );
        }
        self.items
            .push(json!({"type": "message", "role": "user", "content": words}));
        if let Some(instruction) = &turn.instruction {
            self.items
                .push(json!({"role": "developer", "content": instruction}));
        }
        let mut is_first = true;
        for (e, exchange) in turn.exchanges.iter().enumerate() {
            self.exchange(exchange, is_first, self.history.answered(t, e));
            is_first = exchange.aside.is_some();
        }
        if let Some(reply) = &turn.reply {
            self.think(is_first);
            self.say(reply);
        }
    }

    fn say(&mut self, text: &str) {
        let part = json!({"type": "output_text", "text": text, "annotations": []});
        let id = self.id("msg");
        self.items.push(json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": [part]}));
    }

    fn exchange(&mut self, exchange: &Exchange, is_first: bool, answered: usize) {
        self.think(is_first);
        if exchange.hosted {
            let id = self.id("ws");
            self.items.push(json!({"type": "web_search_call", "id": id, "status": "completed", "action": {"type": "search", "query": "x"}}));
        }
        if let Some(words) = &exchange.words {
            self.say(words);
        }
        let mut answers = Vec::new();
        for (n, (arguments, result)) in exchange.calls.iter().enumerate() {
            let (call, mut answer) = self.call(arguments, result);
            if exchange.image && n == 0 && answer["output"].is_string() {
                answer["output"] = json!([{"type": "input_text", "text": result}, {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"}]);
            }
            self.items.push(call);
            answers.push(answer);
        }
        answers.truncate(answered);
        self.items.extend(answers);
        if let Some(aside) = &exchange.aside {
            self.items.push(json!({"role": "user", "content": aside}));
        }
    }

    fn call(&mut self, arguments: &str, result: &str) -> (Value, Value) {
        let id = self.id("call");
        match self.count % 4 {
            0 => (
                json!({"type": "custom_tool_call", "id": format!("ct_{id}"), "call_id": id, "name": "patch", "input": arguments}),
                json!({"type": "custom_tool_call_output", "call_id": id, "output": result}),
            ),
            1 => (
                json!({"type": "shell_call", "id": format!("sh_{id}"), "call_id": id, "status": "completed", "action": {"commands": [arguments]}}),
                json!({"type": "shell_call_output", "call_id": id, "output": [{"stdout": result, "stderr": "warned", "outcome": {"type": "exit", "exit_code": 0}}]}),
            ),
            2 => (
                json!({"type": "apply_patch_call", "id": format!("ap_{id}"), "call_id": id, "status": "completed",
                       "operation": {"type": "update_file", "path": "src/a.rs", "diff": arguments}}),
                json!({"type": "apply_patch_call_output", "call_id": id, "status": "completed"}),
            ),
            _ => (
                json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "run", "arguments": json!({"cmd": arguments}).to_string()}),
                json!({"type": "function_call_output", "call_id": id, "output": result}),
            ),
        }
    }
}
