//! The registry: limits, prices and tokenizers of known models, parsed when first asked.
//!
//! Names differ by vendor, date and taste (`openai/GPT-4o-2024-08-06`, `us.anthropic.…-v1:0`). A name
//! is lowered, its separators are made equal, and it is looked up whole, then ever shorter, cut at
//! separators only: `o1-2024-12-17` finds `o1`, `turbo1` finds nothing.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// What is known about a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Its usual name.
    pub name: String,
    /// The most tokens a prompt may hold.
    pub input: u64,
    /// Prompt and answer together, where the vendor states it apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// The most tokens an answer may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// What it costs, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The family of its tokenizer; `o200k` and `cl100k` can be counted exactly.
    pub tokenizer: String,
    /// Other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

/// US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Prompt tokens that no cache held.
    pub input: f64,
    /// Answer tokens.
    pub output: f64,
    /// Prompt tokens read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Prompt tokens written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

#[derive(Default, Deserialize)]
struct File {
    models: Vec<Model>,
}

static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    // A file that does not parse is caught by the tests; at run time it means an empty registry.
    let file: File =
        serde_json::from_str(include_str!("../../data/models.json")).unwrap_or_default();
    file.models
});

static BY_NAME: LazyLock<HashMap<String, &'static Model>> = LazyLock::new(|| {
    let names = |model: &'static Model| {
        model
            .aliases
            .iter()
            .chain([&model.name])
            .map(move |name| (normal(name), model))
    };
    MODELS.iter().flat_map(names).collect()
});

/// Every known model, by name.
pub fn models() -> &'static [Model] {
    &MODELS
}

/// The model that a name means, however a vendor spells it.
pub fn find(name: &str) -> Option<&'static Model> {
    spellings(name).find_map(|spelling| longest_known(&normal(spelling)))
}

/// The name without vendor paths, fine-tuning marks and dotted vendor or region prefixes.
fn spellings(name: &str) -> impl Iterator<Item = &str> {
    let base = name.rsplit('/').next().unwrap_or(name).trim();
    let base = base.strip_prefix("ft:").unwrap_or(base);
    std::iter::successors(Some(base), |rest| {
        let (prefix, rest) = rest.split_once('.')?;
        let vendor = prefix.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
        vendor.then_some(rest)
    })
}

/// Lower case, one kind of separator.
fn normal(name: &str) -> String {
    let plain = |c: char| {
        if c.is_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    name.chars().map(plain).collect()
}

fn longest_known(name: &str) -> Option<&'static Model> {
    let mut ever_shorter = std::iter::successors(Some(name), |name| Some(name.rsplit_once('-')?.0));
    ever_shorter.find_map(|name| BY_NAME.get(name).copied())
}
