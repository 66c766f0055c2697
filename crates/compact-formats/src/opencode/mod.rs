//! opencode exports: the session's `info` and its `messages`, each an `info` with `parts`.
//!
//! A `tool` part holds a call and its result; an assistant's message may hold several steps. So a
//! message is read as segments: what a step said, what its tools answered, the next step. Snapshots,
//! patches and step markers are furniture and stay in their message. A user's message with a
//! `compaction` part and the summary that answers it are a boundary: the context begins with that
//! summary.

mod message;

#[cfg(test)]
mod tests;

use compact_core::view::View;
use compact_core::wire::{Placement, ReasoningRule, WireRules};
use serde::Deserialize;
use serde_json::value::RawValue;

use self::message::{OpenCodeMessages, is_compaction, is_summary, model};
use crate::error::FormatError;
use crate::json::{At, Members, lenient};
use crate::list;
use crate::segment::{self, Segmented};
use crate::source::{self, Reading};
use crate::wire::{Page, Wire};
use crate::{Document, Scope};

static RULES: WireRules = WireRules {
    name: "opencode",
    placements: &[Placement::UserMessage],
    // The model behind the client may be any; the strictest one binds reasoning to its prefix.
    // The agent resumes with a new request, which ends a running tool loop.
    reasoning: ReasoningRule::StripAfterEdit,
    opens_with_user: true,
    ..WireRules::LENIENT
};

pub(crate) struct OpenCode;

#[derive(Deserialize)]
struct Export<'a> {
    #[serde(borrow, default)]
    info: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<&'a RawValue>,
}

impl Wire for OpenCode {
    fn rules(&self) -> &'static WireRules {
        &RULES
    }

    fn read(&self, source: &[u8], scope: Scope) -> Result<Reading, FormatError> {
        let start = source::start(source);
        let text = source::text(source, start..source.len())?;
        let at = At {
            source,
            offset: start,
        };
        if !text.trim_ascii_start().starts_with('{') {
            return Err(at.missing("messages", "in an object"));
        }
        let export: Export<'_> = at.read(text)?;
        let messages = export
            .messages
            .ok_or_else(|| at.missing("messages", "a list"))?;
        let (elements, layout) = list::elements(source, text, messages, "messages")?;
        let mut reading = Reading::new(layout);
        let info = Members::of(export.info.map_or("", RawValue::get));
        reading.session_id = lenient(info.get("id")).map(String::from);
        let raws: Vec<&RawValue> = elements.iter().map(|(raw, _)| *raw).collect();
        let live = if scope == Scope::Live {
            live_from(&raws)
        } else {
            0
        };
        for (raw, place) in elements.into_iter().skip(live) {
            let at = At {
                source,
                offset: place.span.start,
            };
            if let Some(message) = OpenCodeMessages.message(at, raw.get())? {
                reading.model = model(raw.get()).or(reading.model.take());
                reading.drafts.extend(segment::drafts(message, &place));
            }
        }
        Ok(reading)
    }

    fn emit(&self, page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
        segment::emit(&OpenCodeMessages, page, view)
    }

    fn extend(
        &self,
        first: &Document,
        later: &Page<'_>,
        from: usize,
    ) -> Result<Vec<u8>, FormatError> {
        segment::extend(first, later, from)
    }
}

/// The message with which the context begins: the summary of the last compaction that has one.
fn live_from(messages: &[&RawValue]) -> usize {
    let boundary = messages.windows(2).rposition(|pair| match pair {
        [asked, told] => is_compaction(asked.get()) && is_summary(told.get()),
        _ => false,
    });
    boundary.map_or(0, |at| at + 1)
}
