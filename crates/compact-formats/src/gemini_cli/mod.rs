//! Gemini CLI chats: `~/.gemini/tmp/*/chats/session-*.json`.
//!
//! A `gemini` message holds thoughts, words and tool calls together with their results, so it is two
//! entries: what the model said, and what its tools answered. Messages of other types (`info`,
//! `warning`, `error`) are for the person at the terminal and in no context.

mod message;

#[cfg(test)]
mod tests;

use compact_core::view::View;
use compact_core::wire::{Placement, WireRules};
use serde::Deserialize;
use serde_json::value::RawValue;

use self::message::GeminiMessages;
pub(crate) use self::message::kind_of_words;
use crate::error::FormatError;
use crate::json::{At, Members, lenient};
use crate::list;
use crate::segment::{self, Segmented};
use crate::source::{self, Reading};
use crate::wire::{Page, Wire};
use crate::{Document, Scope};

static RULES: WireRules = WireRules {
    name: "gemini-cli",
    placements: &[Placement::UserMessage],
    opens_with_user: true,
    ..WireRules::LENIENT
};

pub(crate) struct GeminiCli;

#[derive(Deserialize)]
struct Chat<'a> {
    #[serde(borrow, default, rename = "sessionId")]
    session_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<&'a RawValue>,
}

impl Wire for GeminiCli {
    fn rules(&self) -> &'static WireRules {
        &RULES
    }

    fn read(&self, source: &[u8], _scope: Scope) -> Result<Reading, FormatError> {
        let start = source::start(source);
        let text = source::text(source, start..source.len())?;
        let at = At {
            source,
            offset: start,
        };
        if !text.trim_ascii_start().starts_with('{') {
            return Err(at.missing("messages", "in an object"));
        }
        let chat: Chat<'_> = at.read(text)?;
        let messages = chat
            .messages
            .ok_or_else(|| at.missing("messages", "a list"))?;
        let (elements, layout) = list::elements(source, text, messages, "messages")?;
        let mut reading = Reading::new(layout);
        reading.session_id = lenient(chat.session_id).map(String::from);
        for (raw, place) in elements {
            let at = At {
                source,
                offset: place.span.start,
            };
            if let Some(message) = GeminiMessages.message(at, raw.get())? {
                let model = lenient(Members::of(raw.get()).get("model")).map(String::from);
                reading.model = model.or(reading.model.take());
                reading.drafts.extend(segment::drafts(message, &place));
            }
        }
        Ok(reading)
    }

    fn emit(&self, page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
        segment::emit(&GeminiMessages, page, view)
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
