//! The registry: limits, prices and tokenizers of known models, each parsed when it is asked for.
//!
//! `models.json` is generated (`cargo xtask registry`), `overrides.json` is kept by hand and wins.
//! Names differ by vendor, date and taste (`openai/GPT-4o-2024-08-06`, `us.anthropic.…-v1:0`). A name
//! is lowered, its separators are made equal, and it is looked up whole, then without the hosts
//! before it, then ever shorter, cut at separators only: `o1-next` finds `o1`, `turbo1` finds nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// What is known about a model. A row of the files is a list of these in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Its name, with the host before it where the limits or prices are the host's.
    pub name: &'static str,
    /// The most tokens a prompt may hold.
    pub input: u64,
    /// The family of its tokenizer; `o200k` and `cl100k` can be counted exactly.
    pub tokenizer: &'static str,
    /// The most tokens an answer may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// What it costs, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<ModelPrice>,
    /// Prompt and answer together, where the maker states it apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Other names.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<&'static str>,
    /// Whether its reasoning is bound to the exact prompt before it, so that editing the prompt
    /// makes the reasoning after the edit invalid.
    #[serde(skip_deserializing)]
    pub binds_thinking: bool,
}

/// US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelPrice {
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

impl ModelPrice {
    /// What a request cost; where a cache has no price of its own, the prompt's counts.
    pub fn request_cost(&self, usage: &Usage) -> f64 {
        let (read, write) = (self.cache_read, self.cache_write);
        let dollars = usage.input_tokens as f64 * self.input
            + usage.output_tokens as f64 * self.output
            + usage.cache_read_tokens as f64 * read.unwrap_or(self.input)
            + usage.cache_creation_tokens as f64 * write.unwrap_or(self.input);
        dollars / 1e6
    }
}

/// What is kept by hand.
#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct ModelOverrides {
    models: Vec<ModelInfo>,
    /// Other names, with the name they stand for.
    aliases: BTreeMap<&'static str, &'static str>,
    /// Parts of the names of models that bind their reasoning.
    binds_thinking: Vec<&'static str>,
}

/// The rows as text, in the order of their normal names: a row is parsed when it is asked for, so
/// that thousands of models cost nothing to have.
struct ModelRegistry {
    rows: Vec<&'static str>,
    by_hand: ModelOverrides,
}

static REGISTRY: LazyLock<ModelRegistry> = LazyLock::new(|| ModelRegistry {
    rows: include_str!("../../data/models.json")
        .lines()
        .filter(|line| line.starts_with('['))
        .map(|line| line.trim_end_matches(','))
        .collect(),
    // A file that does not parse is caught by the tests; at run time it means nothing by hand.
    by_hand: serde_json::from_str(include_str!("../../data/overrides.json")).unwrap_or_default(),
});

static MODELS: LazyLock<Vec<ModelInfo>> = LazyLock::new(|| {
    let by_hand = REGISTRY.by_hand.models.iter();
    let mut keys: BTreeSet<String> = by_hand.map(|model| normal(model.name)).collect();
    keys.extend(REGISTRY.rows.iter().map(|row| normal(name_of(row))));
    keys.iter().filter_map(|key| REGISTRY.get(key)).collect()
});

impl ModelRegistry {
    /// The model of a normal name: the hand's, an alias's, the file's.
    fn get(&self, key: &str) -> Option<ModelInfo> {
        let by_hand = &self.by_hand;
        let is_named = |model: &&ModelInfo| normal(model.name) == key;
        let alias = by_hand
            .aliases
            .iter()
            .find(|(alias, _)| normal(alias) == key);
        let mut model = match (by_hand.models.iter().find(is_named), alias) {
            (Some(model), _) => model.clone(),
            (None, Some((_, name))) => return self.get(&normal(name)),
            (None, None) => self.row(key)?,
        };
        let aliases = by_hand.aliases.iter();
        let own = aliases.filter(|(_, name)| **name == model.name);
        model.aliases = own.map(|(alias, _)| *alias).collect();
        model.binds_thinking = by_hand.binds_thinking.iter().any(|part| key.contains(part));
        Some(model)
    }

    fn row(&self, key: &str) -> Option<ModelInfo> {
        let found = |row: &&'static str| normal(name_of(row)).as_str().cmp(key);
        let at = self.rows.binary_search_by(found).ok()?;
        serde_json::from_str(self.rows.get(at)?).ok()
    }
}

/// The name in a row.
fn name_of(row: &str) -> &str {
    row.split('"').nth(1).unwrap_or_default()
}

/// Every known model, by name; those of one host stand together.
pub fn models() -> &'static [ModelInfo] {
    &MODELS
}

/// The model that a name means, however a vendor spells it.
pub fn find_model(name: &str) -> Option<ModelInfo> {
    let name = name.trim();
    hosts_dropped(name)
        .find_map(|name| REGISTRY.get(&normal(name)))
        .or_else(|| spellings(name).find_map(|name| longest_known(&normal(name))))
}

/// The name whole, then without its first, second … path segment.
fn hosts_dropped(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |rest| Some(rest.split_once('/')?.1))
}

/// The name without its path, then without fine-tuning marks and dotted vendor or region prefixes.
fn spellings(name: &str) -> impl Iterator<Item = &str> {
    let base = name.rsplit('/').next().unwrap_or(name);
    let tuned = base.strip_prefix("ft:");
    let dotted = std::iter::successors(Some(tuned.unwrap_or(base)), |rest| {
        let (prefix, rest) = rest.split_once('.')?;
        let is_vendor = prefix.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
        is_vendor.then_some(rest)
    });
    tuned.map(|_| base).into_iter().chain(dotted)
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

fn longest_known(name: &str) -> Option<ModelInfo> {
    let mut ever_shorter = std::iter::successors(Some(name), |name| Some(name.rsplit_once('-')?.0));
    ever_shorter.find_map(|name| REGISTRY.get(name))
}
