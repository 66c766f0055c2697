//! Tool uses and their results: both there, in the right place, of tools that are declared.

use std::collections::HashSet;

use serde_json::Value;

use super::{block_type, content_blocks, each_block, list_elements, result_ids, tool_use_ids};
use crate::validate::RuleFindings;
use crate::validate::request::{CheckedRequest, list_member, text_member};

pub(super) fn tool_use_needs_result(request: &CheckedRequest, findings: &mut RuleFindings) {
    let entries = request.entries();
    for (i, message) in entries.iter().enumerate() {
        let is_last = i + 1 == entries.len();
        // `compaction-loop-closed` says it better.
        if is_last && request.field("compaction").is_some() {
            continue;
        }
        let results: HashSet<&str> = entries
            .get(i + 1)
            .into_iter()
            .flat_map(result_ids)
            .collect();
        for id in tool_use_ids(message).filter(|id| !results.contains(id)) {
            findings.note_entry(
                i,
                format!("messages.{i}: tool_use `{id}` has no tool_result in the next message"),
            );
        }
    }
}

pub(super) fn tool_use_ids_unique(request: &CheckedRequest, findings: &mut RuleFindings) {
    let mut seen = HashSet::new();
    for (i, message) in request.entries().iter().enumerate() {
        for id in tool_use_ids(message).filter(|id| !seen.insert(*id)) {
            findings.note_entry(
                i,
                format!("messages.{i}: tool_use id `{id}` was used before"),
            );
        }
    }
}

pub(super) fn result_needs_tool_use(request: &CheckedRequest, findings: &mut RuleFindings) {
    let mut before: HashSet<&str> = HashSet::new();
    for (i, message) in request.entries().iter().enumerate() {
        for id in result_ids(message).filter(|id| !before.contains(id)) {
            findings.note_entry(
                i,
                format!(
                    "messages.{i}: tool_result of `{id}`, which the message before does not use"
                ),
            );
        }
        before = tool_use_ids(message).collect();
    }
}

pub(super) fn one_result_per_tool_use(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, message) in request.entries().iter().enumerate() {
        let mut seen = HashSet::new();
        for id in result_ids(message).filter(|id| !seen.insert(*id)) {
            findings.note_entry(i, format!("messages.{i}: tool_use `{id}` has two results"));
        }
    }
}

pub(super) fn server_result_needs_use(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, message) in request.entries().iter().enumerate() {
        let mut used = HashSet::new();
        for (j, block) in content_blocks(message).iter().enumerate() {
            let block_type = block_type(block);
            if matches!(block_type, "server_tool_use" | "mcp_tool_use") {
                used.extend(text_member(block, "id"));
            }
            let id = text_member(block, "tool_use_id").unwrap_or_default();
            if block_type.ends_with("_tool_result") && !used.contains(id) {
                findings.note_entry(
                    i,
                    format!("messages.{i}.content.{j}: {block_type} of `{id}`, which no block before it uses"),
                );
            }
        }
    }
}

pub(super) fn results_first(request: &CheckedRequest, findings: &mut RuleFindings) {
    for (i, message) in request.entries().iter().enumerate() {
        let is_result = |block: &Value| block_type(block) == "tool_result";
        let late = content_blocks(message)
            .iter()
            .enumerate()
            .skip_while(|(_, block)| is_result(block))
            .find(|(_, block)| is_result(block));
        if let Some((j, _)) = late {
            findings.note_entry(
                i,
                format!("messages.{i}.content.{j} is a tool_result after other blocks"),
            );
        }
    }
}

pub(super) fn id_alphabet(request: &CheckedRequest, findings: &mut RuleFindings) {
    let is_plain = |id: &str| {
        !id.is_empty()
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    for (i, message) in request.entries().iter().enumerate() {
        // A result repeats its call's id; one report is enough.
        for id in tool_use_ids(message).filter(|id| !is_plain(id)) {
            findings.note_entry(i, format!("messages.{i}: `{id}` is no id of a tool_use"));
        }
    }
}

pub(super) fn tools_declared(request: &CheckedRequest, findings: &mut RuleFindings) {
    let is_body = request.field("model").is_some() || request.field("max_tokens").is_some();
    let has_tools = request
        .field("tools")
        .is_some_and(|tools| !list_elements(tools).is_empty());
    let uses = |message: &Value| {
        content_blocks(message)
            .iter()
            .any(|block| matches!(block_type(block), "tool_use" | "tool_result"))
    };
    if is_body && !has_tools && request.entries().iter().any(uses) {
        findings.note_request("the history uses tools, but `tools` is not sent");
    }
}

pub(super) fn tool_reference_declared(request: &CheckedRequest, findings: &mut RuleFindings) {
    let Some(tools) = request.field("tools").map(list_elements) else {
        return;
    };
    let names: HashSet<&str> = tools
        .iter()
        .filter_map(|tool| text_member(tool, "name"))
        .collect();
    each_block(request, |i, path, block| {
        let searched = block
            .pointer("/content/tool_references")
            .into_iter()
            .flat_map(list_elements);
        let references = list_member(block, "content")
            .iter()
            .chain(searched)
            .filter(|inner| block_type(inner) == "tool_reference")
            .filter_map(|inner| text_member(inner, "tool_name"));
        for name in references.filter(|name| !names.contains(name)) {
            findings.note_entry(
                i,
                format!("{path} refers to `{name}`, which is not in `tools`"),
            );
        }
    });
}

pub(super) fn not_all_deferred(request: &CheckedRequest, findings: &mut RuleFindings) {
    let tools = request
        .field("tools")
        .map(list_elements)
        .unwrap_or_default();
    let is_deferred = |tool: &Value| tool.get("defer_loading") == Some(&Value::Bool(true));
    if !tools.is_empty() && tools.iter().all(is_deferred) {
        findings.note_request("every one of `tools` is deferred");
    }
}
