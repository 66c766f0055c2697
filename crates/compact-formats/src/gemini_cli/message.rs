//! One message of a chat as its segments, and entries as messages.

use crate::usage::UsageSource;
use compact_core::message::{Block, Entry, EntryKind, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{BlockPiece, Holder, TextSite, to_arguments_object};
use crate::error::FormatError;
use crate::fresh;
use crate::json::{ItemContext, Members, is_list, is_object, is_string, quote, string_value};
use crate::media;
use crate::parts;
use crate::segment::{
    self, EchoReplacement, MessageSegment, ReplyWithResults, SegmentedMessage, SegmentedWire,
    TextEcho,
};
use crate::special_text;
use crate::wire::DocumentContext;

pub(super) struct GeminiCliWire;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GeminiCliMessage<'a> {
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
struct GeminiCliCall<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    args: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    status: Option<&'a RawValue>,
    result_display: Option<&'a RawValue>,
}

impl SegmentedWire for GeminiCliWire {
    fn read_message<'a>(
        &self,
        at: ItemContext<'_>,
        json: &'a str,
    ) -> Result<Option<SegmentedMessage<'a>>, FormatError> {
        if !json.starts_with('{') {
            return Err(at.missing_field("type", "in an object with `type` and `content`"));
        }
        let line: GeminiCliMessage<'a> = at.read(json)?;
        let role = match string_value(line.r#type).as_deref() {
            Some("user") => Role::User,
            Some("gemini") => Role::Assistant,
            _ => return Ok(None),
        };
        let mut message = SegmentedMessage {
            id: string_value(line.id).map(String::from),
            usage: line
                .tokens
                .and_then(|raw| UsageSource::GeminiCli.read_entry_usage(raw)),
            ..SegmentedMessage::default()
        };
        let mut said = read_thoughts(at, line.thoughts)?;
        if let Some(raw) = line.content {
            said.extend(read_content(at, raw)?);
        }
        let mut answered = Vec::new();
        let mut copies = Vec::new();
        if let Some(list) = line.tool_calls.filter(|list| is_list(list)) {
            for element in at.read_list("toolCalls", list)? {
                if !is_object(element) {
                    return Err(at.wrong_type("toolCalls[]", "an object", element));
                }
                let call: GeminiCliCall<'a> = at.read(element.get())?;
                let holder = Holder::Element { list, element };
                said.push(call_piece(at, &call, holder)?);
                message
                    .echoes
                    .extend(read_result(at, &call, &mut answered, &mut copies)?);
            }
        }
        for copy in copies {
            match copy.echo_of(&answered) {
                Some(echo) => message.echoes.push(echo),
                None => answered.push(read_beside(at, copy.list, copy.element)?),
            }
        }
        message.segments.push(MessageSegment {
            role,
            kind: entry_kind(role, &said),
            pieces: said,
        });
        if !answered.is_empty() {
            message.segments.push(MessageSegment {
                role: Role::Tool,
                kind: EntryKind::Message,
                pieces: answered,
            });
        }
        Ok(Some(message))
    }

    fn text_part(&self, text: &str) -> String {
        format!("{{\"text\":{}}}", quote(text))
    }

    fn compose_messages(
        &self,
        page: &DocumentContext<'_>,
        before: Option<&str>,
        entries: &[&Entry],
    ) -> Vec<String> {
        let before = Members::from_json(before.unwrap_or_default());
        let timestamp = before.get("timestamp").map_or(fresh::EPOCH, RawValue::get);
        let model = page.conversation.model.as_deref();
        segment::group_replies(entries)
            .iter()
            .enumerate()
            .map(|(i, reply)| {
                let moment = page.moment_of(reply.entry).unwrap_or(timestamp);
                compose_message(reply, i, moment, model)
            })
            .collect()
    }

    fn session_id(&self, head: &Members<'_>) -> Option<String> {
        string_value(head.get("sessionId")).map(String::from)
    }

    fn model_name(&self, json: &str) -> Option<String> {
        string_value(Members::from_json(json).get("model")).map(String::from)
    }
}

fn read_thoughts<'a>(
    at: ItemContext<'_>,
    list: Option<&'a RawValue>,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    let Some(list) = list.filter(|list| is_list(list)) else {
        return Ok(Vec::new());
    };
    let thought = |element: &'a RawValue| {
        let value = Members::from_json(element.get()).get("description");
        let text = string_value(value).unwrap_or_default().into_owned();
        BlockPiece {
            block: Block::Reasoning {
                text,
                replay_bytes: 0,
            },
            holder: Holder::Element { list, element },
            texts: value.map(TextSite::in_value).unwrap_or_default(),
        }
    };
    let elements = at.read_list("thoughts", list)?;
    Ok(elements.into_iter().map(thought).collect())
}

/// Returns a string, a part, or a list of parts. A string must stay one, be it empty.
fn read_content<'a>(
    at: ItemContext<'_>,
    raw: &'a RawValue,
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    let stays = Holder::Value {
        value: raw,
        empty: "\"\"",
    };
    if is_object(raw) {
        let value = Members::from_json(raw.get())
            .get("text")
            .filter(|v| is_string(v));
        let piece = value.map(|value| -> Result<_, FormatError> {
            let text = at.read_string("content.text", value)?;
            Ok(parts::text_piece(text, stays, value))
        });
        return piece.into_iter().collect();
    }
    let mut pieces = parts::read_content(at, "content", raw)?;
    for piece in &mut pieces {
        match piece.holder {
            Holder::Element { element, .. } => name_data(piece, element),
            _ => piece.holder = stays,
        }
    }
    Ok(pieces)
}

/// Replaces an opaque block by its data, if it is an image, a document or audio.
fn name_data(piece: &mut BlockPiece<'_>, element: &RawValue) {
    if let (Block::Opaque { .. }, Some(data)) = (&piece.block, media::gemini_media(element)) {
        piece.block = data;
    }
}

fn call_piece<'a>(
    at: ItemContext<'_>,
    call: &GeminiCliCall<'a>,
    holder: Holder<'a>,
) -> Result<BlockPiece<'a>, FormatError> {
    Ok(BlockPiece {
        block: Block::ToolCall {
            id: at
                .read_optional_string("toolCalls[].id", call.id)?
                .unwrap_or_default(),
            name: string_value(call.name).unwrap_or_default().into_owned(),
            arguments: call.args.map_or("{}", RawValue::get).to_owned(),
        },
        holder,
        texts: call.args.map(TextSite::in_value).unwrap_or_default(),
    })
}

/// The answer of another call, as it stands beside this one.
struct CopiedAnswer<'a> {
    /// The call that it answers.
    call: String,
    /// What it says.
    output: &'a RawValue,
    list: &'a RawValue,
    element: &'a RawValue,
}

impl<'a> CopiedAnswer<'a> {
    /// Reads an element that stands beside an answer; `None` for data, and for an answer to nobody.
    fn from_element(list: &'a RawValue, element: &'a RawValue) -> Option<CopiedAnswer<'a>> {
        let response = Members::from_json(element.get()).get("functionResponse")?;
        let value = Members::from_json(response.get()).get("response")?;
        let output = Members::from_json(value.get()).get("output");
        Some(CopiedAnswer {
            call: answered_id(element)?,
            output: output.filter(|value| is_string(value))?,
            list,
            element,
        })
    }

    /// Beside each of several calls stand the answers of all of them: where one is changed, its copies are too, or the
    /// program would send both. `None` for what says something else than the answer does.
    fn echo_of(&self, answered: &[BlockPiece<'_>]) -> Option<TextEcho<'a>> {
        let says = string_value(Some(self.output))?;
        let is_original = |piece: &BlockPiece<'_>| match &piece.block {
            Block::ToolResult { call, content, .. } => *call == self.call && *content == says,
            _ => false,
        };
        Some(TextEcho {
            segment: 1,
            block: answered.iter().position(is_original)?,
            value: self.output,
            with: EchoReplacement::Text {
                before: String::new(),
                after: String::new(),
            },
        })
    }
}

/// Returns the id of the call that a function response answers.
fn answered_id(element: &RawValue) -> Option<String> {
    let response = Members::from_json(element.get()).get("functionResponse")?;
    let id = string_value(Members::from_json(response.get()).get("id"))?;
    (!id.is_empty()).then(|| id.into_owned())
}

/// Returns what stands beside an answer: data, or something that nobody knows.
fn read_beside<'a>(
    at: ItemContext<'_>,
    list: &'a RawValue,
    element: &'a RawValue,
) -> Result<BlockPiece<'a>, FormatError> {
    let mut piece = parts::read_part(at, "toolCalls[].result", list, element)?;
    name_data(&mut piece, element);
    Ok(piece)
}

/// Returns the answer of a call, when there is one: the function response that bears its id, else the first, and data
/// beside it. Answers of other calls are copies.
fn read_result<'a>(
    at: ItemContext<'_>,
    call: &GeminiCliCall<'a>,
    answered: &mut Vec<BlockPiece<'a>>,
    copies: &mut Vec<CopiedAnswer<'a>>,
) -> Result<Vec<TextEcho<'a>>, FormatError> {
    let id = at
        .read_optional_string("toolCalls[].id", call.id)?
        .unwrap_or_default();
    let mut failed = string_value(call.status).as_deref() == Some("error");
    let list = call.result.filter(|list| is_list(list));
    let elements = match list {
        Some(list) => at.read_list("toolCalls[].result", list)?,
        None => Vec::new(),
    };
    let (Some(list), false) = (list, elements.is_empty()) else {
        return Ok(shown_only(call, id, failed, answered));
    };
    let response = |element: &&'a RawValue| {
        let response = Members::from_json(element.get()).get("functionResponse")?;
        Members::from_json(response.get()).get("response")
    };
    let own = |element: &&'a RawValue| answered_id(element).is_some_and(|known| known == id);
    let first = elements
        .iter()
        .position(|e| own(e) && response(e).is_some());
    let first = first.or_else(|| elements.iter().position(|e| response(e).is_some()));
    let value = first.and_then(|at| elements.get(at)).and_then(response);
    let members = value.map(|value| Members::from_json(value.get()));
    let member = |key: &str| {
        members
            .as_ref()
            .and_then(|m| m.get(key))
            .filter(|v| is_string(v))
    };
    failed |= member("error").is_some();
    let text = member("output").or(member("error"));
    let whole = value.unwrap_or(list);
    let said = string_value(text)
        .unwrap_or(whole.get().into())
        .into_owned();
    let echo = |value, with| TextEcho {
        segment: 1,
        block: answered.len(),
        value,
        with,
    };
    let mut echoes = Vec::new();
    if text.is_none() {
        echoes.push(echo(whole, response_replacement(value.is_none(), call)));
    }
    echoes.extend(
        call.result_display
            .map(|v| echo(v, EchoReplacement::Fixed("\"\""))),
    );
    answered.push(BlockPiece {
        block: Block::ToolResult {
            call: id.clone(),
            content: said,
            is_error: failed,
        },
        holder: Holder::Value {
            value: list,
            empty: "[]",
        },
        texts: text.map(TextSite::in_value).unwrap_or_default(),
    });
    let others = elements
        .iter()
        .enumerate()
        .filter(|(i, _)| Some(*i) != first);
    for (_, element) in others.filter(|_| first.is_some()) {
        if let Some(copy) = CopiedAnswer::from_element(list, element) {
            copies.push(copy);
            continue;
        }
        answered.push(read_beside(at, list, element)?);
    }
    Ok(echoes)
}

/// Returns a call whose only answer is what the terminal showed.
fn shown_only<'a>(
    call: &GeminiCliCall<'a>,
    id: String,
    is_error: bool,
    answered: &mut Vec<BlockPiece<'a>>,
) -> Vec<TextEcho<'a>> {
    let display = call.result_display.filter(|v| is_string(v));
    let text = string_value(display).filter(|text| !text.is_empty());
    if let (Some(value), Some(text)) = (display, text) {
        answered.push(BlockPiece {
            block: Block::ToolResult {
                call: id,
                content: text.into_owned(),
                is_error,
            },
            holder: Holder::Value {
                value,
                empty: "\"\"",
            },
            texts: TextSite::in_value(value),
        });
    }
    Vec::new()
}

/// Returns a text as a response, or as a list with one in it.
fn response_replacement(is_list: bool, call: &GeminiCliCall<'_>) -> EchoReplacement {
    if !is_list {
        return EchoReplacement::Text {
            before: "{\"output\":".to_owned(),
            after: "}".to_owned(),
        };
    }
    let id = call.id.map_or("\"\"", RawValue::get);
    let name = call.name.map_or("\"\"", RawValue::get);
    EchoReplacement::Text {
        before: format!(
            "[{{\"functionResponse\":{{\"id\":{id},\"name\":{name},\"response\":{{\"output\":"
        ),
        after: "}}}]".to_owned(),
    }
}

fn entry_kind(role: Role, pieces: &[BlockPiece<'_>]) -> EntryKind {
    let texts: Vec<&str> = pieces
        .iter()
        .filter_map(|piece| match &piece.block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    if let Some(summary) = texts
        .iter()
        .find_map(|text| special_text::summary_kind(text))
    {
        return summary;
    }
    if role != Role::User {
        return EntryKind::Message;
    }
    kind_of_words(&texts)
}

/// Returns what the texts of a user's message are: somebody's words, or the client's summary.
pub(crate) fn kind_of_words(texts: &[&str]) -> EntryKind {
    let is_snapshot = |text: &&str| text.trim_start().starts_with("<state_snapshot>");
    match texts.iter().any(is_snapshot) {
        true => EntryKind::ForeignSummary,
        false => EntryKind::Message,
    }
}

/// Returns an entry as a message. A result that answers nothing here says what it is.
fn compose_message(
    reply: &ReplyWithResults<'_>,
    index: usize,
    timestamp: &str,
    model: Option<&str>,
) -> String {
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
            let parts: Vec<String> = texts.iter().map(|t| GeminiCliWire.text_part(t)).collect();
            format!("[{}]", parts.join(","))
        }
    };
    let calls: Vec<String> = entry
        .blocks
        .iter()
        .filter_map(|block| render_call(reply, block))
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
        quote(&fresh::stable_uuid(&entry.id.0, index)),
    )
}

fn render_call(reply: &ReplyWithResults<'_>, block: &Block) -> Option<String> {
    let Block::ToolCall {
        id,
        name,
        arguments: args,
    } = block
    else {
        return None;
    };
    let (id_json, name) = (quote(id), quote(name));
    let args = to_arguments_object(args);
    let call = format!("\"id\":{id_json},\"name\":{name},\"args\":{args}");
    Some(match reply.result_of(id) {
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
