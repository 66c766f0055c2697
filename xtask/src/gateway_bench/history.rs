//! Requests as agents send them: a history that grows by a turn with each, in the shape of OpenAI's chat or of Anthropic's
//! messages. The text is drawn from a seed.

use serde_json::{Value, json};

/// What stands before a session's name in its instructions.
pub(super) const SESSION_MARK: &str = "bench-session-";

/// What the user says at the end of each turn.
pub(super) const TURN_MARK: &str = "Go on with step ";

/// Of the smallest requests: a question without a history.
const SMALL: usize = 1000;

/// The size of a turn, in bytes.
const TURN: usize = 4000;

const WORDS: [&str; 48] = [
    "the", "parser", "reads", "a", "line", "and", "returns", "its", "fields", "when", "table",
    "rows", "are", "sorted", "by", "date", "but", "import", "fails", "on", "empty", "values", "so",
    "we", "check", "them", "before", "writing", "to", "store", "config", "server", "listens",
    "port", "timeout", "error", "test", "passes", "module", "function", "ledger", "totals", "of",
    "account", "index", "must", "stay", "stable",
];

/// Whose shape a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HistoryWire {
    Chat,
    Anthropic,
}

/// A history, written as the body of a request without its end.
pub(super) struct GrowingHistory {
    wire: HistoryWire,
    name: String,
    size: usize,
    seed: u64,
    turns: usize,
    text: Vec<u8>,
}

impl GrowingHistory {
    /// Makes the history of a session, of about `size` bytes.
    pub(super) fn new(wire: HistoryWire, name: &str, size: usize) -> GrowingHistory {
        let seed = name.bytes().fold(7, |seed: u64, byte| {
            seed.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let mut history = GrowingHistory {
            wire,
            name: name.to_owned(),
            size,
            seed,
            turns: 0,
            text: Vec::new(),
        };
        history.begin();
        history
    }

    /// Returns the next request: the history with one more turn, or another small question.
    pub(super) fn next_body(&mut self) -> Vec<u8> {
        match self.size < SMALL {
            true => self.begin(),
            false => self.add_turn(400),
        }
        [&self.text[..], b"]}"].concat()
    }

    /// Returns the request with which Claude Code asks for a summary of this history.
    pub(super) fn compaction_body(&self) -> Vec<u8> {
        let words = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary of the conversation so far.";
        let asked = json!({"role": "user", "content": [{"type": "text", "text": words}]});
        let answer = json!({"role": "assistant", "content": "That is where it stands."});
        let end = format!(",{answer},{asked}]}}");
        [&self.text[..], end.as_bytes()].concat()
    }

    fn begin(&mut self) {
        self.turns += 1;
        if self.size < SMALL {
            let number = self.draw();
            let question = format!("What is {} times {number}?", self.turns);
            self.text = format!(
                r#"{{"model":"gpt-5","stream":true,"messages":[{}"#,
                json!({"role": "user", "content": question})
            )
            .into_bytes();
            return;
        }
        let rules = self.prose(20_000);
        let name = &self.name;
        let instructions =
            format!("You are Claude Code, working on {SESSION_MARK}{name} today. {rules}");
        let first = json!({"role": "user", "content": "Move the import of src/ledger/rows.rs to the new API. Never drop the column amount_legacy."});
        let tools: Vec<Value> = (0..12).map(|number| self.tool(number)).collect();
        let tools = Value::from(tools);
        self.text = match self.wire {
            HistoryWire::Chat => format!(
                r#"{{"model":"gpt-5","stream":true,"tools":{tools},"messages":[{},{first}"#,
                json!({"role": "system", "content": instructions}),
            ),
            HistoryWire::Anthropic => format!(
                r#"{{"model":"claude-sonnet-4-5","max_tokens":20000,"stream":true,"system":{},"tools":{tools},"messages":[{first}"#,
                json!([{"type": "text", "text": instructions}]),
            ),
        }
        .into_bytes();
        while self.text.len() + TURN < self.size {
            self.add_turn(TURN);
        }
    }

    /// Adds a call of a tool, its answer, what was made of it, and what the user says then.
    fn add_turn(&mut self, bytes: usize) {
        self.turns += 1;
        let turn = self.turns;
        let path = format!("src/{}/part_{}.rs", self.word(), turn);
        let result = self.listing(bytes * 3 / 4);
        let said = self.prose(bytes / 8);
        let asked = format!("{TURN_MARK}{turn}. {}", self.prose(bytes / 16));
        let id = format!("call_{turn:06}");
        let messages = match self.wire {
            HistoryWire::Chat => json!([
                {"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
                    "function": {"name": "tool_0", "arguments": json!({"path": path}).to_string()}}]},
                {"role": "tool", "tool_call_id": id, "content": result},
                {"role": "assistant", "content": said},
                {"role": "user", "content": asked},
            ]),
            HistoryWire::Anthropic => json!([
                {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "tool_0", "input": {"path": path}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result}]},
                {"role": "assistant", "content": said},
                {"role": "user", "content": asked},
            ]),
        };
        for message in messages.as_array().into_iter().flatten() {
            self.text
                .extend_from_slice(format!(",{message}").as_bytes());
        }
    }

    fn tool(&mut self, number: usize) -> Value {
        let (name, about) = (format!("tool_{number}"), self.prose(4500));
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        match self.wire {
            HistoryWire::Chat => {
                json!({"type": "function", "function": {"name": name, "description": about, "parameters": schema}})
            }
            HistoryWire::Anthropic => {
                json!({"name": name, "description": about, "input_schema": schema})
            }
        }
    }

    fn draw(&mut self) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.seed >> 40
    }

    fn word(&mut self) -> &'static str {
        let at = usize::try_from(self.draw()).unwrap_or(0) % WORDS.len();
        WORDS.get(at).copied().unwrap_or("row")
    }

    fn prose(&mut self, bytes: usize) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            let end = if self.draw().is_multiple_of(12) {
                ". "
            } else {
                " "
            };
            text.push_str(self.word());
            text.push_str(end);
        }
        text
    }

    /// Writes lines of code with numbers before them.
    fn listing(&mut self, bytes: usize) -> String {
        let mut text = String::new();
        let mut line = 0;
        while text.len() < bytes {
            line += 1;
            let (name, other, number) = (self.word(), self.word(), self.draw() % 1000);
            text.push_str(&format!(
                "{line:>5}  let {name}_{number} = {other}.get({number})?; // {} {}\n",
                self.word(),
                self.word()
            ));
        }
        text
    }
}
