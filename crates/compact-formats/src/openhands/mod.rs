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

use compact_core::message::{Block, EntryKind, EntryMeta, Role};
use compact_core::wire::{Placement, WireRules};
use serde::Deserialize;
use serde_json::value::RawValue;

use self::event::{EventContent, OpenHandsEvent};
use crate::TranscriptScope;
use crate::body;
use crate::convert::BlankSource;
use crate::detect::{FormatClues, FormatSigns};
use crate::edit;
use crate::error::FormatError;
use crate::json::{ItemContext, is_list, is_object, span_in, string_value};
use crate::list;
use crate::segment;
use crate::source::{EntryDraft, EntryPlace, TranscriptReading};
use crate::wire::Wire;

static RULES: WireRules = WireRules {
    name: "openhands",
    placements: &[Placement::UserMessage],
    ..WireRules::LENIENT
};

pub(crate) static WIRE: Wire = Wire::new(&RULES, read, write::emit, segment::extend, |_| {
    BlankSource::Head("[]".to_owned())
})
.recognised_by(FormatSigns {
    document: is_run,
    element: FormatClues::is_event,
    ..FormatSigns::NONE
});

/// Returns true for a run whose history is no chat but a list of events.
fn is_run(clues: &FormatClues) -> bool {
    let is_chat = clues.opens_list_with("history", "role") || clues.has_member("trajectory");
    clues.is_run_with_history() && !is_chat
}

#[derive(Deserialize)]
struct OpenHandsRun<'a> {
    #[serde(borrow, default)]
    history: Option<&'a RawValue>,
    #[serde(borrow, default)]
    instance_id: Option<&'a RawValue>,
}

fn read(source: &[u8], scope: TranscriptScope) -> Result<TranscriptReading, FormatError> {
    let (text, at) = body::read_text(source)?;
    let mut session_id = None;
    let (events, field) = if text.trim_ascii_start().starts_with('[') {
        (at.read(text)?, "the document")
    } else {
        let run: OpenHandsRun<'_> = at.read(text)?;
        session_id = string_value(run.instance_id).map(String::from);
        let history = run
            .history
            .ok_or_else(|| at.missing_field("history", "a list"))?;
        (history, "history")
    };
    let (elements, layout) = list::find_elements(source, text, events, field)?;
    let mut reader = OpenHandsReader::new(source, scope, TranscriptReading::new(layout));
    for (raw, place) in elements {
        reader.read_element(raw, &place)?;
    }
    reader.reading.session_id = session_id;
    Ok(reader.reading)
}

struct OpenHandsReader<'s> {
    source: &'s [u8],
    scope: TranscriptScope,
    reading: TranscriptReading,
    /// Calls that wait for their observation, by the id of their event.
    open: BTreeMap<String, String>,
    /// The latest call, which an observation without a cause answers.
    latest: Option<String>,
}

impl<'s> OpenHandsReader<'s> {
    fn new(source: &'s [u8], scope: TranscriptScope, reading: TranscriptReading) -> Self {
        OpenHandsReader {
            source,
            scope,
            reading,
            open: BTreeMap::new(),
            latest: None,
        }
    }

    /// Reads an event, or events that belong together.
    fn read_element(&mut self, raw: &RawValue, place: &EntryPlace) -> Result<(), FormatError> {
        let at = ItemContext {
            source: self.source,
            offset: place.span.start,
        };
        if !is_list(raw) {
            return self.read_event(at, raw, place.clone());
        }
        for (part, event) in at.read_list("history[]", raw)?.into_iter().enumerate() {
            let span = span_in(raw.get(), event.get());
            let start = place.span.start;
            let place = EntryPlace {
                line: place.line,
                span: start + span.start..start + span.end,
                part: Some(part),
            };
            self.read_event(at, event, place)?;
        }
        Ok(())
    }

    fn read_event(
        &mut self,
        at: ItemContext<'_>,
        raw: &RawValue,
        place: EntryPlace,
    ) -> Result<(), FormatError> {
        if !is_object(raw) {
            return Err(at.wrong_type("history[]", "an object or a list of objects", raw));
        }
        let event: OpenHandsEvent<'_> = at.read(raw.get())?;
        if let Some(forgotten) = event.forgotten_ids(at)? {
            return self.apply_condensation(at, &event, &forgotten, place);
        }
        let Some(mut said) = event.read_content(at, raw.get())? else {
            return Ok(());
        };
        self.pair_call(&event, &mut said, &place);
        if said.role == Role::System {
            self.reading.tools = event.tools().or(self.reading.tools.take());
        }
        self.reading.model = event.model().or(self.reading.model.take());
        self.push_entry(&event, said, place);
        Ok(())
    }

    fn push_entry(
        &mut self,
        event: &OpenHandsEvent<'_>,
        said: EventContent<'_>,
        place: EntryPlace,
    ) {
        let is_reply = said.role == Role::Assistant;
        self.reading.drafts.push(EntryDraft {
            id: event.id(),
            role: said.role,
            blocks: edit::into_blocks(said.pieces),
            meta: EntryMeta {
                kind: said.kind,
                group: event.response_id().filter(|_| is_reply),
                usage: event.usage().filter(|_| is_reply),
                ..EntryMeta::default()
            },
            place,
        });
    }

    /// Names the call of an action, and finds the call of an observation. Without one, what was
    /// observed is injected text; without a source, the first words are the user's.
    fn pair_call(
        &mut self,
        event: &OpenHandsEvent<'_>,
        said: &mut EventContent<'_>,
        place: &EntryPlace,
    ) {
        let is_first = self.reading.drafts.iter().all(|d| d.role == Role::System);
        if event.is_message() && !event.has_source() && is_first {
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
    fn apply_condensation(
        &mut self,
        at: ItemContext<'_>,
        event: &OpenHandsEvent<'_>,
        forgotten: &HashSet<String>,
        place: EntryPlace,
    ) -> Result<(), FormatError> {
        if self.scope == TranscriptScope::Live {
            let stays =
                |draft: &EntryDraft| draft.id.as_ref().is_none_or(|id| !forgotten.contains(id));
            self.reading.drafts.retain(stays);
        }
        if let Some((said, offset)) = event.read_summary(at)? {
            self.push_entry(event, said, place);
            let last = self.reading.drafts.len() - 1;
            if self.scope == TranscriptScope::Live
                && let Some(offset) = offset.filter(|offset| *offset < last)
                && let Some(tail) = self.reading.drafts.get_mut(offset..)
            {
                tail.rotate_right(1);
            }
        }
        Ok(())
    }
}
