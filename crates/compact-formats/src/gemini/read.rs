//! Contents to drafts.

use std::collections::VecDeque;

use compact_core::message::{Block, EntryKind, EntryMeta, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{WITHOUT_INSTRUCTIONS, part};
use crate::body::{self, messages};
use crate::edit::{self, BlockPiece};
use crate::error::FormatError;
use crate::gemini_cli;
use crate::json::{ItemContext, Members, is_object, is_string, string_value};
use crate::list::{self, ListElements};
use crate::source::{EntryDraft, EntryPlace, TranscriptReading};
use crate::special_text;

#[derive(Default, Deserialize)]
#[serde(default)]
struct GeminiBody<'a> {
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
pub(super) struct GeminiContent<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    parts: Option<&'a RawValue>,
}

pub(super) fn read(source: &[u8]) -> Result<TranscriptReading, FormatError> {
    let (text, at) = body::read_text(source)?;
    if text.trim_ascii_start().starts_with('[') {
        let mut reading =
            GeminiReader::read_contents(source, text, at.read(text)?, "the document", Vec::new())?;
        reading.rules = Some(&WITHOUT_INSTRUCTIONS);
        return Ok(reading);
    }
    let body: GeminiBody<'_> = at.read(text)?;
    let contents = body
        .contents
        .ok_or_else(|| at.missing_field("contents", "a list"))?;
    let system = body
        .system_instruction
        .map(|raw| read_instructions(source, at, raw))
        .transpose()?;
    let system = system.unwrap_or_default();
    let mut reading = GeminiReader::read_contents(source, text, contents, "contents", system)?;
    reading.model = string_value(body.model).map(Into::into);
    reading.tools = body.tools.map(|raw| raw.get().to_owned());
    reading.rules = body.cached_content.map(|_| &WITHOUT_INSTRUCTIONS);
    Ok(reading)
}

const FIELD: &str = "systemInstruction";

/// Returns the system instruction: a content, each part of which is an entry, or a string.
fn read_instructions(
    source: &[u8],
    at: ItemContext<'_>,
    raw: &RawValue,
) -> Result<Vec<EntryDraft>, FormatError> {
    if is_string(raw) {
        let place = body::place_beside(source, raw, None);
        return Ok(vec![body::read_instruction(
            at, FIELD, raw, place, entry_kind,
        )?]);
    }
    if !is_object(raw) {
        return Err(at.wrong_type(FIELD, "a content", raw));
    }
    let Some(list) = Members::from_json(raw.get()).get("parts") else {
        return Ok(Vec::new());
    };
    at.read_list("systemInstruction.parts", list)?
        .into_iter()
        .enumerate()
        .map(|(i, part)| {
            let place = body::place_beside(source, part, Some(i));
            body::read_instruction(at, FIELD, part, place, entry_kind)
        })
        .collect()
}

/// Reads the contents of a list.
pub(super) fn read_elements(
    source: &[u8],
    elements: ListElements<'_>,
) -> Result<TranscriptReading, FormatError> {
    GeminiReader::read_elements(source, elements)
}

struct GeminiReader {
    reading: TranscriptReading,
    /// The calls of the latest content that made any, those answered left out.
    open: VecDeque<OpenFunction>,
}

/// A call that no response has answered yet.
struct OpenFunction {
    id: String,
    name: String,
    /// Whether the id is ours, for want of one in the document.
    is_unnamed: bool,
}

impl GeminiReader {
    fn read_contents(
        source: &[u8],
        text: &str,
        raw: &RawValue,
        field: &str,
        system: Vec<EntryDraft>,
    ) -> Result<TranscriptReading, FormatError> {
        let found = list::find_elements(source, text, raw, field)?;
        let mut reading = GeminiReader::read_elements(source, found)?;
        reading.put_first(system);
        Ok(reading)
    }

    fn read_elements(
        source: &[u8],
        (elements, layout): ListElements<'_>,
    ) -> Result<TranscriptReading, FormatError> {
        let mut reader = GeminiReader {
            reading: TranscriptReading::new(layout),
            open: VecDeque::new(),
        };
        for (raw, place) in elements {
            let at = ItemContext {
                source,
                offset: place.span.start,
            };
            reader.read_content(at, raw, &place)?;
        }
        Ok(reader.reading)
    }

    fn read_content(
        &mut self,
        at: ItemContext<'_>,
        raw: &RawValue,
        place: &EntryPlace,
    ) -> Result<(), FormatError> {
        let content = GeminiContent::from_json(at, raw.get())?;
        let role = content.role();
        let role = role.unwrap_or_else(|name| self.reading.unknown_role(&name, None));
        let mut blocks = edit::into_blocks(content.read_pieces(at)?);
        self.pair_calls(&mut blocks, place.line);
        // Beside a response its client puts what a tool read: no person types there.
        let role = match messages::has_results(&blocks) {
            true => Role::Tool,
            false => role,
        };
        self.reading.drafts.push(EntryDraft {
            id: None,
            role,
            meta: EntryMeta {
                kind: entry_kind(role, &blocks),
                ..EntryMeta::default()
            },
            blocks,
            place: place.clone(),
        });
        Ok(())
    }

    /// Names the calls that have no id, and finds the calls of responses.
    fn pair_calls(&mut self, blocks: &mut [Block], line: usize) {
        if blocks.iter().any(|b| matches!(b, Block::ToolCall { .. })) {
            self.open.clear();
        }
        for (n, block) in blocks.iter_mut().enumerate() {
            match block {
                Block::ToolCall { id, name, .. } => {
                    let is_unnamed = id.is_empty();
                    if is_unnamed {
                        *id = format!("call-{line}-{n}");
                    }
                    self.open.push_back(OpenFunction {
                        id: id.clone(),
                        name: name.clone(),
                        is_unnamed,
                    });
                }
                Block::ToolResult { call, .. } => {
                    let (id, name) = call.split_once(part::BY_NAME).unwrap_or((call, ""));
                    let found = self.find_open_call(id, name);
                    *call = match found.and_then(|at| self.open.remove(at)) {
                        Some(open) => open.id,
                        None if id.is_empty() => format!("response-{line}-{n}"),
                        None => id.to_owned(),
                    };
                }
                _ => {}
            }
        }
    }

    /// Returns the open call with this id. A response without one, or with one where the calls have none, as Gemini CLI's
    /// sub-agents write them, answers the first call of its name, or else the first.
    fn find_open_call(&self, id: &str, name: &str) -> Option<usize> {
        let has_id = |open: &OpenFunction| !id.is_empty() && open.id == id;
        let is_open_to = |open: &OpenFunction| id.is_empty() || open.is_unnamed;
        let calls = || self.open.iter();
        let by_id = calls().position(has_id);
        let by_name = || calls().position(|open| is_open_to(open) && open.name == name);
        by_id
            .or_else(by_name)
            .or_else(|| calls().position(is_open_to))
    }
}

impl<'a> GeminiContent<'a> {
    pub(super) fn from_json(at: ItemContext<'_>, json: &'a str) -> Result<Self, FormatError> {
        if !json.starts_with('{') {
            return Err(at.missing_field("parts", "in an object with `role` and `parts`"));
        }
        at.read(json)
    }

    /// Returns who speaks; a content without a role is the user's.
    pub(super) fn role(&self) -> Result<Role, String> {
        match string_value(self.role).as_deref() {
            None | Some("user" | "function" | "tool") => Ok(Role::User),
            Some("model") => Ok(Role::Assistant),
            Some(other) => Err(other.to_owned()),
        }
    }

    pub(super) fn read_pieces(
        &self,
        at: ItemContext<'_>,
    ) -> Result<Vec<BlockPiece<'a>>, FormatError> {
        self.parts
            .map_or(Ok(Vec::new()), |list| part::read_pieces(at, list))
    }
}

fn entry_kind(role: Role, blocks: &[Block]) -> EntryKind {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    if let Some(ours) = texts
        .iter()
        .find_map(|text| special_text::summary_kind(text))
    {
        return ours;
    }
    match role {
        Role::User => gemini_cli::kind_of_words(&texts),
        _ => EntryKind::Message,
    }
}
