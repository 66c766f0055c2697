//! One item of the Responses API, or a session's base instructions, as pieces.
//!
//! Calls that the client answers are calls and results; what the provider runs by itself reads as
//! text and stands or goes whole. An action that is an object keeps its shape when it is cut.

use std::borrow::Cow;

use compact_core::message::{Block, EntryKind, Role};
use compact_core::view::BlockEdit;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::edit::{self, BlockPiece, EntryEdits, Holder, TextSite};
use crate::error::FormatError;
use crate::flag;
use crate::json::{
    ItemContext, Members, is_list, is_object, is_string, is_true, quote, string_value,
};
use crate::media::{self, MediaPricing};
use crate::parts;
use crate::special_text;
use crate::surrogate::readable_text;

/// The members of an item that matter here; every one is a span.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ResponsesItem<'a> {
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
    operation: Option<&'a RawValue>,
    code: Option<&'a RawValue>,
    queries: Option<&'a RawValue>,
    results: Option<&'a RawValue>,
    outputs: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    approval_request_id: Option<&'a RawValue>,
    approve: Option<&'a RawValue>,
    reason: Option<&'a RawValue>,
    base_instructions: Option<&'a RawValue>,
    instructions: Option<&'a RawValue>,
}

impl<'a> ResponsesItem<'a> {
    /// Returns the id of the call that an output answers; one of the provider's own tools names none.
    fn answered_call_id(&self, kind: &str) -> Option<&'a RawValue> {
        match kind {
            "local_shell_call_output" => self.call_id.or(self.id),
            _ => self.call_id,
        }
    }
}

/// The content of an item.
pub(crate) struct ItemContent<'a> {
    pub(crate) id: Option<String>,
    pub(crate) role: Role,
    pub(crate) kind: EntryKind,
    pub(crate) pieces: Vec<BlockPiece<'a>>,
}

/// Reads an item; nothing for one that is never sent to the model.
pub(crate) fn read<'a>(
    at: ItemContext<'_>,
    json: &'a str,
) -> Result<Option<ItemContent<'a>>, FormatError> {
    let item: ResponsesItem<'a> = at.read(json)?;
    let kind = string_value(item.r#type).unwrap_or_default();
    let (role, pieces) = match kind.as_ref() {
        "message" => read_message(at, &item)?,
        "" if item.role.is_some() => read_message(at, &item)?,
        "" => (Role::System, read_instructions(at, &item)?),
        "reasoning" => (Role::Assistant, vec![reasoning_piece(at, &item)?]),
        "ghost_snapshot" => return Ok(None),
        // What the application says to the provider stays where it says it.
        "compaction_trigger" | "additional_tools" | "configuration_update" => {
            (Role::Developer, vec![opaque_piece(&kind, json)])
        }
        "image_generation_call" => (Role::Assistant, vec![image_piece(item.result)]),
        "mcp_approval_request" => (
            Role::Assistant,
            vec![call_piece(at, &item, item.id, &kind)?],
        ),
        "mcp_approval_response" => (Role::Tool, vec![approval_piece(at, &item)?]),
        kind if kind.ends_with("_output") => match item.answered_call_id(kind) {
            Some(id) => (Role::Tool, read_output(at, &item, id, json)?),
            None => (Role::Assistant, vec![opaque_piece(kind, json)]),
        },
        "program" => (
            Role::Assistant,
            vec![call_piece(at, &item, item.call_id, &kind)?],
        ),
        kind if kind.ends_with("_call") && item.call_id.is_some() => (
            Role::Assistant,
            vec![call_piece(at, &item, item.call_id, kind)?],
        ),
        kind if kind.ends_with("_call") => (Role::Assistant, vec![hosted_call_piece(&item, kind)]),
        kind => (Role::Assistant, vec![opaque_piece(kind, json)]),
    };
    Ok(Some(ItemContent {
        id: string_value(item.id).map(String::from),
        role,
        kind: entry_kind(&kind, role, &pieces),
        pieces,
    }))
}

/// Returns the item with its edits.
pub(crate) fn apply_edits(
    at: ItemContext<'_>,
    json: &str,
    edits: EntryEdits<'_>,
) -> Result<Option<String>, FormatError> {
    let json = &*readable_text(json);
    let Some(reads) = read(at, json)? else {
        return Ok(None);
    };
    if let Some(text) = words_instead(&reads, edits) {
        return Ok(Some(message_item(reads.role, text)));
    }
    let shaped: Vec<(usize, BlockEdit)> = edits
        .0
        .iter()
        .map(|(at, edit)| (*at, shape_edit(reads.pieces.get(*at), edit)))
        .collect();
    let part = |text: &str| text_part(reads.role, text);
    Ok(edit::apply_edits(
        json,
        &reads.pieces,
        EntryEdits(&shaped),
        &part,
    ))
}

/// Returns whether the edits leave an item what it is.
pub(crate) fn keeps_its_type(
    at: ItemContext<'_>,
    json: &str,
    edits: EntryEdits<'_>,
) -> Result<bool, FormatError> {
    let json = readable_text(json);
    let reads = read(at, &json)?;
    Ok(reads.is_some_and(|reads| words_instead(&reads, edits).is_none()))
}

/// Converts an item that is not words to a message when words replace it.
fn words_instead<'e>(reads: &ItemContent<'_>, edits: EntryEdits<'e>) -> Option<&'e str> {
    match (reads.pieces.as_slice(), edits.for_block(0)) {
        (
            [
                BlockPiece {
                    texts,
                    holder: Holder::Item,
                    ..
                },
            ],
            Some(BlockEdit::SetText(text)),
        ) if texts.is_empty() => Some(text),
        _ => None,
    }
}

/// The shortest string of an action that may be a name and not words.
const NAME_LENGTH: usize = 64;

/// Returns an edit of a call whose arguments are an object as the whole object with its texts shortened,
/// names untouched.
fn shape_edit(piece: Option<&BlockPiece<'_>>, edit: &BlockEdit) -> BlockEdit {
    let value = piece
        .filter(|piece| matches!(piece.block, Block::ToolCall { .. }))
        .and_then(|piece| piece.texts.first())
        .map(|site| site.value)
        .filter(|value| is_object(value));
    let (Some(value), BlockEdit::SetText(text)) = (value, edit) else {
        return edit.clone();
    };
    let (Ok(mut whole), Ok(cut)) = (
        serde_json::from_str::<Value>(value.get()),
        serde_json::from_str::<Value>(text),
    ) else {
        return edit.clone();
    };
    shorten(&mut whole, &cut);
    BlockEdit::SetText(whole.to_string())
}

fn shorten(whole: &mut Value, cut: &Value) {
    match (whole, cut) {
        (Value::Object(members), cut) => {
            for (key, member) in members {
                shorten(member, cut.get(key).unwrap_or(&Value::Null));
            }
        }
        (Value::Array(elements), cut) => {
            for (i, element) in elements.iter_mut().enumerate() {
                shorten(element, cut.get(i).unwrap_or(&Value::Null));
            }
        }
        (Value::String(text), cut) if text.len() > NAME_LENGTH => {
            cut.as_str().unwrap_or_default().clone_into(text);
        }
        _ => {}
    }
}

/// Returns a text as a part of a message.
pub(crate) fn text_part(role: Role, text: &str) -> String {
    let kind = if role == Role::Assistant {
        "output_text"
    } else {
        "input_text"
    };
    format!("{{\"type\":\"{kind}\",\"text\":{}}}", quote(text))
}

/// Returns a text as a message.
pub(crate) fn message_item(role: Role, text: &str) -> String {
    format!(
        "{{\"type\":\"message\",\"role\":\"{role}\",\"content\":[{}]}}",
        text_part(role, text)
    )
}

fn read_message<'a>(
    at: ItemContext<'_>,
    item: &ResponsesItem<'a>,
) -> Result<(Role, Vec<BlockPiece<'a>>), FormatError> {
    let role = match string_value(item.role).as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some("developer") => Role::Developer,
        _ => Role::User,
    };
    let pieces = item
        .content
        .map(|raw| parts::read_content(at, "content", raw))
        .transpose()?;
    Ok((role, pieces.unwrap_or_default()))
}

/// Summaries and visible reasoning as one block; only a whole item can go or stay.
fn reasoning_piece<'a>(
    at: ItemContext<'_>,
    item: &ResponsesItem<'a>,
) -> Result<BlockPiece<'a>, FormatError> {
    let mut texts = Vec::new();
    for list in [item.summary, item.content]
        .into_iter()
        .flatten()
        .filter(|raw| is_list(raw))
    {
        for element in at.read_list("summary", list)? {
            let text = Members::from_json(element.get()).get("text");
            texts.extend(string_value(text).map(Cow::into_owned));
        }
    }
    let replay_bytes = item
        .encrypted_content
        .map_or(0, |raw| raw.get().len().saturating_sub(2));
    Ok(BlockPiece {
        block: Block::Reasoning {
            text: texts.join("\n"),
            replay_bytes,
        },
        holder: Holder::Item,
        texts: Vec::new(),
    })
}

/// Returns a call that the client answers.
fn call_piece<'a>(
    at: ItemContext<'_>,
    item: &ResponsesItem<'a>,
    id: Option<&RawValue>,
    kind: &str,
) -> Result<BlockPiece<'a>, FormatError> {
    let value = item
        .arguments
        .or(item.input)
        .or(item.action)
        .or(item.operation)
        .or(item.code);
    let arguments = match value {
        Some(raw) if is_string(raw) => at.read_string("arguments", raw)?,
        Some(raw) => raw.get().to_owned(),
        None => String::new(),
    };
    Ok(BlockPiece {
        block: Block::ToolCall {
            id: at.read_optional_string("call_id", id)?.unwrap_or_default(),
            name: tool_name(item, kind),
            arguments,
        },
        holder: Holder::Item,
        texts: value.map(TextSite::in_value).unwrap_or_default(),
    })
}

fn tool_name(item: &ResponsesItem<'_>, kind: &str) -> String {
    let tool = kind.trim_end_matches("_call");
    string_value(item.name)
        .unwrap_or(Cow::Borrowed(tool))
        .into_owned()
}

/// Returns a call that the provider carries out: it has no output of its own and reads as text.
fn hosted_call_piece<'a>(item: &ResponsesItem<'a>, kind: &str) -> BlockPiece<'a> {
    let said = [
        item.arguments,
        item.input,
        item.action,
        item.queries,
        item.code,
        item.output,
        item.outputs,
        item.results,
    ];
    let mut words = vec![Cow::Owned(tool_name(item, kind))];
    words.extend(
        said.into_iter()
            .flatten()
            .map(|raw| string_value(Some(raw)).unwrap_or(Cow::Borrowed(raw.get()))),
    );
    BlockPiece {
        block: Block::Text(words.join(" ")),
        holder: Holder::Item,
        texts: Vec::new(),
    }
}

/// Returns a picture that the provider made.
fn image_piece<'a>(data: Option<&RawValue>) -> BlockPiece<'a> {
    BlockPiece {
        block: Block::Media {
            label: "image".to_owned(),
            tokens: MediaPricing::OpenAi.image_tokens(data.and_then(media::size_of)),
        },
        holder: Holder::Item,
        texts: Vec::new(),
    }
}

fn result_piece<'a>(call: String, content: String, texts: Vec<TextSite<'a>>) -> BlockPiece<'a> {
    BlockPiece {
        block: Block::ToolResult {
            call,
            content,
            is_error: false,
        },
        holder: Holder::Item,
        texts,
    }
}

fn approval_piece<'a>(
    at: ItemContext<'_>,
    item: &ResponsesItem<'a>,
) -> Result<BlockPiece<'a>, FormatError> {
    let call = at.read_optional_string("approval_request_id", item.approval_request_id)?;
    let reason = at.read_optional_string("reason", item.reason)?;
    Ok(BlockPiece {
        block: Block::ToolResult {
            call: call.unwrap_or_default(),
            content: reason.unwrap_or_default(),
            is_error: !is_true(item.approve),
        },
        holder: Holder::Item,
        texts: item.reason.map(TextSite::in_value).unwrap_or_default(),
    })
}

fn read_output<'a>(
    at: ItemContext<'_>,
    item: &ResponsesItem<'a>,
    id: &RawValue,
    json: &str,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    let call = at.read_string("call_id", id)?;
    let kind = string_value(item.r#type).unwrap_or_default();
    let Some(raw) = item.output.or(item.result) else {
        let mut pieces = vec![result_piece(call, String::new(), Vec::new())];
        if kind == "tool_search_output" {
            pieces.push(opaque_piece(&kind, json));
        }
        return Ok(pieces);
    };
    if kind == "shell_call_output" && is_list(raw) {
        return shell_output_piece(at, call, raw).map(|piece| vec![piece]);
    }
    // Earlier versions of Codex wrap the output: {"content": …, "success": …}.
    let inner = if is_object(raw) {
        Members::from_json(raw.get()).get("content")
    } else {
        None
    };
    let raw = inner.unwrap_or(raw);
    if is_object(raw) {
        return Ok(vec![
            result_piece(call, String::new(), Vec::new()),
            BlockPiece {
                block: Block::Media {
                    label: "image".to_owned(),
                    tokens: media::image_part_tokens(raw),
                },
                holder: Holder::Item,
                texts: Vec::new(),
            },
        ]);
    }
    if !is_string(raw) && !is_list(raw) {
        let content = raw.get().to_owned();
        return Ok(vec![result_piece(call, content, TextSite::in_value(raw))]);
    }
    let answer = parts::read_answer(at, "output", raw)?;
    let mut pieces = vec![result_piece(call, answer.text, answer.sites)];
    pieces.extend(answer.media);
    Ok(pieces)
}

/// Returns the streams of a shell, one after another; silent ones say nothing.
fn shell_output_piece<'a>(
    at: ItemContext<'_>,
    call: String,
    list: &'a RawValue,
) -> Result<BlockPiece<'a>, FormatError> {
    let mut texts = Vec::new();
    let mut sites = Vec::new();
    for chunk in at.read_list("output", list)? {
        let members = Members::from_json(chunk.get());
        for stream in ["stdout", "stderr"] {
            let raw = members.get(stream);
            if let Some((raw, text)) = raw
                .zip(string_value(raw))
                .filter(|(_, text)| !text.is_empty())
            {
                texts.push(text);
                sites.push(TextSite {
                    value: raw,
                    part: None,
                });
            }
        }
    }
    Ok(result_piece(call, texts.join("\n"), sites))
}

/// Returns the base instructions of a session: `{"text": …}`, or a string in earlier versions.
fn read_instructions<'a>(
    at: ItemContext<'_>,
    item: &ResponsesItem<'a>,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    let raw = item.base_instructions.or(item.instructions);
    let text = match raw {
        Some(raw) if is_object(raw) => Members::from_json(raw.get()).get("text"),
        raw => raw,
    };
    match text.filter(|raw| is_string(raw)) {
        None => Ok(Vec::new()),
        Some(raw) => Ok(vec![parts::text_piece(
            at.read_string("base_instructions", raw)?,
            Holder::Item,
            raw,
        )]),
    }
}

fn opaque_piece<'a>(kind: &str, json: &str) -> BlockPiece<'a> {
    BlockPiece {
        block: Block::Opaque {
            kind: kind.to_owned(),
            bytes: flag::strip_own_members(json).len(),
        },
        holder: Holder::Item,
        texts: Vec::new(),
    }
}

/// Elements that Codex writes around what a person may have ordered; it tells them anew in every context.
const INSTRUCTIONS: &[&str] = &[
    "user_instructions",
    "skill",
    "INSTRUCTIONS",
    "permissions instructions",
];

fn is_instruction(text: &str) -> bool {
    special_text::has_only_elements(text, INSTRUCTIONS)
        || text.starts_with("# AGENTS.md instructions for ")
        || special_text::is_injected(text)
}

fn entry_kind(item: &str, role: Role, pieces: &[BlockPiece<'_>]) -> EntryKind {
    if role == Role::Assistant && item.contains("compaction") {
        return EntryKind::ForeignSummary;
    }
    // What a server answered stands in the model's place, and is none of its words.
    let is_text = |piece: &BlockPiece<'_>| matches!(piece.block, Block::Text(_));
    if item.ends_with("_call") && pieces.iter().any(is_text) {
        return EntryKind::HostedTool;
    }
    let mut texts = pieces.iter().filter_map(|piece| match &piece.block {
        Block::Text(text) => Some(text.as_str()),
        _ => None,
    });
    if let Some(summary) = texts.clone().find_map(special_text::summary_kind) {
        return summary;
    }
    let is_words = role == Role::User && texts.clone().next().is_some();
    match is_words && texts.all(is_instruction) {
        true => EntryKind::Injected,
        false => EntryKind::Message,
    }
}
