//! One message of an export as its segments, and entries as messages.

use crate::usage::UsageSource;
use compact_core::message::{Block, Entry, EntryKind, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{BlockPiece, Holder, TextSite, to_arguments_object};
use crate::error::FormatError;
use crate::fresh;
use crate::json::{
    ItemContext, Members, is_list, is_object, is_string, is_true, quote, string_value,
};
use crate::media::MediaPricing;
use crate::parts;
use crate::segment::{
    self, EchoReplacement, MessageSegment, ReplyWithResults, SegmentedMessage, SegmentedWire,
    TextEcho,
};
use crate::special_text;
use crate::wire::DocumentContext;

pub(super) struct OpenCodeWire;

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenCodeMessage<'a> {
    #[serde(borrow)]
    info: Option<&'a RawValue>,
    parts: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenCodePart<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
    ignored: Option<&'a RawValue>,
    synthetic: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    prompt: Option<&'a RawValue>,
    #[serde(rename = "callID")]
    call_id: Option<&'a RawValue>,
    tool: Option<&'a RawValue>,
    state: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenCodeToolState<'a> {
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    attachments: Option<&'a RawValue>,
}

impl SegmentedWire for OpenCodeWire {
    fn read_message<'a>(
        &self,
        at: ItemContext<'_>,
        json: &'a str,
    ) -> Result<Option<SegmentedMessage<'a>>, FormatError> {
        if !json.starts_with('{') {
            return Err(at.missing_field("info", "in an object with `info` and `parts`"));
        }
        let line: OpenCodeMessage<'a> = at.read(json)?;
        let info = line
            .info
            .ok_or_else(|| at.missing_field("info", "an object"))?;
        let info = Members::from_json(info.get());
        let role = match string_value(info.get("role")).as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return Ok(None),
        };
        let mut reader = OpenCodeReader {
            at,
            role,
            pricing: MediaPricing::of_model(&model_name(json).unwrap_or_default()),
            message: SegmentedMessage {
                id: string_value(info.get("id")).map(String::from),
                usage: info
                    .get("tokens")
                    .and_then(|raw| UsageSource::OpenCode.read_entry_usage(raw)),
                ..SegmentedMessage::default()
            },
            said: Vec::new(),
            answered: Vec::new(),
            speaker: None,
            is_summary: is_true(info.get("summary")),
        };
        if let Some(list) = line.parts {
            for element in at.read_list("parts", list)? {
                reader.read_part(list, element)?;
            }
        }
        let is_boundary = is_compaction(json);
        let message = reader.finish();
        let says = message.segments.iter().any(|s| !s.pieces.is_empty());
        Ok((says || !is_boundary).then_some(message))
    }

    fn text_part(&self, text: &str) -> String {
        format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))
    }

    fn compose_messages(
        &self,
        page: &DocumentContext<'_>,
        before: Option<&str>,
        entries: &[&Entry],
    ) -> Vec<String> {
        let before = Members::from_json(before.unwrap_or_default()).get("info");
        let before = Members::from_json(before.map_or("", RawValue::get));
        let composer = OpenCodeComposer {
            session: quote(page.conversation.session_id.as_deref().unwrap_or("ses_")),
            after: string_value(before.get("id")).map_or("msg_".to_owned(), String::from),
            time: before.get("time").map_or("{\"created\":0}", RawValue::get),
            model: page.conversation.model.as_deref().unwrap_or_default(),
        };
        segment::group_replies(entries)
            .iter()
            .enumerate()
            .map(|(i, reply)| composer.compose_message(i, reply))
            .collect()
    }

    fn session_id(&self, head: &Members<'_>) -> Option<String> {
        let info = Members::from_json(head.get("info").map_or("", RawValue::get));
        string_value(info.get("id")).map(String::from)
    }

    fn model_name(&self, json: &str) -> Option<String> {
        model_name(json)
    }

    /// Returns the summary of the last compaction that has one.
    fn live_from(&self, messages: &[&RawValue]) -> usize {
        let boundary = messages.windows(2).rposition(|pair| match pair {
            [asked, told] => is_compaction(asked.get()) && is_summary(told.get()),
            _ => false,
        });
        boundary.map_or(0, |at| at + 1)
    }
}

/// Returns true for the message that asks for a compaction.
fn is_compaction(json: &str) -> bool {
    let parts = Members::from_json(json).get("parts");
    let parts: Vec<&RawValue> = parts
        .and_then(|list| serde_json::from_str(list.get()).ok())
        .unwrap_or_default();
    parts.iter().any(|part| {
        string_value(Members::from_json(part.get()).get("type")).as_deref() == Some("compaction")
    })
}

/// Returns true for a reply that is the summary of a compaction.
fn is_summary(json: &str) -> bool {
    let info = Members::from_json(json).get("info");
    info.is_some_and(|info| is_true(Members::from_json(info.get()).get("summary")))
}

/// Returns the model that a message names.
fn model_name(json: &str) -> Option<String> {
    let info = Members::from_json(Members::from_json(json).get("info")?.get());
    let nested = info
        .get("model")
        .map(|model| Members::from_json(model.get()));
    let nested = nested.and_then(|model| model.get("modelID"));
    string_value(info.get("modelID").or(nested)).map(String::from)
}

struct OpenCodeReader<'a, 's> {
    at: ItemContext<'s>,
    role: Role,
    pricing: MediaPricing,
    message: SegmentedMessage<'a>,
    said: Vec<BlockPiece<'a>>,
    answered: Vec<BlockPiece<'a>>,
    /// Who wrote the texts in `said`, once there is one.
    speaker: Option<TextAuthor>,
    /// Whether the message is the summary of a compaction.
    is_summary: bool,
}

/// Who wrote a text in the user's place: the client puts what it read and was told beside the person's words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextAuthor {
    Person,
    Client,
}

impl<'a> OpenCodeReader<'a, '_> {
    fn read_part(&mut self, list: &'a RawValue, element: &'a RawValue) -> Result<(), FormatError> {
        if !is_object(element) {
            return Err(self.at.wrong_type("parts[]", "an object", element));
        }
        let part: OpenCodePart<'a> = self.at.read(element.get())?;
        let holder = Holder::Element { list, element };
        let kind = string_value(part.r#type).unwrap_or_default();
        let piece = match kind.as_ref() {
            "text" if is_true(part.ignored) => return Ok(()),
            "text" => self.read_text(&part, holder)?,
            // What a command asks another agent: a template of the client's, with the person's words in it at most.
            "subtask" => self.read_authored(part.prompt, TextAuthor::Client, holder)?,
            "reasoning" => self.reasoning_piece(&part, holder)?,
            "tool" => return self.read_tool(&part, holder),
            "file" => Some(self.file_piece(element, holder)),
            "step-start" => {
                self.close_step();
                None
            }
            "step-finish" | "snapshot" | "patch" | "agent" | "retry" | "compaction" => None,
            kind => Some(BlockPiece {
                block: Block::Opaque {
                    kind: kind.to_owned(),
                    bytes: element.get().len(),
                },
                holder,
                texts: Vec::new(),
            }),
        };
        self.said.extend(piece);
        Ok(())
    }

    fn read_text(
        &mut self,
        part: &OpenCodePart<'a>,
        holder: Holder<'a>,
    ) -> Result<Option<BlockPiece<'a>>, FormatError> {
        let author = match is_true(part.synthetic) {
            true => TextAuthor::Client,
            false => TextAuthor::Person,
        };
        self.read_authored(part.text, author, holder)
    }

    /// Reads a text, which begins a segment where somebody else wrote the one before it.
    fn read_authored(
        &mut self,
        text: Option<&'a RawValue>,
        author: TextAuthor,
        holder: Holder<'a>,
    ) -> Result<Option<BlockPiece<'a>>, FormatError> {
        let piece = self.optional_text_piece(text, holder)?;
        if piece.is_some() && self.role == Role::User {
            if self.speaker.is_some_and(|before| before != author) {
                self.close_segment();
            }
            self.speaker = Some(author);
        }
        Ok(piece)
    }

    fn optional_text_piece(
        &self,
        value: Option<&'a RawValue>,
        holder: Holder<'a>,
    ) -> Result<Option<BlockPiece<'a>>, FormatError> {
        let Some(value) = value else { return Ok(None) };
        let text = self.at.read_string("parts[].text", value)?;
        Ok((!text.is_empty()).then(|| parts::text_piece(text, holder, value)))
    }

    fn reasoning_piece(
        &self,
        part: &OpenCodePart<'a>,
        holder: Holder<'a>,
    ) -> Result<Option<BlockPiece<'a>>, FormatError> {
        let text = self.at.read_optional_string("parts[].text", part.text)?;
        Ok(Some(BlockPiece {
            block: Block::Reasoning {
                text: text.unwrap_or_default(),
                replay_bytes: part.metadata.map_or(0, |raw| raw.get().len()),
            },
            holder,
            texts: part.text.map(TextSite::in_value).unwrap_or_default(),
        }))
    }

    fn read_tool(
        &mut self,
        part: &OpenCodePart<'a>,
        holder: Holder<'a>,
    ) -> Result<(), FormatError> {
        let at = self.at;
        let id = at.read_optional_string("parts[].callID", part.call_id)?;
        let id = id.unwrap_or_default();
        let state = part.state.filter(|state| is_object(state));
        let state: OpenCodeToolState<'a> = at.read(state.map_or("{}", RawValue::get))?;
        self.said.push(BlockPiece {
            block: Block::ToolCall {
                id: id.clone(),
                name: string_value(part.tool).unwrap_or_default().into_owned(),
                arguments: state.input.map_or("{}", RawValue::get).to_owned(),
            },
            holder,
            texts: state.input.map(TextSite::in_value).unwrap_or_default(),
        });
        let status = string_value(state.status).unwrap_or_default();
        let (is_error, value) = match status.as_ref() {
            "completed" => (false, state.output),
            "error" => (true, state.error),
            _ => return Ok(()),
        };
        let Some((value, status)) = value.filter(|v| is_string(v)).zip(state.status) else {
            return Ok(());
        };
        // The client's own view of the result repeats it.
        self.message
            .echoes
            .extend(state.metadata.map(|value| TextEcho {
                segment: self.message.segments.len() + 1,
                block: self.answered.len(),
                value,
                with: EchoReplacement::Fixed("{}"),
            }));
        self.answered.push(BlockPiece {
            block: Block::ToolResult {
                call: id,
                content: at.read_string("parts[].state.output", value)?,
                is_error,
            },
            holder: Holder::Value {
                value: status,
                empty: "\"pending\"",
            },
            texts: TextSite::in_value(value),
        });
        self.read_attachments(state.attachments)
    }

    fn read_attachments(&mut self, list: Option<&'a RawValue>) -> Result<(), FormatError> {
        let Some(list) = list.filter(|list| is_list(list)) else {
            return Ok(());
        };
        for element in self.at.read_list("parts[].state.attachments", list)? {
            let piece = self.file_piece(element, Holder::Element { list, element });
            self.answered.push(piece);
        }
        Ok(())
    }

    /// Returns a file as its URL holds it, charged as the message's model would.
    fn file_piece(&self, element: &'a RawValue, holder: Holder<'a>) -> BlockPiece<'a> {
        let members = Members::from_json(element.get());
        let label = string_value(members.get("mime")).unwrap_or("file".into());
        BlockPiece {
            block: Block::Media {
                tokens: self.pricing.data_tokens(&label, members.get("url")),
                label: label.into_owned(),
            },
            holder,
            texts: Vec::new(),
        }
    }

    /// Ends the current step if a tool has answered in it, so that a new one begins.
    fn close_step(&mut self) {
        if self.answered.is_empty() {
            return;
        }
        let answered = std::mem::take(&mut self.answered);
        self.close_segment();
        self.message.segments.push(MessageSegment {
            role: Role::Tool,
            kind: EntryKind::Message,
            pieces: answered,
        });
    }

    fn close_segment(&mut self) {
        let pieces = std::mem::take(&mut self.said);
        let segment = MessageSegment {
            role: self.role,
            kind: self.entry_kind(&pieces),
            pieces,
        };
        self.message.segments.push(segment);
        self.speaker = None;
    }

    fn finish(mut self) -> SegmentedMessage<'a> {
        self.close_step();
        if !self.said.is_empty() || self.message.segments.is_empty() {
            self.close_segment();
        }
        self.message
    }

    fn entry_kind(&self, pieces: &[BlockPiece<'_>]) -> EntryKind {
        let mut texts = pieces.iter().filter_map(|piece| match &piece.block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        });
        match texts.find_map(special_text::summary_kind) {
            Some(summary) => summary,
            None if self.is_summary => EntryKind::ForeignSummary,
            None if self.speaker == Some(TextAuthor::Client) => EntryKind::Injected,
            None => EntryKind::Message,
        }
    }
}

/// Writes messages of our own. A client sorts by id, and an id that extends another follows it.
struct OpenCodeComposer<'a> {
    session: String,
    /// The id that those of our own extend.
    after: String,
    time: &'a str,
    model: &'a str,
}

impl OpenCodeComposer<'_> {
    fn compose_message(&self, index: usize, reply: &ReplyWithResults<'_>) -> String {
        let entry = reply.entry;
        let made = fresh::stable_uuid(&entry.id.0, index).replace('-', "");
        let id = quote(&format!("{}c{index:06}", self.after));
        let parts: Vec<String> = entry
            .blocks
            .iter()
            .filter_map(|block| part_members(reply, block))
            .enumerate()
            .map(|(i, body)| {
                let part = quote(&format!("prt_{made}{i:04}"));
                format!(
                    "{{\"id\":{part},\"sessionID\":{},\"messageID\":{id},{body}}}",
                    self.session
                )
            })
            .collect();
        format!(
            "{{\"info\":{{\"id\":{id},\"sessionID\":{},{},\"time\":{}}},\"parts\":[{}]}}",
            self.session,
            self.role_members(entry),
            self.time,
            parts.join(",")
        )
    }

    fn role_members(&self, entry: &Entry) -> String {
        let model = quote(self.model);
        if entry.role == Role::Assistant {
            return format!(
                "\"role\":\"assistant\",\"mode\":\"build\",\"agent\":\"build\",\"modelID\":{model},\
                 \"providerID\":\"\",\"parentID\":\"\",\"path\":{{\"cwd\":\"\",\"root\":\"\"}},\"cost\":0,\
                 \"tokens\":{{\"input\":0,\"output\":0,\"reasoning\":0,\
                 \"cache\":{{\"read\":0,\"write\":0}}}}"
            );
        }
        format!(
            "\"role\":\"user\",\"agent\":\"build\",\
             \"model\":{{\"providerID\":\"\",\"modelID\":{model}}}"
        )
    }
}

/// Returns the members of a part that make it what it is.
fn part_members(reply: &ReplyWithResults<'_>, block: &Block) -> Option<String> {
    match block {
        Block::Text(text) | Block::ToolResult { content: text, .. } => {
            let injected = reply.entry.meta.kind == EntryKind::Injected;
            let mark = if injected { ",\"synthetic\":true" } else { "" };
            Some(format!("\"type\":\"text\",\"text\":{}{mark}", quote(text)))
        }
        Block::ToolCall {
            id,
            name,
            arguments: args,
        } => {
            let input = to_arguments_object(args);
            let time = "\"time\":{\"start\":0,\"end\":0}";
            let state = match reply.result_of(id) {
                None => format!("\"status\":\"pending\",\"input\":{input},\"raw\":\"\""),
                Some((text, true)) => {
                    let text = quote(text);
                    format!("\"status\":\"error\",\"input\":{input},\"error\":{text},{time}")
                }
                Some((text, false)) => format!(
                    "\"status\":\"completed\",\"input\":{input},\"output\":{},\
                     \"title\":\"\",\"metadata\":{{}},{time}",
                    quote(text)
                ),
            };
            Some(format!(
                "\"type\":\"tool\",\"callID\":{},\"tool\":{},\"state\":{{{state}}}",
                quote(id),
                quote(name)
            ))
        }
        _ => None,
    }
}
