//! One line of a session: what it is, and the pieces of its message.

use std::borrow::Cow;

use compact_core::message::{Block, EntryKind, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::anthropic::content;
use crate::edit::{BlockPiece, Holder};
use crate::error::FormatError;
use crate::json::{ItemContext, Members, is_list, is_object, is_string, is_true, string_value};
use crate::parts;
use crate::special_text;

/// The members of a line that matter here; every one is a span.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClaudeCodeLine<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    subtype: Option<&'a RawValue>,
    uuid: Option<&'a RawValue>,
    parent_uuid: Option<&'a RawValue>,
    is_sidechain: Option<&'a RawValue>,
    is_meta: Option<&'a RawValue>,
    is_synthetic: Option<&'a RawValue>,
    origin: Option<&'a RawValue>,
    is_compact_summary: Option<&'a RawValue>,
    is_api_error_message: Option<&'a RawValue>,
    pub(super) message: Option<&'a RawValue>,
    attachment: Option<&'a RawValue>,
    tool_use_result: Option<&'a RawValue>,
    tool_denial_kind: Option<&'a RawValue>,
    pub(super) session_id: Option<&'a RawValue>,
    pub(super) compact_metadata: Option<&'a RawValue>,
    /// The uuid of the line that this one repeats after a boundary of ours.
    compacted_from: Option<&'a RawValue>,
    message_id: Option<&'a RawValue>,
    leaf_uuid: Option<&'a RawValue>,
    pub(super) timestamp: Option<&'a RawValue>,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaudeCodeLineKind {
    User,
    Assistant,
    Attachment,
    Boundary,
    /// Messages of other contexts: sub-agents, errors of the API.
    OtherContext,
    Bookkeeping,
}

/// The API's message within a line.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudeCodeMessage<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    pub(super) model: Option<&'a RawValue>,
    pub(super) content: Option<&'a RawValue>,
    pub(super) usage: Option<&'a RawValue>,
}

impl<'a> ClaudeCodeLine<'a> {
    pub(super) fn kind(&self) -> ClaudeCodeLineKind {
        let kind = string_value(self.r#type).unwrap_or_default();
        match kind.as_ref() {
            "user" | "assistant" | "attachment"
                if is_true(self.is_sidechain) || is_true(self.is_api_error_message) =>
            {
                ClaudeCodeLineKind::OtherContext
            }
            "user" => ClaudeCodeLineKind::User,
            "assistant" => ClaudeCodeLineKind::Assistant,
            "attachment" => ClaudeCodeLineKind::Attachment,
            "system" if string_value(self.subtype).as_deref() == Some("compact_boundary") => {
                ClaudeCodeLineKind::Boundary
            }
            _ if is_true(self.is_sidechain) => ClaudeCodeLineKind::OtherContext,
            _ => ClaudeCodeLineKind::Bookkeeping,
        }
    }

    /// Returns whether the line has a type, as every line of a session does.
    pub(super) fn is_typed(&self) -> bool {
        self.r#type.is_some()
    }

    pub(super) fn uuid(&self) -> Option<Cow<'a, str>> {
        string_value(self.uuid)
    }

    pub(super) fn parent(&self) -> Option<Cow<'a, str>> {
        string_value(self.parent_uuid)
    }

    pub(super) fn compacted_from(&self) -> Option<Cow<'a, str>> {
        string_value(self.compacted_from)
    }

    /// Returns the lines that this one speaks about, beside its parent.
    pub(super) fn referenced_uuids(&self) -> impl Iterator<Item = Cow<'a, str>> {
        [self.message_id, self.leaf_uuid]
            .into_iter()
            .filter_map(string_value)
    }

    /// Returns true for a prompt: a user's line that answers no tool and is not the client's.
    pub(super) fn is_prompt(&self) -> bool {
        self.kind() == ClaudeCodeLineKind::User
            && !self.is_hosts()
            && !is_true(self.is_compact_summary)
            && self.message.is_some_and(|message| {
                memchr::memmem::find(message.get().as_bytes(), b"\"tool_result\"").is_none()
            })
    }

    /// Returns what the entry of this line is.
    pub(super) fn entry_kind(&self, blocks: &[Block]) -> EntryKind {
        let texts = || {
            blocks.iter().filter_map(|block| match block {
                Block::Text(text) => Some(text.as_str()),
                _ => None,
            })
        };
        if is_true(self.is_compact_summary) {
            return texts()
                .find_map(special_text::summary_kind)
                .unwrap_or(EntryKind::ForeignSummary);
        }
        if let Some(summary) = texts().find_map(special_text::summary_kind) {
            return summary;
        }
        let carries_result = blocks.iter().any(|b| matches!(b, Block::ToolResult { .. }));
        let injected = match self.kind() {
            ClaudeCodeLineKind::User => self.is_hosts(),
            ClaudeCodeLineKind::Attachment => !self.is_queued_prompt(),
            _ => false,
        };
        if injected && !carries_result {
            EntryKind::Injected
        } else {
            EntryKind::Message
        }
    }

    /// Returns whether the client wrote the line in the user's place: reminders, and what a task, another agent or a
    /// channel sends it. A line that says nothing of its origin is the person's; earlier clients wrote none.
    fn is_hosts(&self) -> bool {
        is_true(self.is_meta) || is_true(self.is_synthetic) || is_of_other_origin(self.origin)
    }

    /// Returns whether the line holds a prompt that the person gave while the model was at work.
    fn is_queued_prompt(&self) -> bool {
        let member = |key| string_value(self.attachment_member(key));
        member("type").as_deref() == Some("queued_command")
            && member("commandMode").is_none_or(|mode| mode == "prompt")
            && !is_true(self.attachment_member("isMeta"))
            && !is_of_other_origin(self.attachment_member("origin").or(self.origin))
    }

    /// Returns whether the person refused the call that the line answers. Earlier clients say so only of a refusal
    /// without a reason: beside one with a reason they repeat the text, as beside any tool's error.
    pub(super) fn is_refusal(&self) -> bool {
        string_value(self.tool_denial_kind).as_deref() == Some("user-rejected")
            || string_value(self.tool_use_result).as_deref() == Some("User rejected tool use")
    }

    fn attachment_member(&self, key: &str) -> Option<&'a RawValue> {
        self.attachment
            .and_then(|attachment| Members::from_json(attachment.get()).get(key))
    }

    /// Returns the pieces of the line's message or attachment, who speaks, and the message itself.
    pub(super) fn read_pieces(
        &self,
        at: ItemContext<'_>,
    ) -> Result<(Role, Vec<BlockPiece<'a>>, ClaudeCodeMessage<'a>), FormatError> {
        let kind = self.kind();
        if kind == ClaudeCodeLineKind::Attachment {
            let pieces = self.attachment_pieces(at)?;
            return Ok((Role::User, pieces, ClaudeCodeMessage::default()));
        }
        let Some(message) = self.message else {
            return Err(at.missing_field("message", "an object"));
        };
        if !is_object(message) {
            return Err(at.wrong_type("message", "an object", message));
        }
        let message: ClaudeCodeMessage<'_> = at.read(message.get())?;
        let pieces = match message.content {
            None => Vec::new(),
            Some(content) => content::read_pieces(at, "message.content", content)?,
        };
        let answers = pieces
            .iter()
            .any(|p| matches!(p.block, Block::ToolResult { .. }));
        let role = match kind {
            ClaudeCodeLineKind::Assistant => Role::Assistant,
            _ if answers => Role::Tool,
            _ => Role::User,
        };
        Ok((role, pieces, message))
    }

    /// Returns what the client attached, when it carries words: a prompt queued meanwhile, or content. The list
    /// of its skills is none: like its tools and agents, it tells that anew in every context.
    fn attachment_pieces(&self, at: ItemContext<'_>) -> Result<Vec<BlockPiece<'a>>, FormatError> {
        if string_value(self.attachment_member("type")).as_deref() == Some("skill_listing") {
            return Ok(Vec::new());
        }
        let words = self
            .attachment_member("prompt")
            .or_else(|| self.attachment_member("content"));
        match words {
            Some(raw) if is_string(raw) => parts::read_content(at, "attachment.content", raw),
            Some(raw) if is_object(raw) || is_list(raw) => Ok(vec![parts::text_piece(
                raw.get().to_owned(),
                Holder::Item,
                raw,
            )]),
            _ => Ok(Vec::new()),
        }
    }
}

/// Returns whether an origin names anything but a person.
fn is_of_other_origin(origin: Option<&RawValue>) -> bool {
    let kind = Members::from_json(origin.map_or("", RawValue::get)).get("kind");
    string_value(kind).is_some_and(|kind| kind != "human")
}
