//! Cache breakpoints, in the order of the prompt: tools, system, messages.

use serde_json::Value;

use super::{block_type, content_blocks, is_thinking, list_elements};
use crate::validate::RuleFindings;
use crate::validate::request::{CheckedRequest, list_member, present_member, text_member};

const MOST_BREAKPOINTS: usize = 4;

/// A block that carries cache_control, with its path and its entry.
struct CacheBreakpoint<'a> {
    entry: Option<usize>,
    path: String,
    block: &'a Value,
}

/// Breakpoints in the order of the prompt: tools, system, messages.
fn breakpoints(request: &CheckedRequest) -> Vec<CacheBreakpoint<'_>> {
    let mut found = Vec::new();
    let mut see = |entry, path: String, block| {
        if present_member(block, "cache_control").is_some() {
            found.push(CacheBreakpoint { entry, path, block });
        }
    };
    for field in ["tools", "system"] {
        for (j, block) in request
            .field(field)
            .into_iter()
            .flat_map(list_elements)
            .enumerate()
        {
            see(None, format!("{field}.{j}"), block);
        }
    }
    for (i, message) in request.entries().iter().enumerate() {
        see(Some(i), format!("messages.{i}"), message);
        for (j, block) in content_blocks(message).iter().enumerate() {
            let path = format!("messages.{i}.content.{j}");
            for (k, inner) in list_member(block, "content").iter().enumerate() {
                see(Some(i), format!("{path}.content.{k}"), inner);
            }
            see(Some(i), path, block);
        }
    }
    found
}

pub(super) fn cache_breakpoints(request: &CheckedRequest, findings: &mut RuleFindings) {
    let found = breakpoints(request);
    if let Some(beyond) = found.get(MOST_BREAKPOINTS) {
        let message = format!("{} blocks carry cache_control", found.len());
        findings.note(beyond.entry, message);
    }
}

pub(super) fn cache_on_cacheable(request: &CheckedRequest, findings: &mut RuleFindings) {
    let clears = |entry: Option<usize>| {
        let message = entry.and_then(|i| request.entries().get(i));
        message.is_some_and(|message| present_member(message, "clear_at").is_some())
    };
    for CacheBreakpoint { entry, path, block } in breakpoints(request) {
        let is_empty = block_type(block) == "text" && text_member(block, "text") == Some("");
        if is_thinking(block) || is_empty || clears(entry) {
            findings.note(entry, format!("{path} cannot carry cache_control"));
        }
    }
}

pub(super) fn cache_ttl_order(request: &CheckedRequest, findings: &mut RuleFindings) {
    let mut has_short = false;
    for CacheBreakpoint { entry, path, block } in breakpoints(request) {
        let ttl = block.pointer("/cache_control/ttl").and_then(Value::as_str);
        let is_long = ttl == Some("1h");
        if is_long && has_short {
            findings.note(
                entry,
                format!("{path} is cached for 1h after a breakpoint of 5m"),
            );
        }
        has_short |= !is_long;
    }
}
