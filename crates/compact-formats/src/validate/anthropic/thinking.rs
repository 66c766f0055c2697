//! Thinking blocks and the request that they are sent in.

use serde_json::Value;

use super::{
    block_type, content_blocks, each_block, forces_tool, is_thinking, result_ids, role,
    thinking_type,
};
use crate::validate::RuleFindings;
use crate::validate::request::{CheckedRequest, present_member, text_member};

const LEAST_BUDGET: u64 = 1024;

pub(super) fn thinking_signed(request: &CheckedRequest, findings: &mut RuleFindings) {
    each_block(request, |i, path, block| {
        let seal = match block_type(block) {
            "thinking" => "signature",
            "redacted_thinking" => "data",
            _ => return,
        };
        if text_member(block, seal).is_none_or(str::is_empty) {
            findings.note_entry(i, format!("{path} has lost its `{seal}`"));
        }
    });
}

/// Returns where the turn begins that is not over: after the last message of the user that is not results.
fn open_turn(entries: &[Value]) -> Option<usize> {
    let carries_results = |message: &Value| result_ids(message).next().is_some();
    let is_open = entries
        .last()
        .is_some_and(|last| role(last) == "user" && carries_results(last));
    let start = entries
        .iter()
        .rposition(|message| role(message) == "user" && !carries_results(message));
    is_open.then(|| start.map_or(0, |start| start + 1))
}

pub(super) fn loop_starts_with_thinking(request: &CheckedRequest, findings: &mut RuleFindings) {
    let entries = request.entries();
    let Some(start) = open_turn(entries).filter(|_| thinking_type(request) == Some("enabled"))
    else {
        return;
    };
    let opening = entries
        .iter()
        .enumerate()
        .skip(start)
        .find(|(_, message)| role(message) == "assistant");
    if let Some((i, message)) = opening
        && !content_blocks(message).first().is_some_and(is_thinking)
    {
        let found = content_blocks(message).first().map_or("text", block_type);
        findings.note_entry(
            i,
            format!("messages.{i} opens the turn with {found}, not with thinking"),
        );
    }
}

pub(super) fn no_thinking_when_disabled(request: &CheckedRequest, findings: &mut RuleFindings) {
    if thinking_type(request) != Some("disabled") {
        return;
    }
    let entries = request.entries();
    let is_final = entries
        .last()
        .is_some_and(|last| role(last) == "assistant" || result_ids(last).next().is_some());
    let latest = entries
        .iter()
        .enumerate()
        .rfind(|(_, message)| role(message) == "assistant");
    if let Some((i, message)) = latest.filter(|_| is_final)
        && content_blocks(message).iter().any(is_thinking)
    {
        findings.note_entry(i, format!("messages.{i} holds thinking, which is disabled"));
    }
}

pub(super) fn block_binding_needs_adaptive(request: &CheckedRequest, findings: &mut RuleFindings) {
    let binds = request
        .field("thinking")
        .is_some_and(|thinking| present_member(thinking, "block_binding").is_some());
    if binds && thinking_type(request) != Some("adaptive") {
        findings.note_request("thinking.block_binding stands without adaptive thinking");
    }
}

pub(super) fn thinking_budget(request: &CheckedRequest, findings: &mut RuleFindings) {
    let thinking = request.field("thinking");
    let budget = thinking.and_then(|thinking| thinking.get("budget_tokens")?.as_u64());
    let Some(budget) = budget else {
        return;
    };
    let most = request.field("max_tokens").and_then(Value::as_u64);
    if budget < LEAST_BUDGET {
        findings.note_request(format!(
            "thinking.budget_tokens is {budget}, below {LEAST_BUDGET}"
        ));
    } else if most.is_some_and(|most| budget >= most) {
        findings.note_request(format!(
            "thinking.budget_tokens is {budget}, not below max_tokens"
        ));
    }
}

pub(super) fn no_forced_tool_with_thinking(request: &CheckedRequest, findings: &mut RuleFindings) {
    if thinking_type(request) == Some("enabled") && forces_tool(request) {
        findings.note_request("tool_choice forces a tool while thinking is enabled");
    }
}
