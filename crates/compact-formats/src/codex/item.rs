//! One item of the Responses API, or the session's base instructions, as pieces.

use std::borrow::Cow;

use compact_core::message::{Block, EntryKind, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{self, Edits, Holder, Piece, TextSite};
use crate::error::FormatError;
use crate::frame;
use crate::json::{At, Members, is_list, is_object, is_string, lenient, quote};
use crate::parts;

/// The members of an item that matter here; every one is a span.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Item<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    role: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
    encrypted_content: Option<&'a RawValue>,
    call_id: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    action: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
    base_instructions: Option<&'a RawValue>,
    instructions: Option<&'a RawValue>,
}

/// What an item reads as.
pub(super) struct Reads<'a> {
    pub(super) id: Option<String>,
    pub(super) role: Role,
    pub(super) kind: EntryKind,
    pub(super) pieces: Vec<Piece<'a>>,
}

/// Reads an item; nothing for one that is never sent to the model.
pub(super) fn read<'a>(at: At<'_>, json: &'a str) -> Result<Option<Reads<'a>>, FormatError> {
    let item: Item<'a> = at.read(json)?;
    let kind = lenient(item.r#type).unwrap_or_default();
    let (role, pieces) = match kind.as_ref() {
        "message" => message(at, &item)?,
        "reasoning" => (Role::Assistant, vec![reasoning(at, &item)?]),
        "ghost_snapshot" => return Ok(None),
        "" => (Role::System, instructions(at, &item)?),
        kind if kind.ends_with("_output") && item.call_id.is_some() => {
            (Role::Tool, output(at, &item)?)
        }
        kind if kind.ends_with("_call") => (Role::Assistant, vec![call(at, &item, kind)?]),
        kind => (Role::Assistant, vec![opaque(kind, json)]),
    };
    Ok(Some(Reads {
        id: lenient(item.id).map(String::from),
        role,
        kind: entry_kind(&kind, role, &pieces),
        pieces,
    }))
}

/// The item with its edits.
pub(super) fn edited(
    at: At<'_>,
    json: &str,
    edits: Edits<'_>,
) -> Result<Option<String>, FormatError> {
    let Some(reads) = read(at, json)? else {
        return Ok(None);
    };
    // An item that is not words becomes a message when words take its place.
    if let (
        [
            Piece {
                texts,
                holder: Holder::Item,
                ..
            },
        ],
        Some(compact_core::view::Edit::SetText(text)),
    ) = (reads.pieces.as_slice(), edits.of(0))
        && texts.is_empty()
    {
        return Ok(Some(message_item(reads.role, text)));
    }
    let part = |text: &str| text_part(reads.role, text);
    Ok(edit::apply(json, &reads.pieces, edits, &part))
}

/// A text as a part of a message.
pub(super) fn text_part(role: Role, text: &str) -> String {
    let kind = if role == Role::Assistant {
        "output_text"
    } else {
        "input_text"
    };
    format!("{{\"type\":\"{kind}\",\"text\":{}}}", quote(text))
}

/// A text as a message.
pub(super) fn message_item(role: Role, text: &str) -> String {
    format!(
        "{{\"type\":\"message\",\"role\":\"{role}\",\"content\":[{}]}}",
        text_part(role, text)
    )
}

fn message<'a>(at: At<'_>, item: &Item<'a>) -> Result<(Role, Vec<Piece<'a>>), FormatError> {
    let role = match lenient(item.role).as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some("developer") => Role::Developer,
        _ => Role::User,
    };
    let pieces = item
        .content
        .map(|raw| parts::content(at, "payload.content", raw))
        .transpose()?;
    Ok((role, pieces.unwrap_or_default()))
}

/// Summaries and visible reasoning as one block; only a whole item can go or stay.
fn reasoning<'a>(at: At<'_>, item: &Item<'a>) -> Result<Piece<'a>, FormatError> {
    let mut texts = Vec::new();
    for list in [item.summary, item.content]
        .into_iter()
        .flatten()
        .filter(|raw| is_list(raw))
    {
        for element in at.list("payload.summary", list)? {
            let text = Members::of(element.get()).get("text");
            texts.extend(lenient(text).map(Cow::into_owned));
        }
    }
    let replay_bytes = item
        .encrypted_content
        .map_or(0, |raw| raw.get().len().saturating_sub(2));
    Ok(Piece {
        block: Block::Reasoning {
            text: texts.join("\n"),
            replay_bytes,
        },
        holder: Holder::Item,
        texts: Vec::new(),
    })
}

/// A call. One without a `call_id` is carried out by the provider and has no output of its own: it
/// reads as text.
fn call<'a>(at: At<'_>, item: &Item<'a>, kind: &str) -> Result<Piece<'a>, FormatError> {
    let tool = kind.trim_end_matches("_call");
    let value = item.arguments.or(item.input).or(item.action);
    let arguments = match value {
        Some(raw) if is_string(raw) => at.string("payload.arguments", raw)?,
        Some(raw) => raw.get().to_owned(),
        None => String::new(),
    };
    let name = lenient(item.name)
        .unwrap_or(Cow::Borrowed(tool))
        .into_owned();
    let Some(id) = at.optional("payload.call_id", item.call_id)? else {
        let block = Block::Text(format!("{name} {arguments}").trim_end().to_owned());
        return Ok(Piece {
            block,
            holder: Holder::Item,
            texts: Vec::new(),
        });
    };
    Ok(Piece {
        block: Block::ToolCall {
            id,
            name,
            arguments,
        },
        holder: Holder::Item,
        texts: value.map(TextSite::value).unwrap_or_default(),
    })
}

fn output<'a>(at: At<'_>, item: &Item<'a>) -> Result<Vec<Piece<'a>>, FormatError> {
    let call = at
        .optional("payload.call_id", item.call_id)?
        .unwrap_or_default();
    let result = |content, texts| Piece {
        block: Block::ToolResult {
            call,
            content,
            is_error: false,
        },
        holder: Holder::Item,
        texts,
    };
    let Some(raw) = item.output else {
        return Ok(vec![result(String::new(), Vec::new())]);
    };
    // Earlier versions wrap the output: {"content": …, "success": …}.
    let inner = if is_object(raw) {
        Members::of(raw.get()).get("content")
    } else {
        None
    };
    let raw = inner.unwrap_or(raw);
    if !is_string(raw) && !is_list(raw) {
        return Ok(vec![result(raw.get().to_owned(), TextSite::value(raw))]);
    }
    let answer = parts::answer(at, "payload.output", raw)?;
    let mut pieces = vec![result(answer.text, answer.sites)];
    pieces.extend(answer.media);
    Ok(pieces)
}

/// The base instructions of a session: `{"text": …}`, or a string in earlier versions.
fn instructions<'a>(at: At<'_>, item: &Item<'a>) -> Result<Vec<Piece<'a>>, FormatError> {
    let raw = item.base_instructions.or(item.instructions);
    let text = match raw {
        Some(raw) if is_object(raw) => Members::of(raw.get()).get("text"),
        raw => raw,
    };
    match text.filter(|raw| is_string(raw)) {
        None => Ok(Vec::new()),
        Some(raw) => Ok(vec![parts::text_piece(
            at.string("payload.base_instructions", raw)?,
            Holder::Item,
            raw,
        )]),
    }
}

fn opaque<'a>(kind: &str, json: &str) -> Piece<'a> {
    Piece {
        block: Block::Opaque {
            kind: kind.to_owned(),
            bytes: json.len(),
        },
        holder: Holder::Item,
        texts: Vec::new(),
    }
}

/// How Codex opens the summaries that it writes by itself.
const SUMMARY_PREFIX: &str =
    "Another language model started to solve this problem and produced a summary";

/// Elements that the client puts before or between the user's words.
const INJECTED: &[&str] = &[
    "environment_context",
    "user_instructions",
    "turn_aborted",
    "subagent_notification",
    "user_shell_command",
    "skill",
    "INSTRUCTIONS",
    "permissions instructions",
];

fn entry_kind(item: &str, role: Role, pieces: &[Piece<'_>]) -> EntryKind {
    if item.contains("compaction") {
        return EntryKind::ForeignSummary;
    }
    let texts: Vec<&str> = pieces
        .iter()
        .filter_map(|piece| match &piece.block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    if let Some(summary) = texts.iter().find_map(|text| frame::summary(text)) {
        return summary;
    }
    if role != Role::User || texts.is_empty() {
        return EntryKind::Message;
    }
    if texts.iter().any(|text| text.starts_with(SUMMARY_PREFIX)) {
        return EntryKind::ForeignSummary;
    }
    let injected = |text: &&str| {
        frame::only_elements(text, INJECTED) || text.starts_with("# AGENTS.md instructions")
    };
    if texts.iter().all(injected) {
        EntryKind::Injected
    } else {
        EntryKind::Message
    }
}
