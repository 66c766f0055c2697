//! Views to lines, or to the replacement history of one line.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use compact_core::message::{Block, Entry, Role};
use compact_core::view::View;
use serde_json::value::RawValue;

use super::read::CodexLine;
use crate::edit::to_arguments_object;
use crate::error::FormatError;
use crate::json::{ItemContext, Members, Patch, is_object, quote, string_value};
use crate::responses::item;
use crate::source::{EntryPlace, SourceLayout, line_spans};
use crate::special_text::has_only_elements;
use crate::surrogate::readable_text;
use crate::wire::{DocumentContext, LineWriter, ShownItem};
use crate::{BoundaryStamp, Document};

/// Returns the view's lines, led by the session's own metadata.
///
/// Furniture follows the entry it stands after, except token counts: they measured another context.
pub(super) fn emit(page: &DocumentContext<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let mut writer = CodexWriter::new(page, view);
    writer.write_head(view)?;
    for item in &view.items {
        match page.resolve_item(item)? {
            ShownItem::New(entry) => writer.write_new_entry(entry),
            ShownItem::Kept { place, .. } if Some(place.line) == writer.base => {}
            ShownItem::Edited { place, .. } if Some(place.line) == writer.base => {}
            ShownItem::Kept { place, item } => writer.write_entry(place, &as_item(item)),
            ShownItem::Edited { place, item, edits } => {
                let item = as_item(item);
                if let Some(item) = item::apply_edits(writer.item_context(), &item, edits)? {
                    writer.write_entry(place, &item);
                }
            }
        }
    }
    Ok(writer.lines.finish(page.bytes()))
}

/// Converts the message of a compaction, which is a string in the source, to a user's message.
fn as_item(json: &str) -> Cow<'_, str> {
    match serde_json::from_str::<String>(&readable_text(json)) {
        Ok(text) => Cow::Owned(item::message_item(Role::User, &text)),
        Err(_) => Cow::Borrowed(json),
    }
}

struct CodexWriter<'a> {
    page: &'a DocumentContext<'a>,
    lines: LineWriter,
    /// The line of the session's metadata.
    base: Option<usize>,
    said: HashSet<usize>,
    calls: HashSet<&'a str>,
    /// As JSON: that of the latest line written.
    timestamp: String,
}

impl<'a> CodexWriter<'a> {
    fn new(page: &'a DocumentContext<'a>, view: &View) -> Self {
        let entries = &page.conversation.entries;
        let shown = view
            .items
            .iter()
            .filter_map(|item| entries.get(item.entry_index()?));
        let mut writer = CodexWriter {
            page,
            lines: LineWriter::new(page.bytes()),
            base: None,
            said: page
                .document
                .places
                .iter()
                .map(|place| place.line)
                .collect(),
            calls: shown.flat_map(|entry| entry.call_ids()).collect(),
            timestamp: "\"1970-01-01T00:00:00.000Z\"".to_owned(),
        };
        writer.base =
            (0..writer.line_count()).find(|index| writer.has_type(*index, "session_meta"));
        writer
    }

    fn item_context(&self) -> ItemContext<'a> {
        ItemContext {
            source: self.page.bytes(),
            offset: 0,
        }
    }

    fn line_count(&self) -> usize {
        match &self.page.document.layout {
            SourceLayout::Lines { lines, .. } => lines.len(),
            SourceLayout::List { .. } => 0,
        }
    }

    fn line_json(&self, index: usize) -> &'a str {
        let SourceLayout::Lines { lines, .. } = &self.page.document.layout else {
            return "";
        };
        let bytes = lines
            .get(index)
            .and_then(|span| self.page.bytes().get(span.clone()));
        std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    }

    fn parse_line(&self, index: usize) -> CodexLine<'a> {
        serde_json::from_str(self.line_json(index)).unwrap_or_default()
    }

    fn has_type(&self, index: usize, kind: &str) -> bool {
        string_value(self.parse_line(index).r#type).as_deref() == Some(kind)
    }

    /// Writes the metadata, without instructions that the view does not show, and the latest settings.
    fn write_head(&mut self, view: &View) -> Result<(), FormatError> {
        if let Some(base) = self.base {
            let line = self.parse_line(base);
            let payload = line.payload.map_or("{}", RawValue::get);
            let entry = self
                .page
                .document
                .places
                .iter()
                .position(|place| place.line == base);
            let shown = view
                .items
                .iter()
                .find(|item| item.entry_index().is_some() && item.entry_index() == entry);
            let payload = match shown.map(|item| self.page.resolve_item(item)).transpose()? {
                Some(ShownItem::Edited { item, edits, .. }) => {
                    item::apply_edits(self.item_context(), item, edits)?
                }
                Some(_) => Some(payload.to_owned()),
                None => None,
            };
            let payload = payload.or_else(|| self.without_instructions(base));
            self.write_with_payload(base, payload.as_deref());
        }
        let settings = (0..self.line_count())
            .rev()
            .find(|index| self.has_type(*index, "turn_context"));
        if let Some(settings) = settings {
            self.lines.write_line(self.line_json(settings).as_bytes());
        }
        Ok(())
    }

    fn without_instructions(&self, base: usize) -> Option<String> {
        let payload = self.parse_line(base).payload?;
        let members = Members::from_json(payload.get());
        let mut patch = Patch::new(payload.get());
        for key in ["base_instructions", "instructions"] {
            if let Some(value) = members.get(key) {
                patch.replace(value, "null".to_owned());
            }
        }
        Some(patch.finish())
    }

    /// Writes a line of the source, its payload replaced if it changed.
    fn write_with_payload(&mut self, index: usize, payload: Option<&str>) {
        let json = self.line_json(index);
        let line = self.parse_line(index);
        if let Some(timestamp) = line.timestamp {
            timestamp.get().clone_into(&mut self.timestamp);
        }
        match (line.payload, payload) {
            (Some(old), Some(new)) if old.get() != new => {
                let mut patch = Patch::new(json);
                patch.replace(old, new.to_owned());
                self.lines.write_line(patch.finish().as_bytes());
            }
            _ => self.lines.write_line(json.as_bytes()),
        }
    }

    /// Writes an entry: its own line, or a new one when it stood within a line.
    fn write_entry(&mut self, place: &EntryPlace, item: &str) {
        if place.part.is_some() {
            if let Some(timestamp) = self.parse_line(place.line).timestamp {
                timestamp.get().clone_into(&mut self.timestamp);
            }
            return self.write_item(item);
        }
        self.write_with_payload(place.line, Some(item));
        let following =
            (place.line + 1..self.line_count()).take_while(|index| !self.said.contains(index));
        let kept: Vec<usize> = following.filter(|index| self.is_kept(*index)).collect();
        for index in kept {
            self.lines.write_line(self.line_json(index).as_bytes());
        }
    }

    fn is_kept(&self, index: usize) -> bool {
        let line = self.parse_line(index);
        let kind = string_value(line.r#type).unwrap_or_default();
        if kind.is_empty()
            || ["session_meta", "turn_context", "response_item", "compacted"]
                .contains(&kind.as_ref())
        {
            return false;
        }
        let payload = Members::from_json(line.payload.map_or("{}", RawValue::get));
        let is_count = string_value(payload.get("type")).as_deref() == Some("token_count");
        let call = string_value(payload.get("call_id"));
        !is_count && call.is_none_or(|call| self.calls.contains(call.as_ref()))
    }

    fn write_new_entry(&mut self, entry: &Entry) {
        if let Some(moment) = self.page.moment_of(entry) {
            moment.clone_into(&mut self.timestamp);
        }
        let items = compose_items(entry);
        items.iter().for_each(|item| self.write_item(item));
    }

    fn write_item(&mut self, item: &str) {
        let line = response_item(&self.timestamp, item);
        self.lines.write_line(line.as_bytes());
    }
}

fn response_item(timestamp: &str, item: &str) -> String {
    format!("{{\"timestamp\":{timestamp},\"type\":\"response_item\",\"payload\":{item}}}")
}

/// Returns a new entry as items: a message, then calls, then outputs.
fn compose_items(entry: &Entry) -> Vec<String> {
    let role = if entry.role == Role::Tool {
        Role::User
    } else {
        entry.role
    };
    let texts: Vec<String> = entry
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(item::text_part(role, text)),
            _ => None,
        })
        .collect();
    let message = (!texts.is_empty()).then(|| {
        format!(
            "{{\"type\":\"message\",\"role\":\"{role}\",\"content\":[{}]}}",
            texts.join(",")
        )
    });
    message
        .into_iter()
        .chain(entry.blocks.iter().filter_map(call_or_output))
        .collect()
}

fn call_or_output(block: &Block) -> Option<String> {
    match block {
        Block::ToolCall {
            id,
            name,
            arguments: text,
        } => Some(format!(
            "{{\"type\":\"function_call\",\"name\":{},\"arguments\":{},\"call_id\":{}}}",
            quote(name),
            quote(&to_arguments_object(text)),
            quote(id)
        )),
        Block::ToolResult { call, content, .. } => Some(format!(
            "{{\"type\":\"function_call_output\",\"call_id\":{},\"output\":{}}}",
            quote(call),
            quote(content)
        )),
        _ => None,
    }
}

/// Returns a `compacted` line whose replacement history is the view.
///
/// The base instructions are not part of a history: the session's metadata stays in force. Neither
/// are its surroundings where Codex tells them anew.
pub(super) fn append(
    page: &DocumentContext<'_>,
    view: &View,
    stamp: &BoundaryStamp<'_>,
) -> Result<Vec<u8>, FormatError> {
    let at = ItemContext {
        source: page.bytes(),
        offset: 0,
    };
    let mut items: Vec<Cow<'_, str>> = Vec::with_capacity(view.items.len());
    let tells_anew = repeats_surroundings(page.bytes());
    for item in &view.items {
        let entry = item
            .entry_index()
            .and_then(|i| page.conversation.entries.get(i));
        if tells_anew && entry.is_some_and(is_surroundings) {
            continue;
        }
        match page.resolve_item(item)? {
            ShownItem::New(entry) => items.extend(compose_items(entry).into_iter().map(Cow::Owned)),
            ShownItem::Kept { item, .. } if is_item(item) => items.push(as_item(item)),
            ShownItem::Edited { item, edits, .. } if is_item(item) => {
                items.extend(item::apply_edits(at, &as_item(item), edits)?.map(Cow::Owned));
            }
            ShownItem::Kept { .. } | ShownItem::Edited { .. } => {}
        }
    }
    let line = format!(
        "{{\"timestamp\":{},{}\"type\":\"compacted\",\
         \"payload\":{{\"message\":\"\",\"replacement_history\":[{}]}}}}",
        quote(stamp.timestamp),
        next_ordinal(page.bytes()).map_or_else(String::new, |next| format!("\"ordinal\":{next},")),
        items.join(",")
    );
    let mut writer = LineWriter::following(page.bytes());
    writer.write_line(line.as_bytes());
    Ok(writer.into_lines())
}

/// Returns the number of the next line, where lines are numbered: Codex resumes no rollout with a gap in it.
fn next_ordinal(source: &[u8]) -> Option<u64> {
    let ordinal = |span: Range<usize>| {
        let line = std::str::from_utf8(source.get(span)?).ok()?;
        let raw = Members::from_json(line).get("ordinal")?;
        raw.get().parse::<u64>().ok()
    };
    let last = line_spans(source).into_iter().rev().find_map(ordinal)?;
    last.checked_add(1)
}

/// Returns whether this Codex keeps track of what it told the model of itself, and tells all of it again after
/// a compaction.
fn repeats_surroundings(source: &[u8]) -> bool {
    memchr::memmem::find(source, b"\"type\":\"world_state\"").is_some()
}

/// The elements that Codex tells its surroundings in.
const SURROUNDINGS: [&str; 7] = [
    "environment_context",
    "permissions instructions",
    "skills_instructions",
    "plugins_instructions",
    "apps_instructions",
    "collaboration_mode",
    "user_instructions",
];

fn is_surroundings(entry: &Entry) -> bool {
    let is_element = |block: &Block| matches!(block, Block::Text(text) if has_only_elements(text, &SURROUNDINGS));
    let is_said = matches!(entry.role, Role::User | Role::Developer);
    is_said && !entry.blocks.is_empty() && entry.blocks.iter().all(is_element)
}

/// Returns false for the session's metadata, which is no item of a history.
fn is_item(json: &str) -> bool {
    match serde_json::from_str::<&RawValue>(json) {
        Ok(raw) if is_object(raw) => Members::from_json(json).get("type").is_some(),
        _ => true,
    }
}

/// Returns the first rollout and the later one's lines from the entry on.
pub(super) fn extend(
    first: &Document,
    later: &DocumentContext<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    let SourceLayout::Lines { lines, .. } = &later.document.layout else {
        return Ok(first.source.to_vec());
    };
    let mut writer = LineWriter::starting_with(&first.source);
    let mut next = later.document.places.len();
    for index in from..later.document.places.len() {
        let (place, json) = later.entry_source(index)?;
        if place.part.is_none() {
            next = place.line;
            break;
        }
        let holder = lines
            .get(place.line)
            .and_then(|span| later.bytes().get(span.clone()));
        let holder =
            serde_json::from_slice::<CodexLine<'_>>(holder.unwrap_or_default()).unwrap_or_default();
        let timestamp = holder.timestamp.map_or("null", RawValue::get);
        writer.write_line(response_item(timestamp, &as_item(json)).as_bytes());
        next = place.line + 1;
    }
    for span in lines.iter().skip(next) {
        writer.write_line(later.bytes().get(span.clone()).unwrap_or_default());
    }
    Ok(writer.finish(later.bytes()))
}
