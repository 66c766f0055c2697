//! The small protocol for any other agent: one object per line, each with a `type`.

use compact_core::message::{Block, Role};
use compact_core::token::Tokens;
use serde_json::Value;

use super::{About, Activity, End, Report, arguments, failed, kind, owned, said, text, words};
use crate::usage::UsageSource;

pub(super) fn read(value: &Value) -> Vec<Activity> {
    let told = match kind(value) {
        Some("session") => Some(session(value)),
        Some("text") => owned(value, "text").map(|t| said(Role::Assistant, vec![Block::Text(t)])),
        Some("tool_call") => call(value),
        Some("tool_result") => result(value),
        Some("usage") => used(value),
        Some("result") => Some(Activity::Ended(end(value))),
        _ => None,
    };
    told.into_iter().collect()
}

fn session(value: &Value) -> Activity {
    Activity::Session(About {
        id: owned(value, "id"),
        model: owned(value, "model"),
        window: value.get("window").and_then(Value::as_u64).map(Tokens),
    })
}

fn call(value: &Value) -> Option<Activity> {
    let block = Block::ToolCall {
        id: owned(value, "id")?,
        name: owned(value, "name")?,
        arguments: arguments(value.get("arguments")),
    };
    Some(said(Role::Assistant, vec![block]))
}

fn result(value: &Value) -> Option<Activity> {
    let block = Block::ToolResult {
        call: owned(value, "id")?,
        content: words(value.get("content")),
        is_error: value.get("is_error") == Some(&Value::Bool(true)),
    };
    Some(said(Role::Tool, vec![block]))
}

fn used(value: &Value) -> Option<Activity> {
    let measures = value.get("measures").cloned();
    Some(Activity::Used(Report {
        usage: UsageSource::AgentResult.read(value)?.usage,
        measures: measures.and_then(|name| serde_json::from_value(name).ok()),
    }))
}

fn end(value: &Value) -> End {
    match value.get("is_error") == Some(&Value::Bool(true)) {
        false => End::Done(owned(value, "text")),
        true => failed(value, text(value, "message").unwrap_or("no reason")),
    }
}
