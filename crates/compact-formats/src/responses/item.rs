//! One item of the Responses API, or a session's base instructions, as pieces.
//!
//! Calls that the client answers are calls and results; what the provider runs by itself reads as
//! text and stands or goes whole. An action that is an object keeps its shape when it is cut.

use std::borrow::Cow;

use compact_core::message::{Block, EntryKind, Role};
use compact_core::view::Edit;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::edit::{self, Edits, Holder, Piece, TextSite};
use crate::error::FormatError;
use crate::flag;
use crate::frame;
use crate::json::{At, Members, is_list, is_object, is_string, is_true, lenient, quote};
use crate::media::{self, Pricing};
use crate::parts;

/// The members of an item that matter here; every one is a span.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Item<'a> {
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

impl<'a> Item<'a> {
    /// The id of the call that an output answers; one of the provider's own tools names none.
    fn answers(&self, kind: &str) -> Option<&'a RawValue> {
        match kind {
            "local_shell_call_output" => self.call_id.or(self.id),
            _ => self.call_id,
        }
    }
}

/// What an item reads as.
pub(crate) struct Reads<'a> {
    pub(crate) id: Option<String>,
    pub(crate) role: Role,
    pub(crate) kind: EntryKind,
    pub(crate) pieces: Vec<Piece<'a>>,
}

/// Reads an item; nothing for one that is never sent to the model.
pub(crate) fn read<'a>(at: At<'_>, json: &'a str) -> Result<Option<Reads<'a>>, FormatError> {
    let item: Item<'a> = at.read(json)?;
    let kind = lenient(item.r#type).unwrap_or_default();
    let (role, pieces) = match kind.as_ref() {
        "message" => message(at, &item)?,
        "" if item.role.is_some() => message(at, &item)?,
        "" => (Role::System, instructions(at, &item)?),
        "reasoning" => (Role::Assistant, vec![reasoning(at, &item)?]),
        "ghost_snapshot" => return Ok(None),
        // What the application says to the provider stays where it says it.
        "compaction_trigger" | "additional_tools" | "configuration_update" => {
            (Role::Developer, vec![opaque(&kind, json)])
        }
        "image_generation_call" => (Role::Assistant, vec![image(item.result)]),
        "mcp_approval_request" => (Role::Assistant, vec![call(at, &item, item.id, &kind)?]),
        "mcp_approval_response" => (Role::Tool, vec![approval(at, &item)?]),
        kind if kind.ends_with("_output") => match item.answers(kind) {
            Some(id) => (Role::Tool, output(at, &item, id, json)?),
            None => (Role::Assistant, vec![opaque(kind, json)]),
        },
        "program" => (Role::Assistant, vec![call(at, &item, item.call_id, &kind)?]),
        kind if kind.ends_with("_call") && item.call_id.is_some() => {
            (Role::Assistant, vec![call(at, &item, item.call_id, kind)?])
        }
        kind if kind.ends_with("_call") => (Role::Assistant, vec![hosted(&item, kind)]),
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
pub(crate) fn edited(
    at: At<'_>,
    json: &str,
    edits: Edits<'_>,
) -> Result<Option<String>, FormatError> {
    let Some(reads) = read(at, json)? else {
        return Ok(None);
    };
    if let Some(text) = words_instead(&reads, edits) {
        return Ok(Some(message_item(reads.role, text)));
    }
    let shaped: Vec<(usize, Edit)> = edits
        .0
        .iter()
        .map(|(at, edit)| (*at, shaped(reads.pieces.get(*at), edit)))
        .collect();
    let part = |text: &str| text_part(reads.role, text);
    Ok(edit::apply(json, &reads.pieces, Edits(&shaped), &part))
}

/// True when the edits leave an item what it is.
pub(crate) fn keeps_its_type(
    at: At<'_>,
    json: &str,
    edits: Edits<'_>,
) -> Result<bool, FormatError> {
    let reads = read(at, json)?;
    Ok(reads.is_some_and(|reads| words_instead(&reads, edits).is_none()))
}

/// An item that is not words becomes a message when words take its place.
fn words_instead<'e>(reads: &Reads<'_>, edits: Edits<'e>) -> Option<&'e str> {
    match (reads.pieces.as_slice(), edits.of(0)) {
        (
            [
                Piece {
                    texts,
                    holder: Holder::Item,
                    ..
                },
            ],
            Some(Edit::SetText(text)),
        ) if texts.is_empty() => Some(text),
        _ => None,
    }
}

/// The shortest string of an action that may be a name and not words.
const NAME_LENGTH: usize = 64;

/// New arguments of a call whose own are an action: with the action's members, names untouched.
fn shaped(piece: Option<&Piece<'_>>, edit: &Edit) -> Edit {
    let value = piece
        .filter(|piece| matches!(piece.block, Block::ToolCall { .. }))
        .and_then(|piece| piece.texts.first())
        .map(|site| site.value)
        .filter(|value| is_object(value));
    let (Some(value), Edit::SetText(text)) = (value, edit) else {
        return edit.clone();
    };
    let (Ok(mut whole), Ok(cut)) = (
        serde_json::from_str::<Value>(value.get()),
        serde_json::from_str::<Value>(text),
    ) else {
        return edit.clone();
    };
    shorten(&mut whole, &cut);
    Edit::SetText(whole.to_string())
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

/// A text as a part of a message.
pub(crate) fn text_part(role: Role, text: &str) -> String {
    let kind = if role == Role::Assistant {
        "output_text"
    } else {
        "input_text"
    };
    format!("{{\"type\":\"{kind}\",\"text\":{}}}", quote(text))
}

/// A text as a message.
pub(crate) fn message_item(role: Role, text: &str) -> String {
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
        .map(|raw| parts::content(at, "content", raw))
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
        for element in at.list("summary", list)? {
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

/// A call that the client answers.
fn call<'a>(
    at: At<'_>,
    item: &Item<'a>,
    id: Option<&RawValue>,
    kind: &str,
) -> Result<Piece<'a>, FormatError> {
    let value = item
        .arguments
        .or(item.input)
        .or(item.action)
        .or(item.operation)
        .or(item.code);
    let arguments = match value {
        Some(raw) if is_string(raw) => at.string("arguments", raw)?,
        Some(raw) => raw.get().to_owned(),
        None => String::new(),
    };
    Ok(Piece {
        block: Block::ToolCall {
            id: at.optional("call_id", id)?.unwrap_or_default(),
            name: tool_name(item, kind),
            arguments,
        },
        holder: Holder::Item,
        texts: value.map(TextSite::value).unwrap_or_default(),
    })
}

fn tool_name(item: &Item<'_>, kind: &str) -> String {
    let tool = kind.trim_end_matches("_call");
    lenient(item.name)
        .unwrap_or(Cow::Borrowed(tool))
        .into_owned()
}

/// A call that the provider carries out: it has no output of its own and reads as text.
fn hosted<'a>(item: &Item<'a>, kind: &str) -> Piece<'a> {
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
            .map(|raw| lenient(Some(raw)).unwrap_or(Cow::Borrowed(raw.get()))),
    );
    Piece {
        block: Block::Text(words.join(" ")),
        holder: Holder::Item,
        texts: Vec::new(),
    }
}

/// A picture that the provider made.
fn image<'a>(data: Option<&RawValue>) -> Piece<'a> {
    Piece {
        block: Block::Media {
            label: "image".to_owned(),
            tokens: Pricing::OpenAi.image(data.and_then(media::size_of)),
        },
        holder: Holder::Item,
        texts: Vec::new(),
    }
}

fn result<'a>(call: String, content: String, texts: Vec<TextSite<'a>>) -> Piece<'a> {
    Piece {
        block: Block::ToolResult {
            call,
            content,
            is_error: false,
        },
        holder: Holder::Item,
        texts,
    }
}

fn approval<'a>(at: At<'_>, item: &Item<'a>) -> Result<Piece<'a>, FormatError> {
    let call = at.optional("approval_request_id", item.approval_request_id)?;
    let reason = at.optional("reason", item.reason)?;
    Ok(Piece {
        block: Block::ToolResult {
            call: call.unwrap_or_default(),
            content: reason.unwrap_or_default(),
            is_error: !is_true(item.approve),
        },
        holder: Holder::Item,
        texts: item.reason.map(TextSite::value).unwrap_or_default(),
    })
}

fn output<'a>(
    at: At<'_>,
    item: &Item<'a>,
    id: &RawValue,
    json: &str,
) -> Result<Vec<Piece<'a>>, FormatError> {
    let call = at.string("call_id", id)?;
    let kind = lenient(item.r#type).unwrap_or_default();
    let Some(raw) = item.output.or(item.result) else {
        let mut pieces = vec![result(call, String::new(), Vec::new())];
        if kind == "tool_search_output" {
            pieces.push(opaque(&kind, json));
        }
        return Ok(pieces);
    };
    if kind == "shell_call_output" && is_list(raw) {
        return shell(at, call, raw).map(|piece| vec![piece]);
    }
    // Earlier versions of Codex wrap the output: {"content": …, "success": …}.
    let inner = if is_object(raw) {
        Members::of(raw.get()).get("content")
    } else {
        None
    };
    let raw = inner.unwrap_or(raw);
    if is_object(raw) {
        return Ok(vec![
            result(call, String::new(), Vec::new()),
            Piece {
                block: Block::Media {
                    label: "image".to_owned(),
                    tokens: media::image_part(raw),
                },
                holder: Holder::Item,
                texts: Vec::new(),
            },
        ]);
    }
    if !is_string(raw) && !is_list(raw) {
        let content = raw.get().to_owned();
        return Ok(vec![result(call, content, TextSite::value(raw))]);
    }
    let answer = parts::answer(at, "output", raw)?;
    let mut pieces = vec![result(call, answer.text, answer.sites)];
    pieces.extend(answer.media);
    Ok(pieces)
}

/// The streams of a shell, one after another; silent ones say nothing.
fn shell<'a>(at: At<'_>, call: String, list: &'a RawValue) -> Result<Piece<'a>, FormatError> {
    let mut texts = Vec::new();
    let mut sites = Vec::new();
    for chunk in at.list("output", list)? {
        let members = Members::of(chunk.get());
        for stream in ["stdout", "stderr"] {
            let raw = members.get(stream);
            if let Some((raw, text)) = raw.zip(lenient(raw)).filter(|(_, text)| !text.is_empty()) {
                texts.push(text);
                sites.push(TextSite {
                    value: raw,
                    part: None,
                });
            }
        }
    }
    Ok(result(call, texts.join("\n"), sites))
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
            at.string("base_instructions", raw)?,
            Holder::Item,
            raw,
        )]),
    }
}

fn opaque<'a>(kind: &str, json: &str) -> Piece<'a> {
    Piece {
        block: Block::Opaque {
            kind: kind.to_owned(),
            bytes: flag::bare(json).len(),
        },
        holder: Holder::Item,
        texts: Vec::new(),
    }
}

/// Elements that Codex writes around what a person might say elsewhere, or may have ordered.
const INJECTED: &[&str] = &[
    "user_instructions",
    "skill",
    "INSTRUCTIONS",
    "permissions instructions",
];

fn entry_kind(item: &str, role: Role, pieces: &[Piece<'_>]) -> EntryKind {
    if role == Role::Assistant && item.contains("compaction") {
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
    let injected = |text: &&str| {
        frame::is_injected(text, INJECTED) || text.starts_with("# AGENTS.md instructions for ")
    };
    if texts.iter().all(injected) {
        EntryKind::Injected
    } else {
        EntryKind::Message
    }
}
