//! New lines, and which of the old ones stay.

use std::borrow::Cow;
use std::collections::HashSet;

use compact_core::message::{Block, Entry, Role};
use compact_core::view::ViewItem;

use super::line::{self, Line};
use crate::Stamp;
use crate::chain::{self, write::Agent};
use crate::edit::{Edits, arguments};
use crate::error::FormatError;
use crate::json::{At, quote};
use crate::wire::Page;

/// Furniture that is kept.
const KEPT: [&str; 6] = [
    "session",
    "model_change",
    "thinking_level_change",
    "session_info",
    "label",
    "custom",
];

pub(super) struct Pi;

impl Agent for Pi {
    fn as_message<'a>(&self, json: &'a str) -> Cow<'a, str> {
        line::as_message(json)
    }

    fn edited(
        &self,
        at: At<'_>,
        json: &str,
        edits: Edits<'_>,
    ) -> Result<Option<String>, FormatError> {
        line::edited(at, json, edits)
    }

    fn compose(&self, entry: &Entry, model: Option<&str>) -> Vec<String> {
        let messages = compose(entry, model).into_iter();
        messages
            .map(|message| format!("\"type\":\"message\",\"message\":{message}"))
            .collect()
    }

    fn boundary(&self, summary: &str, stamp: &Stamp<'_>) -> String {
        format!(
            "\"type\":\"compaction\",\"summary\":{},\"firstKeptEntryId\":\"\",\"tokensBefore\":{},\"fromHook\":true",
            quote(summary),
            stamp.tokens_before
        )
    }

    fn names<'e>(&self, _: &ViewItem, entry: &'e Entry) -> Vec<&'e str> {
        vec![entry.id.0.as_str()]
    }

    fn keeps(&self, _: At<'_>, json: &str, names: &HashSet<&str>) -> bool {
        let line: Line<'_> = serde_json::from_str(json).unwrap_or_default();
        let known = line.subject().is_none_or(|id| names.contains(id.as_ref()));
        known && !line.is_copy() && KEPT.contains(&line.kind().as_ref())
    }

    /// Lines of sessions of the first version have none.
    fn has_ids(&self, page: &Page<'_>) -> bool {
        let mut lines = (0..chain::count(page)).filter_map(|i| {
            let json = chain::json(page, i).trim_ascii();
            serde_json::from_str::<Line<'_>>(json).ok()
        });
        let first = lines.find(|line| line.kind() != "session");
        first.is_none_or(|line| line.id().is_some())
    }
}

/// A new entry as messages: one, or one per tool result.
fn compose(entry: &Entry, model: Option<&str>) -> Vec<String> {
    let mut messages: Vec<String> = entry.blocks.iter().filter_map(answer).collect();
    let parts: Vec<String> = entry.blocks.iter().filter_map(part).collect();
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

fn part(block: &Block) -> Option<String> {
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
            arguments(args)
        )),
        _ => None,
    }
}

fn answer(block: &Block) -> Option<String> {
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
