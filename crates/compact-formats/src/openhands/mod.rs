//! OpenHands histories: a list of actions and observations, alone or as `history` of a run.
//!
//! An action of the agent is a call, its thought the words before it; the observation that it caused
//! is the result. Earlier versions write each action with its observation as a pair, and the
//! arguments beside the action instead of in `args`; both are read. A `condensation` is a boundary:
//! the events it forgets are not in the context, its summary is. State changes are furniture.

mod event;
mod write;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use compact_core::message::{Block, EntryKind, Meta, Role};
use compact_core::wire::{Placement, WireRules};
use serde::Deserialize;
use serde_json::value::RawValue;

use self::event::{Event, Said};
use crate::Scope;
use crate::body;
use crate::edit;
use crate::error::FormatError;
use crate::json::{At, is_list, is_object, lenient, span_in};
use crate::list;
use crate::segment;
use crate::source::{Draft, Place, Reading};
use crate::wire::Wire;

static RULES: WireRules = WireRules {
    name: "openhands",
    placements: &[Placement::UserMessage],
    ..WireRules::LENIENT
};

pub(crate) static WIRE: Wire = Wire::new(&RULES, read, write::emit, segment::extend);

#[derive(Deserialize)]
struct Run<'a> {
    #[serde(borrow, default)]
    history: Option<&'a RawValue>,
    #[serde(borrow, default)]
    instance_id: Option<&'a RawValue>,
}

fn read(source: &[u8], scope: Scope) -> Result<Reading, FormatError> {
    let (text, at) = body::text(source)?;
    let mut session_id = None;
    let (events, field) = if text.trim_ascii_start().starts_with('[') {
        (at.read(text)?, "the document")
    } else {
        let run: Run<'_> = at.read(text)?;
        session_id = lenient(run.instance_id).map(String::from);
        let history = run.history.ok_or_else(|| at.missing("history", "a list"))?;
        (history, "history")
    };
    let (elements, layout) = list::elements(source, text, events, field)?;
    let mut reader = Reader::new(source, scope, Reading::new(layout));
    for (raw, place) in elements {
        reader.element(raw, &place)?;
    }
    reader.reading.session_id = session_id;
    Ok(reader.reading)
}

struct Reader<'s> {
    source: &'s [u8],
    scope: Scope,
    reading: Reading,
    /// Calls that wait for their observation, by the id of their event.
    open: BTreeMap<String, String>,
    /// The latest call, which an observation without a cause answers.
    latest: Option<String>,
}

impl<'s> Reader<'s> {
    fn new(source: &'s [u8], scope: Scope, reading: Reading) -> Self {
        Reader {
            source,
            scope,
            reading,
            open: BTreeMap::new(),
            latest: None,
        }
    }

    /// An event, or events that belong together.
    fn element(&mut self, raw: &RawValue, place: &Place) -> Result<(), FormatError> {
        let at = At {
            source: self.source,
            offset: place.span.start,
        };
        if !is_list(raw) {
            return self.event(at, raw, place.clone());
        }
        for (part, event) in at.list("history[]", raw)?.into_iter().enumerate() {
            let span = span_in(raw.get(), event.get());
            let start = place.span.start;
            let place = Place {
                line: place.line,
                span: start + span.start..start + span.end,
                part: Some(part),
            };
            self.event(at, event, place)?;
        }
        Ok(())
    }

    fn event(&mut self, at: At<'_>, raw: &RawValue, place: Place) -> Result<(), FormatError> {
        if !is_object(raw) {
            return Err(at.field("history[]", "an object or a list of objects", raw));
        }
        let event: Event<'_> = at.read(raw.get())?;
        if let Some(forgotten) = event.forgotten(at)? {
            return self.condense(at, &event, &forgotten, place);
        }
        let Some(mut said) = event.said(at, raw.get())? else {
            return Ok(());
        };
        self.pair(&event, &mut said, &place);
        if said.role == Role::System {
            self.reading.tools = event.tools().or(self.reading.tools.take());
        }
        self.reading.model = event.model().or(self.reading.model.take());
        self.push(&event, said, place);
        Ok(())
    }

    fn push(&mut self, event: &Event<'_>, said: Said<'_>, place: Place) {
        let is_reply = said.role == Role::Assistant;
        self.reading.drafts.push(Draft {
            id: event.id(),
            role: said.role,
            blocks: edit::blocks(said.pieces),
            meta: Meta {
                kind: said.kind,
                group: event.response().filter(|_| is_reply),
                usage: event.usage().filter(|_| is_reply),
                ..Meta::default()
            },
            place,
        });
    }

    /// Names the call of an action, and finds the call of an observation. Without one, what was
    /// observed is injected text; without a source, the first words are the user's.
    fn pair(&mut self, event: &Event<'_>, said: &mut Said<'_>, place: &Place) {
        let is_first = self.reading.drafts.iter().all(|d| d.role == Role::System);
        if event.is_words() && !event.has_source() && is_first {
            said.role = Role::User;
        }
        let event_id = event.id().unwrap_or_default();
        for piece in &mut said.pieces {
            match &mut piece.block {
                Block::ToolCall { id, .. } => {
                    if id.is_empty() {
                        *id = format!("action-{}", place.name());
                    }
                    self.open.insert(event_id.clone(), id.clone());
                    self.latest = Some(id.clone());
                }
                Block::ToolResult { call, content, .. } => {
                    let caused = event.cause().and_then(|cause| self.open.remove(&cause));
                    let known = (!call.is_empty()).then(|| call.clone());
                    // Only events without numbers rely on their order.
                    let latest = || self.latest.take().filter(|_| event.id().is_none());
                    match known.or(caused).or_else(latest) {
                        Some(id) => {
                            self.latest.take_if(|latest| *latest == id);
                            *call = id;
                        }
                        None => {
                            said.role = Role::User;
                            said.kind = EntryKind::Injected;
                            piece.block = Block::Text(std::mem::take(content));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Forgets events and puts the summary where the condensation says.
    fn condense(
        &mut self,
        at: At<'_>,
        event: &Event<'_>,
        forgotten: &HashSet<String>,
        place: Place,
    ) -> Result<(), FormatError> {
        if self.scope == Scope::Live {
            let stays = |draft: &Draft| draft.id.as_ref().is_none_or(|id| !forgotten.contains(id));
            self.reading.drafts.retain(stays);
        }
        if let Some((said, offset)) = event.summary(at)? {
            self.push(event, said, place);
            let last = self.reading.drafts.len() - 1;
            if self.scope == Scope::Live
                && let Some(offset) = offset.filter(|offset| *offset < last)
                && let Some(tail) = self.reading.drafts.get_mut(offset..)
            {
                tail.rotate_right(1);
            }
        }
        Ok(())
    }
}
