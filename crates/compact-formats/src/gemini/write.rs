//! Views to contents.

use std::collections::HashMap;
use std::ops::Range;

use compact_core::message::{Block, Entry, Role};
use compact_core::view::View;

use super::read::{Content, split};
use crate::body::{self, Member, messages};
use crate::edit::{Piece, arguments};
use crate::error::FormatError;
use crate::json::{At, Members, quote};
use crate::wire::Page;

/// Taken in place of a signature that the provider never made.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub(super) struct Contents;

impl messages::Dialect for Contents {
    fn pieces<'a>(&self, at: At<'_>, json: &'a str) -> Result<Vec<Piece<'a>>, FormatError> {
        Content::of(at, json)?.pieces(at)
    }

    fn split(&self, json: &str, blocks: &[Block]) -> Vec<Range<usize>> {
        let content = serde_json::from_str::<Content<'_>>(json).unwrap_or_default();
        split(content.role().unwrap_or(Role::User), blocks)
    }

    fn text_part(&self, text: &str) -> String {
        text_part(text)
    }

    fn joins_neighbours(&self) -> bool {
        true
    }

    fn compose(&self, entry: &Entry, tools: &HashMap<&str, &str>) -> Option<String> {
        compose(entry, tools)
    }
}

pub(super) fn emit(page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    let contents = messages::write(&Contents, page, &view.items)?;
    let parts = body::instructions(&Contents, page, view)?;
    let head = Members::of(body::text(page.bytes())?.0);
    let instructions = parts.map(|parts| Member {
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

/// A new entry as a content: responses first, because the provider wants them there.
fn compose(entry: &Entry, tools: &HashMap<&str, &str>) -> Option<String> {
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
        .filter_map(|block| part(block, tools, &mut is_first))
        .collect();
    (!parts.is_empty()).then(|| format!("{{\"role\":\"{role}\",\"parts\":[{}]}}", parts.join(",")))
}

/// A block as JSON; only the first call of a content is signed.
fn part(block: &Block, tools: &HashMap<&str, &str>, is_first: &mut bool) -> Option<String> {
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
                arguments(text)
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
