//! New events, and which of the old ones stay.

use std::borrow::Cow;
use std::collections::HashSet;

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::ViewItem;
use serde_json::value::RawValue;

use super::event::{self, Event};
use crate::Stamp;
use crate::chain::write::Agent;
use crate::edit::{Edits, arguments};
use crate::error::FormatError;
use crate::json::{At, Members, Patch, lenient, quote};

/// A compaction within a view is a user's message: as a boundary it would cut off what stands before.
fn as_message(json: &str) -> Cow<'_, str> {
    let members = Members::of(json);
    if lenient(members.get("type")).as_deref() != Some("session.compaction_complete") {
        return Cow::Borrowed(json);
    }
    let data = Members::of(members.get("data").map_or("", RawValue::get));
    let content = data.get("summaryContent").map_or("\"\"", RawValue::get);
    let mut patch = Patch::new(json);
    patch.set(json, "type", "\"system.notification\"".to_owned());
    patch.set(
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

pub(super) struct Copilot;

impl Agent for Copilot {
    fn as_message<'a>(&self, json: &'a str) -> Cow<'a, str> {
        as_message(json)
    }

    fn edited(
        &self,
        at: At<'_>,
        json: &str,
        edits: Edits<'_>,
    ) -> Result<Option<String>, FormatError> {
        event::edited(at, json, edits)
    }

    fn compose(&self, entry: &Entry, model: Option<&str>) -> Vec<String> {
        let events = compose(entry, model).into_iter();
        events
            .map(|(kind, data)| format!("\"type\":\"{kind}\",\"data\":{data}"))
            .collect()
    }

    fn boundary(&self, summary: &str, stamp: &Stamp<'_>) -> String {
        format!(
            "\"type\":\"session.compaction_complete\",\"data\":{{\"success\":true,\"preCompactionTokens\":{},\
             \"summaryContent\":{}}}",
            stamp.tokens_before,
            quote(summary)
        )
    }

    /// The calls that the view shows as they were made.
    fn names<'e>(&self, item: &ViewItem, entry: &'e Entry) -> Vec<&'e str> {
        match item {
            ViewItem::Kept { .. } => entry.calls().collect(),
            _ => Vec::new(),
        }
    }

    fn keeps(&self, at: At<'_>, json: &str, names: &HashSet<&str>) -> bool {
        let event: Event<'_> = serde_json::from_str(json).unwrap_or_default();
        let call = event.call(at);
        let known = call.is_none_or(|call| names.contains(call.as_str()));
        known && KEPT.contains(&event.kind().as_ref())
    }

    /// The system's words.
    fn outlasts_boundary(&self, entry: &Entry) -> bool {
        entry.role == Role::System
    }
}

/// A new entry as events: the results it holds, then what it says.
fn compose(entry: &Entry, model: Option<&str>) -> Vec<(&'static str, String)> {
    let mut events: Vec<(&str, String)> = entry.blocks.iter().filter_map(answer).collect();
    let requests: Vec<String> = entry.blocks.iter().filter_map(request).collect();
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

fn request(block: &Block) -> Option<String> {
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
        arguments(args)
    ))
}

fn answer(block: &Block) -> Option<(&'static str, String)> {
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
