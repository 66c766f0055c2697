//! Views to contents.

use std::collections::HashMap;
use std::ops::Range;

use compact_core::message::{Block, Entry, Role};
use compact_core::view::View;

use super::read::GeminiContent;
use crate::body::{self, BodyMember, messages};
use crate::edit::{BlockPiece, to_arguments_object};
use crate::error::FormatError;
use crate::json::{ItemContext, Members, quote};
use crate::wire::DocumentContext;

/// Taken in place of a signature that the provider never made.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub(super) struct GeminiDialect;

impl messages::MessageDialect for GeminiDialect {
    fn read_pieces<'a>(
        &self,
        at: ItemContext<'_>,
        json: &'a str,
    ) -> Result<Vec<BlockPiece<'a>>, FormatError> {
        GeminiContent::from_json(at, json)?.read_pieces(at)
    }

    fn entry_ranges(&self, _json: &str, blocks: &[Block]) -> Vec<Range<usize>> {
        std::iter::once(0..blocks.len()).collect()
    }

    fn text_part(&self, text: &str) -> String {
        text_part(text)
    }

    fn joins_neighbours(&self) -> bool {
        true
    }

    fn compose_message(&self, entry: &Entry, tools: &HashMap<&str, &str>) -> Option<String> {
        compose_content(entry, tools)
    }
}

pub(super) fn emit(page: &DocumentContext<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let contents = messages::write_messages(&GeminiDialect, page, &view.items)?;
    let parts = body::changed_instructions(&GeminiDialect, page, view)?;
    let head = Members::from_json(body::read_text(page.bytes())?.0);
    let instructions = parts.map(|parts| BodyMember {
        key: match head.get("system_instruction") {
            Some(_) => "system_instruction",
            None => "systemInstruction",
        },
        json: format!("{{\"parts\":[{}]}}", parts.join(",")),
    });
    body::emit(page.document, &contents, instructions)
}

fn text_part(text: &str) -> String {
    format!("{{\"text\":{}}}", quote(text))
}

/// Returns a new entry as a content: responses first, because the provider wants them there.
fn compose_content(entry: &Entry, tools: &HashMap<&str, &str>) -> Option<String> {
    let role = match entry.role {
        Role::Assistant => "model",
        _ => "user",
    };
    let is_answer = |b: &&Block| matches!(b, Block::ToolResult { .. });
    let answers = entry.blocks.iter().filter(is_answer);
    let others = entry.blocks.iter().filter(|b| !is_answer(b));
    let mut is_first = true;
    let parts: Vec<String> = answers
        .chain(others)
        .filter_map(|block| render_part(block, tools, &mut is_first))
        .collect();
    (!parts.is_empty()).then(|| format!("{{\"role\":\"{role}\",\"parts\":[{}]}}", parts.join(",")))
}

/// Returns a block as JSON; only the first call of a content is signed.
fn render_part(block: &Block, tools: &HashMap<&str, &str>, is_first: &mut bool) -> Option<String> {
    match block {
        Block::Text(text) if text.is_empty() => None,
        Block::Text(text) => Some(text_part(text)),
        Block::ToolCall {
            id,
            name,
            arguments: text,
        } => {
            let signed = if std::mem::take(is_first) {
                format!(",\"thoughtSignature\":\"{UNSIGNED}\"")
            } else {
                String::new()
            };
            Some(format!(
                "{{\"functionCall\":{{\"id\":{},\"name\":{},\"args\":{}}}{signed}}}",
                quote(id),
                quote(name),
                to_arguments_object(text)
            ))
        }
        Block::ToolResult {
            call,
            content,
            is_error,
        } => {
            let key = if *is_error { "error" } else { "output" };
            let name = tools.get(call.as_str()).copied().unwrap_or(call);
            Some(format!(
                "{{\"functionResponse\":{{\"id\":{},\"name\":{},\"response\":{{\"{key}\":{}}}}}}}",
                quote(call),
                quote(name),
                quote(content)
            ))
        }
        Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => None,
    }
}
