//! Codex's `exec --json`: items that start and complete, and turns.
//!
//! The stream tells usage once a turn, for all of the thread. The rollout that Codex writes beside it
//! tells each request's as it is made ([`read_token_count`]).

use std::collections::HashSet;

use compact_core::message::{Block, Role};
use compact_core::token::Tokens;
use compact_core::usage::Semantics;
use serde_json::{Value, json};

use super::{
    AgentActivity, SessionDetails, TurnEnd, UsageReport, arguments_text, event_type, failed_end,
    message_activity, owned_member, string_member,
};
use crate::usage::UsageSource;

pub(super) fn read(value: &Value, open: &HashSet<String>) -> Vec<AgentActivity> {
    match event_type(value) {
        Some("thread.started") => vec![AgentActivity::Session(SessionDetails {
            id: owned_member(value, "thread_id"),
            ..SessionDetails::default()
        })],
        Some("item.started") => {
            read_item(value).map_or_else(Vec::new, |item| item.call_activities(open))
        }
        Some("item.completed") => {
            read_item(value).map_or_else(Vec::new, |item| item.completed_activities(open))
        }
        Some("turn.completed") => read_completed_turn(value),
        Some("turn.failed") => vec![AgentActivity::Ended(read_failure(value))],
        _ => Vec::new(),
    }
}

/// An item that says or does something.
struct CodexStreamItem<'v> {
    value: &'v Value,
    id: &'v str,
    kind: &'v str,
}

fn read_item(value: &Value) -> Option<CodexStreamItem<'_>> {
    let value = value.get("item")?;
    Some(CodexStreamItem {
        value,
        id: string_member(value, "id")?,
        kind: event_type(value)?,
    })
}

impl CodexStreamItem<'_> {
    /// Returns the call that this item is, if it is one that was not told yet.
    fn call_activities(&self, open: &HashSet<String>) -> Vec<AgentActivity> {
        let value = self.value;
        let (name, arguments) = match self.kind {
            "command_execution" => (
                "shell",
                json!({"command": value.get("command")}).to_string(),
            ),
            "file_change" => ("apply_patch", patch_text(value)),
            "mcp_tool_call" => (
                string_member(value, "tool").unwrap_or("mcp"),
                arguments_text(value.get("arguments")),
            ),
            "web_search" => (
                "web_search",
                json!({"query": value.get("query")}).to_string(),
            ),
            _ => return Vec::new(),
        };
        if open.contains(self.id) {
            return Vec::new();
        }
        vec![message_activity(
            Role::Assistant,
            vec![Block::ToolCall {
                id: self.id.to_owned(),
                name: name.to_owned(),
                arguments,
            }],
        )]
    }

    fn completed_activities(&self, open: &HashSet<String>) -> Vec<AgentActivity> {
        match self.kind {
            "agent_message" => {
                let text = owned_member(self.value, "text").unwrap_or_default();
                vec![message_activity(Role::Assistant, vec![Block::Text(text)])]
            }
            "todo_list" => self.plan_activities(),
            _ => {
                let mut told = self.call_activities(open);
                if !told.is_empty() || open.contains(self.id) {
                    told.push(message_activity(Role::Tool, vec![self.result_block()]));
                }
                told
            }
        }
    }

    /// Returns a list of steps, as a call that keeps a plan.
    fn plan_activities(&self) -> Vec<AgentActivity> {
        let items = self.value.get("items").and_then(Value::as_array);
        let steps = items.into_iter().flatten().map(|item| {
            let done = item.get("completed") == Some(&Value::Bool(true));
            let status = if done { "completed" } else { "pending" };
            json!({"step": item.get("text"), "status": status})
        });
        let id = format!("{}-plan", self.id);
        let answer = Block::ToolResult {
            call: id.clone(),
            content: String::new(),
            is_error: false,
        };
        let call = Block::ToolCall {
            id,
            name: "update_plan".to_owned(),
            arguments: json!({"plan": steps.collect::<Vec<_>>()}).to_string(),
        };
        vec![
            message_activity(Role::Assistant, vec![call]),
            message_activity(Role::Tool, vec![answer]),
        ]
    }

    fn result_block(&self) -> Block {
        let value = self.value;
        let exit = value.get("exit_code").and_then(Value::as_i64);
        let is_error = exit.is_some_and(|code| code != 0)
            || string_member(value, "status") == Some("failed")
            || value.get("error").is_some_and(|error| !error.is_null());
        let told = ["aggregated_output", "error", "result"];
        let content = told.iter().find_map(|key| match value.get(*key)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        });
        Block::ToolResult {
            call: self.id.to_owned(),
            content: content.unwrap_or_default(),
            is_error,
        }
    }
}

/// Formats changed files as the lines of a patch, which say what became of each.
fn patch_text(value: &Value) -> String {
    let changes = value.get("changes").and_then(Value::as_array);
    let lines = changes.into_iter().flatten().filter_map(|change| {
        let act = match string_member(change, "kind") {
            Some("add") => "Add",
            Some("delete") => "Delete",
            _ => "Update",
        };
        Some(format!(
            "*** {act} File: {}",
            string_member(change, "path")?
        ))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn read_completed_turn(value: &Value) -> Vec<AgentActivity> {
    let used = value
        .get("usage")
        .and_then(|usage| UsageSource::Codex.read(usage));
    let used = used.map(|used| {
        AgentActivity::Used(UsageReport {
            usage: used.usage,
            measures: Some(Semantics::Cumulative),
        })
    });
    let end = AgentActivity::Ended(TurnEnd::Done(None));
    used.into_iter().chain([end]).collect()
}

fn read_failure(value: &Value) -> TurnEnd {
    let message = value.pointer("/error/message").and_then(Value::as_str);
    failed_end(value, message.unwrap_or("no reason"))
}

/// Returns what a line of a rollout says of the last request, and of the window.
pub fn read_token_count(line: &str) -> Option<(UsageReport, Option<Tokens>)> {
    if !line.contains("\"token_count\"") {
        return None;
    }
    let value: Value = serde_json::from_str(line).ok()?;
    let info = value
        .pointer("/payload/info")
        .filter(|info| info.is_object())?;
    let window = info.get("model_context_window").and_then(Value::as_u64);
    let used = UsageSource::Codex.read(info)?;
    Some((used.into(), window.map(Tokens)))
}
