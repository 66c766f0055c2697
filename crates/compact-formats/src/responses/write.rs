//! Views to items.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use compact_core::message::{Block, Entry, Role};
use compact_core::view::{View, ViewItem};

use super::item;
use crate::Document;
use crate::body::{self, BodyMember, is_beside};
use crate::edit::{EntryEdits, to_arguments_object};
use crate::error::FormatError;
use crate::json::{ItemContext, Members, Patch, quote, string_value};
use crate::list;
use crate::wire::{DocumentContext, ShownItem};

pub(super) fn emit(page: &DocumentContext<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let head = Members::from_json(body::read_text(page.bytes())?.0);
    for field in ["previous_response_id", "conversation"] {
        if head.get(field).is_some_and(|raw| raw.get() != "null") {
            return Err(FormatError::ServerState { field });
        }
    }
    let items = ResponsesWriter::new(page, &view.items)?.write_items(&view.items)?;
    let is_prompt = page.bytes().get(list_start(page)) == Some(&b'"');
    let instructions = changed_instructions(page, view)?;
    if !is_prompt {
        return body::emit(page.document, &items, instructions);
    }
    let list = Cow::Owned(format!("[{}]", items.join(",")));
    body::emit(page.document, &[list], instructions)
}

fn list_start(page: &DocumentContext<'_>) -> usize {
    match &page.document.layout {
        crate::source::SourceLayout::List { open, .. } => *open,
        crate::source::SourceLayout::Lines { .. } => usize::MAX,
    }
}

pub(super) fn extend(
    first: &Document,
    later: &DocumentContext<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    let items: Vec<ViewItem> = (from..later.document.places.len())
        .map(|entry| ViewItem::Kept { entry })
        .collect();
    let added = ResponsesWriter::new(later, &items)?.write_items(&items)?;
    let added: Vec<&str> = added.iter().map(AsRef::as_ref).collect();
    Ok(list::extend(first, &added))
}

struct ResponsesWriter<'a> {
    page: &'a DocumentContext<'a>,
    /// Responses with reasoning of which the view does not show every item as it was.
    torn: HashSet<&'a str>,
}

impl<'a> ResponsesWriter<'a> {
    fn new(page: &'a DocumentContext<'a>, items: &[ViewItem]) -> Result<Self, FormatError> {
        let mut missing: HashMap<&str, usize> = HashMap::new();
        let mut thinks: HashSet<&str> = HashSet::new();
        for entry in &page.conversation.entries {
            if let Some(group) = entry.meta.group.as_deref() {
                *missing.entry(group).or_default() += 1;
                if is_reasoning(entry) {
                    thinks.insert(group);
                }
            }
        }
        for item in items {
            let group = item
                .entry_index()
                .and_then(|i| page.conversation.entries.get(i))
                .and_then(|entry| entry.meta.group.as_deref());
            if let Some(count) = group.and_then(|group| missing.get_mut(group))
                && is_shown_whole(page, item)?
            {
                *count -= 1;
            }
        }
        thinks.retain(|group| missing.get(group).is_some_and(|count| *count > 0));
        Ok(ResponsesWriter { page, torn: thinks })
    }

    fn item_context(&self) -> ItemContext<'a> {
        ItemContext {
            source: self.page.bytes(),
            offset: 0,
        }
    }

    fn write_items(&self, items: &'a [ViewItem]) -> Result<Vec<Cow<'a, str>>, FormatError> {
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            match self.page.resolve_item(item)? {
                ShownItem::New(entry) => {
                    out.extend(compose_items(entry).into_iter().map(Cow::Owned))
                }
                ShownItem::Kept { place, .. } | ShownItem::Edited { place, .. }
                    if is_beside(place) => {}
                ShownItem::Kept { item: json, .. } => {
                    out.extend(self.finish_item(item, Cow::Borrowed(json))?);
                }
                ShownItem::Edited {
                    item: json, edits, ..
                } => {
                    let json = as_item(json);
                    if let Some(edited) = item::apply_edits(self.item_context(), &json, edits)? {
                        out.extend(self.finish_item(item, Cow::Owned(edited))?);
                    }
                }
            }
        }
        Ok(out)
    }

    /// Finishes an item of a view: one of a torn response loses its reasoning and its id.
    fn finish_item(
        &self,
        item: &ViewItem,
        json: Cow<'a, str>,
    ) -> Result<Option<Cow<'a, str>>, FormatError> {
        let entry = item
            .entry_index()
            .and_then(|i| self.page.conversation.entries.get(i));
        let group = entry.and_then(|entry| entry.meta.group.as_deref());
        let Some(entry) = entry.filter(|_| group.is_some_and(|g| self.torn.contains(g))) else {
            return Ok(Some(if json.starts_with('"') {
                Cow::Owned(as_item(&json).into_owned())
            } else {
                json
            }));
        };
        if is_reasoning(entry) {
            return Ok(None);
        }
        Ok(Some(Cow::Owned(without_id(&json, entry))))
    }
}

/// Returns an input that is a string, as an item.
fn as_item(json: &str) -> Cow<'_, str> {
    if json.starts_with('"') {
        return Cow::Owned(format!(
            "{{\"type\":\"message\",\"role\":\"user\",\"content\":{json}}}"
        ));
    }
    Cow::Borrowed(json)
}

fn is_reasoning(entry: &Entry) -> bool {
    matches!(entry.blocks.as_slice(), [Block::Reasoning { .. }])
}

/// Returns whether an item shows its entry as the item that it was.
fn is_shown_whole(page: &DocumentContext<'_>, item: &ViewItem) -> Result<bool, FormatError> {
    let at = ItemContext {
        source: page.bytes(),
        offset: 0,
    };
    match page.resolve_item(item)? {
        ShownItem::New(_) => Ok(false),
        ShownItem::Kept { .. } => Ok(true),
        ShownItem::Edited { item, edits, .. } => {
            let edited = item::apply_edits(at, item, edits)?;
            Ok(edited.is_some() && item::keeps_its_type(at, item, edits)?)
        }
    }
}

/// Returns an item without the id by which the provider would look for its reasoning. A tool that the
/// provider ran is known by its id alone, so words take its place.
fn without_id(json: &str, entry: &Entry) -> String {
    let members = Members::from_json(json);
    let kind = string_value(members.get("type")).unwrap_or_default();
    if kind == "mcp_approval_request" {
        return json.to_owned();
    }
    if kind.ends_with("_call") && entry.call_ids().next().is_none() {
        return render_message(Role::Assistant, &entry.plain_text());
    }
    let mut patch = Patch::new(json);
    let texts: Vec<&str> = entry.blocks.iter().filter_map(text_of).collect();
    let is_words = texts.len() == entry.blocks.len() && kind == "message";
    if let Some(content) = members.get("content").filter(|_| is_words) {
        patch.replace(content, quote(&texts.join("\n")));
    }
    patch.remove_members(&members, |m| m.key == "id" || is_words && m.key == "status");
    patch.finish()
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns the instructions, when the view changes them.
fn changed_instructions(
    page: &DocumentContext<'_>,
    view: &View,
) -> Result<Option<BodyMember>, FormatError> {
    if !page.document.places.iter().any(is_beside) {
        return Ok(None);
    }
    let mut shown = None;
    for item in &view.items {
        match page.resolve_item(item)? {
            ShownItem::Kept { place, .. } if is_beside(place) => return Ok(None),
            ShownItem::Edited { place, edits, .. } if is_beside(place) => {
                shown = new_text(edits).map(quote);
            }
            _ => {}
        }
    }
    Ok(Some(BodyMember {
        key: "instructions",
        json: shown.unwrap_or_else(|| "null".to_owned()),
    }))
}

fn new_text(edits: EntryEdits<'_>) -> Option<&str> {
    match edits.for_block(0) {
        Some(compact_core::view::BlockEdit::SetText(text)) => Some(text),
        _ => None,
    }
}

fn render_message(role: Role, text: &str) -> String {
    let role = if role == Role::Tool { Role::User } else { role };
    format!(
        "{{\"type\":\"message\",\"role\":\"{role}\",\"content\":{}}}",
        quote(text)
    )
}

/// Returns a new entry as items: a message for each of its texts, then calls, then outputs.
fn compose_items(entry: &Entry) -> Vec<String> {
    let words = entry.blocks.iter().filter_map(|block| match block {
        Block::Text(text) if !text.is_empty() => Some(render_message(entry.role, text)),
        _ => None,
    });
    words
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
            "{{\"type\":\"function_call\",\"call_id\":{},\"name\":{},\"arguments\":{}}}",
            quote(id),
            quote(name),
            quote(&to_arguments_object(text))
        )),
        Block::ToolResult { call, content, .. } => Some(format!(
            "{{\"type\":\"function_call_output\",\"call_id\":{},\"output\":{}}}",
            quote(call),
            quote(content)
        )),
        _ => None,
    }
}
