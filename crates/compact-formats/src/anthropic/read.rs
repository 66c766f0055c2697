//! Messages to drafts.

use std::ops::Range;

use compact_core::message::{Block, EntryKind, Role};
use compact_core::wire::WireRules;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BARE, DROPS_UNBOUND, MANUAL_THINKING, content};
use crate::body::{self, messages};
use crate::edit::{self, BlockPiece};
use crate::error::FormatError;
use crate::json::{ItemContext, Members, is_list, is_string, string_value};
use crate::list::{self, ListElements};
use crate::source::{EntryDraft, EntryPlace, TranscriptReading};
use crate::special_text;

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnthropicBody<'a> {
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    messages: Option<&'a RawValue>,
    model: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    thinking: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AnthropicMessage<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
}

pub(super) fn read(source: &[u8]) -> Result<TranscriptReading, FormatError> {
    let (text, at) = body::read_text(source)?;
    if text.trim_ascii_start().starts_with('[') {
        let mut reading = read_messages(source, text, at.read(text)?, "the document", Vec::new())?;
        reading.rules = Some(&BARE);
        return Ok(reading);
    }
    let body: AnthropicBody<'_> = at.read(text)?;
    let listed = body
        .messages
        .ok_or_else(|| at.missing_field("messages", "a list"))?;
    let system = body
        .system
        .map(|raw| read_system(source, at, raw))
        .transpose()?;
    let mut reading = read_messages(source, text, listed, "messages", system.unwrap_or_default())?;
    reading.model = string_value(body.model).map(Into::into);
    reading.tools = body.tools.map(|raw| raw.get().to_owned());
    reading.session_id = body.metadata.and_then(session_id);
    reading.rules = body.thinking.and_then(thinking_rules);
    Ok(reading)
}

/// Reads the session's name that Claude Code puts into the user's id: as JSON, or after `_session_` in
/// earlier versions.
fn session_id(metadata: &RawValue) -> Option<String> {
    let user = string_value(Members::from_json(metadata.get()).get("user_id"))?;
    let named = string_value(Members::from_json(&user).get("session_id")).map(String::from);
    named.or_else(|| user.split_once("_session_").map(|(_, id)| id.to_owned()))
}

fn thinking_rules(thinking: &RawValue) -> Option<&'static WireRules> {
    let members = Members::from_json(thinking.get());
    if string_value(members.get("type")).as_deref() == Some("enabled") {
        return Some(&MANUAL_THINKING);
    }
    let binding = Members::from_json(members.get("block_binding")?.get());
    let drops =
        string_value(binding.get("prefix_mismatch_behavior")).as_deref() == Some("drop_block");
    drops.then_some(&DROPS_UNBOUND)
}

/// Returns the system prompt: one entry, or one for each of its blocks.
fn read_system(
    source: &[u8],
    at: ItemContext<'_>,
    raw: &RawValue,
) -> Result<Vec<EntryDraft>, FormatError> {
    if is_string(raw) {
        let place = body::place_beside(source, raw, None);
        return Ok(vec![body::read_instruction(
            at, "system", raw, place, entry_kind,
        )?]);
    }
    at.read_list("system", raw)?
        .into_iter()
        .enumerate()
        .map(|(i, element)| {
            let place = body::place_beside(source, element, Some(i));
            body::read_instruction(at, "system", element, place, entry_kind)
        })
        .collect()
}

fn read_messages(
    source: &[u8],
    text: &str,
    raw: &RawValue,
    field: &str,
    system: Vec<EntryDraft>,
) -> Result<TranscriptReading, FormatError> {
    let mut reading = read_elements(source, list::find_elements(source, text, raw, field)?)?;
    reading.put_first(system);
    Ok(reading)
}

/// Reads the messages of a list.
pub(super) fn read_elements(
    source: &[u8],
    (elements, layout): ListElements<'_>,
) -> Result<TranscriptReading, FormatError> {
    let mut reading = TranscriptReading::new(layout);
    for (raw, place) in elements {
        let at = ItemContext {
            source,
            offset: place.span.start,
        };
        read_message(at, raw, &place, &mut reading)?;
    }
    Ok(reading)
}

fn read_message(
    at: ItemContext<'_>,
    raw: &RawValue,
    place: &EntryPlace,
    reading: &mut TranscriptReading,
) -> Result<(), FormatError> {
    let message = AnthropicMessage::from_json(at, raw.get())?;
    let name = at.read_string(
        "role",
        message
            .role
            .ok_or_else(|| at.missing_field("role", "a string"))?,
    )?;
    let role = parse_role(&name).unwrap_or_else(|| reading.unknown_role(&name, None));
    let blocks = edit::into_blocks(message.read_pieces(at)?);
    let ranges = split_message(role, &blocks);
    let said = |blocks: &[Block]| {
        let role = match role {
            Role::User if messages::has_results(blocks) => Role::Tool,
            role => role,
        };
        (role, entry_kind(role, blocks))
    };
    let drafts = messages::draft_entries(blocks, &ranges, place, &said);
    reading.drafts.extend(drafts);
    Ok(())
}

impl<'a> AnthropicMessage<'a> {
    pub(super) fn from_json(at: ItemContext<'_>, json: &'a str) -> Result<Self, FormatError> {
        if !json.starts_with('{') {
            return Err(at.missing_field("role", "in an object with `role` and `content`"));
        }
        at.read(json)
    }

    pub(super) fn role(&self) -> Role {
        string_value(self.role)
            .and_then(|name| parse_role(&name))
            .unwrap_or(Role::User)
    }

    pub(super) fn read_pieces(
        &self,
        at: ItemContext<'_>,
    ) -> Result<Vec<BlockPiece<'a>>, FormatError> {
        match self.content {
            None => Ok(Vec::new()),
            Some(raw) if is_string(raw) || is_list(raw) => content::read_pieces(at, "content", raw),
            Some(raw) => Err(at.wrong_type("content", "a string or a list of blocks", raw)),
        }
    }
}

fn parse_role(name: &str) -> Option<Role> {
    Some(match name {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => return None,
    })
}

/// Returns the blocks of each entry of a message: compaction blocks by themselves, and a person's words
/// apart from the results before them.
pub(super) fn split_message(role: Role, blocks: &[Block]) -> Vec<Range<usize>> {
    let is_said = if role == Role::User {
        is_said
    } else {
        |_: &Block| false
    };
    messages::split_into_entries(blocks, is_compaction, is_said)
}

fn is_compaction(block: &Block) -> bool {
    matches!(block, Block::Opaque { kind, .. } if kind == "compaction")
}

/// Returns true for words that a person may have said.
fn is_said(block: &Block) -> bool {
    match block {
        Block::Text(text) => !special_text::is_injected(text),
        _ => false,
    }
}

fn entry_kind(role: Role, blocks: &[Block]) -> EntryKind {
    if !blocks.is_empty() && blocks.iter().all(is_compaction) {
        return EntryKind::ForeignSummary;
    }
    special_text::entry_kind(role, blocks)
}
