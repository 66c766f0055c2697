//! One message of an export as its segments, and entries as messages.

use crate::usage::UsageSource;
use compact_core::message::{Block, Entry, EntryKind, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{Holder, Piece, TextSite, arguments};
use crate::error::FormatError;
use crate::frame;
use crate::fresh;
use crate::json::{At, Members, is_list, is_object, is_string, is_true, lenient, quote};
use crate::media::Pricing;
use crate::parts;
use crate::segment::{self, Echo, Message, Reply, Segment, Segmented, With};
use crate::wire::Page;

pub(super) struct OpenCodeMessages;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow)]
    info: Option<&'a RawValue>,
    parts: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
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
struct State<'a> {
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    output: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    attachments: Option<&'a RawValue>,
}

impl Segmented for OpenCodeMessages {
    fn message<'a>(&self, at: At<'_>, json: &'a str) -> Result<Option<Message<'a>>, FormatError> {
        if !json.starts_with('{') {
            return Err(at.missing("info", "in an object with `info` and `parts`"));
        }
        let line: Line<'a> = at.read(json)?;
        let info = line.info.ok_or_else(|| at.missing("info", "an object"))?;
        let info = Members::of(info.get());
        let role = match lenient(info.get("role")).as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return Ok(None),
        };
        let mut reader = Reader {
            at,
            role,
            pricing: Pricing::of_model(&model(json).unwrap_or_default()),
            message: Message {
                id: lenient(info.get("id")).map(String::from),
                usage: info
                    .get("tokens")
                    .and_then(|raw| UsageSource::OpenCode.of_entry(raw)),
                ..Message::default()
            },
            said: Vec::new(),
            answered: Vec::new(),
            is_synthetic: true,
        };
        if let Some(list) = line.parts {
            for element in at.list("parts", list)? {
                reader.part(list, element)?;
            }
        }
        let is_boundary = is_compaction(json);
        let message = reader.finish(is_true(info.get("summary")));
        let says = message.segments.iter().any(|s| !s.pieces.is_empty());
        Ok((says || !is_boundary).then_some(message))
    }

    fn text_part(&self, text: &str) -> String {
        format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))
    }

    fn compose(&self, page: &Page<'_>, before: Option<&str>, entries: &[&Entry]) -> Vec<String> {
        let before = Members::of(before.unwrap_or_default()).get("info");
        let before = Members::of(before.map_or("", RawValue::get));
        let composer = Composer {
            session: quote(page.conversation.session_id.as_deref().unwrap_or("ses_")),
            after: lenient(before.get("id")).map_or("msg_".to_owned(), String::from),
            time: before.get("time").map_or("{\"created\":0}", RawValue::get),
            model: page.conversation.model.as_deref().unwrap_or_default(),
        };
        segment::replies(entries)
            .iter()
            .enumerate()
            .map(|(i, reply)| composer.message(i, reply))
            .collect()
    }

    fn session_id(&self, head: &Members<'_>) -> Option<String> {
        let info = Members::of(head.get("info").map_or("", RawValue::get));
        lenient(info.get("id")).map(String::from)
    }

    fn model(&self, json: &str) -> Option<String> {
        model(json)
    }

    /// The summary of the last compaction that has one.
    fn live_from(&self, messages: &[&RawValue]) -> usize {
        let boundary = messages.windows(2).rposition(|pair| match pair {
            [asked, told] => is_compaction(asked.get()) && is_summary(told.get()),
            _ => false,
        });
        boundary.map_or(0, |at| at + 1)
    }
}

/// True for the message that asks for a compaction.
fn is_compaction(json: &str) -> bool {
    let parts = Members::of(json).get("parts");
    let parts: Vec<&RawValue> = parts
        .and_then(|list| serde_json::from_str(list.get()).ok())
        .unwrap_or_default();
    parts
        .iter()
        .any(|part| lenient(Members::of(part.get()).get("type")).as_deref() == Some("compaction"))
}

/// True for a reply that is the summary of a compaction.
fn is_summary(json: &str) -> bool {
    let info = Members::of(json).get("info");
    info.is_some_and(|info| is_true(Members::of(info.get()).get("summary")))
}

/// The model that a message names.
fn model(json: &str) -> Option<String> {
    let info = Members::of(Members::of(json).get("info")?.get());
    let nested = info.get("model").map(|model| Members::of(model.get()));
    let nested = nested.and_then(|model| model.get("modelID"));
    lenient(info.get("modelID").or(nested)).map(String::from)
}

struct Reader<'a, 's> {
    at: At<'s>,
    role: Role,
    pricing: Pricing,
    message: Message<'a>,
    said: Vec<Piece<'a>>,
    answered: Vec<Piece<'a>>,
    /// Whether every text so far is the client's.
    is_synthetic: bool,
}

impl<'a> Reader<'a, '_> {
    fn part(&mut self, list: &'a RawValue, element: &'a RawValue) -> Result<(), FormatError> {
        if !is_object(element) {
            return Err(self.at.field("parts[]", "an object", element));
        }
        let part: Part<'a> = self.at.read(element.get())?;
        let holder = Holder::Element { list, element };
        let kind = lenient(part.r#type).unwrap_or_default();
        let piece = match kind.as_ref() {
            "text" if is_true(part.ignored) => return Ok(()),
            "text" => self.text(&part, holder)?,
            "subtask" => self.words(part.prompt, holder)?,
            "reasoning" => self.reasoning(&part, holder)?,
            "tool" => return self.tool(&part, holder),
            "file" => Some(self.file(element, holder)),
            "step-start" => {
                self.step();
                None
            }
            "step-finish" | "snapshot" | "patch" | "agent" | "retry" | "compaction" => None,
            kind => Some(Piece {
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

    fn text(
        &mut self,
        part: &Part<'a>,
        holder: Holder<'a>,
    ) -> Result<Option<Piece<'a>>, FormatError> {
        self.is_synthetic &= is_true(part.synthetic);
        self.words(part.text, holder)
    }

    fn words(
        &self,
        value: Option<&'a RawValue>,
        holder: Holder<'a>,
    ) -> Result<Option<Piece<'a>>, FormatError> {
        let Some(value) = value else { return Ok(None) };
        let text = self.at.string("parts[].text", value)?;
        Ok((!text.is_empty()).then(|| parts::text_piece(text, holder, value)))
    }

    fn reasoning(
        &self,
        part: &Part<'a>,
        holder: Holder<'a>,
    ) -> Result<Option<Piece<'a>>, FormatError> {
        let text = self.at.optional("parts[].text", part.text)?;
        Ok(Some(Piece {
            block: Block::Reasoning {
                text: text.unwrap_or_default(),
                replay_bytes: part.metadata.map_or(0, |raw| raw.get().len()),
            },
            holder,
            texts: part.text.map(TextSite::value).unwrap_or_default(),
        }))
    }

    fn tool(&mut self, part: &Part<'a>, holder: Holder<'a>) -> Result<(), FormatError> {
        let at = self.at;
        let id = at.optional("parts[].callID", part.call_id)?;
        let id = id.unwrap_or_default();
        let state = part.state.filter(|state| is_object(state));
        let state: State<'a> = at.read(state.map_or("{}", RawValue::get))?;
        self.said.push(Piece {
            block: Block::ToolCall {
                id: id.clone(),
                name: lenient(part.tool).unwrap_or_default().into_owned(),
                arguments: state.input.map_or("{}", RawValue::get).to_owned(),
            },
            holder,
            texts: state.input.map(TextSite::value).unwrap_or_default(),
        });
        let status = lenient(state.status).unwrap_or_default();
        let (is_error, value) = match status.as_ref() {
            "completed" => (false, state.output),
            "error" => (true, state.error),
            _ => return Ok(()),
        };
        let Some((value, status)) = value.filter(|v| is_string(v)).zip(state.status) else {
            return Ok(());
        };
        // The client's own view of the result repeats it.
        self.message.echoes.extend(state.metadata.map(|value| Echo {
            segment: self.message.segments.len() + 1,
            block: self.answered.len(),
            value,
            with: With::Fixed("{}"),
        }));
        self.answered.push(Piece {
            block: Block::ToolResult {
                call: id,
                content: at.string("parts[].state.output", value)?,
                is_error,
            },
            holder: Holder::Value {
                value: status,
                empty: "\"pending\"",
            },
            texts: TextSite::value(value),
        });
        self.attachments(state.attachments)
    }

    fn attachments(&mut self, list: Option<&'a RawValue>) -> Result<(), FormatError> {
        let Some(list) = list.filter(|list| is_list(list)) else {
            return Ok(());
        };
        for element in self.at.list("parts[].state.attachments", list)? {
            let piece = self.file(element, Holder::Element { list, element });
            self.answered.push(piece);
        }
        Ok(())
    }

    /// A file as its URL holds it, charged as the message's model would.
    fn file(&self, element: &'a RawValue, holder: Holder<'a>) -> Piece<'a> {
        let members = Members::of(element.get());
        let label = lenient(members.get("mime")).unwrap_or("file".into());
        Piece {
            block: Block::Media {
                tokens: self.pricing.data(&label, members.get("url")),
                label: label.into_owned(),
            },
            holder,
            texts: Vec::new(),
        }
    }

    /// A new step begins once the tools of the one before have answered.
    fn step(&mut self) {
        if self.answered.is_empty() {
            return;
        }
        let (role, said) = (self.role, std::mem::take(&mut self.said));
        let answered = std::mem::take(&mut self.answered);
        let segments = &mut self.message.segments;
        segments.push(Segment { role, pieces: said });
        segments.push(Segment {
            role: Role::Tool,
            pieces: answered,
        });
    }

    fn finish(mut self, is_summary: bool) -> Message<'a> {
        self.step();
        if !self.said.is_empty() || self.message.segments.is_empty() {
            let (role, pieces) = (self.role, std::mem::take(&mut self.said));
            self.message.segments.push(Segment { role, pieces });
        }
        self.message.kind = self.kind(is_summary);
        self.message
    }

    fn kind(&self, is_summary: bool) -> EntryKind {
        let pieces = self.message.segments.iter().flat_map(|s| &s.pieces);
        let mut texts = pieces.filter_map(|piece| match &piece.block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let has_text = texts.clone().next().is_some();
        match texts.find_map(frame::summary) {
            Some(summary) => summary,
            None if is_summary => EntryKind::ForeignSummary,
            None if self.role == Role::User && has_text && self.is_synthetic => EntryKind::Injected,
            None => EntryKind::Message,
        }
    }
}

/// Writes messages of our own. A client sorts by id, and an id that extends another follows it.
struct Composer<'a> {
    session: String,
    /// The id that those of our own extend.
    after: String,
    time: &'a str,
    model: &'a str,
}

impl Composer<'_> {
    fn message(&self, index: usize, reply: &Reply<'_>) -> String {
        let entry = reply.entry;
        let made = fresh::uuid(&entry.id.0, index).replace('-', "");
        let id = quote(&format!("{}c{index:06}", self.after));
        let parts: Vec<String> = entry
            .blocks
            .iter()
            .filter_map(|block| body(reply, block))
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
            self.role(entry),
            self.time,
            parts.join(",")
        )
    }

    fn role(&self, entry: &Entry) -> String {
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

/// The members of a part that make it what it is.
fn body(reply: &Reply<'_>, block: &Block) -> Option<String> {
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
            let input = arguments(args);
            let time = "\"time\":{\"start\":0,\"end\":0}";
            let state = match reply.result(id) {
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
