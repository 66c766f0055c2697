//! What a message must be before any rule about conversations applies.

use serde_json::Value;

use super::{block_type, each_block, list_elements, role};
use crate::validate::RuleFindings;
use crate::validate::request::{CheckedRequest, json_type, list_member, text_member};

const USER_BLOCKS: &[&str] = &[
    "text",
    "image",
    "document",
    "search_result",
    "tool_result",
    "container_upload",
    "compaction",
];

const ASSISTANT_BLOCKS: &[&str] = &[
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "mcp_tool_listing",
    "container_upload",
    "compaction",
    "fallback",
];

const SYSTEM_BLOCKS: &[&str] = &["text", "tool_addition", "tool_removal"];

pub(super) fn messages_list(request: &CheckedRequest, findings: &mut RuleFindings) {
    if !request.has_list() {
        findings.note_request("there is no list of `messages`");
    } else if request.entries().is_empty() {
        findings.note_request("`messages` is empty");
    }
}

pub(super) fn message_shape(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, message) in request.entries().iter().enumerate() {
        match message.get("role") {
            _ if !message.is_object() => {
                let found = json_type(Some(message));
                findings.note_entry(i, format!("messages.{i} must be an object, found {found}"));
            }
            Some(Value::String(role))
                if matches!(role.as_str(), "user" | "assistant" | "system") => {}
            Some(Value::String(role)) => {
                findings.note_entry(
                    i,
                    format!("messages.{i}.role is `{role}`, which is no role"),
                );
            }
            role => {
                let found = json_type(role);
                findings.note_entry(
                    i,
                    format!("messages.{i}.role must be a string, found {found}"),
                );
            }
        }
    }
}

pub(super) fn content_shape(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, message) in request.entries().iter().enumerate() {
        let role = role(message);
        match message.get("content") {
            _ if role.is_empty() => {}
            Some(Value::String(_)) => {}
            Some(Value::Array(blocks)) => {
                for (j, block) in blocks.iter().enumerate() {
                    if let Some(why) = bad_placement(block, role).or_else(|| missing_member(block))
                    {
                        findings.note_entry(i, format!("messages.{i}.content.{j} {why}"));
                    }
                }
            }
            other => {
                let found = json_type(other);
                findings.note_entry(
                    i,
                    format!(
                        "messages.{i}.content must be a string or a list of blocks, found {found}"
                    ),
                );
            }
        }
    }
}

/// Returns why a block may not stand in a message of a role.
fn bad_placement(block: &Value, role: &str) -> Option<String> {
    let Some(block_type) = text_member(block, "type") else {
        return Some("has no `type`".to_owned());
    };
    let may_stand = match role {
        "user" => USER_BLOCKS.contains(&block_type),
        "assistant" => {
            ASSISTANT_BLOCKS.contains(&block_type) || block_type.ends_with("_tool_result")
        }
        "system" => SYSTEM_BLOCKS.contains(&block_type),
        _ => true,
    };
    (!may_stand).then(|| format!("is `{block_type}`, which {role} messages cannot have"))
}

/// Returns what a block lacks. Fields with a rule of their own are left to it.
fn missing_member(block: &Value) -> Option<String> {
    let lacks = |field: &str| Some(format!("is `{}` without `{field}`", block_type(block)));
    let has_text = |field: &str| text_member(block, field).is_some();
    match block_type(block) {
        "text" if !has_text("text") => lacks("text"),
        "thinking" if !has_text("thinking") => lacks("thinking"),
        "tool_use" | "server_tool_use" | "mcp_tool_use" if !has_text("id") => lacks("id"),
        "tool_use" | "server_tool_use" | "mcp_tool_use" if !has_text("name") => lacks("name"),
        "tool_result" if !has_text("tool_use_id") => lacks("tool_use_id"),
        "tool_result" => result_content(block),
        "image" | "document" if !whole_source(block) => lacks("source"),
        _ => None,
    }
}

fn result_content(block: &Value) -> Option<String> {
    let allowed = [
        "text",
        "image",
        "document",
        "search_result",
        "tool_reference",
        "browser_state",
    ];
    match block.get("content") {
        None | Some(Value::String(_)) => None,
        Some(Value::Array(inner)) => inner
            .iter()
            .find(|block| !allowed.contains(&block_type(block)))
            .map(|block| format!("holds `{}`, which results cannot have", block_type(block)))
            .or_else(|| inner.iter().find_map(missing_member)),
        other => Some(format!(
            "has a content that is {}, not a string or blocks",
            json_type(other)
        )),
    }
}

fn whole_source(block: &Value) -> bool {
    let Some(source) = block.get("source") else {
        return false;
    };
    let has = |field: &str| text_member(source, field).is_some();
    match block_type(source) {
        "base64" | "text" => has("data") && has("media_type"),
        "url" => has("url"),
        "file" => has("file_id"),
        "content" => source.get("content").is_some(),
        _ => false,
    }
}

pub(super) fn content_not_empty(request: &CheckedRequest, findings: &mut RuleFindings) {
    let entries = request.entries();
    for (i, message) in entries.iter().enumerate() {
        let is_empty = match message.get("content") {
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(blocks)) => blocks.is_empty(),
            _ => false,
        };
        let may_be = i + 1 == entries.len() && role(message) == "assistant";
        if is_empty && !may_be {
            findings.note_entry(i, format!("messages.{i} has no content"));
        }
    }
}

fn is_blank(block: &Value) -> bool {
    block_type(block) == "text"
        && text_member(block, "text").is_some_and(|text| text.trim().is_empty())
}

pub(super) fn text_not_blank(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (j, block) in request
        .field("system")
        .into_iter()
        .flat_map(list_elements)
        .enumerate()
    {
        if is_blank(block) {
            findings.note_request(format!("system.{j} is a text block without text"));
        }
    }
    for (i, message) in request.entries().iter().enumerate() {
        let words = text_member(message, "content").unwrap_or_default();
        if !words.is_empty() && words.trim().is_empty() {
            findings.note_entry(i, format!("messages.{i} is nothing but white space"));
        }
    }
    each_block(request, |i, path, block| {
        if is_blank(block) || list_member(block, "content").iter().any(is_blank) {
            findings.note_entry(i, format!("{path} holds a text block without text"));
        }
    });
}

pub(super) fn input_object(request: &CheckedRequest, findings: &mut RuleFindings) {
    each_block(request, |i, path, block| {
        let is_use = matches!(
            block_type(block),
            "tool_use" | "server_tool_use" | "mcp_tool_use"
        );
        let input = block.get("input");
        if is_use && !input.is_some_and(Value::is_object) {
            let found = json_type(input);
            findings.note_entry(i, format!("{path}.input must be an object, found {found}"));
        }
    });
}
