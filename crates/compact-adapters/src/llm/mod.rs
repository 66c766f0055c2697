//! Models behind HTTP: summarizers and embedders.
//!
//! Nothing is sent unless somebody configured it. Requests ask for the least random answer that the
//! wire offers, carry no tools of their own and never follow a redirect; keys come from the
//! environment and are printed nowhere.

mod anthropic;
mod chat;
mod compaction;
mod embedding;
mod http;
mod responses;
mod secret;
#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use compact_core::prompt::Answer;
use compact_core::token::Tokens;
use compact_core::window::Window;
use compact_runtime::port::summarizer::{About, Question, Summarizer, SummarizerError};
use serde_json::{Value, json};

pub use embedding::HttpEmbedder;
pub use http::Endpoint;
pub use secret::Secret;

/// What a summarizer speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `/chat/completions`, as OpenAI and every compatible server has it.
    Chat,
    /// `/responses`.
    Responses,
    /// `/messages`.
    Anthropic,
    /// `/responses/compact`, and `/responses` to read out what came of it.
    OpenAiCompaction,
    /// `/messages` with the provider's own compaction on demand.
    AnthropicCompaction,
}

/// How a summarizer is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// In a request of its own, with the conversation as data.
    #[default]
    Standalone,
    /// Behind the conversation's own request, so that the provider's cache is used.
    CacheAligned,
}

/// The same in every request, for servers that can repeat themselves.
const SEED: u64 = 7;

/// A model behind HTTP.
#[derive(Debug)]
pub struct HttpSummarizer {
    /// What it speaks.
    pub wire: Wire,
    /// Where it is.
    pub endpoint: Endpoint,
    /// Its model; without one, the session's.
    pub model: Option<String>,
    /// What it takes in one request; without it, what the registry says of the model.
    pub window: Option<Tokens>,
    /// How it is asked.
    pub manner: Manner,
    /// The most requests that one summary may take.
    pub most_requests: usize,
}

impl Wire {
    /// The name in configuration, receipts and events.
    pub fn name(self) -> &'static str {
        match self {
            Wire::Chat => "openai",
            Wire::Responses => "responses",
            Wire::Anthropic => "anthropic",
            Wire::OpenAiCompaction => "openai_compaction",
            Wire::AnthropicCompaction => "anthropic_compaction",
        }
    }

    /// Where its provider is.
    pub fn default_url(self) -> &'static str {
        match self {
            Wire::Chat | Wire::Responses | Wire::OpenAiCompaction => "https://api.openai.com/v1",
            Wire::Anthropic | Wire::AnthropicCompaction => "https://api.anthropic.com/v1",
        }
    }

    /// The variable that its provider's key is usually in.
    pub fn default_key_variable(self) -> &'static str {
        match self {
            Wire::Chat | Wire::Responses | Wire::OpenAiCompaction => "OPENAI_API_KEY",
            Wire::Anthropic | Wire::AnthropicCompaction => "ANTHROPIC_API_KEY",
        }
    }

    /// The format of the conversations that it carries.
    fn format(self) -> &'static str {
        match self {
            Wire::Chat => "openai-chat",
            Wire::Responses | Wire::OpenAiCompaction => "openai-responses",
            Wire::Anthropic | Wire::AnthropicCompaction => "anthropic",
        }
    }

    fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Wire::Chat | Wire::Responses | Wire::OpenAiCompaction => &[],
            Wire::Anthropic => &[anthropic::VERSION],
            Wire::AnthropicCompaction => &[anthropic::VERSION, compaction::BETA],
        }
    }

    fn key_header(self) -> http::KeyHeader {
        match self {
            Wire::Chat | Wire::Responses | Wire::OpenAiCompaction => http::KeyHeader::Bearer,
            Wire::Anthropic | Wire::AnthropicCompaction => http::KeyHeader::XApiKey,
        }
    }
}

impl HttpSummarizer {
    fn model<'q>(&'q self, question: &'q Question) -> Result<&'q str, SummarizerError> {
        self.model
            .as_deref()
            .or(question.model.as_deref())
            .ok_or_else(|| {
                SummarizerError::Setup(
                    "no model is known: set summarizer.model or pass --summarizer-model".to_owned(),
                )
            })
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value, SummarizerError> {
        let call = http::Call {
            path,
            headers: self.wire.headers(),
            key: self.wire.key_header(),
        };
        http::post_adapting(&self.endpoint, &call, body).await
    }
}

#[async_trait]
impl Summarizer for HttpSummarizer {
    fn about(&self) -> About {
        let name = match &self.model {
            Some(model) => format!("{} {model}", self.wire.name()),
            None => self.wire.name().to_owned(),
        };
        let known = || Some(Window::of(None, Some(self.model.as_deref()?)).tokens);
        let continues = self.manner == Manner::CacheAligned || self.wire.compacts();
        About {
            name,
            window: self.window.or_else(known),
            continues: continues.then(|| self.wire.format()),
            most_requests: self.most_requests.max(1),
        }
    }

    async fn answer(&self, question: &Question) -> Result<Answer, SummarizerError> {
        let model = self.model(question)?;
        match self.wire {
            Wire::Chat => {
                let body = chat::body(question, model)?;
                chat::answer(&self.post("chat/completions", body).await?)
            }
            Wire::Responses => {
                let body = responses::body(question, model)?;
                responses::answer(&self.post("responses", body).await?)
            }
            Wire::Anthropic => {
                let body = anthropic::body(question, model)?;
                anthropic::answer(&self.post("messages", body).await?)
            }
            Wire::OpenAiCompaction => {
                let body = compaction::input(question, model)?;
                let compacted = self.post("responses/compact", body).await?;
                let body = compaction::read_out(&compacted, question, model)?;
                responses::answer(&self.post("responses", body).await?)
            }
            Wire::AnthropicCompaction => {
                let body = compaction::on_demand(question, model)?;
                compaction::answer(&self.post("messages", body).await?)
            }
        }
    }
}

impl Wire {
    /// The provider's own compaction works on the conversation itself.
    fn compacts(self) -> bool {
        matches!(self, Wire::OpenAiCompaction | Wire::AnthropicCompaction)
    }
}

/// How long a summarizer may take when nobody says.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// How long connecting may take when nobody says.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The conversation's own body, to be gone on from: not streamed, and the model that was asked for.
fn continued(
    question: &Question,
    list: &str,
    model: &str,
) -> Result<Option<Value>, SummarizerError> {
    let Some(bytes) = &question.conversation else {
        return Ok(None);
    };
    let unsuitable = |reason: &str| SummarizerError::Unsuitable(reason.to_owned());
    let mut body: Value =
        serde_json::from_slice(bytes).map_err(|_| unsuitable("it is no request body"))?;
    let Some(fields) = body.as_object_mut() else {
        return Err(unsuitable("it is no request body"));
    };
    for streaming in ["stream", "stream_options"] {
        fields.remove(streaming);
    }
    fields.insert("model".to_owned(), json!(model));
    let last = fields
        .get(list)
        .and_then(Value::as_array)
        .and_then(|l| l.last());
    match last {
        None => Err(unsuitable("it has no messages")),
        Some(last) if calls(last) => Err(unsuitable("calls wait for their results")),
        Some(_) => Ok(Some(body)),
    }
}

/// Whether a message ends in calls that are not answered.
fn calls(message: &Value) -> bool {
    let is_call = |v: &Value| {
        let kind = v.get("type").and_then(Value::as_str);
        matches!(
            kind,
            Some("tool_use" | "function_call" | "custom_tool_call")
        )
    };
    let parts = message.get("content").and_then(Value::as_array);
    message.get("tool_calls").is_some_and(|c| !c.is_null())
        || is_call(message)
        || parts.is_some_and(|parts| parts.iter().any(is_call))
}

/// Adds an element to a list of a body.
fn push(body: &mut Value, list: &str, element: Value) {
    if let Some(list) = body.get_mut(list).and_then(Value::as_array_mut) {
        list.push(element);
    }
}

/// Sets a field of a body.
fn set(body: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(fields) = body.as_object_mut() {
        fields.insert(field.to_owned(), value.into());
    }
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer)?.as_str().map(str::to_owned)
}

fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}

fn malformed(what: &str) -> SummarizerError {
    SummarizerError::Malformed(what.to_owned())
}
