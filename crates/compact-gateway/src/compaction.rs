//! Answers an agent that asks for a summary of its history: the engine writes it, no model is asked.
//!
//! Each agent reads such an answer in its own way; these are the shapes that they take. An item that only a
//! provider could read is ours here: its text comes back in later requests, where it is written out as a
//! message before anybody else sees it.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use compact::format::validate::Provider;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::class::CompactionKind;
use crate::header;
use crate::refusal::{AnswerForm, json_answer};

/// What opens the content of an item that is ours.
const OWN_ITEM: &str = "compact1:";

impl CompactionKind {
    /// Returns what an agent looks for around a summary.
    fn tags(self) -> (&'static str, &'static str) {
        match self {
            CompactionKind::ClaudeCode => ("<summary>\n", "\n</summary>"),
            CompactionKind::GeminiCli => ("<state_snapshot>\n", "\n</state_snapshot>"),
            _ => ("", ""),
        }
    }

    /// Returns whether a summary that the model writes can be read and added to by others than its provider.
    pub(crate) fn is_readable(self) -> bool {
        !matches!(self, CompactionKind::CodexRemote | CompactionKind::Endpoint)
    }

    /// Returns a summary without what stands around it.
    pub(crate) fn unwrap_text(self, text: &str) -> &str {
        let (before, after) = self.tags();
        let inner = text
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after));
        inner.unwrap_or(text)
    }
}

/// A summary on its way to an agent.
pub(crate) struct SummaryAnswer<'a> {
    pub(crate) kind: CompactionKind,
    pub(crate) provider: Provider,
    pub(crate) form: AnswerForm,
    pub(crate) model: &'a str,
    pub(crate) text: &'a str,
    pub(crate) receipt: &'a str,
}

impl SummaryAnswer<'_> {
    /// Writes the answer as the agent's provider would, with the session that it is of.
    pub(crate) fn write_for(&self, session: &str) -> Response {
        let mut answer = self.write();
        let headers = answer.headers_mut();
        headers.insert(header::SESSION, header::own_value(session));
        headers.insert(header::RECEIPT, header::own_value(self.receipt));
        answer
    }

    fn write(&self) -> Response {
        if self.kind == CompactionKind::Endpoint {
            return json_answer(StatusCode::OK, &self.compacted_window());
        }
        match (self.provider, self.form) {
            (Provider::Anthropic, AnswerForm::Whole) => {
                json_answer(StatusCode::OK, &self.message())
            }
            (Provider::Anthropic, AnswerForm::Events) => named_events(&self.message_events()),
            (Provider::OpenAiResponses, AnswerForm::Whole) => {
                json_answer(StatusCode::OK, &self.response("completed"))
            }
            (Provider::OpenAiResponses, AnswerForm::Events) => {
                named_events(&self.response_events())
            }
            (Provider::OpenAiChat, AnswerForm::Whole) => {
                json_answer(StatusCode::OK, &self.completion())
            }
            (Provider::OpenAiChat, AnswerForm::Events) => self.completion_events(),
            (Provider::Gemini, AnswerForm::Whole) => json_answer(StatusCode::OK, &self.content()),
            (Provider::Gemini, AnswerForm::Events) => plain_events(&[self.content()]),
        }
    }

    /// The text as the agent looks for it.
    fn wrapped_text(&self) -> String {
        let (before, after) = self.kind.tags();
        format!("{before}{}{after}", self.text)
    }

    fn id(&self, prefix: &str) -> String {
        format!("{prefix}_{}", self.receipt)
    }

    fn message(&self) -> Value {
        let content = json!([{"type": "text", "text": self.wrapped_text()}]);
        self.message_with(&content, &json!("end_turn"))
    }

    fn message_with(&self, content: &Value, stop_reason: &Value) -> Value {
        json!({
            "id": self.id("msg"), "type": "message", "role": "assistant", "model": self.model,
            "content": content, "stop_reason": stop_reason, "stop_sequence": null,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        })
    }

    fn message_events(&self) -> Vec<Value> {
        let opening = self.message_with(&json!([]), &Value::Null);
        let text = json!({"type": "text_delta", "text": self.wrapped_text()});
        vec![
            json!({"type": "message_start", "message": opening}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": text}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({
                "type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
                "usage": {"output_tokens": 0},
            }),
            json!({"type": "message_stop"}),
        ]
    }

    /// The item of Responses that carries the summary.
    fn item(&self) -> Value {
        match self.kind {
            CompactionKind::CodexRemote | CompactionKind::Endpoint => json!({
                "type": "compaction", "id": self.id("cmp"),
                "encrypted_content": format!("{OWN_ITEM}{}", self.text),
            }),
            _ => json!({
                "type": "message", "id": self.id("msg"), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": self.wrapped_text(), "annotations": []}],
            }),
        }
    }

    fn response(&self, status: &str) -> Value {
        let output = match status {
            "completed" => vec![self.item()],
            _ => Vec::new(),
        };
        json!({
            "id": self.id("resp"), "object": "response", "status": status, "model": self.model,
            "output": output,
            "usage": no_usage(),
        })
    }

    fn response_events(&self) -> Vec<Value> {
        let item = self.item();
        vec![
            json!({"type": "response.created", "sequence_number": 0, "response": self.response("in_progress")}),
            json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item}),
            json!({"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item}),
            json!({"type": "response.completed", "sequence_number": 3, "response": self.response("completed")}),
        ]
    }

    /// What `/responses/compact` answers: the window to go on with.
    fn compacted_window(&self) -> Value {
        json!({
            "id": self.id("resp"), "object": "response.compaction",
            "output": [self.item()], "usage": no_usage(),
        })
    }

    fn completion(&self) -> Value {
        let message = json!({"role": "assistant", "content": self.wrapped_text()});
        json!({
            "id": self.id("chatcmpl"), "object": "chat.completion", "created": 0, "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        })
    }

    fn completion_events(&self) -> Response {
        let chunk = |delta: Value, reason: Value| {
            json!({
                "id": self.id("chatcmpl"), "object": "chat.completion.chunk", "created": 0,
                "model": self.model,
                "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
            })
        };
        let text = json!({"role": "assistant", "content": self.wrapped_text()});
        let chunks = [chunk(text, Value::Null), chunk(json!({}), json!("stop"))];
        let mut lines: String = chunks.iter().map(event_line).collect();
        lines.push_str("data: [DONE]\n\n");
        event_stream(lines)
    }

    fn content(&self) -> Value {
        let content = json!({"role": "model", "parts": [{"text": self.wrapped_text()}]});
        json!({
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0},
            "modelVersion": self.model,
        })
    }
}

/// Returns what Responses report of an answer that no model gave.
fn no_usage() -> Value {
    json!({
        "input_tokens": 0, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 0,
    })
}

fn event_line(event: &Value) -> String {
    format!("data: {event}\n\n")
}

fn plain_events(events: &[Value]) -> Response {
    event_stream(events.iter().map(event_line).collect())
}

fn named_events(events: &[Value]) -> Response {
    let named = |event: &Value| {
        let name = event
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        format!("event: {name}\n{}", event_line(event))
    };
    event_stream(events.iter().map(named).collect())
}

fn event_stream(lines: String) -> Response {
    let mut answer = Response::new(Body::from(lines));
    let kind = HeaderValue::from_static("text/event-stream");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// Writes our items in a body of Responses out as messages; `None` where there are none.
pub(crate) fn write_out_items(body: &Bytes) -> Option<Bytes> {
    memmem::find(body, OWN_ITEM.as_bytes())?;
    #[derive(Deserialize)]
    struct Input<'b> {
        #[serde(borrow)]
        input: Vec<&'b RawValue>,
    }
    let input: Input<'_> = serde_json::from_slice(body).ok()?;
    let mut written = Vec::with_capacity(body.len());
    let mut copied = 0;
    for raw in &input.input {
        let Some(message) = message_of_item(raw.get()) else {
            continue;
        };
        // A raw value is a part of the body that it was read from.
        let start = raw
            .get()
            .as_ptr()
            .addr()
            .checked_sub(body.as_ptr().addr())?;
        written.extend_from_slice(body.get(copied..start)?);
        written.extend_from_slice(message.as_bytes());
        copied = start + raw.get().len();
    }
    written.extend_from_slice(body.get(copied..)?);
    (copied > 0).then(|| written.into())
}

/// Returns the message that an item of ours stands for.
fn message_of_item(item: &str) -> Option<String> {
    memmem::find(item.as_bytes(), OWN_ITEM.as_bytes())?;
    let item: Value = serde_json::from_str(item).ok()?;
    let is_compaction = item.get("type").is_some_and(|kind| kind == "compaction");
    let text = item.get("encrypted_content")?.as_str()?;
    let text = text.strip_prefix(OWN_ITEM).filter(|_| is_compaction)?;
    let content = json!([{"type": "input_text", "text": text}]);
    Some(json!({"type": "message", "role": "user", "content": content}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_of_ours_is_written_out_and_the_rest_keeps_its_bytes() {
        let body = r#"{ "model":"m", "input": [ {"role":"user" , "content":"a"}, {"type":"compaction","encrypted_content":"compact1:the \"summary\""} ,{"type":"compaction","encrypted_content":"gAAA"}, {"role":"user","content":"compact1:b"}], "x" : 1 }"#;
        let written = write_out_items(&Bytes::from(body)).unwrap();
        let message = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"the \"summary\""}]}"#;
        let expected = body.replace(
            r#"{"type":"compaction","encrypted_content":"compact1:the \"summary\""}"#,
            message,
        );
        assert_eq!(written, expected);
        assert_eq!(
            write_out_items(&Bytes::from(r#"{"input":[{"content":"compact1:x"}]}"#)),
            None
        );
    }
}
