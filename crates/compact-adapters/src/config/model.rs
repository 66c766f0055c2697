//! The models that may be asked: a summarizer, an embedder. Nothing is sent unless one is chosen.

use std::time::Duration;

use compact_core::token::Tokens;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::llm::{
    self, ApiKey, Endpoint, HttpEmbedder, HttpSummarizer, RequestMode, SummarizerWire,
};

/// Who writes the summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SummarizerConfig {
    /// Who writes the summary: the engine itself (`extractive`), or a model, which is sent the redacted
    /// conversation.
    pub kind: SummarizerKind,
    /// The URL of the model; unset, its provider's.
    pub url: Option<String>,
    /// The model; unset, the session's.
    pub model: Option<String>,
    /// The environment variable that holds the key; unset, the provider's usual one.
    pub api_key_env: Option<String>,
    /// The model's context window in tokens; unset, the registry's for the model.
    pub window: Option<u64>,
    /// Whether the summary is requested separately, or appended to the conversation's own request so that
    /// the provider's prompt cache is used.
    pub request: SummarizerRequestKind,
    /// The longest that one answer may take, retries included, in seconds.
    pub timeout_seconds: f64,
    /// The longest that connecting may take, in seconds.
    pub connect_timeout_seconds: f64,
    /// How often a request is repeated if the server is overloaded or the connection fails.
    pub retries: u32,
    /// The maximum number of requests for one summary; the ledger covers the rest.
    pub max_requests: u32,
}

impl Default for SummarizerConfig {
    fn default() -> Self {
        SummarizerConfig {
            kind: SummarizerKind::Extractive,
            url: None,
            model: None,
            api_key_env: None,
            window: None,
            request: SummarizerRequestKind::Standalone,
            timeout_seconds: llm::TIMEOUT.as_secs_f64(),
            connect_timeout_seconds: llm::CONNECT_TIMEOUT.as_secs_f64(),
            retries: 2,
            max_requests: 8,
        }
    }
}

/// Who writes the summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummarizerKind {
    /// The engine itself: deterministic, no model, no network.
    #[default]
    Extractive,
    /// A chat model of OpenAI, or of any server that speaks like it.
    #[serde(rename = "openai")]
    OpenAi,
    /// A model behind OpenAI's Responses.
    Responses,
    /// A model behind Anthropic's Messages.
    Anthropic,
    /// OpenAI's own compaction, read out as text.
    #[serde(rename = "openai_compaction")]
    OpenAiCompaction,
    /// Anthropic's own compaction, on demand.
    AnthropicCompaction,
}

/// The kind of request that asks a model for a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummarizerRequestKind {
    /// In a request of its own.
    #[default]
    Standalone,
    /// Behind the conversation's request.
    CacheAligned,
}

/// How `semantic` pruning finds out what messages are about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EmbeddingsConfig {
    /// How it is found out: by their words, or by a model, which is sent the redacted texts.
    pub kind: EmbeddingsKind,
    /// The URL of the model; unset, its provider's.
    pub url: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The environment variable that holds the key; unset, the provider's usual one.
    pub api_key_env: Option<String>,
    /// The longest that an answer may take, retries included, in seconds.
    pub timeout_seconds: f64,
}

impl Default for EmbeddingsConfig {
    fn default() -> Self {
        EmbeddingsConfig {
            kind: EmbeddingsKind::Words,
            url: None,
            model: None,
            api_key_env: None,
            timeout_seconds: 30.0,
        }
    }
}

/// How the subject of messages is found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddingsKind {
    /// Their words: no model, no network.
    #[default]
    Words,
    /// An embedding model of OpenAI, or of any server that speaks like it.
    #[serde(rename = "openai")]
    OpenAi,
}

impl SummarizerKind {
    fn wire(self) -> Option<SummarizerWire> {
        Some(match self {
            SummarizerKind::Extractive => return None,
            SummarizerKind::OpenAi => SummarizerWire::Chat,
            SummarizerKind::Responses => SummarizerWire::Responses,
            SummarizerKind::Anthropic => SummarizerWire::Anthropic,
            SummarizerKind::OpenAiCompaction => SummarizerWire::OpenAiCompaction,
            SummarizerKind::AnthropicCompaction => SummarizerWire::AnthropicCompaction,
        })
    }
}

impl SummarizerConfig {
    /// Returns the variable that must hold a key and does not: a provider answers nobody without one, while
    /// a server of one's own may.
    pub fn missing_key(&self) -> Option<&str> {
        let wire = self.kind.wire()?;
        let variable = self.api_key_env.as_deref();
        let needed = self.url.is_none() || variable.is_some();
        let variable = variable.unwrap_or(wire.default_key_variable());
        (needed && ApiKey::from_env(variable).is_none()).then_some(variable)
    }

    /// Returns the model that is to be asked; `None` when the engine writes the summary itself.
    pub fn build(&self) -> Option<HttpSummarizer> {
        let wire = self.kind.wire()?;
        let place = ModelLocation {
            url: self.url.as_deref().unwrap_or(wire.default_url()),
            variable: self
                .api_key_env
                .as_deref()
                .unwrap_or(wire.default_key_variable()),
        };
        let mut endpoint = place.endpoint(self.timeout_seconds);
        endpoint.connect_timeout = Duration::from_secs_f64(self.connect_timeout_seconds);
        endpoint.retries = self.retries;
        Some(HttpSummarizer {
            wire,
            endpoint,
            model: self.model.clone(),
            window: self.window.map(Tokens),
            manner: match self.request {
                SummarizerRequestKind::Standalone => RequestMode::Standalone,
                SummarizerRequestKind::CacheAligned => RequestMode::CacheAligned,
            },
            most_requests: self.max_requests as usize,
        })
    }
}

impl SummarizerConfig {
    /// Returns a model of the same server to talk to; `None` when no server is configured.
    pub fn build_chat_model(&self, model: &str) -> Option<HttpSummarizer> {
        let mut built = self.build()?;
        built.wire = match built.wire {
            SummarizerWire::OpenAiCompaction => SummarizerWire::Responses,
            SummarizerWire::AnthropicCompaction => SummarizerWire::Anthropic,
            wire => wire,
        };
        built.model = Some(model.to_owned());
        built.manner = RequestMode::CacheAligned;
        Some(built)
    }
}

impl EmbeddingsConfig {
    /// Returns the model that is to be asked, if one is.
    pub fn build(&self) -> Option<HttpEmbedder> {
        if self.kind == EmbeddingsKind::Words {
            return None;
        }
        let place = ModelLocation {
            url: self
                .url
                .as_deref()
                .unwrap_or(SummarizerWire::Chat.default_url()),
            variable: self
                .api_key_env
                .as_deref()
                .unwrap_or(SummarizerWire::Chat.default_key_variable()),
        };
        Some(HttpEmbedder {
            endpoint: place.endpoint(self.timeout_seconds),
            model: self.model.clone()?,
        })
    }
}

struct ModelLocation<'a> {
    url: &'a str,
    variable: &'a str,
}

impl ModelLocation<'_> {
    fn endpoint(&self, seconds: f64) -> Endpoint {
        let mut endpoint = Endpoint::new(self.url, ApiKey::from_env(self.variable));
        endpoint.timeout = Duration::from_secs_f64(seconds);
        endpoint
    }
}

/// What is wrong with an address that is none.
pub(super) const URL_EXPECTED: &str = "must begin with http:// or https://";

/// Returns true for an address, and for none.
pub(super) fn is_url(url: Option<&str>) -> bool {
    url.is_none_or(|url| url.starts_with("http://") || url.starts_with("https://"))
}

/// Paths with what their values should be.
pub(super) fn check_models(
    summarizer: &SummarizerConfig,
    embeddings: &EmbeddingsConfig,
) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    let mut expect = |fine: bool, path, message: &str| {
        if !fine {
            wrong.push((path, message.to_owned()));
        }
    };
    let seconds = |s: f64| s > 0.0 && s <= MOST_SECONDS;
    const SECONDS: &str = "must be greater than 0 and at most 86400";
    let url = |url: &Option<String>| is_url(url.as_deref());
    expect(url(&summarizer.url), "summarizer.url", URL_EXPECTED);
    expect(url(&embeddings.url), "embeddings.url", URL_EXPECTED);
    expect(
        seconds(summarizer.timeout_seconds),
        "summarizer.timeout_seconds",
        SECONDS,
    );
    expect(
        seconds(summarizer.connect_timeout_seconds),
        "summarizer.connect_timeout_seconds",
        SECONDS,
    );
    expect(
        seconds(embeddings.timeout_seconds),
        "embeddings.timeout_seconds",
        SECONDS,
    );
    expect(
        summarizer.model.is_none() || summarizer.kind != SummarizerKind::Extractive,
        "summarizer.model",
        "has no effect while summarizer.kind is extractive: set summarizer.kind too",
    );
    expect(
        summarizer.max_requests > 0,
        "summarizer.max_requests",
        "must be at least 1",
    );
    expect(
        summarizer.window.is_none_or(|w| w >= 512),
        "summarizer.window",
        "must be at least 512",
    );
    expect(
        embeddings.kind == EmbeddingsKind::Words || embeddings.model.is_some(),
        "embeddings.kind",
        "needs embeddings.model",
    );
    wrong
}

/// A day: longer than anybody waits.
const MOST_SECONDS: f64 = 86_400.0;
