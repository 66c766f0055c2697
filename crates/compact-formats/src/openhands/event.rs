//! One action or observation: what it says, and how it is changed.

use crate::surrogate::readable_text;
use crate::usage::UsageSource;
use compact_core::usage::Usage;
use std::collections::HashSet;

use compact_core::message::{Block, EntryKind, Role};
use compact_core::view::BlockEdit;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{self, BlockPiece, EntryEdits, Holder, TextSite, to_arguments_object};
use crate::error::FormatError;
use crate::flag;
use crate::json::{ItemContext, Member, Members, Patch, is_object, is_string, quote, string_value};
use crate::parts;
use crate::special_text;

/// The members of an event that matter here; every one is a span.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenHandsEvent<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    source: Option<&'a RawValue>,
    action: Option<&'a RawValue>,
    observation: Option<&'a RawValue>,
    args: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    thought: Option<&'a RawValue>,
    cause: Option<&'a RawValue>,
    tool_call_metadata: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    extras: Option<&'a RawValue>,
}

/// The content of an event.
pub(super) struct EventContent<'a> {
    pub(super) role: Role,
    pub(super) kind: EntryKind,
    pub(super) pieces: Vec<BlockPiece<'a>>,
}

/// Actions that change nothing in the context, and observations that show nothing.
const BOOKKEEPING: [&str; 8] = [
    "null",
    "",
    "change_agent_state",
    "agent_state_changed",
    "recall",
    "pause",
    "resume",
    "condensation_request",
];

/// Members of an event that are no arguments of its action.
const BESIDE: [&str; 10] = [
    "action",
    "source",
    "id",
    "timestamp",
    "message",
    "args",
    "cause",
    "tool_call_metadata",
    "llm_metrics",
    "timeout",
];

/// Arguments that only the client needs.
const CLIENT: [&str; 12] = [
    "thought",
    "blocking",
    "keep_prompt",
    "hidden",
    "confirmation_state",
    "is_confirmed",
    "action_risk",
    "security_risk",
    "kernel_init_code",
    "wait_for_response",
    "image_urls",
    "images_urls",
];

/// The action of a call that came from another format: all of its arguments are the tool's.
pub(super) const FOREIGN_ACTION: &str = "call_tool";

impl<'a> OpenHandsEvent<'a> {
    /// Returns the event's number as text.
    pub(super) fn id(&self) -> Option<String> {
        self.id.map(|raw| raw.get().trim_matches('"').to_owned())
    }

    /// Returns the number of the event that this one answers.
    pub(super) fn cause(&self) -> Option<String> {
        let cause = self.cause?.get().trim_matches('"').to_owned();
        (cause != "null").then_some(cause)
    }

    pub(super) fn has_source(&self) -> bool {
        self.source.is_some_and(is_string)
    }

    fn action(&self) -> String {
        string_value(self.action).unwrap_or_default().into_owned()
    }

    pub(super) fn is_message(&self) -> bool {
        self.action() == "message"
    }

    fn metadata_member(&self, key: &str) -> Option<&'a RawValue> {
        Members::from_json(self.tool_call_metadata?.get()).get(key)
    }

    fn model_response_member(&self, key: &str) -> Option<&'a RawValue> {
        Members::from_json(self.metadata_member("model_response")?.get()).get(key)
    }

    pub(super) fn model(&self) -> Option<String> {
        string_value(self.model_response_member("model")).map(String::from)
    }

    /// Returns the response that made this call among others.
    pub(super) fn response_id(&self) -> Option<String> {
        let calls = self.metadata_member("total_calls_in_response")?;
        let is_one = calls.get() == "1";
        string_value(self.model_response_member("id").filter(|_| !is_one)).map(String::from)
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        UsageSource::OpenAiChat.read_entry_usage(self.model_response_member("usage")?)
    }

    /// Returns the tool schemas that come with the system's words.
    pub(super) fn tools(&self) -> Option<String> {
        let tools = Members::from_json(self.args?.get()).get("tools")?;
        (tools.get() != "null").then(|| tools.get().to_owned())
    }

    /// Returns where the arguments stand: in `args`, or beside the action.
    fn arguments_holder(&self, json: &'a str) -> &'a str {
        match self.args {
            Some(args) if is_object(args) => args.get(),
            _ => json,
        }
    }

    /// Returns what the event says to the model, if anything.
    pub(super) fn read_content(
        &self,
        at: ItemContext<'_>,
        json: &'a str,
    ) -> Result<Option<EventContent<'a>>, FormatError> {
        let observed = string_value(self.observation).unwrap_or_default();
        let action = self.action();
        if action.is_empty() {
            let is_furniture = BOOKKEEPING.contains(&observed.as_ref()) && observed != "recall";
            if is_furniture || self.content.is_none() {
                return Ok(None);
            }
            return self.read_observation(at, &observed).map(Some);
        }
        let source = string_value(self.source).unwrap_or_default();
        let holder = Members::from_json(self.arguments_holder(json));
        let (role, kind) = match source.as_ref() {
            "user" => (Role::User, EntryKind::Message),
            "environment" => (Role::User, EntryKind::Injected),
            _ => (Role::Assistant, EntryKind::Message),
        };
        let pieces = match action.as_str() {
            action if BOOKKEEPING.contains(&action) => return Ok(None),
            "message" => text_pieces(at, &[holder.get("content")])?,
            "system" => {
                let pieces = text_pieces(at, &[holder.get("content")])?;
                return Ok(Some(EventContent::new(
                    Role::System,
                    EntryKind::Message,
                    pieces,
                )));
            }
            "finish" => text_pieces(at, &[holder.get("thought"), holder.get("final_thought")])?,
            _ if role == Role::User => opaque_pieces(&action, json),
            action => self.read_call(at, action, json)?,
        };
        Ok(Some(EventContent::new(role, kind, pieces)))
    }

    fn read_observation(
        &self,
        at: ItemContext<'_>,
        observed: &str,
    ) -> Result<EventContent<'a>, FormatError> {
        let call = string_value(self.metadata_member("tool_call_id")).unwrap_or_default();
        let value = self.content.filter(|raw| is_string(raw));
        let content = value
            .map(|raw| at.read_string("content", raw))
            .transpose()?;
        let block = Block::ToolResult {
            call: call.into_owned(),
            content: content.unwrap_or_default(),
            is_error: observed == "error",
        };
        let piece = BlockPiece {
            block,
            holder: Holder::Item,
            texts: value.map(TextSite::in_value).unwrap_or_default(),
        };
        Ok(EventContent::new(
            Role::Tool,
            EntryKind::Message,
            vec![piece],
        ))
    }

    /// Returns the thought and the call of an action. To think is a tool: its thought is the argument.
    fn read_call(
        &self,
        at: ItemContext<'_>,
        action: &str,
        json: &'a str,
    ) -> Result<Vec<BlockPiece<'a>>, FormatError> {
        let thought = self.thought(action, json);
        let mut pieces = text_pieces(at, &[thought])?;
        let named = self.metadata_member("tool_call_id");
        let own = || self.id().map(|id| format!("event-{id}"));
        let id = string_value(named).map(String::from).or_else(own);
        let name = string_value(self.metadata_member("function_name")).unwrap_or(action.into());
        pieces.push(BlockPiece {
            block: Block::ToolCall {
                id: id.unwrap_or_default(),
                name: name.into_owned(),
                arguments: self.arguments_json(action, json),
            },
            holder: Holder::Item,
            texts: Vec::new(),
        });
        Ok(pieces)
    }

    /// Returns the words before a call.
    fn thought(&self, action: &str, json: &'a str) -> Option<&'a RawValue> {
        if action == "think" || action == FOREIGN_ACTION {
            return None;
        }
        Members::from_json(self.arguments_holder(json)).get("thought")
    }

    fn arguments_json(&self, action: &str, json: &'a str) -> String {
        let holder = self.arguments_holder(json);
        let is_flat = holder.len() == json.len();
        let members = Members::from_json(holder).0;
        let told = |m: &&Member<'_>| is_argument(action, is_flat, m);
        if members.iter().all(|m| told(&m)) {
            return holder.to_owned();
        }
        let told = members.iter().filter(told);
        let told: Vec<String> = told
            .map(|m| format!("{}:{}", quote(&m.key), m.value.get()))
            .collect();
        format!("{{{}}}", told.join(","))
    }

    /// Returns the events that a condensation forgets.
    pub(super) fn forgotten_ids(
        &self,
        at: ItemContext<'_>,
    ) -> Result<Option<HashSet<String>>, FormatError> {
        if self.action() != "condensation" {
            return Ok(None);
        }
        let args = Members::from_json(self.args.map_or("", RawValue::get));
        let mut forgotten = HashSet::new();
        if let Some(list) = args
            .get("forgotten_event_ids")
            .filter(|l| l.get() != "null")
        {
            let ids = at.read_list("args.forgotten_event_ids", list)?;
            forgotten.extend(ids.iter().map(|id| id.get().to_owned()));
        }
        let number = |key: &str| args.get(key).and_then(|raw| raw.get().parse::<u32>().ok());
        let ends = (
            number("forgotten_events_start_id"),
            number("forgotten_events_end_id"),
        );
        if let (Some(start), Some(end)) = ends {
            // A range beyond any session is a mistake, not a reason to count to it.
            let end = end.min(start.saturating_add(1 << 20));
            forgotten.extend((start..=end).map(|id| id.to_string()));
        }
        Ok(Some(forgotten))
    }

    /// Returns the summary of a condensation and the place among the entries that it takes.
    pub(super) fn read_summary(
        &self,
        at: ItemContext<'_>,
    ) -> Result<Option<(EventContent<'a>, Option<usize>)>, FormatError> {
        let args = Members::from_json(self.args.map_or("", RawValue::get));
        let pieces = text_pieces(at, &[args.get("summary")])?;
        let offset = args.get("summary_offset");
        let offset = offset.and_then(|raw| raw.get().parse().ok());
        let said = EventContent::new(Role::User, EntryKind::ForeignSummary, pieces);
        Ok((!said.pieces.is_empty()).then_some((said, offset)))
    }
}

fn is_argument(action: &str, is_flat: bool, member: &Member<'_>) -> bool {
    let key = member.key.as_ref();
    if action == FOREIGN_ACTION {
        return !is_flat || !BESIDE.contains(&key);
    }
    let is_thought = action == "think" && key == "thought";
    let is_beside = is_flat && BESIDE.contains(&key);
    is_thought || !is_beside && !CLIENT.contains(&key) && member.value.get() != "null"
}

impl<'a> EventContent<'a> {
    fn new(role: Role, kind: EntryKind, pieces: Vec<BlockPiece<'a>>) -> EventContent<'a> {
        let ours = pieces.iter().find_map(|piece| match &piece.block {
            Block::Text(text) => special_text::summary_kind(text),
            _ => None,
        });
        let kind = ours.unwrap_or(kind);
        EventContent { role, kind, pieces }
    }
}

/// Texts that must stay where they are, be they empty.
fn text_pieces<'a>(
    at: ItemContext<'_>,
    values: &[Option<&'a RawValue>],
) -> Result<Vec<BlockPiece<'a>>, FormatError> {
    let mut pieces = Vec::new();
    for value in values
        .iter()
        .copied()
        .flatten()
        .filter(|raw| is_string(raw))
    {
        let text = at.read_string("args.content", value)?;
        if !text.is_empty() {
            let empty = "\"\"";
            let holder = Holder::Value { value, empty };
            pieces.push(parts::text_piece(text, holder, value));
        }
    }
    Ok(pieces)
}

/// Returns a block for something that the user did without words.
fn opaque_pieces<'a>(action: &str, json: &str) -> Vec<BlockPiece<'a>> {
    let block = Block::Opaque {
        kind: action.to_owned(),
        bytes: flag::strip_own_members(json).len(),
    };
    vec![BlockPiece {
        block,
        holder: Holder::Item,
        texts: Vec::new(),
    }]
}

/// Values of `extras` longer than this repeat what was observed.
const SHORT: usize = 200;

/// Returns the event with its edits; members that repeat what changed go.
pub(super) fn edit_event(
    at: ItemContext<'_>,
    json: &str,
    edits: EntryEdits<'_>,
) -> Result<Option<String>, FormatError> {
    let json = &*readable_text(json);
    let event: OpenHandsEvent<'_> = at.read(json)?;
    let said = match event.forgotten_ids(at)? {
        Some(_) => event.read_summary(at)?.map(|(said, _)| said),
        None => event.read_content(at, json)?,
    };
    let Some(said) = said else {
        return Ok(None);
    };
    let calls = said
        .pieces
        .iter()
        .position(|piece| matches!(piece.block, Block::ToolCall { .. }));
    if let Some(call) = calls {
        return Ok(edit_action(&event, json, &said.pieces, call, edits));
    }
    let forget = |patch: &mut Patch<'_>, _: usize, _: &str| event.forget_repeats(patch);
    let part = |text: &str| quote(text);
    Ok(edit::apply_edits_with(
        json,
        &said.pieces,
        edits,
        &part,
        &forget,
    ))
}

impl OpenHandsEvent<'_> {
    fn forget_repeats(&self, patch: &mut Patch<'_>) {
        let nothing = "\"\"".to_owned();
        if let Some(message) = self.message.filter(|raw| is_string(raw)) {
            patch.replace(message, nothing);
        }
        if let Some(response) = self.metadata_member("model_response") {
            patch.replace(response, "null".to_owned());
        }
        for member in Members::from_json(self.extras.map_or("", RawValue::get)).0 {
            if member.value.get().len() > SHORT {
                patch.replace(member.value, "null".to_owned());
            }
        }
    }
}

/// Returns an action with other words or arguments; without its call it is words alone.
fn edit_action(
    event: &OpenHandsEvent<'_>,
    json: &str,
    pieces: &[BlockPiece<'_>],
    call: usize,
    edits: EntryEdits<'_>,
) -> Option<String> {
    let thought = pieces.iter().enumerate().find(|(i, _)| *i != call);
    let words = thought.and_then(|(i, piece)| match (edits.for_block(i), &piece.block) {
        (Some(BlockEdit::Drop), _) => None,
        (Some(BlockEdit::SetText(text)), _) => Some(text.as_str()),
        (None, Block::Text(text)) => Some(text.as_str()),
        (None, _) => None,
    });
    let mut patch = Patch::new(json);
    if let (Some((_, piece)), true) = (thought, !edits.0.is_empty())
        && let Some(site) = piece.texts.first()
    {
        patch.replace(site.value, quote(words.unwrap_or_default()));
        event.forget_repeats(&mut patch);
    }
    match edits.for_block(call) {
        None => Some(patch.finish()),
        Some(BlockEdit::Drop) => words.map(|words| {
            let words = quote(words);
            format!(
                "{{\"source\":\"agent\",\"action\":\"message\",\"args\":{{\"content\":{words}}}}}"
            )
        }),
        Some(BlockEdit::SetText(text)) => {
            let holder = event.arguments_holder(json);
            let is_flat = holder.len() == json.len();
            let mut patch = Patch::new(json);
            let made = with_arguments(&event.action(), is_flat, holder, words, text);
            if is_flat {
                return Some(made);
            }
            if let Some(args) = event.args {
                patch.replace(args, made);
            }
            event.forget_repeats(&mut patch);
            Some(patch.finish())
        }
    }
}

/// Returns the object that holds an action's arguments with others in their place.
fn with_arguments(
    action: &str,
    is_flat: bool,
    holder: &str,
    thought: Option<&str>,
    text: &str,
) -> String {
    let text = to_arguments_object(text);
    let beside = Members::from_json(holder).0.into_iter();
    let beside = beside.filter(|m| !is_argument(action, is_flat, m) && m.key != "thought");
    let mut members: Vec<String> = beside
        .map(|m| format!("{}:{}", quote(&m.key), m.value.get()))
        .collect();
    members.extend(thought.map(|words| format!("\"thought\":{}", quote(words))));
    let new = Members::from_json(&text).0.into_iter();
    members.extend(new.map(|m| format!("{}:{}", quote(&m.key), m.value.get())));
    format!("{{{}}}", members.join(","))
}
