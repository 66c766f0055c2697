//! Chat messages to drafts.

use compact_core::message::{Block, Meta, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::detect::is_document;
use crate::edit::{self, Holder, Piece, TextSite};
use crate::error::FormatError;
use crate::frame;
use crate::json::{At, is_list, is_object, is_string, lenient};
use crate::list;
use crate::parts;
use crate::source::{self, Draft, Layout, Place, Reading};

#[derive(Deserialize)]
struct Body<'a> {
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

impl<'a> Body<'a> {
    /// The messages, under the name that the writer of the document gave them.
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
pub(super) struct Message<'a> {
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
struct Call<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    function: Option<&'a RawValue>,
    custom: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
}

pub(crate) fn read(source: &[u8]) -> Result<Reading, FormatError> {
    let start = source::start(source);
    let body = source.get(start..).unwrap_or_default();
    match body.trim_ascii_start().first() {
        None => Err(FormatError::Empty),
        Some(b'{') if !is_document(body) => read_lines(source),
        _ => read_document(source, start),
    }
}

fn read_document(source: &[u8], start: usize) -> Result<Reading, FormatError> {
    let text = source::text(source, start..source.len())?;
    let at = At {
        source,
        offset: start,
    };
    if text.trim_ascii_start().starts_with('[') {
        return read_list(source, text, at.read(text)?, "the document");
    }
    let body: Body<'_> = at.read(text)?;
    let (field, messages) = body
        .messages_under()
        .ok_or_else(|| at.missing("messages", "a list"))?;
    let mut reading = read_list(source, text, messages, field)?;
    reading.model = lenient(body.model).map(Into::into);
    reading.session_id = lenient(body.session_id).map(Into::into);
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
) -> Result<Reading, FormatError> {
    let (elements, layout) = list::elements(source, text, list, field)?;
    let mut reader = Reader::new(source, Reading::new(layout));
    for (raw, place) in elements {
        reader.message(raw.get(), place)?;
    }
    Ok(reader.reading)
}

fn read_lines(source: &[u8]) -> Result<Reading, FormatError> {
    let lines = source::lines(source);
    let mut reader = Reader::new(
        source,
        Reading::new(Layout::Lines {
            lines: Vec::new(),
            live_from: 0,
        }),
    );
    for index in 0..lines.len() {
        let problems = &mut reader.reading.problems;
        let line = source::read_line::<&RawValue>(source, &lines, index, problems)?;
        if let Some(line) = line {
            reader.message(line.json, line.place())?;
        }
    }
    reader.reading.layout = Layout::Lines {
        lines,
        live_from: 0,
    };
    Ok(reader.reading)
}

struct Reader<'s> {
    source: &'s [u8],
    reading: Reading,
    /// The latest call of the legacy kind, which has no id of its own.
    function_call: Option<String>,
}

impl<'s> Reader<'s> {
    fn new(source: &'s [u8], reading: Reading) -> Self {
        Reader {
            source,
            reading,
            function_call: None,
        }
    }

    fn message(&mut self, json: &str, place: Place) -> Result<(), FormatError> {
        let at = At {
            source: self.source,
            offset: place.span.start,
        };
        if !json.starts_with('{') {
            return Err(at.missing("role", "in an object with `role` and `content`"));
        }
        let message: Message<'_> = at.read(json)?;
        let role = self.role(at, &message, &place)?;
        let mut blocks = edit::blocks(pieces(at, &message, role)?);
        self.name_function_calls(&mut blocks, &place);
        let meta = Meta {
            kind: frame::kind(role, &blocks),
            ..Meta::default()
        };
        let id = lenient(message.id).map(Into::into);
        self.reading.drafts.push(Draft {
            id,
            role,
            blocks,
            meta,
            place,
        });
        Ok(())
    }

    fn role(
        &mut self,
        at: At<'_>,
        message: &Message<'_>,
        place: &Place,
    ) -> Result<Role, FormatError> {
        let raw = message.role.ok_or_else(|| at.missing("role", "a string"))?;
        let name = at.string("role", raw)?;
        if let Some(role) = known_role(&name) {
            return Ok(role);
        }
        let line = self.reading.layout.line_number(place);
        Ok(self.reading.unknown_role(&name, line))
    }

    /// A legacy call takes its id from its place; the next `function` message answers it.
    fn name_function_calls(&mut self, blocks: &mut [Block], place: &Place) {
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

pub(super) fn known_role(name: &str) -> Option<Role> {
    Some(match name {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" | "human" => Role::User,
        "assistant" | "ai" | "model" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return None,
    })
}

/// The pieces of a message in reading order: reasoning, content, refusal, calls.
pub(super) fn pieces<'a>(
    at: At<'_>,
    message: &Message<'a>,
    role: Role,
) -> Result<Vec<Piece<'a>>, FormatError> {
    let mut pieces = Vec::new();
    let reasoning = message.reasoning_content.or(message.reasoning);
    if let Some(raw) = reasoning.filter(|raw| is_string(raw)) {
        let text = at.string("reasoning_content", raw)?;
        pieces.push(Piece {
            block: Block::Reasoning {
                text,
                replay_bytes: 0,
            },
            holder: Holder::Member(raw),
            texts: TextSite::value(raw),
        });
    }
    let is_answer = message.tool_call_id.is_some()
        || message.tool_call_ids.is_some()
        || lenient(message.role).as_deref() == Some("function");
    if role == Role::Tool && is_answer {
        result(at, message, &mut pieces)?;
    } else if let Some(content) = message.content {
        pieces.extend(parts::content(at, "content", content)?);
    }
    if let Some(raw) = message.refusal.filter(|raw| is_string(raw)) {
        pieces.push(parts::text_piece(
            at.string("refusal", raw)?,
            Holder::Member(raw),
            raw,
        ));
    }
    calls(at, message, &mut pieces)?;
    Ok(pieces)
}

/// A tool's answer: its texts are one block, its images blocks after it.
fn result<'a>(
    at: At<'_>,
    message: &Message<'a>,
    pieces: &mut Vec<Piece<'a>>,
) -> Result<(), FormatError> {
    let call = at
        .optional("tool_call_id", message.tool_call_id)?
        .or_else(|| first_id(message.tool_call_ids))
        .unwrap_or_default();
    let answer = message
        .content
        .map(|raw| parts::answer(at, "content", raw))
        .transpose()?;
    let (text, texts, media) = answer
        .map(|a| (a.text, a.sites, a.media))
        .unwrap_or_default();
    let block = Block::ToolResult {
        call,
        content: text,
        is_error: false,
    };
    pieces.push(Piece {
        block,
        holder: Holder::Item,
        texts,
    });
    pieces.extend(media);
    Ok(())
}

/// The first of the calls that a message answers, where a writer lists them.
fn first_id(ids: Option<&RawValue>) -> Option<String> {
    let ids = ids.filter(|raw| is_list(raw))?;
    let ids: Vec<&RawValue> = serde_json::from_str(ids.get()).ok()?;
    lenient(ids.first().copied()).map(String::from)
}

fn calls<'a>(
    at: At<'_>,
    message: &Message<'a>,
    pieces: &mut Vec<Piece<'a>>,
) -> Result<(), FormatError> {
    if let Some(list) = message.tool_calls {
        for element in at.list("tool_calls", list)? {
            if !is_object(element) {
                return Err(at.field("tool_calls[]", "an object", element));
            }
            let call: Call<'_> = at.read(element.get())?;
            let id = at.optional("tool_calls[].id", call.id)?.unwrap_or_default();
            let body = call.function.or(call.custom).unwrap_or(element);
            pieces.push(call_piece(at, id, body, Holder::Element { list, element })?);
        }
    }
    if let Some(body) = message.function_call {
        pieces.push(call_piece(at, String::new(), body, Holder::Member(body))?);
    }
    Ok(())
}

fn call_piece<'a>(
    at: At<'_>,
    id: String,
    body: &'a RawValue,
    holder: Holder<'a>,
) -> Result<Piece<'a>, FormatError> {
    if !is_object(body) {
        return Err(at.field("tool_calls[].function", "an object", body));
    }
    let function: Function<'_> = at.read(body.get())?;
    let value = function.arguments.or(function.input);
    let arguments = match value {
        Some(raw) if is_string(raw) => at.string("tool_calls[].function.arguments", raw)?,
        Some(raw) => raw.get().to_owned(),
        None => String::new(),
    };
    let name = lenient(function.name).unwrap_or_default().into_owned();
    Ok(Piece {
        block: Block::ToolCall {
            id,
            name,
            arguments,
        },
        holder,
        texts: value.map(TextSite::value).unwrap_or_default(),
    })
}
