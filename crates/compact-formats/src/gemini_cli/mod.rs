//! Gemini CLI chats: `~/.gemini/tmp/*/chats/session-*.json`.
//!
//! A `gemini` message holds thoughts, words and tool calls together with their results, so it is two
//! entries: what the model said, and what its tools answered. Messages of other types (`info`,
//! `warning`, `error`) are for the person at the terminal and in no context.

mod message;

#[cfg(test)]
mod tests;

use compact_core::wire::{Placement, WireRules};

use self::message::GeminiMessages;
pub(crate) use self::message::kind_of_words;
use crate::segment;
use crate::wire::Wire;

static RULES: WireRules = WireRules {
    name: "gemini-cli",
    placements: &[Placement::UserMessage],
    opens_with_user: true,
    ..WireRules::LENIENT
};

pub(crate) static WIRE: Wire = Wire::new(
    &RULES,
    |source, scope| segment::read(&GeminiMessages, source, scope),
    |page, view| segment::emit(&GeminiMessages, page, view),
    segment::extend,
);
