//! Events as an OpenAI chat request with paired calls, and the text of such a request.
//!
//! Every method is measured on the same events, so the engine gets them in one shape, whatever
//! agent wrote them.

use serde_json::{Map, Value, json};

use crate::metric::{EventVoice, MetricEvent};

/// Returns the body of a request that carries these events.
pub fn build_request(events: &[MetricEvent]) -> Value {
    let mut chat = ChatBuilder::default();
    for event in events {
        chat.add(event);
    }
    chat.answer_all();
    json!({"model": "gpt-4o", "messages": chat.messages})
}

#[derive(Default)]
struct ChatBuilder {
    messages: Vec<Value>,
    /// Calls that no result has answered.
    open: Vec<String>,
    calls: usize,
}

impl ChatBuilder {
    fn add(&mut self, event: &MetricEvent) {
        let text = event.text.as_str();
        match event.voice {
            EventVoice::Boundary => {}
            EventVoice::System => self.push_spoken("system", text),
            EventVoice::User | EventVoice::Summary => self.push_spoken("user", text),
            EventVoice::Assistant => self.push_spoken("assistant", text),
            EventVoice::Call => self.push_call(text),
            EventVoice::Result if self.open.is_empty() => self.push("user", text),
            EventVoice::Result => {
                let call = self.open.remove(0);
                self.answer(&call, text);
            }
        }
    }

    fn push_spoken(&mut self, role: &str, text: &str) {
        self.answer_all();
        self.push(role, text);
    }

    fn push(&mut self, role: &str, text: &str) {
        self.messages.push(json!({"role": role, "content": text}));
    }

    fn answer(&mut self, call: &str, text: &str) {
        let answer = json!({"role": "tool", "tool_call_id": call, "content": text});
        self.messages.push(answer);
    }

    fn answer_all(&mut self) {
        for call in std::mem::take(&mut self.open) {
            self.answer(&call, "(no output)");
        }
    }

    fn push_call(&mut self, text: &str) {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        let call = function_call(&id, text);
        let last = self.messages.last_mut().and_then(Value::as_object_mut);
        match last.filter(|m| m.get("role").and_then(Value::as_str) == Some("assistant")) {
            Some(message) => add_call(message, call),
            None => {
                self.answer_all();
                let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
                self.messages.push(message);
            }
        }
        self.open.push(id);
    }
}

fn function_call(id: &str, text: &str) -> Value {
    let (name, arguments) = text.split_once(' ').unwrap_or((text, ""));
    let name: String = name.chars().take(60).collect();
    let name = if name.is_empty() { "tool" } else { &name };
    let arguments = match arguments.starts_with('{') {
        true => arguments.to_owned(),
        false => format!("{{\"input\": {}}}", ascii_json(arguments)),
    };
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// Returns a JSON string in which everything beyond ASCII is escaped, as many clients write it.
fn ascii_json(text: &str) -> String {
    let mut out = String::new();
    for c in Value::from(text).to_string().chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

fn add_call(message: &mut Map<String, Value>, call: Value) {
    let calls = message.entry("tool_calls").or_insert_with(|| json!([]));
    if let Some(calls) = calls.as_array_mut() {
        calls.push(call);
    }
}

/// Returns every text of a request's messages, calls as `name arguments`, one below the other.
pub fn request_text(request: &Value) -> String {
    let messages = request.get("messages").and_then(Value::as_array);
    let mut parts = Vec::new();
    for message in messages.into_iter().flatten() {
        parts.extend(content_texts(message.get("content")));
        let calls = message.get("tool_calls").and_then(Value::as_array);
        for function in calls
            .into_iter()
            .flatten()
            .filter_map(|c| c.get("function"))
        {
            let field = |key: &str| function.get(key).and_then(Value::as_str);
            let (name, arguments) = (field("name"), field("arguments"));
            parts.push(format!(
                "{} {}",
                name.unwrap_or_default(),
                arguments.unwrap_or_default()
            ));
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn content_texts(content: Option<&Value>) -> Vec<String> {
    match content {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|p| p.get("text")?.as_str());
            texts.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_paired_in_order_and_none_stays_open() {
        let events = [
            MetricEvent::new(EventVoice::Call, "read {\"p\": 1}"),
            MetricEvent::new(EventVoice::Call, "run ls é"),
            MetricEvent::new(EventVoice::Result, "text"),
            MetricEvent::new(EventVoice::User, "go on"),
            MetricEvent::new(EventVoice::Result, "stray"),
        ];
        let request = build_request(&events);
        let call = |id: &str, name: &str, arguments: &str| {
            json!({"id": id, "type": "function",
                "function": {"name": name, "arguments": arguments}})
        };
        assert_eq!(
            request["messages"],
            json!([
                {"role": "assistant", "content": null,
                    "tool_calls": [call("call_1", "read", "{\"p\": 1}"), call("call_2", "run", "{\"input\": \"ls \\u00e9\"}")]},
                {"role": "tool", "tool_call_id": "call_1", "content": "text"},
                {"role": "tool", "tool_call_id": "call_2", "content": "(no output)"},
                {"role": "user", "content": "go on"},
                {"role": "user", "content": "stray"},
            ])
        );
        assert_eq!(
            request_text(&request),
            "read {\"p\": 1}\nrun {\"input\": \"ls \\u00e9\"}\ntext\n(no output)\ngo on\nstray"
        );
    }
}
