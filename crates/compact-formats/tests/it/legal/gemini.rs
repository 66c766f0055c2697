//! Histories as Gemini bodies, with ids or without, signed by the model or not.

use serde_json::{Value, json};

use super::history::{Exchange, History, Turn};

/// The body; calls have ids when `named`, and signatures when the model thinks.
pub(super) fn body(history: &History, named: bool) -> Value {
    let mut teller = Teller {
        history,
        named,
        contents: Vec::new(),
        count: 0,
    };
    for (t, turn) in history.turns.iter().enumerate() {
        teller.turn(t, turn);
    }
    let mut body = json!({"contents": teller.contents});
    if let Some(system) = &history.system {
        body["systemInstruction"] = json!({"parts": [{"text": system}]});
    }
    body
}

/// The same without thoughts, which some servers do not take back.
pub(super) fn without_thoughts(mut body: Value) -> Value {
    for content in body["contents"].as_array_mut().unwrap() {
        let parts = content["parts"].as_array_mut().unwrap();
        parts.retain(|part| part.get("thought").is_none());
    }
    body
}

fn image() -> Value {
    json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}})
}

struct Teller<'h> {
    history: &'h History,
    named: bool,
    contents: Vec<Value>,
    count: usize,
}

impl Teller<'_> {
    fn say(&mut self, role: &str, parts: &[Value]) {
        self.contents.push(json!({"role": role, "parts": parts}));
    }

    /// Turns of the past may have been another model's, which signed nothing.
    fn signs(&self, t: usize) -> bool {
        self.history.thinks(t + 1 == self.history.turns.len())
    }

    fn turn(&mut self, t: usize, turn: &Turn) {
        let mut words = vec![json!({"text": turn.words})];
        if turn.image {
            words.push(image());
        }
        self.say("user", &words);
        for (e, exchange) in turn.exchanges.iter().enumerate() {
            self.exchange(exchange, self.history.answered(t, e), self.signs(t));
        }
        if let Some(reply) = &turn.reply {
            self.say("model", &[json!({"text": reply})]);
        }
    }

    fn exchange(&mut self, exchange: &Exchange, answered: usize, signs: bool) {
        let mut calls = Vec::new();
        if signs {
            calls.push(json!({"text": "hm", "thought": true}));
        }
        calls.extend(exchange.words.iter().map(|words| json!({"text": words})));
        if exchange.hosted {
            calls.push(json!({"executableCode": {"language": "PYTHON", "code": "1"}}));
            calls.push(json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}));
        }
        let mut answers = Vec::new();
        for (n, (arguments, result)) in exchange.calls.iter().enumerate() {
            self.count += 1;
            let mut call = json!({"functionCall": {"name": "run", "args": {"cmd": arguments}}});
            let mut answer =
                json!({"functionResponse": {"name": "run", "response": {"output": result}}});
            if self.named {
                let id = format!("c{}", self.count);
                call["functionCall"]["id"] = json!(id);
                answer["functionResponse"]["id"] = json!(id);
            }
            if signs && n == 0 {
                call["thoughtSignature"] = json!("c2lnbmVk");
            }
            if exchange.image && n == 0 {
                answer["functionResponse"]["parts"] = json!([image()]);
            }
            calls.push(call);
            answers.push(answer);
        }
        answers.truncate(answered);
        answers.extend(exchange.aside.iter().map(|aside| json!({"text": aside})));
        self.say("model", &calls);
        if !answers.is_empty() {
            self.say("user", &answers);
        }
    }
}
