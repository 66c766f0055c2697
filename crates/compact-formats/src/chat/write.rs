//! Views to chat messages.

use std::borrow::Cow;

use compact_core::message::{Block, Entry, Role};
use compact_core::view::View;

use super::read::{Message, known_role, pieces};
use crate::Document;
use crate::edit::{self, Edits};
use crate::error::FormatError;
use crate::json::{At, lenient, quote};
use crate::list;
use crate::wire::{Page, Shown};

/// The view in the document's own layout; `finish` has the last word on a message that changed.
pub(crate) fn emit(
    page: &Page<'_>,
    view: &View,
    finish: &dyn Fn(String) -> String,
) -> Result<Vec<u8>, FormatError> {
    let mut messages = Vec::with_capacity(view.items.len());
    let extra = extra_content(page);
    for item in &view.items {
        match page.shown(item)? {
            Shown::Kept { item, .. } => messages.push(Cow::Borrowed(item)),
            Shown::Edited { item, edits, .. } => {
                messages.extend(edited(page, item, edits)?.map(finish).map(Cow::Owned));
            }
            Shown::New(entry) => {
                messages.extend(compose(entry, extra).into_iter().map(Cow::Owned));
            }
        }
    }
    Ok(list::emit(page.document, &messages))
}

pub(crate) fn extend(
    first: &Document,
    later: &Page<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    let mut added = Vec::new();
    for index in from..later.document.places.len() {
        added.push(later.entry(index)?.1);
    }
    Ok(list::extend(first, &added))
}

fn edited(page: &Page<'_>, item: &str, edits: Edits<'_>) -> Result<Option<String>, FormatError> {
    let at = At {
        source: page.bytes(),
        offset: 0,
    };
    let message: Message<'_> = at.read(item)?;
    let role = lenient(message.role)
        .and_then(|name| known_role(&name))
        .unwrap_or(Role::User);
    let pieces = pieces(at, &message, role)?;
    Ok(edit::apply(item, &pieces, edits, &text_part))
}

fn text_part(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))
}

/// What the first call of a new message carries beside itself: Gemini 3 wants a signature back, and
/// takes this in place of one that it never made.
fn extra_content(page: &Page<'_>) -> &'static str {
    let model = page.conversation.model.as_deref().unwrap_or_default();
    if model.contains("gemini-3") {
        r#","extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}"#
    } else {
        ""
    }
}

/// A new entry as messages: one, or one per tool result.
fn compose(entry: &Entry, extra: &str) -> Vec<String> {
    let mut messages: Vec<String> = entry.blocks.iter().filter_map(answer).collect();
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
        .filter_map(|block| call(block, &mut extra))
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

fn call(block: &Block, extra: &mut dyn Iterator<Item = &str>) -> Option<String> {
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

fn answer(block: &Block) -> Option<String> {
    let Block::ToolResult { call, content, .. } = block else {
        return None;
    };
    Some(format!(
        "{{\"role\":\"tool\",\"tool_call_id\":{},\"content\":{}}}",
        quote(call),
        quote(content)
    ))
}
