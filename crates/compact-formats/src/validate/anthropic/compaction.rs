//! The API's own compaction.

use serde_json::Value;

use super::{block_type, each_block, forces_tool, tool_use_ids};
use crate::validate::RuleFindings;
use crate::validate::request::CheckedRequest;

pub(super) fn compaction_alone(request: &CheckedRequest, findings: &mut RuleFindings) {
    if request.field("compaction").is_none() {
        return;
    }
    let others = [
        "context_management",
        "stop_sequences",
        "output_format",
        "output_config",
    ];
    for field in others.iter().filter(|field| request.field(field).is_some()) {
        findings.note_request(format!("`compaction` stands beside `{field}`"));
    }
    if forces_tool(request) {
        findings.note_request("`compaction` stands beside a tool_choice that forces a tool");
    }
}

pub(super) fn compaction_content(request: &CheckedRequest, findings: &mut RuleFindings) {
    each_block(request, |i, path, block| {
        let content = block.get("content");
        let is_whole = match content {
            Some(Value::String(text)) => !text.is_empty(),
            None | Some(Value::Null) => true,
            Some(_) => false,
        };
        if block_type(block) == "compaction" && !is_whole {
            findings.note_entry(i, format!("{path} is a compaction without its text"));
        }
    });
}

pub(super) fn compaction_loop_closed(request: &CheckedRequest, findings: &mut RuleFindings) {
    let mut entries = request.entries().iter().enumerate();
    if let Some((i, last)) = entries.next_back()
        && request.field("compaction").is_some()
        && tool_use_ids(last).next().is_some()
    {
        findings.note_entry(
            i,
            format!("messages.{i}, the last one, has an open tool_use"),
        );
    }
}
