//! Claude Code's `stream-json`: one object per block of an answer, per batch of results, per turn.

use compact_core::message::{Block, Role};
use compact_core::token::Tokens;
use serde_json::Value;

use super::{About, Activity, End, arguments, failed, kind, owned, said, text, words};
use crate::usage::UsageSource;

pub(super) fn read(value: &Value) -> Vec<Activity> {
    // What a subagent says fills a context of its own.
    if text(value, "parent_tool_use_id").is_some() {
        return Vec::new();
    }
    match kind(value) {
        Some("system") => session(value),
        Some("assistant") => answer(value),
        Some("user") => results(value),
        Some("result") => result(value),
        _ => Vec::new(),
    }
}

fn session(value: &Value) -> Vec<Activity> {
    if text(value, "subtype") != Some("init") {
        return Vec::new();
    }
    vec![Activity::Session(About {
        id: owned(value, "session_id"),
        model: owned(value, "model"),
        window: None,
    })]
}

fn blocks(value: &Value) -> impl Iterator<Item = &Value> {
    let content = value.pointer("/message/content");
    content.and_then(Value::as_array).into_iter().flatten()
}

fn answer(value: &Value) -> Vec<Activity> {
    // Errors are told as if the model had said them; the result tells them again.
    if value.get("is_api_error_message") == Some(&Value::Bool(true)) {
        return Vec::new();
    }
    let blocks: Vec<Block> = blocks(value).filter_map(block).collect();
    let used = UsageSource::AgentMessage.read(value);
    let mut told = Vec::new();
    if !blocks.is_empty() {
        told.push(said(Role::Assistant, blocks));
    }
    told.extend(used.map(|used| Activity::Used(used.into())));
    told
}

fn block(value: &Value) -> Option<Block> {
    match kind(value)? {
        "text" => Some(Block::Text(owned(value, "text")?)),
        "tool_use" => Some(Block::ToolCall {
            id: owned(value, "id")?,
            name: owned(value, "name")?,
            arguments: arguments(value.get("input")),
        }),
        _ => None,
    }
}

fn results(value: &Value) -> Vec<Activity> {
    let results: Vec<Block> = blocks(value)
        .filter(|block| kind(block) == Some("tool_result"))
        .filter_map(|block| {
            Some(Block::ToolResult {
                call: owned(block, "tool_use_id")?,
                content: words(block.get("content")),
                is_error: block.get("is_error") == Some(&Value::Bool(true)),
            })
        })
        .collect();
    match results.is_empty() {
        true => Vec::new(),
        false => vec![said(Role::Tool, results)],
    }
}

fn result(value: &Value) -> Vec<Activity> {
    let mut told = vec![Activity::Session(About {
        id: owned(value, "session_id"),
        window: window(value),
        ..About::default()
    })];
    let sources = [UsageSource::AgentResult, UsageSource::AgentModels];
    let used = sources.iter().filter_map(|source| {
        let object = match source {
            UsageSource::AgentResult => value.get("usage")?,
            _ => value.get("modelUsage")?,
        };
        source.read(object)
    });
    told.extend(used.map(|used| Activity::Used(used.into())));
    told.push(Activity::Ended(end(value)));
    told
}

fn end(value: &Value) -> End {
    if value.get("is_error") != Some(&Value::Bool(true)) {
        return End::Done(owned(value, "result"));
    }
    if text(value, "terminal_reason") == Some("prompt_too_long") {
        return End::TooLong;
    }
    let errors = value.get("errors").and_then(|errors| errors.get(0));
    let said = text(value, "result").or(errors.and_then(Value::as_str));
    failed(
        value,
        said.or(text(value, "subtype")).unwrap_or("no reason"),
    )
}

/// The window of the model that read the most: subagents may use another.
fn window(value: &Value) -> Option<Tokens> {
    let models = value.get("modelUsage")?.as_object()?;
    let number = |model: &Value, key: &str| model.get(key).and_then(Value::as_u64).unwrap_or(0);
    let read = |model: &&Value| {
        number(model, "inputTokens")
            + number(model, "cacheReadInputTokens")
            + number(model, "cacheCreationInputTokens")
    };
    let main = models.values().max_by_key(read)?;
    Some(Tokens(number(main, "contextWindow"))).filter(|window| window.0 > 0)
}
