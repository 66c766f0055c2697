//! Views to messages.

use std::collections::HashMap;
use std::ops::Range;

use compact_core::message::{Block, Entry, Role};
use compact_core::view::View;

use super::cache;
use super::read::{AnthropicMessage, split_message};
use crate::body::{self, BodyMember, messages};
use crate::edit::{BlockPiece, to_arguments_object};
use crate::error::FormatError;
use crate::json::{ItemContext, Members, quote};
use crate::wire::DocumentContext;

pub(super) struct AnthropicDialect;

impl messages::MessageDialect for AnthropicDialect {
    fn read_pieces<'a>(
        &self,
        at: ItemContext<'_>,
        json: &'a str,
    ) -> Result<Vec<BlockPiece<'a>>, FormatError> {
        AnthropicMessage::from_json(at, json)?.read_pieces(at)
    }

    fn entry_ranges(&self, json: &str, blocks: &[Block]) -> Vec<Range<usize>> {
        let message = serde_json::from_str::<AnthropicMessage<'_>>(json).unwrap_or_default();
        split_message(message.role(), blocks)
    }

    fn text_part(&self, text: &str) -> String {
        text_block(text)
    }

    fn compose_message(&self, entry: &Entry, _tools: &HashMap<&str, &str>) -> Option<String> {
        compose_message(entry)
    }
}

pub(super) fn emit(page: &DocumentContext<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let mut messages = messages::write_messages(&AnthropicDialect, page, &view.items)?;
    let system =
        body::changed_instructions(&AnthropicDialect, page, view)?.map(|blocks| BodyMember {
            key: "system",
            json: format!("[{}]", blocks.join(",")),
        });
    let head = Members::from_json(body::read_text(page.bytes())?.0);
    let kept = |key: &str| {
        head.get(key)
            .map_or(0, |raw| cache::count_breakpoints(raw.get()))
    };
    cache::limit_breakpoints(&mut messages, kept("system") + kept("tools"));
    body::emit(page.document, &messages, system)
}

fn text_block(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))
}

/// Returns a new entry as a message: results first, because the provider wants them there.
fn compose_message(entry: &Entry) -> Option<String> {
    let role = match entry.role {
        Role::Assistant => "assistant",
        _ => "user",
    };
    let is_answer = |b: &&Block| matches!(b, Block::ToolResult { .. });
    let answers = entry.blocks.iter().filter(is_answer);
    let others = entry.blocks.iter().filter(|b| !is_answer(b));
    let blocks: Vec<String> = answers.chain(others).filter_map(render_block).collect();
    let text = match entry.blocks.as_slice() {
        [Block::Text(text)] if !text.trim().is_empty() => Some(quote(text)),
        _ => None,
    };
    let content = text.unwrap_or_else(|| format!("[{}]", blocks.join(",")));
    (!blocks.is_empty()).then(|| format!("{{\"role\":\"{role}\",\"content\":{content}}}"))
}

/// Returns a block as JSON; blank texts and what cannot be said anew have none.
fn render_block(block: &Block) -> Option<String> {
    match block {
        Block::Text(text) if text.trim().is_empty() => None,
        Block::Text(text) => Some(text_block(text)),
        Block::ToolCall {
            id,
            name,
            arguments: text,
        } => Some(format!(
            "{{\"type\":\"tool_use\",\"id\":{},\"name\":{},\"input\":{}}}",
            quote(id),
            quote(name),
            to_arguments_object(text)
        )),
        Block::ToolResult {
            call,
            content,
            is_error,
        } => {
            let error = if *is_error { ",\"is_error\":true" } else { "" };
            Some(format!(
                "{{\"type\":\"tool_result\",\"tool_use_id\":{},\"content\":{}{error}}}",
                quote(call),
                quote(content)
            ))
        }
        Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => None,
    }
}
