//! The small protocol for any other agent: one object per line, each with a `type`.

use compact_core::message::{Block, Role};
use compact_core::token::Tokens;
use serde_json::Value;

use super::{
    AgentActivity, SessionDetails, TurnEnd, UsageReport, arguments_text, content_text, event_type,
    failed_end, message_activity, owned_member, string_member,
};
use crate::usage::UsageSource;

pub(super) fn read(value: &Value) -> Vec<AgentActivity> {
    let told = match event_type(value) {
        Some("session") => Some(read_session(value)),
        Some("text") => owned_member(value, "text")
            .map(|t| message_activity(Role::Assistant, vec![Block::Text(t)])),
        Some("tool_call") => read_call(value),
        Some("tool_result") => read_result(value),
        Some("usage") => read_usage(value),
        Some("result") => Some(AgentActivity::Ended(turn_end(value))),
        _ => None,
    };
    told.into_iter().collect()
}

fn read_session(value: &Value) -> AgentActivity {
    AgentActivity::Session(SessionDetails {
        id: owned_member(value, "id"),
        model: owned_member(value, "model"),
        window: value.get("window").and_then(Value::as_u64).map(Tokens),
    })
}

fn read_call(value: &Value) -> Option<AgentActivity> {
    let block = Block::ToolCall {
        id: owned_member(value, "id")?,
        name: owned_member(value, "name")?,
        arguments: arguments_text(value.get("arguments")),
    };
    Some(message_activity(Role::Assistant, vec![block]))
}

fn read_result(value: &Value) -> Option<AgentActivity> {
    let block = Block::ToolResult {
        call: owned_member(value, "id")?,
        content: content_text(value.get("content")),
        is_error: value.get("is_error") == Some(&Value::Bool(true)),
    };
    Some(message_activity(Role::Tool, vec![block]))
}

fn read_usage(value: &Value) -> Option<AgentActivity> {
    let measures = value.get("measures").cloned();
    Some(AgentActivity::Used(UsageReport {
        usage: UsageSource::AgentResult.read(value)?.usage,
        measures: measures.and_then(|name| serde_json::from_value(name).ok()),
    }))
}

fn turn_end(value: &Value) -> TurnEnd {
    match value.get("is_error") == Some(&Value::Bool(true)) {
        false => TurnEnd::Done(owned_member(value, "text")),
        true => failed_end(
            value,
            string_member(value, "message").unwrap_or("no reason"),
        ),
    }
}
