//! Claude Code's `stream-json`: one object per block of an answer, per batch of results, per turn.

use compact_core::message::{Block, Role};
use compact_core::token::Tokens;
use serde_json::Value;

use super::{
    AgentActivity, SessionDetails, TurnEnd, arguments_text, content_text, event_type, failed_end,
    message_activity, owned_member, string_member,
};
use crate::usage::UsageSource;

pub(super) fn read(value: &Value) -> Vec<AgentActivity> {
    // What a subagent says fills a context of its own.
    if string_member(value, "parent_tool_use_id").is_some() {
        return Vec::new();
    }
    match event_type(value) {
        Some("system") => read_session(value),
        Some("assistant") => read_answer(value),
        Some("user") => read_results(value),
        Some("result") => read_result(value),
        _ => Vec::new(),
    }
}

fn read_session(value: &Value) -> Vec<AgentActivity> {
    if string_member(value, "subtype") != Some("init") {
        return Vec::new();
    }
    vec![AgentActivity::Session(SessionDetails {
        id: owned_member(value, "session_id"),
        model: owned_member(value, "model"),
        window: None,
    })]
}

fn content_blocks(value: &Value) -> impl Iterator<Item = &Value> {
    let content = value.pointer("/message/content");
    content.and_then(Value::as_array).into_iter().flatten()
}

fn read_answer(value: &Value) -> Vec<AgentActivity> {
    // Errors are told as if the model had said them; the result tells them again.
    if value.get("is_api_error_message") == Some(&Value::Bool(true)) {
        return Vec::new();
    }
    let blocks: Vec<Block> = content_blocks(value).filter_map(read_block).collect();
    let used = UsageSource::AgentMessage.read(value);
    let mut told = Vec::new();
    if !blocks.is_empty() {
        told.push(message_activity(Role::Assistant, blocks));
    }
    told.extend(used.map(|used| AgentActivity::Used(used.into())));
    told
}

fn read_block(value: &Value) -> Option<Block> {
    match event_type(value)? {
        "text" => Some(Block::Text(owned_member(value, "text")?)),
        "tool_use" => Some(Block::ToolCall {
            id: owned_member(value, "id")?,
            name: owned_member(value, "name")?,
            arguments: arguments_text(value.get("input")),
        }),
        _ => None,
    }
}

fn read_results(value: &Value) -> Vec<AgentActivity> {
    let results: Vec<Block> = content_blocks(value)
        .filter(|block| event_type(block) == Some("tool_result"))
        .filter_map(|block| {
            Some(Block::ToolResult {
                call: owned_member(block, "tool_use_id")?,
                content: content_text(block.get("content")),
                is_error: block.get("is_error") == Some(&Value::Bool(true)),
            })
        })
        .collect();
    match results.is_empty() {
        true => Vec::new(),
        false => vec![message_activity(Role::Tool, results)],
    }
}

fn read_result(value: &Value) -> Vec<AgentActivity> {
    let mut told = vec![AgentActivity::Session(SessionDetails {
        id: owned_member(value, "session_id"),
        window: window(value),
        ..SessionDetails::default()
    })];
    let sources = [UsageSource::AgentResult, UsageSource::AgentModels];
    let used = sources.iter().filter_map(|source| {
        let object = match source {
            UsageSource::AgentResult => value.get("usage")?,
            _ => value.get("modelUsage")?,
        };
        source.read(object)
    });
    told.extend(used.map(|used| AgentActivity::Used(used.into())));
    told.push(AgentActivity::Ended(turn_end(value)));
    told
}

fn turn_end(value: &Value) -> TurnEnd {
    if value.get("is_error") != Some(&Value::Bool(true)) {
        return TurnEnd::Done(owned_member(value, "result"));
    }
    if string_member(value, "terminal_reason") == Some("prompt_too_long") {
        return TurnEnd::TooLong;
    }
    let errors = value.get("errors").and_then(|errors| errors.get(0));
    let said = string_member(value, "result").or(errors.and_then(Value::as_str));
    failed_end(
        value,
        said.or(string_member(value, "subtype"))
            .unwrap_or("no reason"),
    )
}

/// Returns the window of the model that read the most: subagents may use another.
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
