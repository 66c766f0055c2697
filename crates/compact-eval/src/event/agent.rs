//! Agents that write one JSON object per line: Claude Code, pi, Copilot CLI.

use serde_json::Value;

use super::json::{dump, first_filled, flat, is_filled, list_of, str_of};
use super::{called, said};
use crate::metric::{Event, Voice};

/// A line of Claude Code. Sub-agents' lines are other contexts.
pub(super) fn claude_code(line: &Value) -> Vec<Event> {
    if line.get("isSidechain").is_some_and(is_filled) {
        return Vec::new();
    }
    let voice = match str_of(line, "type") {
        "system" if str_of(line, "subtype") == "compact_boundary" => {
            return vec![said(Voice::Boundary, "")];
        }
        "attachment" => return vec![said(Voice::User, dump(line.get("attachment")))],
        "user" | "assistant" if line.get("isCompactSummary").is_some_and(is_filled) => {
            Voice::Summary
        }
        "user" => Voice::User,
        "assistant" => Voice::Assistant,
        _ => return Vec::new(),
    };
    let Some(message) = line.get("message") else {
        return Vec::new();
    };
    if let Some(text) = message.get("content").and_then(Value::as_str) {
        return vec![said(voice, text)];
    }
    let blocks = list_of(message, "content").iter();
    blocks
        .filter_map(|block| claude_block(block, voice))
        .collect()
}

fn claude_block(block: &Value, voice: Voice) -> Option<Event> {
    match str_of(block, "type") {
        "text" => Some(said(voice, str_of(block, "text"))),
        "tool_use" => Some(called(str_of(block, "name"), &dump(block.get("input")))),
        "tool_result" => Some(said(Voice::Result, flat(block.get("content")))),
        _ => None,
    }
}

/// A line of pi.
pub(super) fn pi(line: &Value) -> Vec<Event> {
    if str_of(line, "type") == "compaction" {
        return vec![
            said(Voice::Boundary, ""),
            said(Voice::Summary, str_of(line, "summary")),
        ];
    }
    let Some(message) = line.get("message") else {
        return Vec::new();
    };
    let voice = match str_of(message, "role") {
        "toolResult" => return vec![said(Voice::Result, flat(message.get("content")))],
        "bashExecution" => {
            let output = message
                .get("output")
                .map_or_else(String::new, |o| dump(Some(o)));
            return vec![said(
                Voice::User,
                format!("{}\n{output}", str_of(message, "command")),
            )];
        }
        "user" => Voice::User,
        "assistant" => Voice::Assistant,
        "system" => Voice::System,
        "summary" => Voice::Summary,
        _ => return Vec::new(),
    };
    if let Some(text) = message.get("content").and_then(Value::as_str) {
        return vec![said(voice, text)];
    }
    let blocks = list_of(message, "content").iter();
    blocks.filter_map(|block| pi_block(block, voice)).collect()
}

fn pi_block(block: &Value, voice: Voice) -> Option<Event> {
    match str_of(block, "type") {
        "text" => Some(said(voice, str_of(block, "text"))),
        "toolCall" => Some(called(str_of(block, "name"), &dump(block.get("arguments")))),
        _ => None,
    }
}

/// An event of Copilot CLI.
pub(super) fn copilot(line: &Value) -> Vec<Event> {
    let none = Value::Null;
    let data = line.get("data").unwrap_or(&none);
    let content = || flat(data.get("content"));
    match str_of(line, "type") {
        "system.message" => vec![said(Voice::System, content())],
        "user.message" => vec![said(Voice::User, content())],
        "assistant.message" => {
            let calls = list_of(data, "toolRequests").iter();
            let calls = calls.map(|c| called(str_of(c, "name"), &dump(c.get("arguments"))));
            std::iter::once(said(Voice::Assistant, content()))
                .chain(calls)
                .collect()
        }
        "tool.execution_complete" => {
            let result = flat(data.get("result").and_then(|r| r.get("content")));
            let error =
                || first_filled(data, &["error"]).map_or_else(String::new, |e| dump(Some(e)));
            let text = if result.is_empty() { error() } else { result };
            vec![said(Voice::Result, text)]
        }
        other if other.contains("compaction") => vec![said(Voice::Boundary, "")],
        _ => Vec::new(),
    }
}
