//! Views to chat messages.

use std::borrow::Cow;

use compact_core::message::{Block, Entry, Role};
use compact_core::view::View;

use super::read::{ChatMessage, parse_role, read_pieces};
use crate::Document;
use crate::edit::{self, EntryEdits};
use crate::error::FormatError;
use crate::json::{ItemContext, quote, string_value};
use crate::list;
use crate::surrogate::readable_text;
use crate::wire::{DocumentContext, ShownItem};

/// Returns the view in the document's own layout; `finish` has the last word on a message that changed.
pub(crate) fn emit(
    page: &DocumentContext<'_>,
    view: &View,
    finish: &dyn Fn(String) -> String,
) -> Result<Vec<u8>, FormatError> {
    let mut messages = Vec::with_capacity(view.items.len());
    let extra = extra_content(page);
    for item in &view.items {
        match page.resolve_item(item)? {
            ShownItem::Kept { item, .. } => messages.push(Cow::Borrowed(item)),
            ShownItem::Edited { item, edits, .. } => {
                messages.extend(edit_message(page, item, edits)?.map(finish).map(Cow::Owned));
            }
            ShownItem::New(entry) => {
                messages.extend(compose_messages(entry, extra).into_iter().map(Cow::Owned));
            }
        }
    }
    Ok(list::emit(page.document, &messages))
}

pub(crate) fn extend(
    first: &Document,
    later: &DocumentContext<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    let mut added = Vec::new();
    for index in from..later.document.places.len() {
        added.push(later.entry_source(index)?.1);
    }
    Ok(list::extend(first, &added))
}

fn edit_message(
    page: &DocumentContext<'_>,
    item: &str,
    edits: EntryEdits<'_>,
) -> Result<Option<String>, FormatError> {
    let item = &*readable_text(item);
    let at = ItemContext {
        source: page.bytes(),
        offset: 0,
    };
    let message: ChatMessage<'_> = at.read(item)?;
    let role = string_value(message.role)
        .and_then(|name| parse_role(&name))
        .unwrap_or(Role::User);
    let pieces = read_pieces(at, &message, role)?;
    Ok(edit::apply_edits(item, &pieces, edits, &text_part))
}

fn text_part(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))
}

/// Returns what the first call of a new message carries beside itself: Gemini 3 wants a signature back, and
/// takes this in place of one that it never made.
fn extra_content(page: &DocumentContext<'_>) -> &'static str {
    let model = page.conversation.model.as_deref().unwrap_or_default();
    if model.contains("gemini-3") {
        r#","extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}"#
    } else {
        ""
    }
}

/// Returns a new entry as messages: one, or one per tool result.
fn compose_messages(entry: &Entry, extra: &str) -> Vec<String> {
    let mut messages: Vec<String> = entry.blocks.iter().filter_map(render_result).collect();
    let texts: Vec<&str> = entry
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let mut extra = std::iter::once(extra).chain(std::iter::repeat(""));
    let calls: Vec<String> = entry
        .blocks
        .iter()
        .filter_map(|block| render_call(block, &mut extra))
        .collect();
    if texts.is_empty() && calls.is_empty() {
        return messages;
    }
    let content = match texts.as_slice() {
        [] => "null".to_owned(),
        [text] => quote(text),
        texts => format!(
            "[{}]",
            texts
                .iter()
                .map(|t| text_part(t))
                .collect::<Vec<_>>()
                .join(",")
        ),
    };
    let calls = match calls.as_slice() {
        [] => String::new(),
        calls => format!(",\"tool_calls\":[{}]", calls.join(",")),
    };
    messages.push(format!(
        "{{\"role\":\"{}\",\"content\":{content}{calls}}}",
        entry.role
    ));
    messages
}

fn render_call(block: &Block, extra: &mut dyn Iterator<Item = &str>) -> Option<String> {
    let Block::ToolCall {
        id,
        name,
        arguments,
    } = block
    else {
        return None;
    };
    Some(format!(
        "{{\"id\":{},\"type\":\"function\",\"function\":{{\"name\":{},\"arguments\":{}}}{}}}",
        quote(id),
        quote(name),
        quote(arguments),
        extra.next().unwrap_or_default()
    ))
}

fn render_result(block: &Block) -> Option<String> {
    let Block::ToolResult { call, content, .. } = block else {
        return None;
    };
    Some(format!(
        "{{\"role\":\"tool\",\"tool_call_id\":{},\"content\":{}}}",
        quote(call),
        quote(content)
    ))
}
