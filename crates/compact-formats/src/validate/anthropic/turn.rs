//! Whose turn it is.

use serde_json::Value;

use super::{block_type, blocks_of_type, content_blocks, role, thinking_type};
use crate::validate::RuleFindings;
use crate::validate::request::{CheckedRequest, text_member};

const MOST_MESSAGES: usize = 100_000;

pub(super) fn first_user(request: &CheckedRequest, findings: &mut RuleFindings) {
    let Some(first) = request.entries().first() else {
        return;
    };
    let is_compaction = blocks_of_type(first, "compaction").next().is_some();
    if role(first) == "assistant" && !is_compaction {
        findings.note_entry(0, "messages.0 is the assistant's");
    }
}

pub(super) fn alternation(request: &CheckedRequest, findings: &mut RuleFindings) {
    let mut before = "";
    for (i, message) in request.entries().iter().enumerate() {
        let role = role(message);
        if !role.is_empty() && role == before {
            findings.note_entry(i, format!("messages.{i} is of role {role} again"));
        }
        before = role;
    }
}

/// Returns the last message if it is a beginning of an answer. One that ends in a server's tool or in a
/// compaction is a pause that the API asked to be continued.
fn prefill(request: &CheckedRequest) -> Option<(usize, &Value)> {
    let (i, last) = request.entries().iter().enumerate().next_back()?;
    let end = content_blocks(last).last().map_or("", block_type);
    let is_pause = matches!(
        end,
        "server_tool_use" | "mcp_tool_use" | "compaction" | "tool_use"
    ) || end.ends_with("_tool_result");
    (role(last) == "assistant" && !is_pause).then_some((i, last))
}

fn takes_no_prefill(request: &CheckedRequest) -> bool {
    let thinks = matches!(thinking_type(request), Some("enabled" | "adaptive"));
    let newer = |model: &str| {
        let families = ["-4-6", "-4-7", "-4-8", "-5"];
        let name = model.rsplit(['/', '.']).next().unwrap_or(model);
        let family = ["opus", "sonnet", "haiku", "fable", "mythos"]
            .iter()
            .find_map(|name| model.split_once(name));
        name.starts_with("claude")
            && family.is_some_and(|(_, rest)| families.iter().any(|f| rest.starts_with(f)))
    };
    thinks || request.text("model").is_some_and(newer)
}

pub(super) fn prefill_refused(request: &CheckedRequest, findings: &mut RuleFindings) {
    if let Some((i, _)) = prefill(request).filter(|_| takes_no_prefill(request)) {
        findings.note_entry(
            i,
            format!("messages.{i} begins the answer, which this request may not"),
        );
    }
}

pub(super) fn last_role(request: &CheckedRequest, findings: &mut RuleFindings) {
    if let Some((i, _)) = prefill(request).filter(|_| !takes_no_prefill(request)) {
        findings.note_entry(i, format!("messages.{i}, the last one, is the assistant's"));
    }
}

pub(super) fn prefill_trailing_space(request: &CheckedRequest, findings: &mut RuleFindings) {
    let Some((i, last)) = prefill(request) else {
        return;
    };
    let words =
        text_member(last, "content").or_else(|| text_member(content_blocks(last).last()?, "text"));
    let ends_in_space = |text: &str| text.ends_with(char::is_whitespace) && !text.trim().is_empty();
    if words.is_some_and(ends_in_space) {
        findings.note_entry(
            i,
            format!("messages.{i}, the last one, ends in white space"),
        );
    }
}

pub(super) fn system_mid_conversation(request: &CheckedRequest, findings: &mut RuleFindings) {
    let entries = request.entries();
    let role_at = |i: Option<usize>| i.and_then(|i| entries.get(i)).map_or("", role);
    for (i, _) in entries
        .iter()
        .enumerate()
        .filter(|(_, m)| role(m) == "system")
    {
        let (before, after) = (role_at(i.checked_sub(1)), role_at(Some(i + 1)));
        if before == "system" {
            // The first of the two is told.
            continue;
        }
        if before != "user" {
            findings.note_entry(
                i,
                format!("messages.{i} is a system message that follows no user's"),
            );
        } else if !matches!(after, "" | "assistant") {
            findings.note_entry(
                i,
                format!("messages.{i} is a system message that one of role {after} follows"),
            );
        }
    }
}

pub(super) fn message_count(request: &CheckedRequest, findings: &mut RuleFindings) {
    let count = request.entries().len();
    if count > MOST_MESSAGES {
        findings.note_request(format!("{count} messages, more than {MOST_MESSAGES}"));
    }
}
