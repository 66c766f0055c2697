//! Contents to drafts.

use std::collections::VecDeque;
use std::ops::Range;

use compact_core::message::{Block, EntryKind, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{WITHOUT_INSTRUCTIONS, part};
use crate::body::{self, messages};
use crate::edit::{self, Piece};
use crate::error::FormatError;
use crate::frame;
use crate::gemini_cli;
use crate::json::{At, Members, is_object, is_string, lenient};
use crate::list;
use crate::source::{Draft, Place, Reading};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body<'a> {
    #[serde(borrow)]
    contents: Option<&'a RawValue>,
    #[serde(alias = "systemInstruction")]
    system_instruction: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    model: Option<&'a RawValue>,
    #[serde(alias = "cachedContent")]
    cached_content: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Content<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    parts: Option<&'a RawValue>,
}

pub(super) fn read(source: &[u8]) -> Result<Reading, FormatError> {
    let (text, at) = body::text(source)?;
    if text.trim_ascii_start().starts_with('[') {
        let mut reading = Reader::read(source, text, at.read(text)?, "the document", Vec::new())?;
        reading.rules = Some(&WITHOUT_INSTRUCTIONS);
        return Ok(reading);
    }
    let body: Body<'_> = at.read(text)?;
    let contents = body
        .contents
        .ok_or_else(|| at.missing("contents", "a list"))?;
    let system = body
        .system_instruction
        .map(|raw| instructions(source, at, raw))
        .transpose()?;
    let system = system.unwrap_or_default();
    let mut reading = Reader::read(source, text, contents, "contents", system)?;
    reading.model = lenient(body.model).map(Into::into);
    reading.tools = body.tools.map(|raw| raw.get().to_owned());
    reading.rules = body.cached_content.map(|_| &WITHOUT_INSTRUCTIONS);
    Ok(reading)
}

const FIELD: &str = "systemInstruction";

/// The system instruction: a content, each part of which is an entry, or a string.
fn instructions(source: &[u8], at: At<'_>, raw: &RawValue) -> Result<Vec<Draft>, FormatError> {
    if is_string(raw) {
        let place = body::beside(source, raw, None);
        return Ok(vec![body::instruction(at, FIELD, raw, place, kind_of)?]);
    }
    if !is_object(raw) {
        return Err(at.field(FIELD, "a content", raw));
    }
    let Some(list) = Members::of(raw.get()).get("parts") else {
        return Ok(Vec::new());
    };
    at.list("systemInstruction.parts", list)?
        .into_iter()
        .enumerate()
        .map(|(i, part)| {
            let place = body::beside(source, part, Some(i));
            body::instruction(at, FIELD, part, place, kind_of)
        })
        .collect()
}

struct Reader {
    reading: Reading,
    /// The calls of the latest content that made any: id and name, those answered left out.
    open: VecDeque<(String, String)>,
}

impl Reader {
    fn read(
        source: &[u8],
        text: &str,
        raw: &RawValue,
        field: &str,
        system: Vec<Draft>,
    ) -> Result<Reading, FormatError> {
        let (elements, layout) = list::elements(source, text, raw, field)?;
        let mut reader = Reader {
            reading: Reading::new(layout),
            open: VecDeque::new(),
        };
        reader.reading.drafts = system;
        for (raw, place) in elements {
            let at = At {
                source,
                offset: place.span.start,
            };
            reader.content(at, raw, &place)?;
        }
        Ok(reader.reading)
    }

    fn content(&mut self, at: At<'_>, raw: &RawValue, place: &Place) -> Result<(), FormatError> {
        let content = Content::of(at, raw.get())?;
        let role = content.role();
        let role = role.unwrap_or_else(|name| self.reading.unknown_role(&name, None));
        let mut blocks = edit::blocks(content.pieces(at)?);
        self.pair(&mut blocks, place.line);
        let ranges = split(role, &blocks);
        let said = |blocks: &[Block]| {
            let role = if messages::answers(blocks) {
                Role::Tool
            } else {
                role
            };
            (role, kind_of(role, blocks))
        };
        let drafts = messages::drafts(blocks, &ranges, place, &said);
        self.reading.drafts.extend(drafts);
        Ok(())
    }

    /// Names the calls that have no id, and finds the calls of responses that name none.
    fn pair(&mut self, blocks: &mut [Block], line: usize) {
        if blocks.iter().any(|b| matches!(b, Block::ToolCall { .. })) {
            self.open.clear();
        }
        for (n, block) in blocks.iter_mut().enumerate() {
            match block {
                Block::ToolCall { id, name, .. } => {
                    if id.is_empty() {
                        *id = format!("call-{line}-{n}");
                    }
                    self.open.push_back((id.clone(), name.clone()));
                }
                Block::ToolResult { call, .. } => {
                    let found = self.answered(call);
                    match found.and_then(|at| self.open.remove(at)) {
                        Some((id, _)) => *call = id,
                        None if call.starts_with(part::BY_NAME) => {
                            *call = format!("response-{line}-{n}");
                        }
                        None => {}
                    }
                }
                _ => {}
            }
        }
    }

    /// The open call with this id; the first one of this name; the first one.
    fn answered(&self, call: &str) -> Option<usize> {
        match call.strip_prefix(part::BY_NAME) {
            None => self.open.iter().position(|(id, _)| id == call),
            Some(wanted) => {
                let named = self.open.iter().position(|(_, name)| name == wanted);
                named.or((!self.open.is_empty()).then_some(0))
            }
        }
    }
}

impl<'a> Content<'a> {
    pub(super) fn of(at: At<'_>, json: &'a str) -> Result<Self, FormatError> {
        if !json.starts_with('{') {
            return Err(at.missing("parts", "in an object with `role` and `parts`"));
        }
        at.read(json)
    }

    /// Who speaks; a content without a role is the user's.
    pub(super) fn role(&self) -> Result<Role, String> {
        match lenient(self.role).as_deref() {
            None | Some("user" | "function" | "tool") => Ok(Role::User),
            Some("model") => Ok(Role::Assistant),
            Some(other) => Err(other.to_owned()),
        }
    }

    pub(super) fn pieces(&self, at: At<'_>) -> Result<Vec<Piece<'a>>, FormatError> {
        self.parts
            .map_or(Ok(Vec::new()), |list| part::pieces(at, list))
    }
}

/// The blocks of each entry of a content: a person's words apart from the responses before them.
pub(super) fn split(role: Role, blocks: &[Block]) -> Vec<Range<usize>> {
    let is_said: fn(&Block) -> bool = match role {
        Role::User => |block| matches!(block, Block::Text(text) if !text.is_empty()),
        _ => |_| false,
    };
    messages::split(blocks, |_| false, is_said)
}

fn kind_of(role: Role, blocks: &[Block]) -> EntryKind {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    if let Some(ours) = texts.iter().find_map(|text| frame::summary(text)) {
        return ours;
    }
    match role {
        Role::User => gemini_cli::kind_of_words(&texts),
        _ => EntryKind::Message,
    }
}
