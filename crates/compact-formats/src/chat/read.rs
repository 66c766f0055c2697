//! Chat messages to drafts.

use compact_core::message::{Block, EntryKind, EntryMeta, Role};
use compact_core::speech::is_program_name;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::detect::is_document;
use crate::edit::{self, BlockPiece, Holder, TextSite};
use crate::error::FormatError;
use crate::json::{ItemContext, is_list, is_object, is_string, string_value};
use crate::list::{self, ListElements};
use crate::parts;
use crate::source::{self, EntryDraft, EntryPlace, SourceLayout, TranscriptReading};
use crate::special_text;

#[derive(Deserialize)]
struct ChatBody<'a> {
    #[serde(borrow, default)]
    messages: Option<&'a RawValue>,
    #[serde(borrow, default)]
    traj: Option<&'a RawValue>,
    #[serde(borrow, default)]
    history: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model: Option<&'a RawValue>,
    #[serde(borrow, default)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    #[serde(borrow, default)]
    functions: Option<&'a RawValue>,
}

impl<'a> ChatBody<'a> {
    /// Returns the messages, under the name that the writer of the document gave them.
    fn messages_under(&self) -> Option<(&'static str, &'a RawValue)> {
        let named = [
            ("messages", self.messages),
            ("traj", self.traj),
            ("history", self.history),
        ];
        named
            .into_iter()
            .find_map(|(name, list)| Some((name, list?)))
    }
}

/// One message; every field is a span, so that no type is wrong until it matters.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ChatMessage<'a> {
    #[serde(borrow)]
    pub(super) role: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    tool_calls: Option<&'a RawValue>,
    tool_call_id: Option<&'a RawValue>,
    tool_call_ids: Option<&'a RawValue>,
    function_call: Option<&'a RawValue>,
    reasoning_content: Option<&'a RawValue>,
    reasoning: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChatCall<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    function: Option<&'a RawValue>,
    custom: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChatFunction<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
}

pub(crate) fn read(source: &[u8]) -> Result<TranscriptReading, FormatError> {
    let start = source::start_offset(source);
    let body = source.get(start..).unwrap_or_default();
    match body.trim_ascii_start().first() {
        None => Err(FormatError::Empty),
        Some(b'{') if !is_document(body) => read_lines(source),
        _ => read_document(source, start),
    }
}

fn read_document(source: &[u8], start: usize) -> Result<TranscriptReading, FormatError> {
    let text = source::span_text(source, start..source.len())?;
    let at = ItemContext {
        source,
        offset: start,
    };
    if text.trim_ascii_start().starts_with('[') {
        return read_list(source, text, at.read(text)?, "the document");
    }
    let body: ChatBody<'_> = at.read(text)?;
    let (field, messages) = body
        .messages_under()
        .ok_or_else(|| at.missing_field("messages", "a list"))?;
    let mut reading = read_list(source, text, messages, field)?;
    reading.model = string_value(body.model).map(Into::into);
    reading.session_id = string_value(body.session_id).map(Into::into);
    reading.tools = body
        .tools
        .or(body.functions)
        .map(|raw| raw.get().to_owned());
    Ok(reading)
}

fn read_list(
    source: &[u8],
    text: &str,
    list: &RawValue,
    field: &str,
) -> Result<TranscriptReading, FormatError> {
    read_elements(source, list::find_elements(source, text, list, field)?)
}

/// Reads the messages of a list.
pub(crate) fn read_elements(
    source: &[u8],
    (elements, layout): ListElements<'_>,
) -> Result<TranscriptReading, FormatError> {
    let mut reader = ChatReader::new(source, TranscriptReading::new(layout));
    for (raw, place) in elements {
        reader.read_message(raw.get(), place)?;
    }
    reader.mark_unnamed_answers();
    Ok(reader.reading)
}

fn read_lines(source: &[u8]) -> Result<TranscriptReading, FormatError> {
    let lines = source::line_spans(source);
    let mut reader = ChatReader::new(
        source,
        TranscriptReading::new(SourceLayout::Lines {
            lines: Vec::new(),
            live_from: 0,
        }),
    );
    for index in 0..lines.len() {
        let problems = &mut reader.reading.problems;
        let line = source::read_line::<&RawValue>(source, &lines, index, problems)?;
        if let Some(line) = line {
            reader.read_message(line.json, line.entry_place())?;
        }
    }
    reader.mark_unnamed_answers();
    reader.reading.layout = SourceLayout::Lines {
        lines,
        live_from: 0,
    };
    Ok(reader.reading)
}

struct ChatReader<'s> {
    source: &'s [u8],
    reading: TranscriptReading,
    /// The latest call of the legacy kind, which has no id of its own.
    function_call: Option<String>,
    /// The name of whoever spoke first in the user's place, once somebody did.
    user: Option<Option<String>>,
}

impl<'s> ChatReader<'s> {
    fn new(source: &'s [u8], reading: TranscriptReading) -> Self {
        ChatReader {
            source,
            reading,
            function_call: None,
            user: None,
        }
    }

    fn read_message(&mut self, json: &str, place: EntryPlace) -> Result<(), FormatError> {
        let at = ItemContext {
            source: self.source,
            offset: place.span.start,
        };
        if !json.starts_with('{') {
            return Err(at.missing_field("role", "in an object with `role` and `content`"));
        }
        let message: ChatMessage<'_> = at.read(json)?;
        let role = self.read_role(at, &message, &place)?;
        let mut blocks = edit::into_blocks(read_pieces(at, &message, role)?);
        self.name_function_calls(&mut blocks, &place);
        let name = string_value(message.name);
        let meta = EntryMeta {
            kind: match role == Role::User && self.is_other_speaker(name.as_deref()) {
                true => EntryKind::Injected,
                false => special_text::entry_kind(role, &blocks),
            },
            malformed: blocks.iter().any(is_unreadable),
            ..EntryMeta::default()
        };
        let id = string_value(message.id).map(Into::into);
        self.reading.drafts.push(EntryDraft {
            id,
            role,
            blocks,
            meta,
            place,
        });
        Ok(())
    }

    /// Returns whether a message in the user's place is somebody else's: a program's, or that of one who bears another
    /// name than the first. Frameworks put the words of other agents there.
    fn is_other_speaker(&mut self, name: Option<&str>) -> bool {
        self.reading.names_users |= name.is_some();
        if name.is_some_and(is_program_name) {
            return true;
        }
        let user = self.user.get_or_insert_with(|| name.map(str::to_owned));
        name.is_some() && name != user.as_deref()
    }

    fn read_role(
        &mut self,
        at: ItemContext<'_>,
        message: &ChatMessage<'_>,
        place: &EntryPlace,
    ) -> Result<Role, FormatError> {
        let raw = message
            .role
            .ok_or_else(|| at.missing_field("role", "a string"))?;
        let name = at.read_string("role", raw)?;
        if let Some(role) = parse_role(&name) {
            return Ok(role);
        }
        let line = self.reading.layout.line_number(place);
        Ok(self.reading.unknown_role(&name, line))
    }

    /// Marks answers of tools that do not name their call, where calls have names. A plain list, whose tools
    /// only speak, is in order.
    fn mark_unnamed_answers(&mut self) {
        let drafts = &mut self.reading.drafts;
        let is_call = |block: &Block| matches!(block, Block::ToolCall { .. });
        if !drafts.iter().flat_map(|d| &d.blocks).any(is_call) {
            return;
        }
        let is_answer = |block: &Block| matches!(block, Block::ToolResult { .. });
        let unnamed = |d: &&mut EntryDraft| d.role == Role::Tool && !d.blocks.iter().any(is_answer);
        for draft in drafts.iter_mut().filter(unnamed) {
            draft.meta.malformed = true;
        }
    }

    /// Names legacy calls by their place; the next `function` message answers such a call.
    fn name_function_calls(&mut self, blocks: &mut [Block], place: &EntryPlace) {
        for block in blocks {
            match block {
                Block::ToolCall { id, .. } if id.is_empty() => {
                    *id = format!("function_call_{}", place.line);
                    self.function_call = Some(id.clone());
                }
                Block::ToolResult { call, .. } if call.is_empty() => {
                    *call = self
                        .function_call
                        .take()
                        .unwrap_or_else(|| format!("function_{}", place.line));
                }
                _ => {}
            }
        }
    }
}

pub(super) fn parse_role(name: &str) -> Option<Role> {
    Some(match name {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" | "human" => Role::User,
        "assistant" | "ai" | "model" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return None,
    })
}

/// Returns the pieces of a message in reading order: reasoning, content, refusal, calls.
pub(super) fn read_pieces<'a>(
    at: ItemContext<'_>,
    message: &ChatMessage<'a>,
    role: Role,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    let mut pieces = Vec::new();
    let reasoning = message.reasoning_content.or(message.reasoning);
    if let Some(raw) = reasoning.filter(|raw| is_string(raw)) {
        let text = at.read_string("reasoning_content", raw)?;
        pieces.push(BlockPiece {
            block: Block::Reasoning {
                text,
                replay_bytes: 0,
            },
            holder: Holder::Member(raw),
            texts: TextSite::in_value(raw),
        });
    }
    let is_answer = message.tool_call_id.is_some()
        || message.tool_call_ids.is_some()
        || string_value(message.role).as_deref() == Some("function");
    if let Some(wrong) = unreadable_answer(message).filter(|_| role == Role::Tool) {
        pieces.push(unreadable_piece(wrong, Holder::Member(wrong)));
    } else if role == Role::Tool && is_answer {
        read_result(at, message, &mut pieces)?;
    } else if let Some(content) = message.content {
        pieces.extend(parts::read_content(at, "content", content)?);
    }
    if let Some(raw) = message.refusal.filter(|raw| is_string(raw)) {
        pieces.push(parts::text_piece(
            at.read_string("refusal", raw)?,
            Holder::Member(raw),
            raw,
        ));
    }
    read_calls(at, message, &mut pieces)?;
    Ok(pieces)
}

/// Returns what makes a tool's answer none: an id that is no text, a content that is neither a text nor a list.
fn unreadable_answer<'a>(message: &ChatMessage<'a>) -> Option<&'a RawValue> {
    let is_null = |raw: &RawValue| raw.get() == "null";
    let content = message
        .content
        .filter(|raw| !is_string(raw) && !is_list(raw) && !is_null(raw));
    let id = message
        .tool_call_id
        .filter(|raw| !is_string(raw) && !is_null(raw));
    content.or(id)
}

/// Reads a tool's answer: its texts become one block, and its images blocks after it.
fn read_result<'a>(
    at: ItemContext<'_>,
    message: &ChatMessage<'a>,
    pieces: &mut Vec<BlockPiece<'a>>,
) -> Result<(), FormatError> {
    let call = at
        .read_optional_string("tool_call_id", message.tool_call_id)?
        .or_else(|| first_id(message.tool_call_ids))
        .unwrap_or_default();
    let answer = message
        .content
        .map(|raw| parts::read_answer(at, "content", raw))
        .transpose()?;
    let (text, texts, media) = answer
        .map(|a| (a.text, a.sites, a.media))
        .unwrap_or_default();
    let block = Block::ToolResult {
        call,
        content: text,
        is_error: false,
    };
    pieces.push(BlockPiece {
        block,
        holder: Holder::Item,
        texts,
    });
    pieces.extend(media);
    Ok(())
}

/// Returns the first of the calls that a message answers, where a writer lists them.
fn first_id(ids: Option<&RawValue>) -> Option<String> {
    let ids = ids.filter(|raw| is_list(raw))?;
    let ids: Vec<&RawValue> = serde_json::from_str(ids.get()).ok()?;
    string_value(ids.first().copied()).map(String::from)
}

fn read_calls<'a>(
    at: ItemContext<'_>,
    message: &ChatMessage<'a>,
    pieces: &mut Vec<BlockPiece<'a>>,
) -> Result<(), FormatError> {
    if let Some(list) = message.tool_calls.filter(|raw| raw.get() != "null") {
        match is_list(list) {
            true => read_call_list(at, list, pieces)?,
            false => pieces.push(unreadable_piece(list, Holder::Member(list))),
        }
    }
    if let Some(body) = message.function_call.filter(|raw| raw.get() != "null") {
        pieces.push(call_piece(at, String::new(), body, Holder::Member(body))?);
    }
    Ok(())
}

fn read_call_list<'a>(
    at: ItemContext<'_>,
    list: &'a RawValue,
    pieces: &mut Vec<BlockPiece<'a>>,
) -> Result<(), FormatError> {
    for element in at.read_list("tool_calls", list)? {
        let holder = Holder::Element { list, element };
        if !is_object(element) {
            pieces.push(unreadable_piece(element, holder));
            continue;
        }
        let call: ChatCall<'_> = at.read(element.get())?;
        let id = string_value(call.id).map(String::from).unwrap_or_default();
        let body = call.function.or(call.custom).unwrap_or(element);
        pieces.push(call_piece(at, id, body, holder)?);
    }
    Ok(())
}

/// What stands where a call or its answer should be, and is none.
const UNREADABLE: &str = "unreadable tool message";

fn unreadable_piece<'a>(value: &RawValue, holder: Holder<'a>) -> BlockPiece<'a> {
    BlockPiece {
        block: Block::Opaque {
            kind: UNREADABLE.to_owned(),
            bytes: value.get().len(),
        },
        holder,
        texts: Vec::new(),
    }
}

fn is_unreadable(block: &Block) -> bool {
    matches!(block, Block::Opaque { kind, .. } if kind == UNREADABLE)
}

fn call_piece<'a>(
    at: ItemContext<'_>,
    id: String,
    body: &'a RawValue,
    holder: Holder<'a>,
) -> Result<BlockPiece<'a>, FormatError> {
    if !is_object(body) {
        return Ok(unreadable_piece(body, holder));
    }
    let function: ChatFunction<'_> = at.read(body.get())?;
    let value = function.arguments.or(function.input);
    let arguments = match value {
        Some(raw) if is_string(raw) => at.read_string("tool_calls[].function.arguments", raw)?,
        Some(raw) => raw.get().to_owned(),
        None => String::new(),
    };
    let name = string_value(function.name).unwrap_or_default().into_owned();
    Ok(BlockPiece {
        block: Block::ToolCall {
            id,
            name,
            arguments,
        },
        holder,
        texts: value.map(TextSite::in_value).unwrap_or_default(),
    })
}
