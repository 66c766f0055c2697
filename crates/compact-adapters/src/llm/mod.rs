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
mod reasoning;
mod responses;
mod secret;
#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use compact_core::prompt::SummarizerAnswer;
use compact_core::token::Tokens;
use compact_core::window::Window;
use compact_runtime::port::summarizer::{
    ModelQuestion, QuestionForm, Summarizer, SummarizerError, SummarizerInfo,
};
use serde_json::{Value, json};

pub use embedding::HttpEmbedder;
pub use http::Endpoint;
pub use secret::ApiKey;

/// The API of a summarizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummarizerWire {
    /// `/chat/completions`, as OpenAI and every compatible server has it.
    Chat,
    /// OpenAI's Responses, `/responses`.
    Responses,
    /// Anthropic's Messages, `/messages`.
    Anthropic,
    /// `/responses/compact`, and `/responses` to read out what came of it.
    OpenAiCompaction,
    /// `/messages` with the provider's own compaction on demand.
    AnthropicCompaction,
}

/// The kind of request that a summarizer gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestMode {
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
    /// The API that the model is reached by.
    pub wire: SummarizerWire,
    /// The server, its key and its timeouts.
    pub endpoint: Endpoint,
    /// Its model; without one, the session's.
    pub model: Option<String>,
    /// What it takes in one request; without it, what the registry says of the model.
    pub window: Option<Tokens>,
    /// How it is asked.
    pub manner: RequestMode,
    /// The most requests that one summary may take.
    pub most_requests: usize,
}

impl SummarizerWire {
    /// Returns the name in configuration, receipts and events.
    pub fn name(self) -> &'static str {
        match self {
            SummarizerWire::Chat => "openai",
            SummarizerWire::Responses => "responses",
            SummarizerWire::Anthropic => "anthropic",
            SummarizerWire::OpenAiCompaction => "openai_compaction",
            SummarizerWire::AnthropicCompaction => "anthropic_compaction",
        }
    }

    /// Returns where its provider is.
    pub fn default_url(self) -> &'static str {
        match self {
            SummarizerWire::Chat | SummarizerWire::Responses | SummarizerWire::OpenAiCompaction => {
                "https://api.openai.com/v1"
            }
            SummarizerWire::Anthropic | SummarizerWire::AnthropicCompaction => {
                "https://api.anthropic.com/v1"
            }
        }
    }

    /// Returns the variable that its provider's key is usually in.
    pub fn default_key_variable(self) -> &'static str {
        match self {
            SummarizerWire::Chat | SummarizerWire::Responses | SummarizerWire::OpenAiCompaction => {
                "OPENAI_API_KEY"
            }
            SummarizerWire::Anthropic | SummarizerWire::AnthropicCompaction => "ANTHROPIC_API_KEY",
        }
    }

    /// Returns the format of the conversations that it carries.
    fn format(self) -> &'static str {
        match self {
            SummarizerWire::Chat => "openai-chat",
            SummarizerWire::Responses | SummarizerWire::OpenAiCompaction => "openai-responses",
            SummarizerWire::Anthropic | SummarizerWire::AnthropicCompaction => "anthropic",
        }
    }

    fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            SummarizerWire::Chat | SummarizerWire::Responses | SummarizerWire::OpenAiCompaction => {
                &[]
            }
            SummarizerWire::Anthropic => &[anthropic::VERSION],
            SummarizerWire::AnthropicCompaction => &[anthropic::VERSION, compaction::BETA],
        }
    }

    fn key_header(self) -> http::KeyHeader {
        match self {
            SummarizerWire::Chat | SummarizerWire::Responses | SummarizerWire::OpenAiCompaction => {
                http::KeyHeader::Bearer
            }
            SummarizerWire::Anthropic | SummarizerWire::AnthropicCompaction => {
                http::KeyHeader::XApiKey
            }
        }
    }
}

impl HttpSummarizer {
    fn choose_model<'q>(&'q self, question: &'q ModelQuestion) -> Result<&'q str, SummarizerError> {
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
        let call = http::RequestTarget {
            path,
            headers: self.wire.headers(),
            key: self.wire.key_header(),
        };
        http::post_adapting(&self.endpoint, &call, body).await
    }
}

#[async_trait]
impl Summarizer for HttpSummarizer {
    fn describe(&self) -> SummarizerInfo {
        let name = match &self.model {
            Some(model) => format!("{} {model}", self.wire.name()),
            None => self.wire.name().to_owned(),
        };
        let known = || Some(Window::for_model(None, Some(self.model.as_deref()?)).tokens);
        let continues = self.manner == RequestMode::CacheAligned || self.wire.is_compaction();
        SummarizerInfo {
            name,
            window: self.window.or_else(known),
            continues: continues.then(|| self.wire.format()),
            most_requests: self.most_requests.max(1),
            reads: QuestionForm::Prompt,
        }
    }

    async fn answer(&self, question: &ModelQuestion) -> Result<SummarizerAnswer, SummarizerError> {
        let model = self.choose_model(question)?;
        match self.wire {
            SummarizerWire::Chat => {
                let body = chat::request_body(question, model)?;
                chat::parse_answer(&self.post("chat/completions", body).await?)
            }
            SummarizerWire::Responses => {
                let body = responses::request_body(question, model)?;
                responses::parse_answer(&self.post("responses", body).await?)
            }
            SummarizerWire::Anthropic => {
                let body = anthropic::request_body(question, model)?;
                anthropic::parse_answer(&self.post("messages", body).await?)
            }
            SummarizerWire::OpenAiCompaction => {
                let body = compaction::compact_request(question, model)?;
                let compacted = self.post("responses/compact", body).await?;
                let body = compaction::read_out_request(&compacted, question, model)?;
                responses::parse_answer(&self.post("responses", body).await?)
            }
            SummarizerWire::AnthropicCompaction => {
                let body = compaction::on_demand_request(question, model)?;
                compaction::parse_answer(&self.post("messages", body).await?)
            }
        }
    }
}

impl SummarizerWire {
    /// Returns whether the provider compacts, which works on the conversation itself.
    fn is_compaction(self) -> bool {
        matches!(
            self,
            SummarizerWire::OpenAiCompaction | SummarizerWire::AnthropicCompaction
        )
    }
}

/// How long a summarizer may take when nobody says.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// How long connecting may take when nobody says.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the conversation's own body, to be gone on from: not streamed, and the model that was asked for.
fn continued_body(
    question: &ModelQuestion,
    list: &str,
    model: &str,
) -> Result<Option<Value>, SummarizerError> {
    let Some(bytes) = &question.conversation else {
        return Ok(None);
    };
    let unsuitable = |reason: &str| SummarizerError::Unsuitable(reason.to_owned());
    let mut body: Value =
        serde_json::from_slice(bytes).map_err(|_| unsuitable("it is not a request body"))?;
    let Some(fields) = body.as_object_mut() else {
        return Err(unsuitable("it is not a request body"));
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
        Some(last) if has_open_calls(last) => Err(unsuitable("tool calls wait for their results")),
        Some(_) => Ok(Some(body)),
    }
}

/// Returns whether a message ends in calls that are not answered.
fn has_open_calls(message: &Value) -> bool {
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
fn push_element(body: &mut Value, list: &str, element: Value) {
    if let Some(list) = body.get_mut(list).and_then(Value::as_array_mut) {
        list.push(element);
    }
}

/// Sets a field of a body.
fn set_field(body: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(fields) = body.as_object_mut() {
        fields.insert(field.to_owned(), value.into());
    }
}

fn text_at(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer)?.as_str().map(str::to_owned)
}

fn number_at(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}

fn malformed_answer(what: &str) -> SummarizerError {
    SummarizerError::Malformed(what.to_owned())
}
