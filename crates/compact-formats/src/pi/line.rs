//! One line of a session: what it is, and the pieces of its message.

use std::borrow::Cow;

use compact_core::message::{Block, EntryKind, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chain::Said;
use crate::edit::{Edits, Holder, Piece, TextSite};
use crate::error::FormatError;
use crate::json::{At, Members, is_list, is_object, is_string, is_true, lenient, quote};
use crate::parts;

/// The members of a line that matter here; every one is a span.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Line<'a> {
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
struct Message<'a> {
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
struct Element<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    thinking: Option<&'a RawValue>,
    thinking_signature: Option<&'a RawValue>,
}

impl<'a> Line<'a> {
    pub(super) fn kind(&self) -> Cow<'a, str> {
        lenient(self.r#type).unwrap_or_default()
    }

    pub(super) fn id(&self) -> Option<Cow<'a, str>> {
        lenient(self.id)
    }

    pub(super) fn parent(&self) -> Option<Cow<'a, str>> {
        lenient(self.parent_id)
    }

    pub(super) fn is_copy(&self) -> bool {
        self.compacted_from.is_some()
    }

    /// The line that this one speaks about.
    pub(super) fn subject(&self) -> Option<Cow<'a, str>> {
        lenient(self.target_id)
    }

    /// The first line before a compaction that it keeps: its id, or its place in the file.
    pub(super) fn first_kept(&self) -> (Option<Cow<'a, str>>, Option<usize>) {
        let index = self.first_kept_entry_index;
        (
            lenient(self.first_kept_entry_id).filter(|id| !id.is_empty()),
            index.and_then(|raw| raw.get().parse().ok()),
        )
    }

    /// What the line says to the model, if anything.
    pub(super) fn said(&self, at: At<'_>) -> Result<Option<Said<'a>>, FormatError> {
        match self.kind().as_ref() {
            "message" => self.message(at),
            "compaction" | "branch_summary" => summary(at, self.summary),
            "custom_message" => {
                let pieces = match self.content {
                    Some(raw) => parts::content(at, "content", raw)?,
                    None => Vec::new(),
                };
                Ok(Some(Said::new(Role::User, EntryKind::Injected, pieces)))
            }
            _ => Ok(None),
        }
    }

    fn message(&self, at: At<'_>) -> Result<Option<Said<'a>>, FormatError> {
        let raw = self
            .message
            .ok_or_else(|| at.missing("message", "an object"))?;
        if !is_object(raw) {
            return Err(at.field("message", "an object", raw));
        }
        let message: Message<'a> = at.read(raw.get())?;
        let pieces = || match message.content {
            Some(raw) => content(at, raw),
            None => Ok(Vec::new()),
        };
        Ok(Some(match lenient(message.role).as_deref() {
            Some("user") => Said::new(Role::User, EntryKind::Message, pieces()?),
            Some("assistant") => {
                let stop = lenient(message.stop_reason);
                if matches!(stop.as_deref(), Some("aborted" | "error")) {
                    return Ok(None);
                }
                Said::new(Role::Assistant, EntryKind::Message, pieces()?)
            }
            Some("toolResult") => Said {
                echoes: message
                    .details
                    .map(|details| (0, details))
                    .into_iter()
                    .collect(),
                ..Said::new(Role::Tool, EntryKind::Message, result(at, &message)?)
            },
            Some("bashExecution") if is_true(message.exclude_from_context) => return Ok(None),
            Some("bashExecution") => {
                Said::new(Role::User, EntryKind::Injected, execution(at, &message)?)
            }
            Some("compactionSummary" | "branchSummary") => return summary(at, message.summary),
            Some(_) => Said::new(Role::User, EntryKind::Injected, pieces()?),
            None => return Err(at.missing("message.role", "a string")),
        }))
    }
}

fn summary<'a>(at: At<'_>, raw: Option<&'a RawValue>) -> Result<Option<Said<'a>>, FormatError> {
    let text = at.optional("summary", raw)?.filter(|text| !text.is_empty());
    Ok(raw.zip(text).map(|(raw, text)| {
        let piece = parts::text_piece(text, Holder::Item, raw);
        Said::new(Role::User, EntryKind::ForeignSummary, vec![piece])
    }))
}

fn content<'a>(at: At<'_>, raw: &'a RawValue) -> Result<Vec<Piece<'a>>, FormatError> {
    if !is_list(raw) {
        return parts::content(at, "message.content", raw);
    }
    let piece = |element: &'a RawValue| {
        let holder = Holder::Element { list: raw, element };
        let read: Element<'a> = if is_object(element) {
            at.read(element.get())?
        } else {
            Element::default()
        };
        match lenient(read.r#type).as_deref() {
            Some("thinking") => thinking(at, &read, holder),
            Some("toolCall") => call(at, &read, holder),
            _ => parts::part(at, "message.content", raw, element),
        }
    };
    let elements = at.list("message.content", raw)?;
    elements.into_iter().map(piece).collect()
}

fn thinking<'a>(
    at: At<'_>,
    read: &Element<'a>,
    holder: Holder<'a>,
) -> Result<Piece<'a>, FormatError> {
    let text = at.optional("message.content[].thinking", read.thinking)?;
    let signature = read.thinking_signature;
    Ok(Piece {
        block: Block::Reasoning {
            text: text.unwrap_or_default(),
            replay_bytes: signature.map_or(0, |raw| raw.get().len().saturating_sub(2)),
        },
        holder,
        texts: read.thinking.map(TextSite::value).unwrap_or_default(),
    })
}

fn call<'a>(at: At<'_>, read: &Element<'a>, holder: Holder<'a>) -> Result<Piece<'a>, FormatError> {
    let id = at.optional("message.content[].id", read.id)?;
    Ok(Piece {
        block: Block::ToolCall {
            id: id.unwrap_or_default(),
            name: lenient(read.name).unwrap_or_default().into_owned(),
            arguments: read.arguments.map_or("{}", RawValue::get).to_owned(),
        },
        holder,
        texts: read.arguments.map(TextSite::value).unwrap_or_default(),
    })
}

fn result<'a>(at: At<'_>, message: &Message<'a>) -> Result<Vec<Piece<'a>>, FormatError> {
    let call = at.optional("message.toolCallId", message.tool_call_id)?;
    let answer = message
        .content
        .map(|raw| parts::answer(at, "message.content", raw))
        .transpose()?;
    let (content, texts, media) = answer
        .map(|a| (a.text, a.sites, a.media))
        .unwrap_or_default();
    let block = Block::ToolResult {
        call: call.unwrap_or_default(),
        content,
        is_error: is_true(message.is_error),
    };
    let mut pieces = vec![Piece {
        block,
        holder: Holder::Item,
        texts,
    }];
    pieces.extend(media);
    Ok(pieces)
}

/// A command that the user ran, and what it printed.
fn execution<'a>(at: At<'_>, message: &Message<'a>) -> Result<Vec<Piece<'a>>, FormatError> {
    let mut pieces = Vec::new();
    for (field, value) in [("command", message.command), ("output", message.output)] {
        let Some(value) = value.filter(|raw| is_string(raw)) else {
            continue;
        };
        let text = at.string(field, value)?;
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

/// The line with its edits.
pub(super) fn edited(
    at: At<'_>,
    json: &str,
    edits: Edits<'_>,
) -> Result<Option<String>, FormatError> {
    let line: Line<'_> = at.read(json)?;
    let said = line.said(at)?;
    Ok(said.and_then(|said| said.edited(json, edits, &text_part)))
}

/// A text as a part of a message.
pub(super) fn text_part(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))
}

/// A summary of another program as a message: as a boundary it would cut off what stands before it.
pub(super) fn as_message(json: &str) -> Cow<'_, str> {
    let members = Members::of(json);
    let role = match lenient(members.get("type")).as_deref() {
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
