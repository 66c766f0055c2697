//! Histories as chat bodies, in the words of the servers that speak the protocol.

use serde_json::{Value, json};

use super::history::{Exchange, History, Turn};

/// How a server carries what the model thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Not at all.
    OpenAi,
    /// In `reasoning_content`, without which it takes no calls of the current turn.
    DeepSeek,
    /// In `reasoning`, with its signed details beside it.
    OpenRouter,
    /// In a signature on the first of parallel calls.
    Gemini,
}

impl Dialect {
    pub(super) const ALL: [Dialect; 4] = [
        Dialect::OpenAi,
        Dialect::DeepSeek,
        Dialect::OpenRouter,
        Dialect::Gemini,
    ];
}

pub(super) fn body(history: &History, dialect: Dialect) -> Value {
    let mut teller = Teller {
        history,
        dialect,
        messages: Vec::new(),
    };
    if let Some(system) = &history.system {
        teller.say("system", &json!(system));
    }
    for (t, turn) in history.turns.iter().enumerate() {
        teller.turn(t, turn);
    }
    let mut body = json!({"model": "m", "messages": teller.messages});
    match dialect {
        Dialect::DeepSeek => body["thinking"] = json!({"type": "enabled"}),
        Dialect::Gemini => body["model"] = json!("gemini-3-pro"),
        Dialect::OpenAi | Dialect::OpenRouter => {}
    }
    body
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

struct Teller<'h> {
    history: &'h History,
    dialect: Dialect,
    messages: Vec<Value>,
}

impl Teller<'_> {
    fn say(&mut self, role: &str, content: &Value) {
        self.messages
            .push(json!({"role": role, "content": content}));
    }

    fn turn(&mut self, t: usize, turn: &Turn) {
        let mut words = vec![text(&turn.words)];
        if turn.image {
            let urls = ["https://x/y.png", "data:image/png;base64,AAAA"];
            words.push(image(urls[t % 2]));
        }
        self.say("user", &json!(words));
        if let Some(instruction) = &turn.instruction {
            self.say("developer", &json!(instruction));
        }
        let mut is_first = true;
        for (e, exchange) in turn.exchanges.iter().enumerate() {
            let prefix = format!("call_{t}_{e}");
            self.exchange(exchange, &prefix, is_first, self.history.answered(t, e));
            is_first = exchange.aside.is_some();
        }
        if let Some(reply) = &turn.reply {
            let message = json!({"role": "assistant", "content": reply});
            self.messages.push(self.thoughtful(message, is_first));
        }
    }

    /// The message with what the model thought before it.
    fn thoughtful(&self, mut message: Value, is_first: bool) -> Value {
        let calls = message.get("tool_calls").is_some();
        let thinks = self.history.thinks(is_first);
        match self.dialect {
            Dialect::DeepSeek if thinks || calls => message["reasoning_content"] = json!("hm"),
            Dialect::OpenRouter if thinks => {
                message["reasoning"] = json!("hm");
                message["reasoning_details"] =
                    json!([{"type": "reasoning.text", "text": "hm", "signature": "c2lnbmVk"}]);
            }
            Dialect::Gemini if calls => {
                message["tool_calls"][0]["extra_content"] =
                    json!({"google": {"thought_signature": "c2lnbmVk"}});
            }
            _ => {}
        }
        message
    }

    fn exchange(&mut self, exchange: &Exchange, prefix: &str, is_first: bool, answered: usize) {
        let calls: Vec<Value> = exchange
            .calls
            .iter()
            .enumerate()
            .map(|(n, (arguments, _))| {
                json!({"id": format!("{prefix}_{n}"), "type": "function",
                       "function": {"name": "run", "arguments": json!({"cmd": arguments}).to_string()}})
            })
            .collect();
        let message = json!({"role": "assistant", "content": exchange.words, "tool_calls": calls});
        self.messages.push(self.thoughtful(message, is_first));
        for (n, (_, result)) in exchange.calls.iter().enumerate().take(answered) {
            let content = match exchange.image && n == 0 {
                true => json!([text(result), text("and an image, which follows")]),
                false => json!(result),
            };
            self.messages.push(
                json!({"role": "tool", "tool_call_id": format!("{prefix}_{n}"), "content": content}),
            );
        }
        self.aside(exchange);
    }

    /// A result of this wire is text; its image comes with what a person says beside it.
    fn aside(&mut self, exchange: &Exchange) {
        match &exchange.aside {
            Some(words) if exchange.image => {
                self.say("user", &json!([text(words), image("https://x/y.png")]));
            }
            Some(words) => self.say("user", &json!(words)),
            None => {}
        }
    }
}
