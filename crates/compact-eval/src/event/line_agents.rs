//! Agents that write one JSON object per line: Claude Code, pi, Copilot CLI.

use serde_json::Value;

use super::json::{first_filled, flatten_content, is_filled, list_of, str_of, value_text};
use super::{call_event, text_event};
use crate::metric::{EventVoice, MetricEvent};

/// Returns a line of Claude Code. Sub-agents' lines are other contexts.
pub(super) fn read_claude_code(line: &Value) -> Vec<MetricEvent> {
    if line.get("isSidechain").is_some_and(is_filled) {
        return Vec::new();
    }
    let voice = match str_of(line, "type") {
        "system" if str_of(line, "subtype") == "compact_boundary" => {
            return vec![text_event(EventVoice::Boundary, "")];
        }
        "attachment" => {
            return vec![text_event(
                EventVoice::User,
                value_text(line.get("attachment")),
            )];
        }
        "user" | "assistant" if line.get("isCompactSummary").is_some_and(is_filled) => {
            EventVoice::Summary
        }
        "user" => EventVoice::User,
        "assistant" => EventVoice::Assistant,
        _ => return Vec::new(),
    };
    let Some(message) = line.get("message") else {
        return Vec::new();
    };
    if let Some(text) = message.get("content").and_then(Value::as_str) {
        return vec![text_event(voice, text)];
    }
    let blocks = list_of(message, "content").iter();
    blocks
        .filter_map(|block| claude_block(block, voice))
        .collect()
}

fn claude_block(block: &Value, voice: EventVoice) -> Option<MetricEvent> {
    match str_of(block, "type") {
        "text" => Some(text_event(voice, str_of(block, "text"))),
        "tool_use" => Some(call_event(
            str_of(block, "name"),
            &value_text(block.get("input")),
        )),
        "tool_result" => Some(text_event(
            EventVoice::Result,
            flatten_content(block.get("content")),
        )),
        _ => None,
    }
}

/// Returns a line of pi.
pub(super) fn read_pi(line: &Value) -> Vec<MetricEvent> {
    if str_of(line, "type") == "compaction" {
        return vec![
            text_event(EventVoice::Boundary, ""),
            text_event(EventVoice::Summary, str_of(line, "summary")),
        ];
    }
    let Some(message) = line.get("message") else {
        return Vec::new();
    };
    let voice = match str_of(message, "role") {
        "toolResult" => {
            return vec![text_event(
                EventVoice::Result,
                flatten_content(message.get("content")),
            )];
        }
        "bashExecution" => {
            let output = message
                .get("output")
                .map_or_else(String::new, |o| value_text(Some(o)));
            return vec![text_event(
                EventVoice::User,
                format!("{}\n{output}", str_of(message, "command")),
            )];
        }
        "user" => EventVoice::User,
        "assistant" => EventVoice::Assistant,
        "system" => EventVoice::System,
        "summary" => EventVoice::Summary,
        _ => return Vec::new(),
    };
    if let Some(text) = message.get("content").and_then(Value::as_str) {
        return vec![text_event(voice, text)];
    }
    let blocks = list_of(message, "content").iter();
    blocks.filter_map(|block| pi_block(block, voice)).collect()
}

fn pi_block(block: &Value, voice: EventVoice) -> Option<MetricEvent> {
    match str_of(block, "type") {
        "text" => Some(text_event(voice, str_of(block, "text"))),
        "toolCall" => Some(call_event(
            str_of(block, "name"),
            &value_text(block.get("arguments")),
        )),
        _ => None,
    }
}

/// Returns an event of Copilot CLI.
pub(super) fn read_copilot(line: &Value) -> Vec<MetricEvent> {
    let none = Value::Null;
    let data = line.get("data").unwrap_or(&none);
    let content = || flatten_content(data.get("content"));
    match str_of(line, "type") {
        "system.message" => vec![text_event(EventVoice::System, content())],
        "user.message" => vec![text_event(EventVoice::User, content())],
        "assistant.message" => {
            let calls = list_of(data, "toolRequests").iter();
            let calls =
                calls.map(|c| call_event(str_of(c, "name"), &value_text(c.get("arguments"))));
            std::iter::once(text_event(EventVoice::Assistant, content()))
                .chain(calls)
                .collect()
        }
        "tool.execution_complete" => {
            let result = flatten_content(data.get("result").and_then(|r| r.get("content")));
            let error =
                || first_filled(data, &["error"]).map_or_else(String::new, |e| value_text(Some(e)));
            let text = if result.is_empty() { error() } else { result };
            vec![text_event(EventVoice::Result, text)]
        }
        other if other.contains("compaction") => vec![text_event(EventVoice::Boundary, "")],
        _ => Vec::new(),
    }
}
