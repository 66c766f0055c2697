//! One line of a session: what it is, and the pieces of its message.

use std::borrow::Cow;

use compact_core::message::{Block, EntryKind, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chain::LineContent;
use crate::edit::{BlockPiece, EntryEdits, Holder, TextSite};
use crate::error::FormatError;
use crate::json::{
    ItemContext, Members, is_list, is_object, is_string, is_true, quote, string_value,
};
use crate::parts;

/// The members of a line that matter here; every one is a span.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PiLine<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    parent_id: Option<&'a RawValue>,
    pub(super) message: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    first_kept_entry_id: Option<&'a RawValue>,
    first_kept_entry_index: Option<&'a RawValue>,
    /// The id of the line that this one repeats after a boundary of ours.
    compacted_from: Option<&'a RawValue>,
    target_id: Option<&'a RawValue>,
    pub(super) model_id: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PiMessage<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    tool_call_id: Option<&'a RawValue>,
    is_error: Option<&'a RawValue>,
    command: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
    exclude_from_context: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
    stop_reason: Option<&'a RawValue>,
    details: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PiElement<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    thinking: Option<&'a RawValue>,
    thinking_signature: Option<&'a RawValue>,
}

impl<'a> PiLine<'a> {
    pub(super) fn kind(&self) -> Cow<'a, str> {
        string_value(self.r#type).unwrap_or_default()
    }

    pub(super) fn id(&self) -> Option<Cow<'a, str>> {
        string_value(self.id)
    }

    pub(super) fn parent(&self) -> Option<Cow<'a, str>> {
        string_value(self.parent_id)
    }

    pub(super) fn is_copy(&self) -> bool {
        self.compacted_from.is_some()
    }

    /// Returns the line that this one speaks about.
    pub(super) fn target_id(&self) -> Option<Cow<'a, str>> {
        string_value(self.target_id)
    }

    /// Returns the first line before a compaction that it keeps: its id, or its place in the file.
    pub(super) fn first_kept(&self) -> (Option<Cow<'a, str>>, Option<usize>) {
        let index = self.first_kept_entry_index;
        (
            string_value(self.first_kept_entry_id).filter(|id| !id.is_empty()),
            index.and_then(|raw| raw.get().parse().ok()),
        )
    }

    /// Returns what the line says to the model, if anything.
    pub(super) fn read_content(
        &self,
        at: ItemContext<'_>,
    ) -> Result<Option<LineContent<'a>>, FormatError> {
        match self.kind().as_ref() {
            "message" => self.read_message(at),
            "compaction" | "branch_summary" => read_summary(at, self.summary),
            "custom_message" => {
                let pieces = match self.content {
                    Some(raw) => parts::read_content(at, "content", raw)?,
                    None => Vec::new(),
                };
                Ok(Some(LineContent::new(
                    Role::User,
                    EntryKind::Injected,
                    pieces,
                )))
            }
            _ => Ok(None),
        }
    }

    fn read_message(&self, at: ItemContext<'_>) -> Result<Option<LineContent<'a>>, FormatError> {
        let raw = self
            .message
            .ok_or_else(|| at.missing_field("message", "an object"))?;
        if !is_object(raw) {
            return Err(at.wrong_type("message", "an object", raw));
        }
        let message: PiMessage<'a> = at.read(raw.get())?;
        let pieces = || match message.content {
            Some(raw) => read_pieces(at, raw),
            None => Ok(Vec::new()),
        };
        Ok(Some(match string_value(message.role).as_deref() {
            Some("user") => LineContent::new(Role::User, EntryKind::Message, pieces()?),
            Some("assistant") => {
                let stop = string_value(message.stop_reason);
                if matches!(stop.as_deref(), Some("aborted" | "error")) {
                    return Ok(None);
                }
                LineContent::new(Role::Assistant, EntryKind::Message, pieces()?)
            }
            Some("toolResult") => LineContent {
                echoes: message
                    .details
                    .map(|details| (0, details))
                    .into_iter()
                    .collect(),
                ..LineContent::new(Role::Tool, EntryKind::Message, result_pieces(at, &message)?)
            },
            Some("bashExecution") if is_true(message.exclude_from_context) => return Ok(None),
            Some("bashExecution") => LineContent::new(
                Role::User,
                EntryKind::Injected,
                execution_pieces(at, &message)?,
            ),
            Some("compactionSummary" | "branchSummary") => {
                return read_summary(at, message.summary);
            }
            Some(_) => LineContent::new(Role::User, EntryKind::Injected, pieces()?),
            None => return Err(at.missing_field("message.role", "a string")),
        }))
    }
}

fn read_summary<'a>(
    at: ItemContext<'_>,
    raw: Option<&'a RawValue>,
) -> Result<Option<LineContent<'a>>, FormatError> {
    let text = at
        .read_optional_string("summary", raw)?
        .filter(|text| !text.is_empty());
    Ok(raw.zip(text).map(|(raw, text)| {
        let piece = parts::text_piece(text, Holder::Item, raw);
        LineContent::new(Role::User, EntryKind::ForeignSummary, vec![piece])
    }))
}

fn read_pieces<'a>(
    at: ItemContext<'_>,
    raw: &'a RawValue,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    if !is_list(raw) {
        return parts::read_content(at, "message.content", raw);
    }
    let piece = |element: &'a RawValue| {
        let holder = Holder::Element { list: raw, element };
        let read: PiElement<'a> = if is_object(element) {
            at.read(element.get())?
        } else {
            PiElement::default()
        };
        match string_value(read.r#type).as_deref() {
            Some("thinking") => thinking_piece(at, &read, holder),
            Some("toolCall") => call_piece(at, &read, holder),
            _ => parts::read_part(at, "message.content", raw, element),
        }
    };
    let elements = at.read_list("message.content", raw)?;
    elements.into_iter().map(piece).collect()
}

fn thinking_piece<'a>(
    at: ItemContext<'_>,
    read: &PiElement<'a>,
    holder: Holder<'a>,
) -> Result<BlockPiece<'a>, FormatError> {
    let text = at.read_optional_string("message.content[].thinking", read.thinking)?;
    let signature = read.thinking_signature;
    Ok(BlockPiece {
        block: Block::Reasoning {
            text: text.unwrap_or_default(),
            replay_bytes: signature.map_or(0, |raw| raw.get().len().saturating_sub(2)),
        },
        holder,
        texts: read.thinking.map(TextSite::in_value).unwrap_or_default(),
    })
}

fn call_piece<'a>(
    at: ItemContext<'_>,
    read: &PiElement<'a>,
    holder: Holder<'a>,
) -> Result<BlockPiece<'a>, FormatError> {
    let id = at.read_optional_string("message.content[].id", read.id)?;
    Ok(BlockPiece {
        block: Block::ToolCall {
            id: id.unwrap_or_default(),
            name: string_value(read.name).unwrap_or_default().into_owned(),
            arguments: read.arguments.map_or("{}", RawValue::get).to_owned(),
        },
        holder,
        texts: read.arguments.map(TextSite::in_value).unwrap_or_default(),
    })
}

fn result_pieces<'a>(
    at: ItemContext<'_>,
    message: &PiMessage<'a>,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    let call = at.read_optional_string("message.toolCallId", message.tool_call_id)?;
    let answer = message
        .content
        .map(|raw| parts::read_answer(at, "message.content", raw))
        .transpose()?;
    let (content, texts, media) = answer
        .map(|a| (a.text, a.sites, a.media))
        .unwrap_or_default();
    let block = Block::ToolResult {
        call: call.unwrap_or_default(),
        content,
        is_error: is_true(message.is_error),
    };
    let mut pieces = vec![BlockPiece {
        block,
        holder: Holder::Item,
        texts,
    }];
    pieces.extend(media);
    Ok(pieces)
}

/// Returns a command that the user ran, and what it printed.
fn execution_pieces<'a>(
    at: ItemContext<'_>,
    message: &PiMessage<'a>,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    let mut pieces = Vec::new();
    for (field, value) in [("command", message.command), ("output", message.output)] {
        let Some(value) = value.filter(|raw| is_string(raw)) else {
            continue;
        };
        let text = at.read_string(field, value)?;
        if !text.is_empty() {
            let empty = "\"\"";
            pieces.push(parts::text_piece(
                text,
                Holder::Value { value, empty },
                value,
            ));
        }
    }
    Ok(pieces)
}

/// Returns the line with its edits.
pub(super) fn edit_line(
    at: ItemContext<'_>,
    json: &str,
    edits: EntryEdits<'_>,
) -> Result<Option<String>, FormatError> {
    let line: PiLine<'_> = at.read(json)?;
    let said = line.read_content(at)?;
    Ok(said.and_then(|said| said.apply_edits(json, edits, &text_part)))
}

/// Returns a text as a part of a message.
pub(super) fn text_part(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))
}

/// Returns a summary of another program as a message: as a boundary it would cut off what stands before it.
pub(super) fn as_message(json: &str) -> Cow<'_, str> {
    let members = Members::from_json(json);
    let role = match string_value(members.get("type")).as_deref() {
        Some("compaction") => "compactionSummary",
        Some("branch_summary") => "branchSummary",
        _ => return Cow::Borrowed(json),
    };
    let member = |key: &str| members.get(key).map_or("null", RawValue::get);
    let ids = match members.get("id") {
        Some(id) => format!("\"id\":{},\"parentId\":{},", id.get(), member("parentId")),
        None => String::new(),
    };
    Cow::Owned(format!(
        "{{\"type\":\"message\",{ids}\"timestamp\":{},\"message\":{{\"role\":\"{role}\",\"summary\":{},\
         \"tokensBefore\":0,\"timestamp\":0}}}}",
        member("timestamp"),
        member("summary"),
    ))
}
