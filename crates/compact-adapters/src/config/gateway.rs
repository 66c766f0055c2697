//! The HTTP gateway: where it listens, whom it passes requests on to, and who may use it.
//!
//! No key stands here: those of providers are in variables that this names, and the gateway's own are kept
//! as hashes. Pairs are written `NAME=VALUE`; the gateway reads them when it starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model;

/// The HTTP gateway, `compactctl serve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// The address that it listens on; one that other machines reach needs `gateway.keys`.
    pub listen: String,
    /// The server of OpenAI's paths, or one that speaks like it.
    pub openai_url: String,
    /// The server of Anthropic's paths.
    pub anthropic_url: String,
    /// The server of Gemini's paths.
    pub gemini_url: String,
    /// More servers, each `NAME=URL`, reached by a path that begins with `/NAME/`.
    pub upstreams: Vec<String>,
    /// The environment variables that hold keys of upstreams, each `NAME=VARIABLE`; without one, the client's
    /// own key is passed on.
    pub upstream_keys: Vec<String>,
    /// Who may use it, each `NAME=HASH` as `compactctl serve --new-key NAME` prints it.
    pub keys: Vec<String>,
    /// Who answers when an agent asks for a summary of its history.
    pub answer_compaction: CompactionAnswer,
    /// Whether models may look up what a view leaves out, with two tools that their clients do not see.
    pub offer_recall: bool,
    /// Whether clients are told what their own histories would have cost, not the views that were sent, so that they
    /// compact of their own accord.
    pub nudge_clients: bool,
    /// The largest request that is read, in megabytes.
    pub max_body_mb: u64,
    /// The most sessions that are kept in memory.
    pub max_sessions: u64,
    /// The most memory that they take, in megabytes, roughly.
    pub max_session_mb: u64,
    /// How long requests may take to end when the gateway is told to stop, in seconds.
    pub drain_seconds: u64,
    /// How long a request waits for a database or a bucket that does not answer, in seconds, before it goes out as it
    /// came.
    pub store_timeout_seconds: u64,
}

/// Who answers an agent that asks for a summary of its history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactionAnswer {
    /// The engine, without asking a model.
    #[default]
    Ours,
    /// The model that the agent asks; what its summary lost is added at its end.
    Augment,
    /// The model that the agent asks.
    Pass,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        GatewayConfig {
            listen: "127.0.0.1:8787".to_owned(),
            openai_url: "https://api.openai.com".to_owned(),
            anthropic_url: "https://api.anthropic.com".to_owned(),
            gemini_url: "https://generativelanguage.googleapis.com".to_owned(),
            upstreams: Vec::new(),
            upstream_keys: Vec::new(),
            keys: Vec::new(),
            answer_compaction: CompactionAnswer::Ours,
            offer_recall: false,
            nudge_clients: false,
            max_body_mb: 64,
            max_sessions: 1024,
            max_session_mb: 1024,
            drain_seconds: 30,
            store_timeout_seconds: 5,
        }
    }
}

/// Paths with what their values should be.
pub(super) fn check_gateway(gateway: &GatewayConfig) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    for (url, path) in [
        (&gateway.openai_url, "gateway.openai_url"),
        (&gateway.anthropic_url, "gateway.anthropic_url"),
        (&gateway.gemini_url, "gateway.gemini_url"),
    ] {
        if !model::is_url(Some(url)) {
            wrong.push((path, model::URL_EXPECTED.to_owned()));
        }
    }
    for (number, path) in [
        (gateway.max_body_mb, "gateway.max_body_mb"),
        (gateway.max_sessions, "gateway.max_sessions"),
        (gateway.max_session_mb, "gateway.max_session_mb"),
    ] {
        if !(1..=1 << 20).contains(&number) {
            wrong.push((path, "must be between 1 and 1048576".to_owned()));
        }
    }
    if !(1..=3600).contains(&gateway.store_timeout_seconds) {
        let expected = "must be between 1 and 3600".to_owned();
        wrong.push(("gateway.store_timeout_seconds", expected));
    }
    wrong
}
