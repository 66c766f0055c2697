//! One message of a chat as its segments, and entries as messages.

use crate::usage::UsageSource;
use compact_core::message::{Block, Entry, EntryKind, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{Holder, Piece, TextSite, arguments};
use crate::error::FormatError;
use crate::frame;
use crate::fresh;
use crate::json::{At, Members, is_list, is_object, is_string, lenient, quote};
use crate::media;
use crate::parts;
use crate::segment::{self, Echo, Message, Reply, Segment, Segmented, With};
use crate::wire::Page;

pub(super) struct GeminiMessages;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    r#type: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    thoughts: Option<&'a RawValue>,
    tool_calls: Option<&'a RawValue>,
    tokens: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Call<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    args: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    status: Option<&'a RawValue>,
    result_display: Option<&'a RawValue>,
}

impl Segmented for GeminiMessages {
    fn message<'a>(&self, at: At<'_>, json: &'a str) -> Result<Option<Message<'a>>, FormatError> {
        if !json.starts_with('{') {
            return Err(at.missing("type", "in an object with `type` and `content`"));
        }
        let line: Line<'a> = at.read(json)?;
        let role = match lenient(line.r#type).as_deref() {
            Some("user") => Role::User,
            Some("gemini") => Role::Assistant,
            _ => return Ok(None),
        };
        let mut message = Message {
            id: lenient(line.id).map(String::from),
            usage: line
                .tokens
                .and_then(|raw| UsageSource::GeminiCli.of_entry(raw)),
            ..Message::default()
        };
        let mut said = thoughts(at, line.thoughts)?;
        if let Some(raw) = line.content {
            said.extend(content(at, raw)?);
        }
        let mut answered = Vec::new();
        if let Some(list) = line.tool_calls.filter(|list| is_list(list)) {
            for element in at.list("toolCalls", list)? {
                if !is_object(element) {
                    return Err(at.field("toolCalls[]", "an object", element));
                }
                let call: Call<'a> = at.read(element.get())?;
                let holder = Holder::Element { list, element };
                said.push(call_piece(at, &call, holder)?);
                message.echoes.extend(result(at, &call, &mut answered)?);
            }
        }
        message.kind = kind(role, &said);
        message.segments.push(Segment { role, pieces: said });
        if !answered.is_empty() {
            message.segments.push(Segment {
                role: Role::Tool,
                pieces: answered,
            });
        }
        Ok(Some(message))
    }

    fn text_part(&self, text: &str) -> String {
        format!("{{\"text\":{}}}", quote(text))
    }

    fn compose(&self, page: &Page<'_>, before: Option<&str>, entries: &[&Entry]) -> Vec<String> {
        let before = Members::of(before.unwrap_or_default());
        let timestamp = before.get("timestamp").map_or(fresh::EPOCH, RawValue::get);
        let model = page.conversation.model.as_deref();
        segment::replies(entries)
            .iter()
            .enumerate()
            .map(|(i, reply)| compose(reply, i, timestamp, model))
            .collect()
    }

    fn session_id(&self, head: &Members<'_>) -> Option<String> {
        lenient(head.get("sessionId")).map(String::from)
    }

    fn model(&self, json: &str) -> Option<String> {
        lenient(Members::of(json).get("model")).map(String::from)
    }
}

fn thoughts<'a>(at: At<'_>, list: Option<&'a RawValue>) -> Result<Vec<Piece<'a>>, FormatError> {
    let Some(list) = list.filter(|list| is_list(list)) else {
        return Ok(Vec::new());
    };
    let thought = |element: &'a RawValue| {
        let value = Members::of(element.get()).get("description");
        let text = lenient(value).unwrap_or_default().into_owned();
        Piece {
            block: Block::Reasoning {
                text,
                replay_bytes: 0,
            },
            holder: Holder::Element { list, element },
            texts: value.map(TextSite::value).unwrap_or_default(),
        }
    };
    let elements = at.list("thoughts", list)?;
    Ok(elements.into_iter().map(thought).collect())
}

/// A string, a part, or a list of parts. A string must stay one, be it empty.
fn content<'a>(at: At<'_>, raw: &'a RawValue) -> Result<Vec<Piece<'a>>, FormatError> {
    let stays = Holder::Value {
        value: raw,
        empty: "\"\"",
    };
    if is_object(raw) {
        let value = Members::of(raw.get()).get("text").filter(|v| is_string(v));
        let piece = value.map(|value| -> Result<_, FormatError> {
            let text = at.string("content.text", value)?;
            Ok(parts::text_piece(text, stays, value))
        });
        return piece.into_iter().collect();
    }
    let mut pieces = parts::content(at, "content", raw)?;
    for piece in &mut pieces {
        match piece.holder {
            Holder::Element { element, .. } => name_data(piece, element),
            _ => piece.holder = stays,
        }
    }
    Ok(pieces)
}

/// Data within a message: an image, a document, audio.
fn name_data(piece: &mut Piece<'_>, element: &RawValue) {
    if let (Block::Opaque { .. }, Some(data)) = (&piece.block, media::gemini_data(element)) {
        piece.block = data;
    }
}

fn call_piece<'a>(
    at: At<'_>,
    call: &Call<'a>,
    holder: Holder<'a>,
) -> Result<Piece<'a>, FormatError> {
    Ok(Piece {
        block: Block::ToolCall {
            id: at.optional("toolCalls[].id", call.id)?.unwrap_or_default(),
            name: lenient(call.name).unwrap_or_default().into_owned(),
            arguments: call.args.map_or("{}", RawValue::get).to_owned(),
        },
        holder,
        texts: call.args.map(TextSite::value).unwrap_or_default(),
    })
}

/// The answer of a call, when there is one: the first function response, and data beside it.
fn result<'a>(
    at: At<'_>,
    call: &Call<'a>,
    answered: &mut Vec<Piece<'a>>,
) -> Result<Vec<Echo<'a>>, FormatError> {
    let id = at.optional("toolCalls[].id", call.id)?.unwrap_or_default();
    let mut failed = lenient(call.status).as_deref() == Some("error");
    let list = call.result.filter(|list| is_list(list));
    let elements = match list {
        Some(list) => at.list("toolCalls[].result", list)?,
        None => Vec::new(),
    };
    let (Some(list), false) = (list, elements.is_empty()) else {
        return Ok(shown_only(call, id, failed, answered));
    };
    let response = |element: &&'a RawValue| {
        let response = Members::of(element.get()).get("functionResponse")?;
        Members::of(response.get()).get("response")
    };
    let first = elements.iter().position(|e| response(e).is_some());
    let value = first.and_then(|at| elements.get(at)).and_then(response);
    let members = value.map(|value| Members::of(value.get()));
    let member = |key: &str| {
        members
            .as_ref()
            .and_then(|m| m.get(key))
            .filter(|v| is_string(v))
    };
    failed |= member("error").is_some();
    let text = member("output").or(member("error"));
    let whole = value.unwrap_or(list);
    let said = lenient(text).unwrap_or(whole.get().into()).into_owned();
    let echo = |value, with| Echo {
        segment: 1,
        block: answered.len(),
        value,
        with,
    };
    let mut echoes = Vec::new();
    if text.is_none() {
        echoes.push(echo(whole, wrapped(value.is_none(), call)));
    }
    echoes.extend(call.result_display.map(|v| echo(v, With::Fixed("\"\""))));
    answered.push(Piece {
        block: Block::ToolResult {
            call: id,
            content: said,
            is_error: failed,
        },
        holder: Holder::Value {
            value: list,
            empty: "[]",
        },
        texts: text.map(TextSite::value).unwrap_or_default(),
    });
    let others = elements
        .iter()
        .enumerate()
        .filter(|(i, _)| Some(*i) != first);
    for (_, element) in others.filter(|_| first.is_some()) {
        let mut piece = parts::part(at, "toolCalls[].result", list, element)?;
        name_data(&mut piece, element);
        answered.push(piece);
    }
    Ok(echoes)
}

/// A call whose only answer is what the terminal showed.
fn shown_only<'a>(
    call: &Call<'a>,
    id: String,
    is_error: bool,
    answered: &mut Vec<Piece<'a>>,
) -> Vec<Echo<'a>> {
    let display = call.result_display.filter(|v| is_string(v));
    let text = lenient(display).filter(|text| !text.is_empty());
    if let (Some(value), Some(text)) = (display, text) {
        answered.push(Piece {
            block: Block::ToolResult {
                call: id,
                content: text.into_owned(),
                is_error,
            },
            holder: Holder::Value {
                value,
                empty: "\"\"",
            },
            texts: TextSite::value(value),
        });
    }
    Vec::new()
}

/// A text as a response, or as a list with one in it.
fn wrapped(is_list: bool, call: &Call<'_>) -> With {
    if !is_list {
        return With::Text {
            before: "{\"output\":".to_owned(),
            after: "}".to_owned(),
        };
    }
    let id = call.id.map_or("\"\"", RawValue::get);
    let name = call.name.map_or("\"\"", RawValue::get);
    With::Text {
        before: format!(
            "[{{\"functionResponse\":{{\"id\":{id},\"name\":{name},\"response\":{{\"output\":"
        ),
        after: "}}}]".to_owned(),
    }
}

fn kind(role: Role, pieces: &[Piece<'_>]) -> EntryKind {
    let texts: Vec<&str> = pieces
        .iter()
        .filter_map(|piece| match &piece.block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    if let Some(summary) = texts.iter().find_map(|text| frame::summary(text)) {
        return summary;
    }
    if role != Role::User {
        return EntryKind::Message;
    }
    kind_of_words(&texts)
}

/// What the texts of a user's message are: a person's words, the client's, or its summary.
pub(crate) fn kind_of_words(texts: &[&str]) -> EntryKind {
    if texts
        .iter()
        .any(|t| t.trim_start().starts_with("<state_snapshot>"))
    {
        return EntryKind::ForeignSummary;
    }
    if !texts.is_empty() && texts.iter().all(|text| frame::is_injected(text, &[])) {
        EntryKind::Injected
    } else {
        EntryKind::Message
    }
}

/// An entry as a message. A result that answers nothing here says what it is.
fn compose(reply: &Reply<'_>, index: usize, timestamp: &str, model: Option<&str>) -> String {
    let entry = reply.entry;
    let kind = if entry.role == Role::Assistant {
        "gemini"
    } else {
        "user"
    };
    let texts: Vec<&str> = entry
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) | Block::ToolResult { content: text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let content = match texts.as_slice() {
        [] => "\"\"".to_owned(),
        [text] => quote(text),
        texts => {
            let parts: Vec<String> = texts.iter().map(|t| GeminiMessages.text_part(t)).collect();
            format!("[{}]", parts.join(","))
        }
    };
    let calls: Vec<String> = entry
        .blocks
        .iter()
        .filter_map(|block| call(reply, block))
        .collect();
    let calls = match calls.as_slice() {
        [] => String::new(),
        calls => format!(",\"toolCalls\":[{}]", calls.join(",")),
    };
    let model = match model.filter(|_| entry.role == Role::Assistant) {
        Some(model) => format!(",\"model\":{}", quote(model)),
        None => String::new(),
    };
    format!(
        "{{\"id\":{},\"timestamp\":{timestamp},\"type\":\"{kind}\",\"content\":{content}{calls}{model}}}",
        quote(&fresh::uuid(&entry.id.0, index)),
    )
}

fn call(reply: &Reply<'_>, block: &Block) -> Option<String> {
    let Block::ToolCall {
        id,
        name,
        arguments: args,
    } = block
    else {
        return None;
    };
    let (id_json, name) = (quote(id), quote(name));
    let args = arguments(args);
    let call = format!("\"id\":{id_json},\"name\":{name},\"args\":{args}");
    Some(match reply.result(id) {
        None => format!("{{{call},\"status\":\"executing\"}}"),
        Some((text, is_error)) => {
            let (key, status) = if is_error {
                ("error", "error")
            } else {
                ("output", "success")
            };
            format!(
                "{{{call},\"result\":[{{\"functionResponse\":{{\"id\":{id_json},\"name\":{name},\
                 \"response\":{{\"{key}\":{}}}}}}}],\"status\":\"{status}\"}}",
                quote(text)
            )
        }
    })
}
