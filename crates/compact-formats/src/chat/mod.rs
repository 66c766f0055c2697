//! OpenAI chat messages: a request body, a list, or one message per line.
//!
//! Plain `{role, content}` messages are the same wire without tools, so both share this module.

mod read;
mod write;

#[cfg(test)]
mod tests;

use compact_core::wire::{Placement, WireRules};
use serde_json::{Value, json};

pub(crate) use self::read::{read, read_elements};
pub(crate) use self::write::{emit, extend};
use crate::convert::{BlankSource, SessionHead};
use crate::detect::{FormatClues, FormatSigns};
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

const fn build_wire(rules: &'static WireRules, blank: fn(&SessionHead<'_>) -> BlankSource) -> Wire {
    Wire::new(
        rules,
        |source, _| read(source),
        |page, view| emit(page, view, &|message| message),
        extend,
        blank,
    )
    .with_strict_rules(STRICT)
    .with_elements(read_elements)
}

pub(crate) static OPENAI: Wire = build_wire(&OPENAI_RULES, blank_body).sent_to_provider();

pub(crate) static PLAIN_LIST: Wire =
    build_wire(&PLAIN_RULES, |_| BlankSource::Head("[]".to_owned())).sent_to_provider();

pub(crate) static PLAIN_LINES: Wire =
    build_wire(&PLAIN_RULES, |_| BlankSource::LineSample("\n".to_owned())).sent_to_provider();

pub(crate) static TAU_BENCH: Wire = build_wire(&OPENAI_RULES, |_| {
    BlankSource::from_value(json!({"traj": []}))
})
.recognised_by(FormatSigns {
    document: is_run,
    ..FormatSigns::NONE
});

/// Returns true for a run of tau-bench.
fn is_run(clues: &FormatClues) -> bool {
    let is_other = ["role", "messages", "history"];
    clues.has_member("traj") && !is_other.iter().any(|key| clues.has_member(key))
}

/// Returns a request body; tool schemas go along when they are of this provider's shape.
fn blank_body(head: &SessionHead<'_>) -> BlankSource {
    let mut body = json!({"model": head.model, "messages": []});
    let tools = head.conversation.tools.as_deref();
    let tools = tools.and_then(|tools| serde_json::from_str::<Value>(tools).ok());
    if let Some(tools) = tools.filter(|tools| tools.pointer("/0/function").is_some())
        && let Some(members) = body.as_object_mut()
    {
        members.insert("tools".to_owned(), tools);
    }
    BlankSource::from_value(body)
}
