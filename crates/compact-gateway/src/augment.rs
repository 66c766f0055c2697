//! A model's summary for an agent, with what it lost added before it ends (`gateway.answer_compaction: augment`).
//!
//! The model's words pass as they come. Where its text ends, what the history says and the text does not is added, in the
//! shape that the agent's provider gives its texts, so that the agent takes both as one summary.

use compact::format::validate::Provider;
use serde_json::{Value, json};

use crate::event_stream::{index_of, is_of_type, list_at, text_at};

/// Follows the text of an answer and adds to its end.
pub(crate) struct TextEnd {
    provider: Provider,
    /// What the model said so far.
    text: String,
    /// The block of Anthropic's that is being written.
    block: Option<u64>,
    added: Option<String>,
}

impl TextEnd {
    pub(crate) fn new(provider: Provider) -> TextEnd {
        TextEnd {
            provider,
            text: String::new(),
            block: None,
            added: None,
        }
    }

    /// Returns what the model said, when this event or document is where it ends.
    pub(crate) fn find_end(&mut self, event: &Value) -> Option<&str> {
        if self.added.is_some() {
            return None;
        }
        let ends = match self.provider {
            Provider::Anthropic => self.follow_message(event),
            Provider::OpenAiChat => {
                self.take_text(event, "/choices/0/delta/content");
                is_finished(event)
            }
            Provider::OpenAiResponses => self.follow_response(event),
            Provider::Gemini => {
                for part in list_at(event, "/candidates/0/content/parts") {
                    if part.get("thought") != Some(&json!(true)) {
                        self.take_text(part, "/text");
                    }
                }
                event.pointer("/candidates/0/finishReason").is_some()
            }
        };
        (ends && !self.text.trim().is_empty()).then_some(&*self.text)
    }

    fn take_text(&mut self, event: &Value, pointer: &str) {
        self.text.push_str(text_at(event, pointer));
    }

    fn follow_message(&mut self, event: &Value) -> bool {
        let index = index_of(event);
        match text_at(event, "/type") {
            "content_block_start" if text_at(event, "/content_block/type") == "text" => {
                self.block = index;
                self.take_text(event, "/content_block/text");
                false
            }
            "content_block_delta" if index == self.block => {
                self.take_text(event, "/delta/text");
                false
            }
            "content_block_stop" => self.block.is_some() && index == self.block,
            _ => false,
        }
    }

    fn follow_response(&mut self, event: &Value) -> bool {
        match text_at(event, "/type") {
            "response.output_text.delta" => {
                self.take_text(event, "/delta");
                false
            }
            "response.output_text.done" | "response.content_part.done" => true,
            "response.output_item.done" | "response.completed" => {
                if self.text.is_empty() {
                    self.text = output_text(event);
                }
                true
            }
            _ => false,
        }
    }

    /// Adds to the end that was found; `None` where nothing is missing. Later events that repeat the text get it too.
    pub(crate) fn add(&mut self, addition: Option<String>) {
        self.added = Some(addition.unwrap_or_default());
    }

    /// Writes what stands for an event: events to send before it, and the event, changed where it repeats the text.
    /// Nothing where it passes as it came.
    pub(crate) fn write_end(&mut self, event: &Value) -> Option<Vec<Value>> {
        let added = self.added.as_deref().filter(|added| !added.is_empty())?;
        let mut event = event.clone();
        match self.provider {
            Provider::Anthropic => {
                let index = self.block.take()?;
                let delta = json!({"type": "text_delta", "text": added});
                let before = json!({"type": "content_block_delta", "index": index, "delta": delta});
                Some(vec![before, event])
            }
            Provider::OpenAiChat => {
                if !is_finished(&event) {
                    return None;
                }
                let mut before = event.clone();
                let said = format!("{}{added}", text_at(&event, "/choices/0/delta/content"));
                *before.pointer_mut("/choices/0/finish_reason")? = Value::Null;
                *before.pointer_mut("/choices/0/delta")? = json!({"content": said});
                before.as_object_mut()?.remove("usage");
                *event.pointer_mut("/choices/0/delta")? = json!({});
                Some(vec![before, event])
            }
            Provider::OpenAiResponses => {
                let mut written = Vec::new();
                if is_of_type(&event, "response.output_text.done") {
                    let mut delta = event.clone();
                    let members = delta.as_object_mut()?;
                    members.remove("text");
                    members.insert("type".to_owned(), json!("response.output_text.delta"));
                    members.insert("delta".to_owned(), json!(added));
                    written.push(delta);
                }
                append_in_response(&mut event, added)?;
                written.push(event);
                Some(written)
            }
            Provider::Gemini => {
                event.pointer("/candidates/0/finishReason")?;
                append_to_document(Provider::Gemini, &mut event, added)?;
                Some(vec![event])
            }
        }
    }
}

/// Returns whether a chunk of a completion is its last with words.
fn is_finished(chunk: &Value) -> bool {
    let reason = chunk.pointer("/choices/0/finish_reason");
    reason.is_some_and(|reason| !reason.is_null())
}

/// Returns what a whole answer says.
pub(crate) fn document_text(provider: Provider, document: &Value) -> String {
    let texts = |pointer: &str| -> String {
        let parts = list_at(document, pointer).iter();
        parts.map(|part| text_at(part, "/text")).collect()
    };
    match provider {
        Provider::Anthropic => texts("/content"),
        Provider::OpenAiChat => text_at(document, "/choices/0/message/content").to_owned(),
        Provider::OpenAiResponses => output_text(document),
        Provider::Gemini => texts("/candidates/0/content/parts"),
    }
}

/// Adds to the text of a whole answer; `None` where it has none.
pub(crate) fn append_to_document(
    provider: Provider,
    document: &mut Value,
    added: &str,
) -> Option<()> {
    let text = match provider {
        Provider::Anthropic => last_text(document.get_mut("content")?)?,
        Provider::OpenAiChat => document.pointer_mut("/choices/0/message/content")?,
        Provider::OpenAiResponses => return append_in_response(document, added),
        Provider::Gemini => {
            let parts = document.pointer_mut("/candidates/0/content/parts")?;
            parts.as_array_mut()?.push(json!({"text": added}));
            return Some(());
        }
    };
    append_text(text, added)
}

fn append_text(text: &mut Value, added: &str) -> Option<()> {
    let whole = format!("{}{added}", text.as_str()?);
    *text = json!(whole);
    Some(())
}

/// Returns the last text among parts.
fn last_text(parts: &mut Value) -> Option<&mut Value> {
    let parts = parts.as_array_mut()?.iter_mut().rev();
    let mut texts = parts.filter_map(|part| part.get_mut("text"));
    texts.find(|text| text.is_string())
}

/// Adds to the text that an event or a document of Responses repeats.
fn append_in_response(event: &mut Value, added: &str) -> Option<()> {
    let text = match event.get("type").and_then(Value::as_str) {
        Some("response.output_text.done") => event.get_mut("text")?,
        Some("response.content_part.done") => event.pointer_mut("/part/text")?,
        Some("response.output_item.done") if text_at(event, "/item/type") == "message" => {
            last_text(event.pointer_mut("/item/content")?)?
        }
        Some("response.completed") => {
            return append_in_response(event.get_mut("response")?, added);
        }
        None => {
            let items = event.get_mut("output")?.as_array_mut()?;
            let mut items = items.iter_mut().rev();
            let item = items.find(|item| is_of_type(item, "message"))?;
            last_text(item.get_mut("content")?)?
        }
        Some(_) => return None,
    };
    append_text(text, added)
}

/// Returns the text of the messages in an event or a document of Responses.
fn output_text(value: &Value) -> String {
    let items = match (value.get("item"), value.get("response")) {
        (Some(item), _) => std::slice::from_ref(item),
        (None, Some(response)) => list_at(response, "/output"),
        (None, None) => list_at(value, "/output"),
    };
    let messages = items.iter().filter(|item| is_of_type(item, "message"));
    let parts = messages.flat_map(|item| list_at(item, "/content"));
    parts.map(|part| text_at(part, "/text")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays events through; returns what the client gets.
    fn play(provider: Provider, events: &[Value]) -> (String, Vec<Value>) {
        let mut end = TextEnd::new(provider);
        let (mut said, mut got) = (String::new(), Vec::new());
        for event in events {
            if let Some(text) = end.find_end(event) {
                said = text.to_owned();
                end.add(Some(" More.".to_owned()));
            }
            match end.write_end(event) {
                Some(written) => got.extend(written),
                None => got.push(event.clone()),
            }
        }
        (said, got)
    }

    #[test]
    fn a_message_gets_its_addition_before_its_block_stops() {
        let delta = |text: &str| json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": text}});
        let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
        let start = |index: u64, kind: &str| json!({"type": "content_block_start", "index": index, "content_block": {"type": kind}});
        let events = [
            start(0, "thinking"),
            stop(0),
            start(1, "text"),
            delta("All"),
            delta(" done."),
            stop(1),
            json!({"type": "message_stop"}),
        ];
        let (said, got) = play(Provider::Anthropic, &events);
        assert_eq!(said, "All done.");
        let mut expected = events.to_vec();
        expected.insert(5, delta(" More."));
        assert_eq!(got, expected);
    }

    #[test]
    fn a_completion_gets_it_before_it_finishes() {
        let chunk = |delta: Value, reason: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
        let events = [
            chunk(json!({"content": "All"}), Value::Null),
            chunk(json!({"content": " done."}), json!("stop")),
        ];
        let (said, got) = play(Provider::OpenAiChat, &events);
        assert_eq!(said, "All done.");
        let expected = [
            events[0].clone(),
            chunk(json!({"content": " done. More."}), Value::Null),
            chunk(json!({}), json!("stop")),
        ];
        assert_eq!(got, expected);
    }

    #[test]
    fn every_event_that_repeats_a_text_of_responses_gets_it() {
        let item = |text: &str| json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
        let part = |text: &str| json!({"type": "output_text", "text": text});
        let events = |text: &str| {
            [
                json!({"type": "response.output_text.done", "item_id": "m", "text": text}),
                json!({"type": "response.content_part.done", "part": part(text)}),
                json!({"type": "response.output_item.done", "item": item(text)}),
                json!({"type": "response.completed", "response": {"output": [{"type": "reasoning"}, item(text)]}}),
            ]
        };
        let delta = |text: &str| json!({"type": "response.output_text.delta", "item_id": "m", "delta": text});
        let mut played = vec![delta("All done.")];
        played.extend(events("All done."));
        let (said, got) = play(Provider::OpenAiResponses, &played);
        assert_eq!(said, "All done.");
        let mut expected = vec![delta("All done."), delta(" More.")];
        expected.extend(events("All done. More."));
        assert_eq!(got, expected);
        // Some servers send whole items alone.
        let [_, _, whole, completed] = events("All done.");
        let (said, got) = play(Provider::OpenAiResponses, &[whole, completed]);
        assert_eq!(said, "All done.");
        assert_eq!(got, events("All done. More.")[2..]);
    }

    #[test]
    fn a_content_of_gemini_gets_it_as_its_last_part() {
        let chunk = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}]});
        let mut last = chunk(json!([{"text": " done."}]));
        last["candidates"][0]["finishReason"] = json!("STOP");
        let (said, got) = play(Provider::Gemini, &[chunk(json!([{"text": "All"}])), last]);
        assert_eq!(said, "All done.");
        let parts = &got[1]["candidates"][0]["content"]["parts"];
        assert_eq!(*parts, json!([{"text": " done."}, {"text": " More."}]));
    }

    #[test]
    fn whole_answers_get_it_too() {
        for (provider, document) in [
            (
                Provider::Anthropic,
                json!({"content": [{"type": "text", "text": "All done."}]}),
            ),
            (
                Provider::OpenAiChat,
                json!({"choices": [{"message": {"content": "All done."}}]}),
            ),
            (
                Provider::OpenAiResponses,
                json!({"output": [{"type": "message", "content": [{"text": "All done."}]}]}),
            ),
            (
                Provider::Gemini,
                json!({"candidates": [{"content": {"parts": [{"text": "All done."}]}}]}),
            ),
        ] {
            let mut document = document;
            assert_eq!(document_text(provider, &document), "All done.");
            append_to_document(provider, &mut document, " More.").unwrap();
            assert_eq!(document_text(provider, &document), "All done. More.");
        }
        let mut empty = json!({"content": [{"type": "tool_use"}]});
        assert_eq!(
            append_to_document(Provider::Anthropic, &mut empty, "x"),
            None
        );
    }
}
