//! Gemini: a `generateContent` request body with `contents` and `systemInstruction`, or the list.
//!
//! A content is one entry, except that a person's words after function responses are one by
//! themselves. Calls need no ids on this wire: those without are paired with their responses by
//! name and order. Thought signatures stay on the part that carries them, and what the engine adds
//! is signed with the value that the provider takes in place of one. Names may be written in
//! camel or snake case; new parts are written in camel case.

mod part;
mod read;
mod write;

#[cfg(test)]
mod tests;

use compact_core::wire::{Placement, WireRules};
use serde_json::json;

use crate::body;
use crate::convert::BlankSource;
use crate::detect::{FormatClues, FormatSigns};
use crate::wire::Wire;

const BODY: WireRules = WireRules {
    name: "gemini",
    placements: &[
        Placement::UserMessage,
        Placement::NewSessionPrompt,
        Placement::SystemSuffix,
    ],
    alternation: true,
    opens_with_user: true,
    ends_with_user: true,
    ..WireRules::LENIENT
};

static RULES: WireRules = BODY;

/// A bare list, or a body whose instructions are cached: there is no place to write them.
static WITHOUT_INSTRUCTIONS: WireRules = WireRules {
    name: "gemini-contents",
    placements: &[Placement::UserMessage, Placement::NewSessionPrompt],
    ..BODY
};

pub(crate) static WIRE: Wire = Wire::new(
    &RULES,
    |source, _| read::read(source),
    write::emit,
    |first, later, from| body::extend(&write::GeminiDialect, first, later, from),
    |head| BlankSource::from_value(json!({"model": head.model, "contents": []})),
)
.sent_to_provider()
.with_elements(read::read_elements)
.recognised_by(FormatSigns {
    document: is_request,
    ..FormatSigns::NONE
})
.with_more_rules(&[&WITHOUT_INSTRUCTIONS]);

/// Returns true for a request of this provider.
fn is_request(clues: &FormatClues) -> bool {
    clues.is_request_with("contents")
}
