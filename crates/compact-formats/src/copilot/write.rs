//! New events, and which of the old ones stay.

use std::borrow::Cow;
use std::collections::HashSet;

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::ViewItem;
use serde_json::value::RawValue;

use super::event::{self, CopilotEvent};
use crate::BoundaryStamp;
use crate::chain::write::ChainedAgent;
use crate::edit::{EntryEdits, to_arguments_object};
use crate::error::FormatError;
use crate::json::{ItemContext, Members, Patch, quote, string_value};

/// Converts a compaction within a view to a user's message, because as a boundary it would cut off what
/// stands before it.
fn as_message(json: &str) -> Cow<'_, str> {
    let members = Members::from_json(json);
    if string_value(members.get("type")).as_deref() != Some("session.compaction_complete") {
        return Cow::Borrowed(json);
    }
    let data = Members::from_json(members.get("data").map_or("", RawValue::get));
    let content = data.get("summaryContent").map_or("\"\"", RawValue::get);
    let mut patch = Patch::new(json);
    patch.set_member(json, "type", "\"system.notification\"".to_owned());
    patch.set_member(
        json,
        "data",
        format!("{{\"content\":{content},\"kind\":{{\"type\":\"compaction_summary\"}}}}"),
    );
    Cow::Owned(patch.finish())
}

/// Furniture that repeats nothing of a message.
const KEPT: [&str; 7] = [
    "session.start",
    "session.model_change",
    "session.info",
    "session.permissions_changed",
    "assistant.turn_start",
    "assistant.turn_end",
    "tool.execution_start",
];

pub(super) struct CopilotAgent;

impl ChainedAgent for CopilotAgent {
    fn as_message<'a>(&self, json: &'a str) -> Cow<'a, str> {
        as_message(json)
    }

    fn edit_line(
        &self,
        at: ItemContext<'_>,
        json: &str,
        edits: EntryEdits<'_>,
    ) -> Result<Option<String>, FormatError> {
        event::edit_event(at, json, edits)
    }

    fn compose_lines(&self, entry: &Entry, model: Option<&str>) -> Vec<String> {
        let events = compose_events(entry, model).into_iter();
        events
            .map(|(kind, data)| format!("\"type\":\"{kind}\",\"data\":{data}"))
            .collect()
    }

    fn compose_boundary(&self, summary: &str, stamp: &BoundaryStamp<'_>) -> String {
        format!(
            "\"type\":\"session.compaction_complete\",\"data\":{{\"success\":true,\"preCompactionTokens\":{},\
             \"summaryContent\":{}}}",
            stamp.tokens_before,
            quote(summary)
        )
    }

    /// Returns the calls that the view shows as they were made.
    fn shown_names<'e>(&self, item: &ViewItem, entry: &'e Entry) -> Vec<&'e str> {
        match item {
            ViewItem::Kept { .. } => entry.call_ids().collect(),
            _ => Vec::new(),
        }
    }

    fn keeps_line(&self, at: ItemContext<'_>, json: &str, names: &HashSet<&str>) -> bool {
        let event: CopilotEvent<'_> = serde_json::from_str(json).unwrap_or_default();
        let call = event.call_id(at);
        let known = call.is_none_or(|call| names.contains(call.as_str()));
        known && KEPT.contains(&event.kind().as_ref())
    }

    /// Returns the system's words.
    fn outlasts_boundary(&self, entry: &Entry) -> bool {
        entry.role == Role::System
    }
}

/// Returns a new entry as events: the results it holds, then what it says.
fn compose_events(entry: &Entry, model: Option<&str>) -> Vec<(&'static str, String)> {
    let mut events: Vec<(&str, String)> = entry.blocks.iter().filter_map(render_result).collect();
    let requests: Vec<String> = entry.blocks.iter().filter_map(render_request).collect();
    let texts: Vec<&str> = entry
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    if texts.is_empty() && requests.is_empty() {
        return events;
    }
    if entry.role == Role::Assistant {
        let (last, others) = texts.split_last().unwrap_or((&"", &[]));
        let mut said = |text: &str, requests: &str| {
            let data = format!(
                "{{\"messageId\":{},\"model\":{},\"content\":{},\"toolRequests\":[{requests}]}}",
                quote(&entry.id.0),
                quote(model.unwrap_or_default()),
                quote(text)
            );
            events.push(("assistant.message", data));
        };
        others.iter().for_each(|text| said(text, ""));
        said(last, &requests.join(","));
        return events;
    }
    let kind = match (entry.role, &entry.meta.kind) {
        (Role::System | Role::Developer, EntryKind::Message) => "system.message",
        (_, EntryKind::Injected) => "system.notification",
        _ => "user.message",
    };
    for text in texts {
        let text = quote(text);
        events.push((kind, format!("{{\"content\":{text},\"attachments\":[]}}")));
    }
    events
}

fn render_request(block: &Block) -> Option<String> {
    let Block::ToolCall {
        id,
        name,
        arguments: args,
    } = block
    else {
        return None;
    };
    Some(format!(
        "{{\"toolCallId\":{},\"name\":{},\"arguments\":{},\"type\":\"function\"}}",
        quote(id),
        quote(name),
        to_arguments_object(args)
    ))
}

fn render_result(block: &Block) -> Option<(&'static str, String)> {
    let Block::ToolResult {
        call,
        content,
        is_error,
    } = block
    else {
        return None;
    };
    let (call, content) = (quote(call), quote(content));
    let outcome = if *is_error {
        format!("\"success\":false,\"error\":{{\"message\":{content},\"code\":\"failure\"}}")
    } else {
        format!("\"success\":true,\"result\":{{\"content\":{content}}}")
    };
    let data = format!("{{\"toolCallId\":{call},{outcome}}}");
    Some(("tool.execution_complete", data))
}
