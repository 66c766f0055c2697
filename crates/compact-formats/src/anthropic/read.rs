//! Messages to drafts.

use std::ops::Range;

use compact_core::message::{Block, EntryKind, Role};
use compact_core::wire::WireRules;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BARE, DROPS_UNBOUND, MANUAL_THINKING, content};
use crate::body::{self, messages};
use crate::edit::{self, Piece};
use crate::error::FormatError;
use crate::frame;
use crate::json::{At, Members, is_list, is_string, lenient};
use crate::list;
use crate::source::{Draft, Place, Reading};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body<'a> {
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
pub(super) struct Message<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
}

pub(super) fn read(source: &[u8]) -> Result<Reading, FormatError> {
    let (text, at) = body::text(source)?;
    if text.trim_ascii_start().starts_with('[') {
        let mut reading = read_messages(source, text, at.read(text)?, "the document", Vec::new())?;
        reading.rules = Some(&BARE);
        return Ok(reading);
    }
    let body: Body<'_> = at.read(text)?;
    let listed = body
        .messages
        .ok_or_else(|| at.missing("messages", "a list"))?;
    let system = body.system.map(|raw| system(source, at, raw)).transpose()?;
    let mut reading = read_messages(source, text, listed, "messages", system.unwrap_or_default())?;
    reading.model = lenient(body.model).map(Into::into);
    reading.tools = body.tools.map(|raw| raw.get().to_owned());
    reading.session_id = body.metadata.and_then(session_id);
    reading.rules = body.thinking.and_then(thinking_rules);
    Ok(reading)
}

/// Claude Code names its session in the user's id: as JSON, or after `_session_` in earlier versions.
fn session_id(metadata: &RawValue) -> Option<String> {
    let user = lenient(Members::of(metadata.get()).get("user_id"))?;
    let named = lenient(Members::of(&user).get("session_id")).map(String::from);
    named.or_else(|| user.split_once("_session_").map(|(_, id)| id.to_owned()))
}

fn thinking_rules(thinking: &RawValue) -> Option<&'static WireRules> {
    let members = Members::of(thinking.get());
    if lenient(members.get("type")).as_deref() == Some("enabled") {
        return Some(&MANUAL_THINKING);
    }
    let binding = Members::of(members.get("block_binding")?.get());
    let drops = lenient(binding.get("prefix_mismatch_behavior")).as_deref() == Some("drop_block");
    drops.then_some(&DROPS_UNBOUND)
}

/// The system prompt: one entry, or one for each of its blocks.
fn system(source: &[u8], at: At<'_>, raw: &RawValue) -> Result<Vec<Draft>, FormatError> {
    if is_string(raw) {
        let place = body::beside(source, raw, None);
        return Ok(vec![body::instruction(at, "system", raw, place, kind_of)?]);
    }
    at.list("system", raw)?
        .into_iter()
        .enumerate()
        .map(|(i, element)| {
            let place = body::beside(source, element, Some(i));
            body::instruction(at, "system", element, place, kind_of)
        })
        .collect()
}

fn read_messages(
    source: &[u8],
    text: &str,
    raw: &RawValue,
    field: &str,
    system: Vec<Draft>,
) -> Result<Reading, FormatError> {
    let (elements, layout) = list::elements(source, text, raw, field)?;
    let mut reading = Reading::new(layout);
    reading.drafts = system;
    for (raw, place) in elements {
        let at = At {
            source,
            offset: place.span.start,
        };
        message(at, raw, &place, &mut reading)?;
    }
    Ok(reading)
}

fn message(
    at: At<'_>,
    raw: &RawValue,
    place: &Place,
    reading: &mut Reading,
) -> Result<(), FormatError> {
    let message = Message::of(at, raw.get())?;
    let name = at.string(
        "role",
        message.role.ok_or_else(|| at.missing("role", "a string"))?,
    )?;
    let role = role_named(&name).unwrap_or_else(|| reading.unknown_role(&name, None));
    let blocks = edit::blocks(message.pieces(at)?);
    let ranges = split(role, &blocks);
    let said = |blocks: &[Block]| {
        let role = match role {
            Role::User if messages::answers(blocks) => Role::Tool,
            role => role,
        };
        (role, kind_of(role, blocks))
    };
    let drafts = messages::drafts(blocks, &ranges, place, &said);
    reading.drafts.extend(drafts);
    Ok(())
}

impl<'a> Message<'a> {
    pub(super) fn of(at: At<'_>, json: &'a str) -> Result<Self, FormatError> {
        if !json.starts_with('{') {
            return Err(at.missing("role", "in an object with `role` and `content`"));
        }
        at.read(json)
    }

    pub(super) fn role(&self) -> Role {
        lenient(self.role)
            .and_then(|name| role_named(&name))
            .unwrap_or(Role::User)
    }

    pub(super) fn pieces(&self, at: At<'_>) -> Result<Vec<Piece<'a>>, FormatError> {
        match self.content {
            None => Ok(Vec::new()),
            Some(raw) if is_string(raw) || is_list(raw) => content::pieces(at, "content", raw),
            Some(raw) => Err(at.field("content", "a string or a list of blocks", raw)),
        }
    }
}

fn role_named(name: &str) -> Option<Role> {
    Some(match name {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => return None,
    })
}

/// The blocks of each entry of a message: compaction blocks by themselves, and a person's words
/// apart from the results before them.
pub(super) fn split(role: Role, blocks: &[Block]) -> Vec<Range<usize>> {
    let is_said = if role == Role::User {
        is_said
    } else {
        |_: &Block| false
    };
    messages::split(blocks, is_compaction, is_said)
}

fn is_compaction(block: &Block) -> bool {
    matches!(block, Block::Opaque { kind, .. } if kind == "compaction")
}

/// True for words that a person may have said.
fn is_said(block: &Block) -> bool {
    match block {
        Block::Text(text) => !frame::is_injected(text, &[]),
        _ => false,
    }
}

fn kind_of(role: Role, blocks: &[Block]) -> EntryKind {
    if !blocks.is_empty() && blocks.iter().all(is_compaction) {
        return EntryKind::ForeignSummary;
    }
    frame::kind(role, blocks)
}
