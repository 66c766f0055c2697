//! OpenAI Responses: a request body with `instructions` and `input`, or the bare list of items.
//!
//! An item is one entry. Items that the model made in one response are a group: reasoning without
//! the item that followed it is refused, and so is an item by its id without the reasoning that it
//! came with. Where a group is no longer whole, its reasoning goes and with it the ids of the rest.
//!
//! A body that leaves its history on the server cannot be rewritten from here, and says so.

pub(crate) mod item;
mod read;
mod write;

#[cfg(test)]
mod tests;

use compact_core::wire::{Placement, ReasoningRule, WireRules};
use serde_json::json;

use crate::convert::BlankSource;
use crate::detect::{FormatClues, FormatSigns};
use crate::wire::Wire;

const BODY: WireRules = WireRules {
    name: "openai-responses",
    placements: &[
        Placement::UserMessage,
        Placement::NewSessionPrompt,
        Placement::SystemSuffix,
    ],
    ..WireRules::LENIENT
};

static RULES: WireRules = BODY;

/// Nothing is stored and reasoning came without its content: the provider would not find it.
static UNSTORED: WireRules = WireRules {
    name: "openai-responses-unstored",
    reasoning: ReasoningRule::StripAfterEdit,
    ..BODY
};

pub(crate) static WIRE: Wire = Wire::new(
    &RULES,
    |source, _| read::read(source),
    write::emit,
    write::extend,
    |head| BlankSource::from_value(json!({"model": head.model, "input": []})),
)
.sent_to_provider()
.with_elements(read::read_elements)
.recognised_by(FormatSigns {
    document: is_request,
    ..FormatSigns::NONE
})
.with_more_rules(&[&UNSTORED]);

/// Returns true for a request of this provider.
fn is_request(clues: &FormatClues) -> bool {
    clues.is_request_with("input") && !clues.has_member("contents")
}
