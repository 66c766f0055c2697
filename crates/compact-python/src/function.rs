//! Functions that need no engine: they count, validate and load configurations.

use std::path::PathBuf;
use std::str::FromStr;

use compact::config::{self, Config, ConfigSources};
use compact::event::ConsoleFormat;
use compact::format::Format;
use compact::format::usage::UsageSource;
use compact::format::validate::{Provider, Strictness, check};
use compact::message::EntryHash;
use compact::token::{self, EstimatorExt, TokenAccount, TokenCache, WindowSource};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use serde_json::{Value, json};

use crate::exchange::ClientHistory;
use crate::failure::{ErrorClass, error_with_causes, error_with_message};

/// Finds a format by its name; fails for an unknown one.
pub(crate) fn format_named(name: &str) -> PyResult<Format> {
    Format::from_str(name).map_err(|error| error_with_causes(ErrorClass::Format, &error))
}

/// Finds a source of usage reports by its name; fails for an unknown one.
pub(crate) fn source_named(name: &str) -> PyResult<UsageSource> {
    Ok(match name {
        "openai-chat" => UsageSource::OpenAiChat,
        "openai-responses" => UsageSource::OpenAiResponses,
        "anthropic" => UsageSource::Anthropic,
        "gemini" => UsageSource::Gemini,
        "claude-agent-result" => UsageSource::AgentResult,
        "claude-agent-message" => UsageSource::AgentMessage,
        "claude-agent-models" => UsageSource::AgentModels,
        _ => {
            let message = format!(
                "unknown usage source `{name}`; use one of openai-chat, openai-responses, anthropic, \
                 gemini, claude-agent-message, claude-agent-result, claude-agent-models"
            );
            return Err(error_with_message(ErrorClass::Format, &message));
        }
    })
}

fn estimator_named(
    name: &str,
    model: Option<&str>,
) -> PyResult<std::sync::Arc<dyn compact::token::Estimator>> {
    token::by_name(name, model).map_err(|error| error_with_causes(ErrorClass::Config, &error))
}

/// Counts the tokens of a text.
#[pyfunction]
#[pyo3(signature = (text, estimator, model=None))]
pub(crate) fn count_text(
    py: Python<'_>,
    text: &str,
    estimator: &str,
    model: Option<&str>,
) -> PyResult<u64> {
    let estimator = estimator_named(estimator, model)?;
    Ok(py.detach(|| estimator.to_tokens(estimator.count_units(text)).0))
}

/// Counts the tokens of a conversation, in total and by what they are spent on, as JSON.
#[pyfunction]
#[pyo3(signature = (format, head, list, items, estimator, model=None))]
pub(crate) fn count_conversation(
    py: Python<'_>,
    format: Option<&str>,
    head: String,
    list: String,
    items: Vec<PyBackedStr>,
    estimator: &str,
    model: Option<&str>,
) -> PyResult<String> {
    let estimator = estimator_named(estimator, model)?;
    let history = ClientHistory {
        format: format.map(format_named).transpose()?,
        head,
        list,
        items,
    };
    let account = py.detach(|| {
        let conversation = history.parse()?.conversation;
        let hashes = EntryHash::from_entries(&conversation.entries);
        let mut cache = TokenCache::default();
        Ok::<_, PyErr>(TokenAccount::count_conversation(
            &conversation,
            &hashes,
            &*estimator,
            &mut cache,
        ))
    })?;
    let answer = json!({
        "total": account.total(),
        "system": account.system,
        "tools": account.tools,
        "history": account.history,
        "tool_results": account.tool_results,
        "memory": account.memory,
        "user_input": account.user_input,
    });
    Ok(answer.to_string())
}

/// Returns what a provider would refuse in a request body, as a JSON list.
#[pyfunction]
#[pyo3(signature = (body, provider, strict=false))]
pub(crate) fn validate_body(
    py: Python<'_>,
    body: &str,
    provider: &str,
    strict: bool,
) -> PyResult<String> {
    let provider =
        Provider::from_str(provider).map_err(|e| error_with_causes(ErrorClass::Format, &e))?;
    let strictness = match strict {
        true => Strictness::Strict,
        false => Strictness::Vendor,
    };
    let violations = py
        .detach(|| check(provider, strictness, body.as_bytes()))
        .map_err(|error| error_with_causes(ErrorClass::Format, &error))?;
    let violations: Vec<Value> = violations
        .iter()
        .map(|violation| {
            json!({
                "rule": violation.rule.id,
                "name": violation.rule.name,
                "entry": violation.entry,
                "message": violation.message,
            })
        })
        .collect();
    Ok(json!(violations).to_string())
}

/// Detects the format of a request body or a list of messages.
#[pyfunction]
pub(crate) fn detect_format(body: &str) -> PyResult<String> {
    let format = compact::format::detect(body.as_bytes());
    let format = format.map_err(|error| error_with_causes(ErrorClass::Format, &error))?;
    Ok(format.name().to_owned())
}

/// Reads a provider's usage report as JSON with one name for each count; `None` if it reports nothing.
#[pyfunction]
pub(crate) fn read_usage(source: &str, report: &str) -> PyResult<Option<String>> {
    let value: Value =
        serde_json::from_str(report).map_err(|e| error_with_causes(ErrorClass::Format, &e))?;
    let reported = source_named(source)?.read(&value);
    Ok(reported.map(|reported| {
        let answer = json!({
            "input_tokens": reported.usage.input_tokens,
            "output_tokens": reported.usage.output_tokens,
            "cache_read_tokens": reported.usage.cache_read_tokens,
            "cache_creation_tokens": reported.usage.cache_creation_tokens,
            "prompt_tokens": reported.usage.prompt_tokens(),
            "semantics": reported.semantics,
        });
        answer.to_string()
    }))
}

/// Loads a configuration from a file and variables; returns it as JSON, and warnings.
#[pyfunction]
#[pyo3(signature = (file=None, env=Vec::new(), discover=false))]
pub(crate) fn load_config(
    file: Option<PathBuf>,
    env: Vec<(String, String)>,
    discover: bool,
) -> PyResult<(String, Vec<String>)> {
    let sources = match (file, discover) {
        (file, true) => ConfigSources::discover(file),
        (Some(file), false) => ConfigSources::from_file(file),
        (None, false) => ConfigSources::default(),
    };
    let loaded = ConfigSources { env, ..sources }
        .load()
        .map_err(|error| error_with_causes(ErrorClass::Config, &error))?;
    let mut config = loaded.config;
    let window = config.window(None);
    if window.source == WindowSource::Explicit {
        config.max_context_tokens = Some(window.tokens.0);
    }
    let rules = &mut config.redaction;
    rules.patterns.append(&mut rules.foreign_patterns);
    Ok((json!(config).to_string(), loaded.warnings))
}

/// Parses a configuration that a program built as JSON; error messages name it `place`.
pub(crate) fn parse_config(place: &str, json: &str) -> PyResult<Config> {
    let wrong = |error: &dyn std::error::Error| error_with_causes(ErrorClass::Config, error);
    let sources = config::sources_from_json(place, json).map_err(|error| wrong(&error))?;
    Ok(sources.load().map_err(|error| wrong(&error))?.config)
}

/// Formats an event as a line for people.
#[pyfunction]
pub(crate) fn format_event(event: &str) -> PyResult<String> {
    let event: Value =
        serde_json::from_str(event).map_err(|e| error_with_causes(ErrorClass::Format, &e))?;
    Ok(ConsoleFormat::Human.format_event(&event))
}
