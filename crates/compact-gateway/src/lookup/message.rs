//! Anthropic's messages: events of blocks, whose calls are held back, and whole messages.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{AskedLookups, CallStream, ToolCall};
use crate::event_stream::{index_of, is_of_type, list_at, read_event, text_at, write_event};

/// Follows the messages of one answer, of which there are several where the model looked something up.
#[derive(Default)]
pub(crate) struct MessageStream {
    /// Whether a message was passed before this one.
    is_continued: bool,
    /// The number that the next block has for the client.
    next_index: u64,
    /// The numbers that blocks of this message have for the client.
    shown: HashMap<u64, u64>,
    /// What was said and called in this message, in order.
    blocks: Vec<SpokenBlock>,
    /// Events that wait for the end of the message.
    held: Vec<Value>,
    asked: bool,
}

/// A block as far as it was spoken.
struct SpokenBlock {
    index: u64,
    /// What it opened with.
    start: Value,
    text: String,
    /// The arguments of a call.
    arguments: String,
}

impl SpokenBlock {
    fn call(&self) -> Option<ToolCall> {
        is_of_type(&self.start, "tool_use").then(|| ToolCall {
            id: text_at(&self.start, "/id").to_owned(),
            name: text_at(&self.start, "/name").to_owned(),
            arguments: self.arguments.clone(),
        })
    }

    /// Returns the block as its provider wants it back; none for a text without words.
    fn value(&self) -> Option<Value> {
        if let Some(call) = self.call() {
            let input: Value = serde_json::from_str(&call.arguments).unwrap_or(json!({}));
            return Some(
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}),
            );
        }
        if !is_of_type(&self.start, "text") {
            return Some(self.start.clone());
        }
        let has_words = !self.text.trim().is_empty();
        has_words.then(|| json!({"type": "text", "text": self.text}))
    }
}

impl MessageStream {
    fn start_block(&mut self, event: Value) -> Vec<Bytes> {
        let index = index_of(&event).unwrap_or_default();
        let start = event.get("content_block").cloned().unwrap_or_default();
        let is_call = is_of_type(&start, "tool_use");
        self.blocks.push(SpokenBlock {
            index,
            text: text_at(&start, "/text").to_owned(),
            start,
            arguments: String::new(),
        });
        if is_call {
            self.held.push(event);
            return Vec::new();
        }
        self.show_block(index);
        vec![self.renumber(event)]
    }

    fn show_block(&mut self, index: u64) {
        self.shown.insert(index, self.next_index);
        self.next_index += 1;
    }

    fn go_on_with_block(&mut self, event: Value) -> Vec<Bytes> {
        let index = index_of(&event).unwrap_or_default();
        if let Some(block) = self.blocks.iter_mut().find(|block| block.index == index) {
            block.text.push_str(text_at(&event, "/delta/text"));
            let arguments = text_at(&event, "/delta/partial_json");
            block.arguments.push_str(arguments);
        }
        if !self.shown.contains_key(&index) {
            self.held.push(event);
            return Vec::new();
        }
        vec![self.renumber(event)]
    }

    /// Writes an event with the number that its block has for the client.
    fn renumber(&self, mut event: Value) -> Bytes {
        let index = index_of(&event).unwrap_or_default();
        let shown = self.shown.get(&index).copied().unwrap_or(index);
        if let Some(number) = event.get_mut("index") {
            *number = json!(shown);
        }
        write_event(&event)
    }

    /// The message ends: calls of ours stay hidden, and so does the end; else everything passes.
    fn end_message(&mut self, event: Bytes) -> Vec<Bytes> {
        let mut calls = self.blocks.iter().filter_map(SpokenBlock::call);
        self.asked = calls.any(|call| call.is_ours());
        if self.asked {
            return Vec::new();
        }
        let held = std::mem::take(&mut self.held);
        let mut passed: Vec<Bytes> = Vec::new();
        for event in held {
            let index = index_of(&event).unwrap_or_default();
            if is_of_type(&event, "content_block_start") {
                self.show_block(index);
            }
            passed.push(self.renumber(event));
        }
        passed.push(event);
        passed
    }
}

impl CallStream for MessageStream {
    fn pass_event(&mut self, event: Bytes) -> Vec<Bytes> {
        let Some(value) = read_event(&event) else {
            return vec![event];
        };
        match text_at(&value, "/type") {
            "message_start" if self.is_continued => Vec::new(),
            "content_block_start" => self.start_block(value),
            "content_block_delta" | "content_block_stop" => self.go_on_with_block(value),
            "message_delta" => self.end_message(event),
            "message_stop" if self.asked => Vec::new(),
            _ => vec![event],
        }
    }

    fn take_lookups(&mut self) -> Option<AskedLookups> {
        let blocks = std::mem::take(&mut self.blocks);
        self.held.clear();
        self.shown.clear();
        self.is_continued = true;
        std::mem::take(&mut self.asked).then(|| {
            let content: Vec<Value> = blocks.iter().filter_map(SpokenBlock::value).collect();
            AskedLookups {
                said: json!({"role": "assistant", "content": content}),
                calls: blocks.iter().filter_map(SpokenBlock::call).collect(),
            }
        })
    }
}

/// Returns what a whole message asks of us; `None` where that is nothing.
pub(super) fn find_lookups(document: &Value) -> Option<AskedLookups> {
    let content = list_at(document, "/content");
    let calls: Vec<ToolCall> = content
        .iter()
        .filter(|block| is_of_type(block, "tool_use"))
        .map(|block| ToolCall {
            id: text_at(block, "/id").to_owned(),
            name: text_at(block, "/name").to_owned(),
            arguments: block.get("input").map(Value::to_string).unwrap_or_default(),
        })
        .collect();
    calls.iter().any(ToolCall::is_ours).then(|| AskedLookups {
        said: json!({"role": "assistant", "content": content}),
        calls,
    })
}

/// Puts what was said before a look-up before a message.
pub(super) fn prepend_spoken(document: &mut Value, asked: &AskedLookups) -> Option<()> {
    let content = document.get_mut("content")?.as_array_mut()?;
    let said = list_at(&asked.said, "/content").iter();
    let said = said.filter(|block| !is_of_type(block, "tool_use"));
    content.splice(0..0, said.cloned());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(index: u64, block: &Value) -> Value {
        json!({"type": "content_block_start", "index": index, "content_block": block})
    }

    fn text(index: u64, text: &str) -> [Value; 3] {
        let delta = json!({"type": "text_delta", "text": text});
        [
            start(index, &json!({"type": "text", "text": ""})),
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    }

    fn call(index: u64, name: &str, arguments: &str) -> [Value; 3] {
        let delta = json!({"type": "input_json_delta", "partial_json": arguments});
        let block =
            json!({"type": "tool_use", "id": format!("t{index}"), "name": name, "input": {}});
        [
            start(index, &block),
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    }

    fn ends(reason: &str) -> [Value; 2] {
        [
            json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
            json!({"type": "message_stop"}),
        ]
    }

    fn pass(stream: &mut MessageStream, events: &[Value]) -> Vec<Value> {
        let passed = events
            .iter()
            .flat_map(|event| stream.pass_event(write_event(event)));
        passed.map(|event| read_event(&event).unwrap()).collect()
    }

    #[test]
    fn a_call_of_ours_is_hidden_and_the_answer_goes_on_in_the_same_message() {
        let mut stream = MessageStream::default();
        let opening = json!({"type": "message_start", "message": {"id": "m"}});
        let first = [
            vec![opening.clone()],
            text(0, "Let me look.").to_vec(),
            call(1, "compact_recall", "{\"query\":\"port\"}").to_vec(),
            ends("tool_use").to_vec(),
        ];
        let shown = pass(&mut stream, &first.concat());
        assert_eq!(
            shown,
            [vec![opening.clone()], text(0, "Let me look.").to_vec()].concat()
        );
        let asked = stream.take_lookups().unwrap();
        let said = json!([
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "t1", "name": "compact_recall", "input": {"query": "port"}},
        ]);
        assert_eq!(asked.said, json!({"role": "assistant", "content": said}));
        let second = [
            vec![opening],
            text(0, "It is 8080.").to_vec(),
            call(1, "Read", "{}").to_vec(),
            ends("tool_use").to_vec(),
        ];
        let shown = pass(&mut stream, &second.concat());
        let mut read = call(2, "Read", "{}");
        read[0]["content_block"]["id"] = json!("t1");
        let expected = [
            text(1, "It is 8080.").to_vec(),
            read.to_vec(),
            ends("tool_use").to_vec(),
        ];
        assert_eq!(shown, expected.concat());
        assert_eq!(stream.take_lookups(), None);
    }

    #[test]
    fn what_asks_nothing_of_ours_passes_whole() {
        let events = [
            text(0, "Reading.").to_vec(),
            call(1, "Read", "{\"a\":1}").to_vec(),
            call(2, "Grep", "{}").to_vec(),
            ends("tool_use").to_vec(),
        ]
        .concat();
        let mut stream = MessageStream::default();
        assert_eq!(pass(&mut stream, &events), events);
        assert_eq!(stream.take_lookups(), None);
    }
}
