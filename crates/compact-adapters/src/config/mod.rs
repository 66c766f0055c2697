//! Configuration: what a user may decide, from files, the environment and the command line.
//!
//! Defaults < profile < user's file < project's file < `COMPACT_*` variables < flags, each key on its
//! own: a variable that changes one key of `policy` leaves the others as the files have them. No file is
//! needed. A project's file decides little until its user trusts it (`project`, `trust`). The types below
//! are the only list of keys; validation, `config show`, the JSON Schema and the reference in
//! `docs/config.md` are derived from them.

mod error;
mod field;
mod file;
mod gateway;
mod layer;
mod model;
mod project;
mod reference;
mod source;
mod starter;
mod storage;
#[cfg(test)]
mod tests;
mod trust;
mod validate;

use compact_core::policy::Policy;
use compact_core::profile::Profile;
use compact_core::redact::RedactionRules;
use compact_core::token::Tokens;
use compact_core::window::Window;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimator;
#[cfg(feature = "otlp")]
use crate::exporter::otlp;

pub use error::{ConfigError, ConfigProblem};
pub use field::{Field, FieldKind, all_fields};
pub use file::FileText;
pub use gateway::{CompactionAnswer, GatewayConfig};
pub use layer::{EffectiveValue, FileReview, IgnoredKey, LoadedConfig, LoadedFile, ValueOrigin};
pub use model::{
    EmbeddingsConfig, EmbeddingsKind, SummarizerConfig, SummarizerKind, SummarizerRequestKind,
};
pub use project::{Allowance, find_allowance};
pub use reference::reference_markdown;
pub use source::{ConfigFile, ConfigFlag, ConfigSources, FileRole, RUN_VARIABLE};
pub use starter::starter_file;
pub use storage::{
    AddressingStyle, ArchiveConfig, IndexingMoment, RetentionConfig, S3Config,
    ServerSideEncryption, StorageAdapter, StorageConfig,
};
pub use trust::TrustStore;

/// A commented file that sets every key, as the founding documents show it.
pub const EXAMPLE: &str = include_str!("../../compact.example.yaml");

/// Everything that can be configured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The model; unset, the one that the transcript names.
    pub model: Option<String>,
    /// The window in tokens; unset, the registry's for the model, else 128,000.
    pub max_context_tokens: Option<u64>,
    /// The named bundle of policy values to start from.
    pub profile: Profile,
    /// How tokens are counted.
    pub estimator: estimator::EstimatorChoice,
    /// When and how a conversation is compacted.
    pub policy: Policy,
    /// Who writes the summary.
    pub summarizer: SummarizerConfig,
    /// Who tells what messages are about.
    pub embeddings: EmbeddingsConfig,
    /// The exporter of events.
    pub telemetry: TelemetryConfig,
    /// Where originals, receipts and sessions are kept.
    pub storage: StorageConfig,
    /// What is taken out of text before it crosses a boundary.
    pub redaction: RedactionRules,
    /// The HTTP gateway.
    pub gateway: GatewayConfig,
    /// The most that the window may be, whoever says how large it is: what a project's file wants
    /// where its user said nothing.
    #[serde(skip)]
    pub window_limit: Option<u64>,
}

/// Who is told about compactions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// Where events go.
    pub exporter: ExporterKind,
    /// The format of events on the console.
    pub format: EventFormat,
    /// The collector. OpenTelemetry's own variables apply to what is not set here.
    pub otlp: OtlpConfig,
}

/// Where the collector is. OpenTelemetry's own variables apply beside these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OtlpConfig {
    /// The collector's address; unset, `OTEL_EXPORTER_OTLP_ENDPOINT`, else port 4318 (4317 for gRPC) of this
    /// machine.
    pub endpoint: Option<String>,
    /// How requests travel; unset, `OTEL_EXPORTER_OTLP_PROTOCOL`, else HTTP.
    pub protocol: Option<OtlpProtocol>,
}

/// The protocol of requests to a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OtlpProtocol {
    /// OTLP over gRPC.
    Grpc,
    /// Protocol buffers over HTTP.
    Http,
}

/// The exporter of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExporterKind {
    /// Lines on standard error.
    #[default]
    Console,
    /// To an OpenTelemetry collector.
    Otlp,
    /// To a function of the program that embeds Compact.
    Custom,
    /// No exporter.
    None,
}

/// The format of events on the console.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventFormat {
    /// A line to read.
    #[default]
    Human,
    /// A line of JSON.
    Json,
}

#[cfg(feature = "otlp")]
impl OtlpConfig {
    /// Returns how to reach the collector, OpenTelemetry's variables of this process taken in.
    pub fn collector_settings(&self) -> otlp::CollectorSettings {
        let protocol = self.protocol.map(|protocol| match protocol {
            OtlpProtocol::Grpc => otlp::CollectorProtocol::Grpc,
            OtlpProtocol::Http => otlp::CollectorProtocol::Http,
        });
        let text = |s: std::ffi::OsString| s.into_string().ok();
        let variables = std::env::vars_os().filter_map(|(n, v)| Some((text(n)?, text(v)?)));
        otlp::CollectorSettings::new(self.endpoint.as_deref(), protocol, variables)
    }
}

impl Config {
    /// Returns the window for a conversation whose transcript names `model`: what is configured wins.
    pub fn window(&self, model: Option<&str>) -> Window {
        let model = self.model.as_deref().or(model);
        let window = Window::for_model(self.max_context_tokens.map(Tokens), model);
        window.at_most(self.window_limit.map(Tokens))
    }

    /// Returns the JSON Schema of a configuration file.
    pub fn schema() -> serde_json::Value {
        let mut schema = schemars::schema_for!(Config).to_value();
        if let Some(root) = schema.as_object_mut() {
            root.insert("title".to_owned(), "Compact configuration".into());
        }
        schema
    }
}
