//! `cargo xtask registry`: limits and prices of models, from the packages that collect them.
//!
//! litellm gives the limits and most prices, genai-prices adds models that it lacks. Versions are
//! pinned, so that two runs write the same bytes; raising one is a change like any other. What both
//! have wrong or do not have is kept by hand in `overrides.json`, which this command never touches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::shell;

const LITELLM: &str = "1.108.4";
const GENAI_PRICES: &str = "0.2.1";

/// Answers of a model below this are not worth a conversation.
const LEAST_INPUT: u64 = 1_000;

/// Totals of OpenAI's models since gpt-5, which litellm gives for the input limit here and there.
const OPENAI_TOTALS: [u64; 2] = [400_000, 1_050_000];

/// Hosts that make the models they serve: their limits are the model's own.
const MAKERS: [&str; 14] = [
    "anthropic",
    "cohere",
    "dashscope",
    "deepseek",
    "gemini",
    "minimax",
    "mistral",
    "moonshot",
    "openai",
    "x-ai",
    "xai",
    "zai",
    "meta",
    "google",
];

/// Name parts and the tokenizer of the models that have them; the first that fits counts.
const TOKENIZERS: &[(&str, &str)] = &[
    ("claude", "claude"),
    ("gemini", "gemini"),
    ("gemma", "gemini"),
    ("deepseek", "deepseek"),
    ("qwen", "qwen"),
    ("qwq", "qwen"),
    ("llama", "llama"),
    ("mistral", "mistral"),
    ("mixtral", "mistral"),
    ("ministral", "mistral"),
    ("magistral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("pixtral", "mistral"),
    ("voxtral", "mistral"),
    ("gpt-oss", "o200k"),
    ("gpt-4o", "o200k"),
    ("gpt-4.1", "o200k"),
    ("gpt-4.5", "o200k"),
    ("gpt-4", "cl100k"),
    ("gpt-3.5", "cl100k"),
    ("gpt-35", "cl100k"),
    ("gpt", "o200k"),
    ("o1", "o200k"),
    ("o3", "o200k"),
    ("o4", "o200k"),
    ("codex", "o200k"),
];

/// A row of the registry.
#[derive(Clone, Debug, PartialEq)]
struct ModelRow {
    name: String,
    input: u64,
    total: Option<u64>,
    output: Option<u64>,
    /// Input, output, cache read, cache write.
    prices: [Option<f64>; 4],
}

/// Writes `crates/compact-core/data/models.json`.
pub(crate) fn write() -> Result<()> {
    let litellm = read_json(&fetch_litellm()?)?;
    let genai = read_json(&fetch_genai_prices()?)?;
    let mut rows = BTreeMap::new();
    add_rows(&mut rows, from_litellm(&litellm)?);
    let listed = rows.len();
    let bare = bare_names(&rows);
    add_rows(&mut rows, bare);
    let known = rows.len();
    let mut others = BTreeMap::new();
    add_rows(&mut others, from_genai(&genai)?);
    add_rows(&mut rows, bare_names(&others));
    let path = shell::repo_root().join("crates/compact-core/data/models.json");
    let text = render(&rows);
    std::fs::write(&path, &text)?;
    println!(
        "{} models ({listed} of litellm {LITELLM}, {} bare names of them, {} more of genai-prices {GENAI_PRICES}), {} KB",
        rows.len(),
        known - listed,
        rows.len() - known,
        text.len() / 1000
    );
    Ok(())
}

fn download_folder() -> Result<PathBuf> {
    let folder = shell::repo_root().join("target/registry");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn read_json(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

/// Returns the table of litellm's wheel.
fn fetch_litellm() -> Result<PathBuf> {
    let folder = download_folder()?;
    let table = folder.join("litellm/model_prices_and_context_window_backup.json");
    let into = folder.display().to_string();
    let package = format!("litellm=={LITELLM}");
    shell::run(
        "python3",
        &[
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            &into,
            &package,
        ],
    )?;
    let wheel = std::fs::read_dir(&folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&format!("litellm-{LITELLM}-")) && name.ends_with(".whl")
        })
        .context("pip downloaded no wheel of litellm")?;
    shell::run(
        "python3",
        &[
            "-m",
            "zipfile",
            "--extract",
            &wheel.display().to_string(),
            &into,
        ],
    )?;
    Ok(table)
}

/// Returns the table of the crate, wherever cargo keeps it.
fn fetch_genai_prices() -> Result<PathBuf> {
    let folder = download_folder()?.join("genai-prices");
    std::fs::create_dir_all(folder.join("src"))?;
    std::fs::write(folder.join("src/lib.rs"), "")?;
    let manifest = folder.join("Cargo.toml");
    std::fs::write(
        &manifest,
        format!(
            "[package]\nname = \"registry-sources\"\nedition = \"2024\"\n[workspace]\n[dependencies]\ngenai-prices = \"={GENAI_PRICES}\"\n"
        ),
    )?;
    let manifest = manifest.display().to_string();
    let arguments = [
        "metadata",
        "--format-version",
        "1",
        "--manifest-path",
        &manifest,
    ];
    let metadata: Value = serde_json::from_str(&shell::output("cargo", &arguments)?)?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    let package = packages.into_iter().flatten().find(|package| {
        package
            .get("name")
            .is_some_and(|name| name == "genai-prices")
    });
    let manifest = package.and_then(|package| package.get("manifest_path")?.as_str());
    let root = manifest.and_then(|path| Path::new(path).parent());
    Ok(root
        .context("cargo fetched no genai-prices")?
        .join("data/prices.json"))
}

/// Normalizes a name as the registry compares names.
fn normalize_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    name.chars().map(plain).collect()
}

/// Adds rows for names that have none yet.
fn add_rows(rows: &mut BTreeMap<String, ModelRow>, more: Vec<ModelRow>) {
    for row in more {
        rows.entry(normalize_name(&row.name)).or_insert(row);
    }
}

fn from_litellm(table: &Value) -> Result<Vec<ModelRow>> {
    let entries = table.as_object().context("litellm's table is no object")?;
    let rows: Vec<ModelRow> = entries
        .iter()
        .filter(|(name, _)| *name != "sample_spec" && !name.contains('*'))
        .filter_map(|(name, entry)| litellm_row(name, entry))
        .collect();
    if rows.len() < 2_000 {
        bail!(
            "litellm's table has only {} models; has its shape changed?",
            rows.len()
        );
    }
    Ok(rows)
}

fn litellm_row(name: &str, entry: &Value) -> Option<ModelRow> {
    let is_text = matches!(
        entry["mode"].as_str(),
        Some("chat" | "responses" | "completion")
    );
    let input = entry["max_input_tokens"]
        .as_u64()
        .filter(|n| *n >= LEAST_INPUT && is_text)?;
    let price = |field: &str| Some(round_price(entry[field].as_f64()? * 1e6));
    let output = entry["max_output_tokens"].as_u64().filter(|n| *n > 0);
    let (input, total) = split_limits(name, input, output);
    Some(ModelRow {
        name: name.to_owned(),
        input,
        total,
        output,
        prices: [
            price("input_cost_per_token"),
            price("output_cost_per_token"),
            price("cache_read_input_token_cost"),
            price("cache_creation_input_token_cost"),
        ],
    })
}

/// Returns the input limit, and the total where the maker states it apart.
fn split_limits(name: &str, input: u64, output: Option<u64>) -> (u64, Option<u64>) {
    let is_openai = name.contains("gpt-5") || name.contains("gpt-6");
    let Some(output) = output.filter(|_| is_openai) else {
        return (input, None);
    };
    if OPENAI_TOTALS.contains(&input) && output < input {
        return (input - output, Some(input));
    }
    let sum = input + output;
    (input, OPENAI_TOTALS.contains(&sum).then_some(sum))
}

/// Dollars per million, without the noise of binary fractions.
fn round_price(price: f64) -> f64 {
    (price * 1e6).round() / 1e6
}

fn from_genai(table: &Value) -> Result<Vec<ModelRow>> {
    let providers = table.as_array().context("genai-prices' table is no list")?;
    let mut rows = Vec::new();
    for provider in providers {
        let host = provider["id"].as_str().unwrap_or_default();
        let models = provider["models"].as_array().cloned().unwrap_or_default();
        rows.extend(models.iter().filter_map(|model| genai_row(host, model)));
    }
    if rows.len() < 500 {
        bail!(
            "genai-prices has only {} models; has its shape changed?",
            rows.len()
        );
    }
    Ok(rows)
}

fn genai_row(host: &str, model: &Value) -> Option<ModelRow> {
    let id = model["id"].as_str()?;
    let input = model["context_window"]
        .as_u64()
        .filter(|n| *n >= LEAST_INPUT)?;
    let prices = match &model["prices"] {
        Value::Array(dated) => dated.last().map_or(&Value::Null, |last| &last["prices"]),
        prices => prices,
    };
    let price = |field: &str| {
        let price = &prices[field];
        price
            .as_f64()
            .or_else(|| price["base"].as_f64())
            .map(round_price)
    };
    // What gives no text answers has no price for them: embeddings, speech.
    price("output_mtok")?;
    Some(ModelRow {
        name: format!("{host}/{id}"),
        input,
        total: None,
        output: None,
        prices: [
            price("input_mtok"),
            price("output_mtok"),
            price("cache_read_mtok"),
            price("cache_write_mtok"),
        ],
    })
}

/// Returns what follows the last slash.
fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns a row for every model that is listed under its hosts' names only: its maker's, else the limit
/// that most hosts agree on.
fn bare_names(rows: &BTreeMap<String, ModelRow>) -> Vec<ModelRow> {
    let mut hosted: BTreeMap<String, Vec<&ModelRow>> = BTreeMap::new();
    for row in rows.values().filter(|row| row.name.contains('/')) {
        hosted
            .entry(normalize_name(base_name(&row.name)))
            .or_default()
            .push(row);
    }
    let unlisted = hosted
        .into_iter()
        .filter(|(name, _)| !rows.contains_key(name));
    unlisted
        .filter_map(|(_, offers)| {
            let agreed = |row: &ModelRow| {
                offers
                    .iter()
                    .filter(|other| other.input == row.input)
                    .count()
            };
            let is_makers = |row: &ModelRow| {
                MAKERS
                    .iter()
                    .any(|maker| row.name.split('/').next() == Some(maker))
            };
            let best = offers.iter().min_by_key(|row| {
                (
                    !is_makers(row),
                    std::cmp::Reverse(agreed(row)),
                    row.input,
                    &row.name,
                )
            })?;
            Some(ModelRow {
                name: base_name(&best.name).to_owned(),
                ..(*best).clone()
            })
        })
        .collect()
}

fn guess_tokenizer(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let base = base_name(&name);
    // Hosts name models after other models: what a name begins with tells more than what it contains.
    let starts = TOKENIZERS.iter().find(|(part, _)| base.starts_with(part));
    let holds = || {
        TOKENIZERS
            .iter()
            .find(|(part, _)| part.len() > 2 && base.contains(part))
    };
    starts
        .or_else(holds)
        .map_or("other", |(_, tokenizer)| tokenizer)
}

/// Returns one row per line: `[name, input, tokenizer, output, [prices], total]`, nothing after the last
/// thing that is known.
fn render(rows: &BTreeMap<String, ModelRow>) -> String {
    let source = format!(
        "litellm {LITELLM} and genai-prices {GENAI_PRICES}, both MIT, see NOTICE; written by `cargo xtask registry`"
    );
    let lines: Vec<String> = rows.values().map(render_row).collect();
    let head = json!({ "source": source }).to_string();
    let head = head.trim_end_matches('}');
    format!("{head},\"models\":[\n{}\n]}}\n", lines.join(",\n"))
}

fn render_row(row: &ModelRow) -> String {
    let has_prices = row.prices.iter().take(2).all(Option::is_some);
    let prices = match has_prices {
        true => trim_nulls(
            row.prices
                .iter()
                .map(|price| price.map_or(Value::Null, price_value)),
        ),
        false => Value::Null,
    };
    let known = [
        json!(row.name),
        json!(row.input),
        json!(guess_tokenizer(&row.name)),
        json!(row.output),
        prices,
        json!(row.total),
    ];
    trim_nulls(known).to_string()
}

/// Returns a list without the nulls at its end.
fn trim_nulls(values: impl IntoIterator<Item = Value>) -> Value {
    let mut values: Vec<Value> = values.into_iter().collect();
    while values.last().is_some_and(Value::is_null) {
        values.pop();
    }
    Value::Array(values)
}

/// Writes a price as `3` instead of `3.0`, since four thousand rows are read on start.
fn price_value(price: f64) -> Value {
    if price.fract() == 0.0 {
        json!(price as u64)
    } else {
        json!(price)
    }
}
