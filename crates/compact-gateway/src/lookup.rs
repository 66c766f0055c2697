//! Recall as tools of the model, where its user asked for that (`gateway.offer_recall`): two tools are added to a request
//! whose history was compacted, and calls of them are answered here. The client sees the text around them and nothing
//! else.
//!
//! Texts pass as they come. Calls are held back until it is known whether one of them is ours: then the model is asked
//! again with our answer, and what it says next follows in the same stream. Calls of the client's own tools beside ours are
//! answered with a request to repeat them. Nothing is offered where a provider binds what a client must send back to what
//! stood before it: with thinking, and on Responses.

mod completion;
mod message;

use bytes::Bytes;
use compact::format::validate::Provider;
use compact::recall::{
    AnswerStyle, EntryPointer, ExpandQuery, QUOTE_NOTE, RecallQuery, SecretDisplay, TextPart,
    fence_text,
};
use compact::{Compact, Error};
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use completion::CompletionStream;
use message::MessageStream;

/// The names that our tools have.
pub(crate) const RECALL: &str = "compact_recall";
const EXPAND: &str = "compact_expand";

/// How often the model may look something up before it answers.
pub(crate) const MOST_ROUNDS: usize = 8;

/// The most bytes of text in one answer: some four thousand tokens.
const ROOM: usize = 16_000;

const ABOUT_RECALL: &str = include_str!("../templates/lookup/recall.md");
const ABOUT_EXPAND: &str = include_str!("../templates/lookup/expand.md");
/// What a call of the client's beside ours is answered with.
pub(crate) const NOT_RUN: &str = include_str!("../templates/lookup/not_run.md");

const STYLE: AnswerStyle = AnswerStyle {
    quote: fence_text,
    ask_rest: |_, _| String::new(),
};

/// A call of a tool by the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Its arguments as JSON.
    pub(crate) arguments: String,
}

impl ToolCall {
    /// Returns whether it is one of our tools.
    pub(crate) fn is_ours(&self) -> bool {
        [RECALL, EXPAND].contains(&&*self.name)
    }
}

/// What one answer of the model came to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct AskedLookups {
    /// What it said, as its provider wants it back.
    pub(crate) said: Value,
    /// Its calls, of which one at least is ours.
    pub(crate) calls: Vec<ToolCall>,
}

/// An answer that passes while calls of ours are looked for.
pub(crate) trait CallStream: Send {
    /// Takes an event, and returns what the client gets of it.
    fn pass_event(&mut self, event: Bytes) -> Vec<Bytes>;

    /// Returns what the model asked for, once its answer has ended; `None` where it asked for nothing of ours.
    fn take_lookups(&mut self) -> Option<AskedLookups>;
}

/// Returns what follows the answers of a provider that calls can be hidden from.
pub(crate) fn open_calls(provider: Provider) -> Option<Box<dyn CallStream>> {
    match provider {
        Provider::Anthropic => Some(Box::new(MessageStream::default())),
        Provider::OpenAiChat => Some(Box::new(CompletionStream::default())),
        Provider::OpenAiResponses | Provider::Gemini => None,
    }
}

/// Returns what a whole answer asks of us; `None` where that is nothing.
pub(crate) fn find_lookups(provider: Provider, document: &Value) -> Option<AskedLookups> {
    match provider {
        Provider::Anthropic => message::find_lookups(document),
        _ => completion::find_lookups(document),
    }
}

/// Puts what the model said before it looked something up before its answer.
pub(crate) fn prepend_spoken(provider: Provider, document: &mut Value, asked: &AskedLookups) {
    let _ = match provider {
        Provider::Anthropic => message::prepend_spoken(document, asked),
        _ => completion::prepend_spoken(document, asked),
    };
}

#[derive(Deserialize)]
struct OfferedBody<'b> {
    #[serde(borrow)]
    tools: Option<&'b RawValue>,
    #[serde(borrow)]
    messages: Option<&'b RawValue>,
    #[serde(borrow)]
    thinking: Option<&'b RawValue>,
    #[serde(borrow)]
    reasoning_effort: Option<&'b RawValue>,
    #[serde(borrow)]
    n: Option<&'b RawValue>,
}

/// Adds our tools to a body; `None` where they cannot be offered.
pub(crate) fn offer_tools(provider: Provider, body: &Bytes) -> Option<Bytes> {
    open_calls(provider)?;
    let read: OfferedBody<'_> = serde_json::from_slice(body).ok()?;
    let tools = read.tools.map(RawValue::get)?;
    let is_named = memmem::find(tools.as_bytes(), RECALL.as_bytes()).is_some();
    let thinks = read
        .thinking
        .is_some_and(|thinking| memmem::find(thinking.get().as_bytes(), b"\"disabled\"").is_none());
    let is_bound = thinks || read.reasoning_effort.is_some() || read.n.is_some();
    if is_named || is_bound || !tools.starts_with('[') {
        return None;
    }
    let offered = our_tools().map(|(name, about, parameters)| match provider {
        Provider::Anthropic => {
            json!({"name": name, "description": about, "input_schema": parameters})
        }
        _ => json!({
            "type": "function",
            "function": {"name": name, "description": about, "parameters": parameters},
        }),
    });
    append_to_list(body, tools, &offered)
}

fn our_tools() -> [(&'static str, &'static str, Value); 2] {
    let parameters = |name: &str, about: &str| {
        json!({
            "type": "object", "required": [name],
            "properties": {name: {"type": "string", "description": about}},
        })
    };
    [
        (
            RECALL,
            ABOUT_RECALL.trim(),
            parameters(
                "query",
                "A question or a few words, names or paths, as they were said",
            ),
        ),
        (
            EXPAND,
            ABOUT_EXPAND.trim(),
            parameters("pointer", "Such as 3f9a1c22abcd#17, or 3f9a1c22abcd#17..19"),
        ),
    ]
}

/// Adds what a model said and what it is answered to a body; `None` where the body has no list of messages.
pub(crate) fn append_messages(body: &Bytes, messages: &[Value]) -> Option<Bytes> {
    let read: OfferedBody<'_> = serde_json::from_slice(body).ok()?;
    append_to_list(body, read.messages?.get(), messages)
}

/// Adds values to a list that is part of a body; everything else keeps its bytes.
fn append_to_list(body: &Bytes, list: &str, values: &[Value]) -> Option<Bytes> {
    // A raw value is a part of the body that it was read from.
    let start = list.as_ptr().addr().checked_sub(body.as_ptr().addr())?;
    let inner = list.strip_suffix(']')?.trim_end();
    let end = start + inner.len();
    let mut comma = if inner.ends_with('[') { "" } else { "," };
    let mut written = body.get(..end)?.to_vec();
    for value in values {
        written.extend_from_slice(comma.as_bytes());
        written.extend_from_slice(value.to_string().as_bytes());
        comma = ",";
    }
    written.extend_from_slice(body.get(end..)?);
    Some(written.into())
}

/// Returns the messages that go on from an answer: what was said, and an answer to each call.
pub(crate) fn answered_messages(
    provider: Provider,
    asked: &AskedLookups,
    answers: &[String],
) -> Vec<Value> {
    let answered = asked.calls.iter().zip(answers);
    let mut messages = vec![asked.said.clone()];
    match provider {
        Provider::Anthropic => {
            let results = answered.map(|(call, text)| {
                json!({"type": "tool_result", "tool_use_id": call.id, "content": text})
            });
            messages.push(json!({"role": "user", "content": results.collect::<Vec<_>>()}));
        }
        _ => {
            messages.extend(answered.map(
                |(call, text)| json!({"role": "tool", "tool_call_id": call.id, "content": text}),
            ))
        }
    }
    messages
}

/// Answers a call of ours from one session alone.
pub(crate) async fn answer_call(compact: &Compact, session: &str, call: &ToolCall) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    // Clients name their sessions: no name of theirs stands for a receipt.
    let session = &format!("session:{session}");
    let text_of = |name: &str| arguments.get(name).and_then(Value::as_str);
    let answered = match &*call.name {
        RECALL => search_session(compact, session, text_of("query").unwrap_or_default()).await,
        _ => read_entries(compact, session, text_of("pointer").unwrap_or_default()).await,
    };
    match answered {
        Ok(text) => format!("{QUOTE_NOTE}\n\n{text}"),
        Err(error) => error.to_string(),
    }
}

async fn search_session(compact: &Compact, session: &str, words: &str) -> Result<String, Error> {
    let query = RecallQuery {
        text: words,
        session_id: Some(session),
        limit: 8,
        ..RecallQuery::default()
    };
    Ok(compact.search(&query).await?.render(&STYLE))
}

async fn read_entries(compact: &Compact, session: &str, pointer: &str) -> Result<String, Error> {
    let pointer = EntryPointer::parse(pointer)?;
    let query = ExpandQuery {
        pointers: vec![pointer],
        session_id: Some(session.to_owned()),
        neighbours: 0,
        part: TextPart::Whole,
        secrets: SecretDisplay::Redacted,
        room: ROOM,
    };
    Ok(compact.read(&query).await?.render(&STYLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_tools_stand_behind_the_clients_and_nothing_else_changes() {
        let body = Bytes::from(r#"{ "tools": [ {"name":"Read"} ] , "messages": [],"x" : 1}"#);
        let offered = offer_tools(Provider::Anthropic, &body).unwrap();
        let text = String::from_utf8(offered.to_vec()).unwrap();
        assert!(text.starts_with(r#"{ "tools": [ {"name":"Read"},{"name":"compact_recall""#));
        assert!(text.ends_with(r#" ] , "messages": [],"x" : 1}"#), "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["tools"].as_array().unwrap().len(), 3);
        assert_eq!(offer_tools(Provider::Anthropic, &offered), None, "once");
        let answered = append_messages(&offered, &[json!({"role": "user"})]).unwrap();
        let read: Value = serde_json::from_slice(&answered).unwrap();
        assert_eq!(read["messages"], json!([{"role": "user"}]));
    }

    #[test]
    fn nothing_is_offered_where_calls_cannot_be_hidden() {
        let offered = |provider, body: &'static str| offer_tools(provider, &Bytes::from(body));
        let (anthropic, chat) = (Provider::Anthropic, Provider::OpenAiChat);
        assert_eq!(offered(anthropic, r#"{"messages":[]}"#), None);
        let thinking = r#"{"tools":[],"thinking":{"type":"adaptive"}}"#;
        assert_eq!(offered(anthropic, thinking), None);
        assert!(offered(anthropic, r#"{"tools":[],"thinking":{"type":"disabled"}}"#).is_some());
        assert_eq!(
            offered(chat, r#"{"tools":[],"reasoning_effort":"low"}"#),
            None
        );
        assert_eq!(offered(Provider::OpenAiResponses, r#"{"tools":[]}"#), None);
        assert_eq!(offered(Provider::Gemini, r#"{"tools":[]}"#), None);
        assert!(offered(chat, r#"{"tools":[]}"#).is_some());
    }
}
