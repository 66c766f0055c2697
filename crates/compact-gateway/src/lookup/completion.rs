//! OpenAI's chat completions: chunks, whose calls are held back, and whole completions.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{AskedLookups, CallStream, ToolCall};
use crate::event_stream::{index_of, list_at, read_event, text_at};

/// Follows the completions of one answer, of which there are several where the model looked something up.
#[derive(Default)]
pub(crate) struct CompletionStream {
    text: String,
    calls: Vec<ToolCall>,
    /// Chunks that wait for the end.
    held: Vec<Bytes>,
    asked: bool,
}

impl CompletionStream {
    fn add_call(&mut self, part: &Value) {
        let index = index_of(part).unwrap_or_default();
        let index = usize::try_from(index)
            .unwrap_or(usize::MAX)
            .min(self.calls.len());
        if index == self.calls.len() {
            self.calls.push(ToolCall::default());
        }
        if let Some(call) = self.calls.get_mut(index) {
            call.id.push_str(text_at(part, "/id"));
            call.name.push_str(text_at(part, "/function/name"));
            let arguments = text_at(part, "/function/arguments");
            call.arguments.push_str(arguments);
        }
    }
}

impl CallStream for CompletionStream {
    fn pass_event(&mut self, event: Bytes) -> Vec<Bytes> {
        let chunk = read_event(&event).unwrap_or_default();
        self.text
            .push_str(text_at(&chunk, "/choices/0/delta/content"));
        let parts = list_at(&chunk, "/choices/0/delta/tool_calls");
        let reason = chunk.pointer("/choices/0/finish_reason");
        let is_finished = reason.is_some_and(|reason| !reason.is_null());
        if !parts.is_empty() {
            parts.iter().for_each(|part| self.add_call(part));
            self.held.push(event);
            if !is_finished {
                return Vec::new();
            }
        } else if is_finished || self.asked {
            self.held.push(event);
        } else {
            return vec![event];
        }
        self.asked = self.calls.iter().any(ToolCall::is_ours);
        match self.asked {
            true => Vec::new(),
            false => std::mem::take(&mut self.held),
        }
    }

    fn take_lookups(&mut self) -> Option<AskedLookups> {
        self.held.clear();
        let (text, calls) = (
            std::mem::take(&mut self.text),
            std::mem::take(&mut self.calls),
        );
        std::mem::take(&mut self.asked).then(|| AskedLookups {
            said: spoken_message(&text, &calls),
            calls,
        })
    }
}

fn spoken_message(text: &str, calls: &[ToolCall]) -> Value {
    let calls = calls.iter().map(|call| {
        let function = json!({"name": call.name, "arguments": call.arguments});
        json!({"id": call.id, "type": "function", "function": function})
    });
    let text = (!text.is_empty()).then_some(text);
    json!({"role": "assistant", "content": text, "tool_calls": calls.collect::<Vec<_>>()})
}

/// Returns what a whole completion asks of us; `None` where that is nothing.
pub(super) fn find_lookups(document: &Value) -> Option<AskedLookups> {
    let message = document.pointer("/choices/0/message")?;
    let mut calls = CompletionStream::default();
    for (index, part) in (0_u64..).zip(list_at(message, "/tool_calls")) {
        let mut part = part.clone();
        part.as_object_mut()?
            .insert("index".to_owned(), json!(index));
        calls.add_call(&part);
    }
    let calls = calls.calls;
    calls.iter().any(ToolCall::is_ours).then(|| AskedLookups {
        said: spoken_message(text_at(message, "/content"), &calls),
        calls,
    })
}

/// Puts what was said before a look-up before a completion.
pub(super) fn prepend_spoken(document: &mut Value, asked: &AskedLookups) -> Option<()> {
    let before = asked.said.get("content")?.as_str()?;
    let content = document.pointer_mut("/choices/0/message/content")?;
    let after = content.as_str().unwrap_or_default();
    *content = json!(format!("{before}{after}"));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_stream::write_event;

    fn chunk(delta: &Value, reason: &Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    }

    fn called(name: &str) -> Vec<Value> {
        let part = |part: Value| chunk(&json!({"tool_calls": [part]}), &Value::Null);
        vec![
            chunk(
                &json!({"role": "assistant", "content": "Looking."}),
                &Value::Null,
            ),
            part(json!({"index": 0, "id": "c1", "function": {"name": name, "arguments": ""}})),
            part(json!({"index": 0, "function": {"arguments": "{\"query\":"}})),
            part(json!({"index": 0, "function": {"arguments": "\"port\"}"}})),
            chunk(&json!({}), &json!("tool_calls")),
            json!({"choices": [], "usage": {"prompt_tokens": 3}}),
        ]
    }

    fn pass(stream: &mut CompletionStream, events: &[Value]) -> Vec<Value> {
        let passed = events
            .iter()
            .flat_map(|event| stream.pass_event(write_event(event)));
        passed.map(|event| read_event(&event).unwrap()).collect()
    }

    #[test]
    fn a_call_of_ours_is_hidden_and_others_pass() {
        let mut stream = CompletionStream::default();
        assert_eq!(
            pass(&mut stream, &called("compact_recall")),
            called("")[..1]
        );
        let asked = stream.take_lookups().unwrap();
        let expected = ToolCall {
            id: "c1".to_owned(),
            name: "compact_recall".to_owned(),
            arguments: "{\"query\":\"port\"}".to_owned(),
        };
        assert_eq!(asked.calls, [expected]);
        assert_eq!(asked.said["content"], "Looking.");
        assert_eq!(
            asked.said["tool_calls"][0]["function"]["name"],
            "compact_recall"
        );
        assert_eq!(pass(&mut stream, &called("Read")), called("Read"));
        assert_eq!(stream.take_lookups(), None);
    }
}
