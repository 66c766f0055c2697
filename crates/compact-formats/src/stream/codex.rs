//! Codex's `exec --json`: items that start and complete, and turns.
//!
//! The stream tells usage once a turn, for all of the thread. The rollout that Codex writes beside it
//! tells each request's as it is made ([`token_count`]).

use std::collections::HashSet;

use compact_core::message::{Block, Role};
use compact_core::token::Tokens;
use compact_core::usage::Semantics;
use serde_json::{Value, json};

use super::{About, Activity, End, Report, arguments, failed, kind, owned, said, text};
use crate::usage::UsageSource;

pub(super) fn read(value: &Value, open: &HashSet<String>) -> Vec<Activity> {
    match kind(value) {
        Some("thread.started") => vec![Activity::Session(About {
            id: owned(value, "thread_id"),
            ..About::default()
        })],
        Some("item.started") => item(value).map_or_else(Vec::new, |item| item.call(open)),
        Some("item.completed") => item(value).map_or_else(Vec::new, |item| item.complete(open)),
        Some("turn.completed") => completed(value),
        Some("turn.failed") => vec![Activity::Ended(failure(value))],
        _ => Vec::new(),
    }
}

/// An item that says or does something.
struct Item<'v> {
    value: &'v Value,
    id: &'v str,
    kind: &'v str,
}

fn item(value: &Value) -> Option<Item<'_>> {
    let value = value.get("item")?;
    Some(Item {
        value,
        id: text(value, "id")?,
        kind: kind(value)?,
    })
}

impl Item<'_> {
    /// The call that this item is, if it is one that was not told yet.
    fn call(&self, open: &HashSet<String>) -> Vec<Activity> {
        let value = self.value;
        let (name, arguments) = match self.kind {
            "command_execution" => (
                "shell",
                json!({"command": value.get("command")}).to_string(),
            ),
            "file_change" => ("apply_patch", patch(value)),
            "mcp_tool_call" => (
                text(value, "tool").unwrap_or("mcp"),
                arguments(value.get("arguments")),
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
        vec![said(
            Role::Assistant,
            vec![Block::ToolCall {
                id: self.id.to_owned(),
                name: name.to_owned(),
                arguments,
            }],
        )]
    }

    fn complete(&self, open: &HashSet<String>) -> Vec<Activity> {
        match self.kind {
            "agent_message" => {
                let text = owned(self.value, "text").unwrap_or_default();
                vec![said(Role::Assistant, vec![Block::Text(text)])]
            }
            "todo_list" => self.plan(),
            _ => {
                let mut told = self.call(open);
                if !told.is_empty() || open.contains(self.id) {
                    told.push(said(Role::Tool, vec![self.result()]));
                }
                told
            }
        }
    }

    /// A list of steps, as a call that keeps a plan.
    fn plan(&self) -> Vec<Activity> {
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
            said(Role::Assistant, vec![call]),
            said(Role::Tool, vec![answer]),
        ]
    }

    fn result(&self) -> Block {
        let value = self.value;
        let exit = value.get("exit_code").and_then(Value::as_i64);
        let is_error = exit.is_some_and(|code| code != 0)
            || text(value, "status") == Some("failed")
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

/// Changed files as the lines of a patch, which say what became of each.
fn patch(value: &Value) -> String {
    let changes = value.get("changes").and_then(Value::as_array);
    let lines = changes.into_iter().flatten().filter_map(|change| {
        let act = match text(change, "kind") {
            Some("add") => "Add",
            Some("delete") => "Delete",
            _ => "Update",
        };
        Some(format!("*** {act} File: {}", text(change, "path")?))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn completed(value: &Value) -> Vec<Activity> {
    let used = value
        .get("usage")
        .and_then(|usage| UsageSource::Codex.read(usage));
    let used = used.map(|used| {
        Activity::Used(Report {
            usage: used.usage,
            measures: Some(Semantics::Cumulative),
        })
    });
    let end = Activity::Ended(End::Done(None));
    used.into_iter().chain([end]).collect()
}

fn failure(value: &Value) -> End {
    let message = value.pointer("/error/message").and_then(Value::as_str);
    failed(value, message.unwrap_or("no reason"))
}

/// What a line of a rollout says of the last request, and of the window.
pub fn token_count(line: &str) -> Option<(Report, Option<Tokens>)> {
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
