//! New lines, and which of the old ones stay.

use std::borrow::Cow;
use std::collections::HashSet;

use compact_core::message::{Block, Entry, Role};
use compact_core::view::ViewItem;

use super::line::{self, PiLine};
use crate::BoundaryStamp;
use crate::chain::{self, write::ChainedAgent};
use crate::edit::{EntryEdits, to_arguments_object};
use crate::error::FormatError;
use crate::json::{ItemContext, quote};
use crate::wire::DocumentContext;

/// Furniture that is kept.
const KEPT: [&str; 6] = [
    "session",
    "model_change",
    "thinking_level_change",
    "session_info",
    "label",
    "custom",
];

pub(super) struct PiAgent;

impl ChainedAgent for PiAgent {
    fn as_message<'a>(&self, json: &'a str) -> Cow<'a, str> {
        line::as_message(json)
    }

    fn edit_line(
        &self,
        at: ItemContext<'_>,
        json: &str,
        edits: EntryEdits<'_>,
    ) -> Result<Option<String>, FormatError> {
        line::edit_line(at, json, edits)
    }

    fn compose_lines(&self, entry: &Entry, model: Option<&str>) -> Vec<String> {
        let messages = compose_messages(entry, model).into_iter();
        messages
            .map(|message| format!("\"type\":\"message\",\"message\":{message}"))
            .collect()
    }

    fn compose_boundary(&self, summary: &str, stamp: &BoundaryStamp<'_>) -> String {
        format!(
            "\"type\":\"compaction\",\"summary\":{},\"firstKeptEntryId\":\"\",\"tokensBefore\":{},\"fromHook\":true",
            quote(summary),
            stamp.tokens_before
        )
    }

    fn shown_names<'e>(&self, _: &ViewItem, entry: &'e Entry) -> Vec<&'e str> {
        vec![entry.id.0.as_str()]
    }

    fn keeps_line(&self, _: ItemContext<'_>, json: &str, names: &HashSet<&str>) -> bool {
        let line: PiLine<'_> = serde_json::from_str(json).unwrap_or_default();
        let known = line
            .target_id()
            .is_none_or(|id| names.contains(id.as_ref()));
        known && !line.is_copy() && KEPT.contains(&line.kind().as_ref())
    }

    /// Lines of sessions of the first version have none.
    fn has_ids(&self, page: &DocumentContext<'_>) -> bool {
        let mut lines = (0..chain::line_count(page)).filter_map(|i| {
            let json = chain::line_json(page, i).trim_ascii();
            serde_json::from_str::<PiLine<'_>>(json).ok()
        });
        let first = lines.find(|line| line.kind() != "session");
        first.is_none_or(|line| line.id().is_some())
    }
}

/// Returns a new entry as messages: one, or one per tool result.
fn compose_messages(entry: &Entry, model: Option<&str>) -> Vec<String> {
    let mut messages: Vec<String> = entry.blocks.iter().filter_map(render_result).collect();
    let parts: Vec<String> = entry.blocks.iter().filter_map(render_part).collect();
    if parts.is_empty() {
        return messages;
    }
    let content = parts.join(",");
    messages.push(if entry.role == Role::Assistant {
        format!(
            "{{\"role\":\"assistant\",\"content\":[{content}],\"api\":\"\",\"provider\":\"\",\
             \"model\":{},\"usage\":{NO_USAGE},\"stopReason\":\"stop\",\"timestamp\":0}}",
            quote(model.unwrap_or_default())
        )
    } else {
        format!("{{\"role\":\"user\",\"content\":[{content}],\"timestamp\":0}}")
    });
    messages
}

/// A count that measured another context is worse than none.
const NO_USAGE: &str = "{\"input\":0,\"output\":0,\"cacheRead\":0,\"cacheWrite\":0,\"totalTokens\":0,\
                        \"cost\":{\"input\":0,\"output\":0,\"cacheRead\":0,\"cacheWrite\":0,\"total\":0}}";

fn render_part(block: &Block) -> Option<String> {
    match block {
        Block::Text(text) => Some(line::text_part(text)),
        Block::ToolCall {
            id,
            name,
            arguments: args,
        } => Some(format!(
            "{{\"type\":\"toolCall\",\"id\":{},\"name\":{},\"arguments\":{}}}",
            quote(id),
            quote(name),
            to_arguments_object(args)
        )),
        _ => None,
    }
}

fn render_result(block: &Block) -> Option<String> {
    let Block::ToolResult {
        call,
        content,
        is_error,
    } = block
    else {
        return None;
    };
    Some(format!(
        "{{\"role\":\"toolResult\",\"toolCallId\":{},\"toolName\":\"\",\"content\":[{}],\
         \"isError\":{is_error},\"timestamp\":0}}",
        quote(call),
        line::text_part(content)
    ))
}
