//! One event: what it is, and the pieces of its message.

use std::borrow::Cow;

use compact_core::message::{Block, EntryKind, Role};
use compact_core::view::BlockEdit;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chain::LineContent;
use crate::edit::{BlockPiece, EntryEdits, Holder, TextSite};
use crate::error::FormatError;
use crate::json::{
    ItemContext, Members, Patch, is_list, is_object, is_string, is_true, quote, string_value,
};
use crate::parts;

/// The members of an event that matter here; every one is a span.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CopilotEvent<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    data: Option<&'a RawValue>,
    pub(super) id: Option<&'a RawValue>,
    /// The sub-agent that the event is of.
    agent_id: Option<&'a RawValue>,
    /// The id of the event that this one repeats after a boundary of ours.
    compacted_from: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CopilotEventData<'a> {
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
    source: Option<&'a RawValue>,
    is_autopilot_continuation: Option<&'a RawValue>,
    pub(super) session_id: Option<&'a RawValue>,
    pub(super) model: Option<&'a RawValue>,
    pub(super) new_model: Option<&'a RawValue>,
}

impl CopilotEventData<'_> {
    fn succeeded(&self) -> bool {
        self.success.is_none_or(|raw| raw.get() != "false")
    }

    /// Returns whether the client wrote a message in the user's place: a skill, another agent or its own loop speaks.
    fn is_hosts(&self) -> bool {
        is_true(self.is_autopilot_continuation)
            || string_value(self.source).is_some_and(|source| source != "user")
    }

    /// Returns true for a notice that a boundary's summary became within a view.
    fn is_summary(&self) -> bool {
        let kind = Members::from_json(self.kind.map_or("", RawValue::get)).get("type");
        string_value(kind).as_deref() == Some("compaction_summary")
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CopilotToolRequest<'a> {
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CopilotToolOutcome<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    detailed_content: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    contents: Option<&'a RawValue>,
}

impl<'a> CopilotEvent<'a> {
    pub(super) fn kind(&self) -> Cow<'a, str> {
        string_value(self.r#type).unwrap_or_default()
    }

    pub(super) fn is_copy(&self) -> bool {
        self.compacted_from.is_some()
    }

    pub(super) fn read_data(
        &self,
        at: ItemContext<'_>,
    ) -> Result<CopilotEventData<'a>, FormatError> {
        match self.data {
            Some(raw) if is_object(raw) => at.read(raw.get()),
            Some(raw) => Err(at.wrong_type("data", "an object", raw)),
            None => Ok(CopilotEventData::default()),
        }
    }

    /// Returns what the event says to the model, if anything.
    pub(super) fn read_content(
        &self,
        at: ItemContext<'_>,
    ) -> Result<Option<LineContent<'a>>, FormatError> {
        let data = self.read_data(at)?;
        // What a sub-agent is told and does is no part of this conversation.
        if [data.parent_tool_call_id, self.agent_id]
            .into_iter()
            .flatten()
            .any(is_string)
        {
            return Ok(None);
        }
        let words = |role, kind| -> Result<_, FormatError> {
            Ok(Some(LineContent::new(
                role,
                kind,
                text_pieces(at, data.content)?,
            )))
        };
        match self.kind().as_ref() {
            "system.message" => words(Role::System, EntryKind::Message),
            "system.notification" if data.is_summary() => {
                words(Role::User, EntryKind::ForeignSummary)
            }
            "system.notification" => words(Role::User, EntryKind::Injected),
            "user.message" => read_user(at, &data).map(Some),
            "assistant.message" => read_assistant(at, &data).map(Some),
            "tool.execution_complete" => read_result(at, &data).map(Some),
            "session.compaction_complete" => {
                let summary = data.summary_content.filter(|_| data.succeeded());
                let text = at.read_optional_string("data.summaryContent", summary)?;
                let text = text.filter(|text| !text.is_empty());
                Ok(summary.zip(text).map(|(raw, text)| {
                    let piece = parts::text_piece(text, Holder::Item, raw);
                    LineContent::new(Role::User, EntryKind::ForeignSummary, vec![piece])
                }))
            }
            _ => Ok(None),
        }
    }

    /// Returns true for a compaction that was carried out.
    pub(super) fn is_boundary(&self, at: ItemContext<'_>) -> Result<bool, FormatError> {
        let is_compaction = self.kind() == "session.compaction_complete";
        Ok(is_compaction && self.read_data(at)?.succeeded())
    }

    /// Returns the call that an event of the furniture belongs to.
    pub(super) fn call_id(&self, at: ItemContext<'_>) -> Option<String> {
        let data = self.read_data(at).ok()?;
        string_value(data.tool_call_id.or(data.parent_tool_call_id)).map(String::from)
    }
}

/// Returns a text that must stay where it is, be it empty.
fn text_pieces<'a>(
    at: ItemContext<'_>,
    value: Option<&'a RawValue>,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let mut pieces = parts::read_content(at, "data.content", value)?;
    for piece in &mut pieces {
        if matches!(piece.holder, Holder::Member(_)) {
            let empty = "\"\"";
            piece.holder = Holder::Value { value, empty };
        }
    }
    Ok(pieces)
}

/// Returns the user's words. What is attached is named, not held; the client repeats both for the model.
fn read_user<'a>(
    at: ItemContext<'_>,
    data: &CopilotEventData<'a>,
) -> Result<LineContent<'a>, FormatError> {
    let pieces = text_pieces(at, data.content)?;
    let repeat = data.transformed_content.filter(|_| !pieces.is_empty());
    let kind = match data.is_hosts() {
        true => EntryKind::Injected,
        false => EntryKind::Message,
    };
    let mut said = LineContent::new(Role::User, kind, pieces);
    said.echoes.extend(repeat.map(|value| (0, value)));
    Ok(said)
}

fn read_assistant<'a>(
    at: ItemContext<'_>,
    data: &CopilotEventData<'a>,
) -> Result<LineContent<'a>, FormatError> {
    let mut pieces = Vec::new();
    let replay = data.reasoning_opaque.or(data.encrypted_content);
    let text = data.reasoning_text.filter(|raw| is_string(raw));
    if let Some(value) = text.or(replay) {
        pieces.push(BlockPiece {
            block: Block::Reasoning {
                text: at
                    .read_optional_string("data.reasoningText", text)?
                    .unwrap_or_default(),
                replay_bytes: replay.map_or(0, |raw| raw.get().len().saturating_sub(2)),
            },
            holder: Holder::Value {
                value,
                empty: "null",
            },
            texts: text.map(TextSite::in_value).unwrap_or_default(),
        });
    }
    pieces.extend(text_pieces(at, data.content)?);
    if let Some(list) = data.tool_requests.filter(|list| is_list(list)) {
        for element in at.read_list("data.toolRequests", list)? {
            if !is_object(element) {
                return Err(at.wrong_type("data.toolRequests[]", "an object", element));
            }
            let request: CopilotToolRequest<'a> = at.read(element.get())?;
            pieces.push(call_piece(at, &request, Holder::Element { list, element })?);
        }
    }
    Ok(LineContent::new(
        Role::Assistant,
        EntryKind::Message,
        pieces,
    ))
}

fn call_piece<'a>(
    at: ItemContext<'_>,
    request: &CopilotToolRequest<'a>,
    holder: Holder<'a>,
) -> Result<BlockPiece<'a>, FormatError> {
    let id = at.read_optional_string("data.toolRequests[].toolCallId", request.tool_call_id)?;
    let arguments = match request.arguments {
        Some(raw) if is_string(raw) => at.read_string("data.toolRequests[].arguments", raw)?,
        Some(raw) => raw.get().to_owned(),
        None => "{}".to_owned(),
    };
    Ok(BlockPiece {
        block: Block::ToolCall {
            id: id.unwrap_or_default(),
            name: string_value(request.name).unwrap_or_default().into_owned(),
            arguments,
        },
        holder,
        texts: request
            .arguments
            .map(TextSite::in_value)
            .unwrap_or_default(),
    })
}

fn read_result<'a>(
    at: ItemContext<'_>,
    data: &CopilotEventData<'a>,
) -> Result<LineContent<'a>, FormatError> {
    let call = at.read_optional_string("data.toolCallId", data.tool_call_id)?;
    let outcome = |raw: Option<&'a RawValue>| -> Result<CopilotToolOutcome<'a>, FormatError> {
        match raw {
            Some(raw) if is_object(raw) => at.read(raw.get()),
            _ => Ok(CopilotToolOutcome::default()),
        }
    };
    let (told, failed) = (outcome(data.result)?, outcome(data.error)?);
    let is_error = data.success.is_some_and(|raw| raw.get() == "false");
    let value = told.content.or(failed.message).filter(|raw| is_string(raw));
    let text = value.map(|raw| at.read_string("data.result.content", raw));
    let block = Block::ToolResult {
        call: call.unwrap_or_default(),
        content: text.transpose()?.unwrap_or_default(),
        is_error,
    };
    let piece = BlockPiece {
        block,
        holder: Holder::Item,
        texts: value.map(TextSite::in_value).unwrap_or_default(),
    };
    let mut said = LineContent::new(Role::Tool, EntryKind::Message, vec![piece]);
    let repeats = [told.detailed_content, told.contents];
    said.echoes
        .extend(repeats.into_iter().flatten().map(|value| (0, value)));
    Ok(said)
}

/// Returns the event with its edits.
pub(super) fn edit_event(
    at: ItemContext<'_>,
    json: &str,
    edits: EntryEdits<'_>,
) -> Result<Option<String>, FormatError> {
    let event: CopilotEvent<'_> = at.read(json)?;
    let Some(said) = event.read_content(at)? else {
        return Ok(None);
    };
    let forgets = said.pieces.iter().enumerate().any(|(i, piece)| {
        let is_reasoning = matches!(piece.block, Block::Reasoning { .. });
        is_reasoning && matches!(edits.for_block(i), Some(BlockEdit::Drop))
    });
    let edited = said.apply_edits(json, edits, &quote);
    Ok(edited.map(|json| if forgets { without_replay(&json) } else { json }))
}

/// Returns the event without what the provider would want back with its reasoning.
fn without_replay(json: &str) -> String {
    let mut patch = Patch::new(json);
    let data = Members::from_json(
        Members::from_json(json)
            .get("data")
            .map_or("", RawValue::get),
    );
    for key in ["reasoningOpaque", "encryptedContent"] {
        if let Some(value) = data.get(key) {
            patch.replace(value, "null".to_owned());
        }
    }
    patch.finish()
}
