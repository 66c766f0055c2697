//! One event: what it is, and the pieces of its message.

use std::borrow::Cow;

use compact_core::message::{Block, EntryKind, Role};
use compact_core::view::Edit;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chain::Said;
use crate::edit::{Edits, Holder, Piece, TextSite};
use crate::error::FormatError;
use crate::json::{At, Members, Patch, is_list, is_object, is_string, lenient, quote};
use crate::parts;

/// The members of an event that matter here; every one is a span.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Event<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    data: Option<&'a RawValue>,
    pub(super) id: Option<&'a RawValue>,
    /// The id of the event that this one repeats after a boundary of ours.
    compacted_from: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Data<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    transformed_content: Option<&'a RawValue>,
    reasoning_text: Option<&'a RawValue>,
    reasoning_opaque: Option<&'a RawValue>,
    encrypted_content: Option<&'a RawValue>,
    tool_requests: Option<&'a RawValue>,
    tool_call_id: Option<&'a RawValue>,
    parent_tool_call_id: Option<&'a RawValue>,
    success: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    summary_content: Option<&'a RawValue>,
    kind: Option<&'a RawValue>,
    pub(super) session_id: Option<&'a RawValue>,
    pub(super) model: Option<&'a RawValue>,
    pub(super) new_model: Option<&'a RawValue>,
}

impl Data<'_> {
    fn succeeded(&self) -> bool {
        self.success.is_none_or(|raw| raw.get() != "false")
    }

    /// True for a notice that a boundary's summary became within a view.
    fn is_summary(&self) -> bool {
        let kind = Members::of(self.kind.map_or("", RawValue::get)).get("type");
        lenient(kind).as_deref() == Some("compaction_summary")
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Outcome<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    detailed_content: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    contents: Option<&'a RawValue>,
}

impl<'a> Event<'a> {
    pub(super) fn kind(&self) -> Cow<'a, str> {
        lenient(self.r#type).unwrap_or_default()
    }

    pub(super) fn is_copy(&self) -> bool {
        self.compacted_from.is_some()
    }

    pub(super) fn data(&self, at: At<'_>) -> Result<Data<'a>, FormatError> {
        match self.data {
            Some(raw) if is_object(raw) => at.read(raw.get()),
            Some(raw) => Err(at.field("data", "an object", raw)),
            None => Ok(Data::default()),
        }
    }

    /// What the event says to the model, if anything.
    pub(super) fn said(&self, at: At<'_>) -> Result<Option<Said<'a>>, FormatError> {
        let data = self.data(at)?;
        if data.parent_tool_call_id.is_some_and(is_string) {
            return Ok(None);
        }
        let words = |role, kind| -> Result<_, FormatError> {
            Ok(Some(Said::new(role, kind, words(at, data.content)?)))
        };
        match self.kind().as_ref() {
            "system.message" => words(Role::System, EntryKind::Message),
            "system.notification" if data.is_summary() => {
                words(Role::User, EntryKind::ForeignSummary)
            }
            "system.notification" => words(Role::User, EntryKind::Injected),
            "user.message" => user(at, &data).map(Some),
            "assistant.message" => assistant(at, &data).map(Some),
            "tool.execution_complete" => result(at, &data).map(Some),
            "session.compaction_complete" => {
                let summary = data.summary_content.filter(|_| data.succeeded());
                let text = at.optional("data.summaryContent", summary)?;
                let text = text.filter(|text| !text.is_empty());
                Ok(summary.zip(text).map(|(raw, text)| {
                    let piece = parts::text_piece(text, Holder::Item, raw);
                    Said::new(Role::User, EntryKind::ForeignSummary, vec![piece])
                }))
            }
            _ => Ok(None),
        }
    }

    /// True for a compaction that was carried out.
    pub(super) fn is_boundary(&self, at: At<'_>) -> Result<bool, FormatError> {
        let is_compaction = self.kind() == "session.compaction_complete";
        Ok(is_compaction && self.data(at)?.succeeded())
    }

    /// The call that an event of the furniture belongs to.
    pub(super) fn call(&self, at: At<'_>) -> Option<String> {
        let data = self.data(at).ok()?;
        lenient(data.tool_call_id.or(data.parent_tool_call_id)).map(String::from)
    }
}

/// A text that must stay where it is, be it empty.
fn words<'a>(at: At<'_>, value: Option<&'a RawValue>) -> Result<Vec<Piece<'a>>, FormatError> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let mut pieces = parts::content(at, "data.content", value)?;
    for piece in &mut pieces {
        if matches!(piece.holder, Holder::Member(_)) {
            let empty = "\"\"";
            piece.holder = Holder::Value { value, empty };
        }
    }
    Ok(pieces)
}

/// The user's words. What is attached is named, not held; the client repeats both for the model.
fn user<'a>(at: At<'_>, data: &Data<'a>) -> Result<Said<'a>, FormatError> {
    let pieces = words(at, data.content)?;
    let repeat = data.transformed_content.filter(|_| !pieces.is_empty());
    let mut said = Said::new(Role::User, EntryKind::Message, pieces);
    said.echoes.extend(repeat.map(|value| (0, value)));
    Ok(said)
}

fn assistant<'a>(at: At<'_>, data: &Data<'a>) -> Result<Said<'a>, FormatError> {
    let mut pieces = Vec::new();
    let replay = data.reasoning_opaque.or(data.encrypted_content);
    let text = data.reasoning_text.filter(|raw| is_string(raw));
    if let Some(value) = text.or(replay) {
        pieces.push(Piece {
            block: Block::Reasoning {
                text: at.optional("data.reasoningText", text)?.unwrap_or_default(),
                replay_bytes: replay.map_or(0, |raw| raw.get().len().saturating_sub(2)),
            },
            holder: Holder::Value {
                value,
                empty: "null",
            },
            texts: text.map(TextSite::value).unwrap_or_default(),
        });
    }
    pieces.extend(words(at, data.content)?);
    if let Some(list) = data.tool_requests.filter(|list| is_list(list)) {
        for element in at.list("data.toolRequests", list)? {
            if !is_object(element) {
                return Err(at.field("data.toolRequests[]", "an object", element));
            }
            let request: Request<'a> = at.read(element.get())?;
            pieces.push(call(at, &request, Holder::Element { list, element })?);
        }
    }
    Ok(Said::new(Role::Assistant, EntryKind::Message, pieces))
}

fn call<'a>(
    at: At<'_>,
    request: &Request<'a>,
    holder: Holder<'a>,
) -> Result<Piece<'a>, FormatError> {
    let id = at.optional("data.toolRequests[].toolCallId", request.tool_call_id)?;
    let arguments = match request.arguments {
        Some(raw) if is_string(raw) => at.string("data.toolRequests[].arguments", raw)?,
        Some(raw) => raw.get().to_owned(),
        None => "{}".to_owned(),
    };
    Ok(Piece {
        block: Block::ToolCall {
            id: id.unwrap_or_default(),
            name: lenient(request.name).unwrap_or_default().into_owned(),
            arguments,
        },
        holder,
        texts: request.arguments.map(TextSite::value).unwrap_or_default(),
    })
}

fn result<'a>(at: At<'_>, data: &Data<'a>) -> Result<Said<'a>, FormatError> {
    let call = at.optional("data.toolCallId", data.tool_call_id)?;
    let outcome = |raw: Option<&'a RawValue>| -> Result<Outcome<'a>, FormatError> {
        match raw {
            Some(raw) if is_object(raw) => at.read(raw.get()),
            _ => Ok(Outcome::default()),
        }
    };
    let (told, failed) = (outcome(data.result)?, outcome(data.error)?);
    let is_error = data.success.is_some_and(|raw| raw.get() == "false");
    let value = told.content.or(failed.message).filter(|raw| is_string(raw));
    let text = value.map(|raw| at.string("data.result.content", raw));
    let block = Block::ToolResult {
        call: call.unwrap_or_default(),
        content: text.transpose()?.unwrap_or_default(),
        is_error,
    };
    let piece = Piece {
        block,
        holder: Holder::Item,
        texts: value.map(TextSite::value).unwrap_or_default(),
    };
    let mut said = Said::new(Role::Tool, EntryKind::Message, vec![piece]);
    let repeats = [told.detailed_content, told.contents];
    said.echoes
        .extend(repeats.into_iter().flatten().map(|value| (0, value)));
    Ok(said)
}

/// The event with its edits.
pub(super) fn edited(
    at: At<'_>,
    json: &str,
    edits: Edits<'_>,
) -> Result<Option<String>, FormatError> {
    let event: Event<'_> = at.read(json)?;
    let Some(said) = event.said(at)? else {
        return Ok(None);
    };
    let forgets = said.pieces.iter().enumerate().any(|(i, piece)| {
        let is_reasoning = matches!(piece.block, Block::Reasoning { .. });
        is_reasoning && matches!(edits.of(i), Some(Edit::Drop))
    });
    let edited = said.edited(json, edits, &quote);
    Ok(edited.map(|json| if forgets { without_replay(&json) } else { json }))
}

/// The event without what the provider would want back with its reasoning.
fn without_replay(json: &str) -> String {
    let mut patch = Patch::new(json);
    let data = Members::of(Members::of(json).get("data").map_or("", RawValue::get));
    for key in ["reasoningOpaque", "encryptedContent"] {
        if let Some(value) = data.get(key) {
            patch.replace(value, "null".to_owned());
        }
    }
    patch.finish()
}
