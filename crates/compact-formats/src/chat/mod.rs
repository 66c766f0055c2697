//! OpenAI chat messages: a request body, a list, or one message per line.
//!
//! Plain `{role, content}` messages are the same wire without tools, so both share this module.

mod read;
mod write;

#[cfg(test)]
mod tests;

use compact_core::wire::{Placement, WireRules};

pub(crate) use self::read::read;
pub(crate) use self::write::{emit, extend};
use crate::wire::{StrictPair, Wire};

pub(crate) const PLACEMENTS: &[Placement] = &[
    Placement::AssistantMessage,
    Placement::UserMessage,
    Placement::SystemSuffix,
];

static OPENAI_RULES: WireRules = WireRules {
    name: "openai-chat",
    placements: PLACEMENTS,
    ..WireRules::LENIENT
};

static PLAIN_RULES: WireRules = WireRules {
    name: "messages",
    placements: PLACEMENTS,
    ..WireRules::LENIENT
};

/// Mistral and the chat templates of local servers.
static STRICT_RULES: WireRules = WireRules {
    name: "openai-chat-strict",
    placements: &[Placement::UserMessage, Placement::SystemSuffix],
    alternation: true,
    opens_with_user: true,
    ends_with_user: true,
    ..WireRules::LENIENT
};

const STRICT: &[StrictPair] = &[
    (&OPENAI_RULES, &STRICT_RULES),
    (&PLAIN_RULES, &STRICT_RULES),
];

const fn build_wire(rules: &'static WireRules) -> Wire {
    Wire::new(
        rules,
        |source, _| read(source),
        |page, view| emit(page, view, &|message| message),
        extend,
    )
    .with_strict_rules(STRICT)
}

pub(crate) static OPENAI: Wire = build_wire(&OPENAI_RULES);
pub(crate) static PLAIN: Wire = build_wire(&PLAIN_RULES);
