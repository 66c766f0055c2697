//! Anthropic messages: a request body with `system`, `tools` and `messages`, or the bare list.
//!
//! A message is one entry, with two exceptions. A user's message that carries tool results and then
//! a person's words is two, because the results belong to the exchange before and the words open a
//! turn. A compaction block is one by itself. Blocks of tools that the provider runs are opaque:
//! they stand or go with their message.
//!
//! Which reasoning survives an edit depends on the body: with manual thinking the running tool loop
//! must keep its own, otherwise all of it goes, unless the body asks the provider to drop it.

mod cache;
pub(crate) mod content;
mod read;
mod write;

#[cfg(test)]
mod tests;

use compact_core::wire::{InstructionRule, Placement, ReasoningRule, WireRules};
use serde_json::json;

use crate::body;
use crate::convert::BlankSource;
use crate::wire::Wire;

const BODY: WireRules = WireRules {
    name: "anthropic",
    placements: &[
        Placement::UserMessage,
        Placement::NewSessionPrompt,
        Placement::SystemSuffix,
    ],
    reasoning: ReasoningRule::StripAfterEdit,
    alternation: false,
    opens_with_user: true,
    ends_with_user: true,
    instructions: InstructionRule::AfterUser,
};

static RULES: WireRules = BODY;

static MANUAL_THINKING: WireRules = WireRules {
    name: "anthropic-manual-thinking",
    reasoning: ReasoningRule::StripOutsideLoop,
    ..BODY
};

static DROPS_UNBOUND: WireRules = WireRules {
    name: "anthropic-drop-block",
    reasoning: ReasoningRule::Keep,
    ..BODY
};

/// A list without its body: there is no system prompt to write into, and thinking may be manual.
static BARE: WireRules = WireRules {
    name: "anthropic-messages",
    placements: &[Placement::UserMessage, Placement::NewSessionPrompt],
    reasoning: ReasoningRule::StripOutsideLoop,
    ..BODY
};

/// Returns the rules with alternating roles, because Bedrock's Converse does not merge neighbours of one
/// role.
const fn with_alternation(name: &'static str, rules: &WireRules) -> WireRules {
    WireRules {
        name,
        alternation: true,
        ..*rules
    }
}

static STRICT: WireRules = with_alternation("anthropic-strict", &RULES);
static STRICT_MANUAL_THINKING: WireRules =
    with_alternation("anthropic-strict-manual-thinking", &MANUAL_THINKING);
static STRICT_DROPS_UNBOUND: WireRules =
    with_alternation("anthropic-strict-drop-block", &DROPS_UNBOUND);
static STRICT_BARE: WireRules = with_alternation("anthropic-strict-messages", &BARE);

pub(crate) static WIRE: Wire = Wire::new(
    &RULES,
    |source, _| read::read(source),
    write::emit,
    |first, later, from| body::extend(&write::AnthropicDialect, first, later, from),
    |head| {
        BlankSource::from_value(json!({"model": head.model, "max_tokens": 4096, "messages": []}))
    },
)
.sent_to_provider()
.with_elements(read::read_elements)
.with_strict_rules(&[
    (&RULES, &STRICT),
    (&MANUAL_THINKING, &STRICT_MANUAL_THINKING),
    (&DROPS_UNBOUND, &STRICT_DROPS_UNBOUND),
    (&BARE, &STRICT_BARE),
])
.with_more_rules(&[&MANUAL_THINKING, &DROPS_UNBOUND, &BARE]);
