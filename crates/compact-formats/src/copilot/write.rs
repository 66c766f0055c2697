//! Views to events.

use std::borrow::Cow;
use std::collections::HashSet;

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::view::{View, ViewItem};
use serde_json::value::RawValue;

use super::event::{Event, edited};
use crate::Stamp;
use crate::chain::{self, Chain};
use crate::edit::arguments;
use crate::error::FormatError;
use crate::json::{At, Members, Patch, lenient, quote};
use crate::wire::{Page, Shown};

/// The view's events. Furniture follows the event that it stands after.
pub(super) fn emit(page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let mut writer = Writer::new(page, view);
    writer.furniture(0);
    for item in &view.items {
        match page.shown(item)? {
            Shown::New(entry) => writer.new_entry(entry),
            Shown::Kept { place, item } => {
                writer.chain.line(&as_message(item));
                writer.furniture(place.line + 1);
            }
            Shown::Edited { place, item, edits } => {
                if let Some(line) = edited(writer.at(), &as_message(item), edits)? {
                    writer.chain.line(&line);
                    writer.furniture(place.line + 1);
                }
            }
        }
    }
    Ok(writer.chain.lines.finish(page.bytes()))
}

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

struct Writer<'a> {
    page: &'a Page<'a>,
    chain: Chain,
    /// Lines that are entries.
    said: HashSet<usize>,
    /// Calls that the view shows as they were made.
    calls: HashSet<&'a str>,
}

impl<'a> Writer<'a> {
    fn new(page: &'a Page<'a>, view: &View) -> Self {
        let places = &page.document.places;
        let kept = view.items.iter().filter_map(|item| match item {
            ViewItem::Kept { entry } => page.conversation.entries.get(*entry),
            _ => None,
        });
        Writer {
            page,
            chain: Chain::new(page.bytes()),
            said: places.iter().map(|place| place.line).collect(),
            calls: kept.flat_map(Entry::calls).collect(),
        }
    }

    fn at(&self) -> At<'a> {
        At {
            source: self.page.bytes(),
            offset: 0,
        }
    }

    /// Writes the furniture from a line up to the next entry.
    fn furniture(&mut self, from: usize) {
        let until = (from..chain::count(self.page)).take_while(|i| !self.said.contains(i));
        let until: Vec<usize> = until.collect();
        for index in until {
            let json = chain::json(self.page, index);
            let event: Event<'_> = serde_json::from_str(json.trim_ascii()).unwrap_or_default();
            let call = event.call(self.at());
            let known = call.is_none_or(|call| self.calls.contains(call.as_str()));
            if known && KEPT.contains(&event.kind().as_ref()) {
                self.chain.line(json);
            }
        }
    }

    fn new_entry(&mut self, entry: &Entry) {
        let model = self.page.conversation.model.as_deref();
        for (kind, data) in compose(entry, model) {
            let body = format!("\"type\":\"{kind}\",\"data\":{data}");
            self.chain.new_line(&entry.id.0, true, &body);
        }
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

/// The session, a compaction with the view's summary, and the rest of the view as events after it.
///
/// The summary of a compaction comes first, so what the view shows before it follows it. The
/// system's words stay in force and are not repeated.
pub(super) fn append(
    page: &Page<'_>,
    view: &View,
    stamp: &Stamp<'_>,
) -> Result<Vec<u8>, FormatError> {
    let mut writer = Writer {
        chain: Chain::after(page.bytes()),
        ..Writer::new(page, view)
    };
    writer.chain.timestamp = quote(stamp.timestamp);
    let summary = view.summary();
    let text = summary.map(Entry::plain_text).unwrap_or_default();
    let body = format!(
        "\"type\":\"session.compaction_complete\",\"data\":{{\"success\":true,\"preCompactionTokens\":{},\
         \"summaryContent\":{}}}",
        stamp.tokens_before,
        quote(&text)
    );
    writer.chain.new_line(stamp.receipt, true, &body);
    for item in &view.items {
        let entry = item.entry().and_then(|i| page.conversation.entries.get(i));
        let is_system = entry.is_some_and(|entry| entry.role == Role::System);
        match (page.shown(item)?, entry) {
            (Shown::New(entry), _) if summary.is_some_and(|s| s.id == entry.id) => {}
            (Shown::New(entry), _) => writer.new_entry(entry),
            (Shown::Kept { .. }, _) if is_system => {}
            (Shown::Kept { item, .. }, Some(entry)) => {
                writer.chain.copy(&as_message(item), entry);
            }
            (Shown::Edited { item, edits, .. }, Some(entry)) => {
                if let Some(line) = edited(writer.at(), &as_message(item), edits)? {
                    writer.chain.copy(&line, entry);
                }
            }
            _ => {}
        }
    }
    Ok(writer.chain.lines.finish(page.bytes()))
}
