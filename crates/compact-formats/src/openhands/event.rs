//! One action or observation: what it says, and how it is changed.

use crate::usage::UsageSource;
use compact_core::usage::Usage;
use std::collections::HashSet;

use compact_core::message::{Block, EntryKind, Role};
use compact_core::view::Edit;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::edit::{self, Edits, Holder, Piece, TextSite, arguments};
use crate::error::FormatError;
use crate::flag;
use crate::frame;
use crate::json::{At, Member, Members, Patch, is_object, is_string, lenient, quote};
use crate::parts;

/// The members of an event that matter here; every one is a span.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
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

/// What an event says.
pub(super) struct Said<'a> {
    pub(super) role: Role,
    pub(super) kind: EntryKind,
    pub(super) pieces: Vec<Piece<'a>>,
}

/// Actions that change nothing in the context, and observations that show nothing.
const FURNITURE: [&str; 8] = [
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
pub(super) const FOREIGN: &str = "call_tool";

impl<'a> Event<'a> {
    /// The event's number as text.
    pub(super) fn id(&self) -> Option<String> {
        self.id.map(|raw| raw.get().trim_matches('"').to_owned())
    }

    /// The number of the event that this one answers.
    pub(super) fn cause(&self) -> Option<String> {
        let cause = self.cause?.get().trim_matches('"').to_owned();
        (cause != "null").then_some(cause)
    }

    pub(super) fn has_source(&self) -> bool {
        self.source.is_some_and(is_string)
    }

    fn action(&self) -> String {
        lenient(self.action).unwrap_or_default().into_owned()
    }

    pub(super) fn is_words(&self) -> bool {
        self.action() == "message"
    }

    fn metadata(&self, key: &str) -> Option<&'a RawValue> {
        Members::of(self.tool_call_metadata?.get()).get(key)
    }

    fn model_response(&self, key: &str) -> Option<&'a RawValue> {
        Members::of(self.metadata("model_response")?.get()).get(key)
    }

    pub(super) fn model(&self) -> Option<String> {
        lenient(self.model_response("model")).map(String::from)
    }

    /// The response that made this call among others.
    pub(super) fn response(&self) -> Option<String> {
        let calls = self.metadata("total_calls_in_response")?;
        let is_one = calls.get() == "1";
        lenient(self.model_response("id").filter(|_| !is_one)).map(String::from)
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        UsageSource::OpenAiChat.of_entry(self.model_response("usage")?)
    }

    /// The tool schemas that come with the system's words.
    pub(super) fn tools(&self) -> Option<String> {
        let tools = Members::of(self.args?.get()).get("tools")?;
        (tools.get() != "null").then(|| tools.get().to_owned())
    }

    /// Where the arguments stand: in `args`, or beside the action.
    fn holder(&self, json: &'a str) -> &'a str {
        match self.args {
            Some(args) if is_object(args) => args.get(),
            _ => json,
        }
    }

    /// What the event says to the model, if anything.
    pub(super) fn said(&self, at: At<'_>, json: &'a str) -> Result<Option<Said<'a>>, FormatError> {
        let observed = lenient(self.observation).unwrap_or_default();
        let action = self.action();
        if action.is_empty() {
            let is_furniture = FURNITURE.contains(&observed.as_ref()) && observed != "recall";
            if is_furniture || self.content.is_none() {
                return Ok(None);
            }
            return self.observed(at, &observed).map(Some);
        }
        let source = lenient(self.source).unwrap_or_default();
        let holder = Members::of(self.holder(json));
        let (role, kind) = match source.as_ref() {
            "user" => (Role::User, EntryKind::Message),
            "environment" => (Role::User, EntryKind::Injected),
            _ => (Role::Assistant, EntryKind::Message),
        };
        let pieces = match action.as_str() {
            action if FURNITURE.contains(&action) => return Ok(None),
            "message" => words(at, &[holder.get("content")])?,
            "system" => {
                let pieces = words(at, &[holder.get("content")])?;
                return Ok(Some(Said::new(Role::System, EntryKind::Message, pieces)));
            }
            "finish" => words(at, &[holder.get("thought"), holder.get("final_thought")])?,
            _ if role == Role::User => opaque(&action, json),
            action => self.call(at, action, json)?,
        };
        Ok(Some(Said::new(role, kind, pieces)))
    }

    fn observed(&self, at: At<'_>, observed: &str) -> Result<Said<'a>, FormatError> {
        let call = lenient(self.metadata("tool_call_id")).unwrap_or_default();
        let value = self.content.filter(|raw| is_string(raw));
        let content = value.map(|raw| at.string("content", raw)).transpose()?;
        let block = Block::ToolResult {
            call: call.into_owned(),
            content: content.unwrap_or_default(),
            is_error: observed == "error",
        };
        let piece = Piece {
            block,
            holder: Holder::Item,
            texts: value.map(TextSite::value).unwrap_or_default(),
        };
        Ok(Said::new(Role::Tool, EntryKind::Message, vec![piece]))
    }

    /// The thought and the call of an action. To think is a tool: its thought is the argument.
    fn call(&self, at: At<'_>, action: &str, json: &'a str) -> Result<Vec<Piece<'a>>, FormatError> {
        let thought = self.thought(action, json);
        let mut pieces = words(at, &[thought])?;
        let named = self.metadata("tool_call_id");
        let own = || self.id().map(|id| format!("event-{id}"));
        let id = lenient(named).map(String::from).or_else(own);
        let name = lenient(self.metadata("function_name")).unwrap_or(action.into());
        pieces.push(Piece {
            block: Block::ToolCall {
                id: id.unwrap_or_default(),
                name: name.into_owned(),
                arguments: self.arguments(action, json),
            },
            holder: Holder::Item,
            texts: Vec::new(),
        });
        Ok(pieces)
    }

    /// The words before a call.
    fn thought(&self, action: &str, json: &'a str) -> Option<&'a RawValue> {
        if action == "think" || action == FOREIGN {
            return None;
        }
        Members::of(self.holder(json)).get("thought")
    }

    fn arguments(&self, action: &str, json: &'a str) -> String {
        let holder = self.holder(json);
        let is_flat = holder.len() == json.len();
        let members = Members::of(holder).0;
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

    /// The events that a condensation forgets.
    pub(super) fn forgotten(&self, at: At<'_>) -> Result<Option<HashSet<String>>, FormatError> {
        if self.action() != "condensation" {
            return Ok(None);
        }
        let args = Members::of(self.args.map_or("", RawValue::get));
        let mut forgotten = HashSet::new();
        if let Some(list) = args
            .get("forgotten_event_ids")
            .filter(|l| l.get() != "null")
        {
            let ids = at.list("args.forgotten_event_ids", list)?;
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

    /// The summary of a condensation and the place among the entries that it takes.
    pub(super) fn summary(
        &self,
        at: At<'_>,
    ) -> Result<Option<(Said<'a>, Option<usize>)>, FormatError> {
        let args = Members::of(self.args.map_or("", RawValue::get));
        let pieces = words(at, &[args.get("summary")])?;
        let offset = args.get("summary_offset");
        let offset = offset.and_then(|raw| raw.get().parse().ok());
        let said = Said::new(Role::User, EntryKind::ForeignSummary, pieces);
        Ok((!said.pieces.is_empty()).then_some((said, offset)))
    }
}

fn is_argument(action: &str, is_flat: bool, member: &Member<'_>) -> bool {
    let key = member.key.as_ref();
    if action == FOREIGN {
        return !is_flat || !BESIDE.contains(&key);
    }
    let is_thought = action == "think" && key == "thought";
    let is_beside = is_flat && BESIDE.contains(&key);
    is_thought || !is_beside && !CLIENT.contains(&key) && member.value.get() != "null"
}

impl<'a> Said<'a> {
    fn new(role: Role, kind: EntryKind, pieces: Vec<Piece<'a>>) -> Said<'a> {
        let ours = pieces.iter().find_map(|piece| match &piece.block {
            Block::Text(text) => frame::summary(text),
            _ => None,
        });
        let kind = ours.unwrap_or(kind);
        Said { role, kind, pieces }
    }
}

/// Texts that must stay where they are, be they empty.
fn words<'a>(at: At<'_>, values: &[Option<&'a RawValue>]) -> Result<Vec<Piece<'a>>, FormatError> {
    let mut pieces = Vec::new();
    for value in values
        .iter()
        .copied()
        .flatten()
        .filter(|raw| is_string(raw))
    {
        let text = at.string("args.content", value)?;
        if !text.is_empty() {
            let empty = "\"\"";
            let holder = Holder::Value { value, empty };
            pieces.push(parts::text_piece(text, holder, value));
        }
    }
    Ok(pieces)
}

/// Something the user did that is not words.
fn opaque<'a>(action: &str, json: &str) -> Vec<Piece<'a>> {
    let block = Block::Opaque {
        kind: action.to_owned(),
        bytes: flag::bare(json).len(),
    };
    vec![Piece {
        block,
        holder: Holder::Item,
        texts: Vec::new(),
    }]
}

/// Values of `extras` longer than this repeat what was observed.
const SHORT: usize = 200;

/// The event with its edits; members that repeat what changed go.
pub(super) fn edited(
    at: At<'_>,
    json: &str,
    edits: Edits<'_>,
) -> Result<Option<String>, FormatError> {
    let event: Event<'_> = at.read(json)?;
    let said = match event.forgotten(at)? {
        Some(_) => event.summary(at)?.map(|(said, _)| said),
        None => event.said(at, json)?,
    };
    let Some(said) = said else {
        return Ok(None);
    };
    let calls = said
        .pieces
        .iter()
        .position(|piece| matches!(piece.block, Block::ToolCall { .. }));
    if let Some(call) = calls {
        return Ok(edited_action(&event, json, &said.pieces, call, edits));
    }
    let forget = |patch: &mut Patch<'_>, _: usize, _: &str| event.forget_repeats(patch);
    let part = |text: &str| quote(text);
    Ok(edit::apply_with(json, &said.pieces, edits, &part, &forget))
}

impl Event<'_> {
    fn forget_repeats(&self, patch: &mut Patch<'_>) {
        let nothing = "\"\"".to_owned();
        if let Some(message) = self.message.filter(|raw| is_string(raw)) {
            patch.replace(message, nothing);
        }
        if let Some(response) = self.metadata("model_response") {
            patch.replace(response, "null".to_owned());
        }
        for member in Members::of(self.extras.map_or("", RawValue::get)).0 {
            if member.value.get().len() > SHORT {
                patch.replace(member.value, "null".to_owned());
            }
        }
    }
}

/// An action with other words or arguments; without its call it is words alone.
fn edited_action(
    event: &Event<'_>,
    json: &str,
    pieces: &[Piece<'_>],
    call: usize,
    edits: Edits<'_>,
) -> Option<String> {
    let thought = pieces.iter().enumerate().find(|(i, _)| *i != call);
    let words = thought.and_then(|(i, piece)| match (edits.of(i), &piece.block) {
        (Some(Edit::Drop), _) => None,
        (Some(Edit::SetText(text)), _) => Some(text.as_str()),
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
    match edits.of(call) {
        None => Some(patch.finish()),
        Some(Edit::Drop) => words.map(|words| {
            let words = quote(words);
            format!(
                "{{\"source\":\"agent\",\"action\":\"message\",\"args\":{{\"content\":{words}}}}}"
            )
        }),
        Some(Edit::SetText(text)) => {
            let holder = event.holder(json);
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

/// The object that holds an action's arguments with others in their place.
fn with_arguments(
    action: &str,
    is_flat: bool,
    holder: &str,
    thought: Option<&str>,
    text: &str,
) -> String {
    let text = arguments(text);
    let beside = Members::of(holder).0.into_iter();
    let beside = beside.filter(|m| !is_argument(action, is_flat, m) && m.key != "thought");
    let mut members: Vec<String> = beside
        .map(|m| format!("{}:{}", quote(&m.key), m.value.get()))
        .collect();
    members.extend(thought.map(|words| format!("\"thought\":{}", quote(words))));
    let new = Members::of(&text).0.into_iter();
    members.extend(new.map(|m| format!("{}:{}", quote(&m.key), m.value.get())));
    format!("{{{}}}", members.join(","))
}
