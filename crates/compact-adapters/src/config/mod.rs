//! Configuration: what a user may decide, from a file, the environment and the command line.
//!
//! Defaults < profile < file < `COMPACT_*` variables < flags, each key on its own: a variable that
//! changes one key of `policy` leaves the others as the file has them. No file is needed. The types
//! below are the only list of keys; validation, `config show`, the JSON Schema and the reference in
//! `docs/config.md` are derived from them.

mod error;
mod field;
mod file;
mod layer;
mod model;
mod reference;
mod source;
#[cfg(test)]
mod tests;
mod validate;

use std::path::PathBuf;

use compact_core::policy::Policy;
use compact_core::profile::Profile;
use compact_core::redact::RedactionRules;
use compact_core::token::Tokens;
use compact_core::window::Window;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimator;

pub use error::{ConfigError, Problem};
pub use field::{Field, Kind, fields};
pub use layer::{Effective, Loaded, Origin};
pub use model::{Embeddings, EmbeddingsKind, RequestManner, Summarizer, SummarizerKind};
pub use reference::reference_markdown;
pub use source::{Flag, Sources};

/// A commented file that sets every key, as `config init` writes it.
pub const EXAMPLE: &str = include_str!("../../../../compact.example.yaml");

/// Everything that can be configured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The model whose window counts; unset, the one that the transcript names.
    pub model: Option<String>,
    /// The window in tokens; unset, the registry's for the model, else 128,000.
    pub max_context_tokens: Option<u64>,
    /// The named bundle of policy values to start from.
    pub profile: Profile,
    /// How tokens are counted.
    pub estimator: estimator::Choice,
    /// When and how a conversation is compacted.
    pub policy: Policy,
    /// Who writes the summary.
    pub summarizer: Summarizer,
    /// Who tells what messages are about.
    pub embeddings: Embeddings,
    /// Who is told about it.
    pub telemetry: Telemetry,
    /// Where originals, receipts and sessions are kept.
    pub storage: Storage,
    /// What is taken out of text before it crosses a boundary.
    pub redaction: RedactionRules,
}

/// Who is told about compactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Where events go.
    pub exporter: Exporter,
    /// How the console writes them.
    pub format: EventFormat,
}

/// Where events go (S2-128).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exporter {
    /// To standard error.
    #[default]
    Console,
    /// To an OpenTelemetry collector.
    Otlp,
    /// To a function of the program that embeds Compact.
    Custom,
    /// Nowhere.
    None,
}

/// How the console writes events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventFormat {
    /// A line to read.
    #[default]
    Human,
    /// A line of JSON.
    Json,
}

/// Where originals, receipts and sessions are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Storage {
    /// What keeps the originals.
    pub adapter: StorageAdapter,
    /// The folder that holds them; unset, one in the user's data directory.
    pub path: Option<PathBuf>,
    /// The folder of session transcripts and of what profile `hard-reset` leaves beside them; unset,
    /// `sessions` in the folder above. `VT_SESSION_DIR` sets it too.
    pub transcripts: Option<PathBuf>,
    /// What must be kept.
    pub archive: Archive,
}

/// What keeps the originals (S2-129).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageAdapter {
    /// A folder.
    #[default]
    Fs,
    /// A bucket that speaks S3.
    S3,
    /// A store of the program that embeds Compact.
    Custom,
    /// Nothing: what a view leaves out is lost.
    None,
}

/// What must be kept (C-29).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Archive {
    /// Whether a compaction without an archive is refused; if not, an event warns of it.
    pub required: bool,
}

impl Default for Archive {
    fn default() -> Self {
        Archive { required: true }
    }
}

impl Config {
    /// The window for a conversation whose transcript names `model`: what is configured wins.
    pub fn window(&self, model: Option<&str>) -> Window {
        let model = self.model.as_deref().or(model);
        Window::of(self.max_context_tokens.map(Tokens), model)
    }

    /// The JSON Schema of a configuration file.
    pub fn schema() -> serde_json::Value {
        let mut schema = schemars::schema_for!(Config).to_value();
        if let Some(root) = schema.as_object_mut() {
            root.insert("title".to_owned(), "Compact configuration".into());
        }
        schema
    }
}
