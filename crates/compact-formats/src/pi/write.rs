//! Views to lines, one branch from the first to the last.

use std::collections::HashSet;

use compact_core::message::{Block, Entry, Role};
use compact_core::view::{View, ViewItem};

use super::line::{self, Line, as_message, edited};
use crate::Stamp;
use crate::chain::{self, Chain};
use crate::edit::arguments;
use crate::error::FormatError;
use crate::json::{At, quote};
use crate::wire::{Page, Shown};

/// The view's lines behind the session's head. Furniture follows the line that it stands after.
pub(super) fn emit(page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let mut writer = Writer::new(page, view);
    writer.furniture(0);
    for item in &view.items {
        match page.shown(item)? {
            Shown::New(entry) => writer.new_entry(entry),
            Shown::Kept { place, item } => {
                writer
                    .chain
                    .line(as_message(item).as_deref().unwrap_or(item));
                writer.furniture(place.line + 1);
            }
            Shown::Edited { place, item, edits } => {
                let item = as_message(item).unwrap_or_else(|| item.to_owned());
                if let Some(line) = edited(writer.at(), &item, edits)? {
                    writer.chain.line(&line);
                    writer.furniture(place.line + 1);
                }
            }
        }
    }
    Ok(writer.chain.lines.finish(page.bytes()))
}

struct Writer<'a> {
    page: &'a Page<'a>,
    chain: Chain,
    has_ids: bool,
    /// Lines that are entries.
    said: HashSet<usize>,
    /// Ids of the entries that the view shows.
    shown: HashSet<&'a str>,
}

impl<'a> Writer<'a> {
    fn new(page: &'a Page<'a>, view: &View) -> Self {
        let places = &page.document.places;
        let shown = view.items.iter().filter_map(ViewItem::entry);
        let entries = shown.filter_map(|i| page.conversation.entries.get(i));
        Writer {
            page,
            chain: Chain::new(page.bytes()),
            has_ids: has_ids(page),
            said: places.iter().map(|place| place.line).collect(),
            shown: entries.map(|entry| entry.id.0.as_str()).collect(),
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
            let line: Line<'_> = serde_json::from_str(json.trim_ascii()).unwrap_or_default();
            let known = line
                .subject()
                .is_none_or(|id| self.shown.contains(id.as_ref()));
            let kept = [
                "session",
                "model_change",
                "thinking_level_change",
                "session_info",
                "label",
                "custom",
            ];
            if known && !line.is_copy() && kept.contains(&line.kind().as_ref()) {
                self.chain.line(json);
            }
        }
    }

    fn new_entry(&mut self, entry: &Entry) {
        for message in compose(entry, self.page.conversation.model.as_deref()) {
            let body = format!("\"type\":\"message\",\"message\":{message}");
            self.chain.new_line(&entry.id.0, self.has_ids, &body);
        }
    }
}

/// True unless the session is of the first version, whose lines have no ids.
fn has_ids(page: &Page<'_>) -> bool {
    let mut lines = (0..chain::count(page)).filter_map(|i| {
        let json = chain::json(page, i).trim_ascii();
        serde_json::from_str::<Line<'_>>(json).ok()
    });
    let first = lines.find(|line| line.kind() != "session");
    first.is_none_or(|line| line.id().is_some())
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

/// The session, a compaction with the view's summary, and the rest of the view as lines after it.
///
/// The client shows the summary of a compaction first, so what the view shows before it follows it.
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
        "\"type\":\"compaction\",\"summary\":{},\"firstKeptEntryId\":\"\",\"tokensBefore\":{},\"fromHook\":true",
        quote(&text),
        stamp.tokens_before
    );
    writer.chain.new_line(stamp.receipt, writer.has_ids, &body);
    for item in &view.items {
        let entry = item.entry().and_then(|i| page.conversation.entries.get(i));
        match (page.shown(item)?, entry) {
            (Shown::New(entry), _) if summary.is_some_and(|s| s.id == entry.id) => {}
            (Shown::New(entry), _) => writer.new_entry(entry),
            (Shown::Kept { item, .. }, Some(entry)) => {
                let message = as_message(item);
                writer.chain.copy(message.as_deref().unwrap_or(item), entry);
            }
            (Shown::Edited { item, edits, .. }, Some(entry)) => {
                let item = as_message(item).unwrap_or_else(|| item.to_owned());
                if let Some(line) = edited(writer.at(), &item, edits)? {
                    writer.chain.copy(&line, entry);
                }
            }
            _ => {}
        }
    }
    Ok(writer.chain.lines.finish(page.bytes()))
}
