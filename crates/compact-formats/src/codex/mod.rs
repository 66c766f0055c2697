//! Codex rollouts: one JSON line per event, each with a timestamp, a type and a payload.
//!
//! `response_item` payloads are items of the Responses API, one entry each; `session_meta` carries
//! the base instructions; a `compacted` line replaces the history before it with its own list.
//! `event_msg` and `turn_context` lines are furniture, but token counts among them are read.
//!
//! A rollout does not say which items came from one response. A run of reasoning, messages and calls
//! that no output and no token count interrupts is taken as one, and is one group.

mod read;
mod write;

#[cfg(test)]
mod tests;

use compact_core::wire::{Placement, WireRules};
use serde_json::json;

use crate::convert::BlankSource;
use crate::detect::{FormatClues, FormatSigns};
use crate::wire::Wire;

static RULES: WireRules = WireRules {
    name: "codex",
    placements: &[Placement::UserMessage],
    ..WireRules::LENIENT
};

pub(crate) static WIRE: Wire = Wire::new(&RULES, read::read, write::emit, write::extend, |head| {
    BlankSource::from_line(json!({
        "timestamp": head.moment, "type": "session_meta",
        "payload": {"id": head.session, "timestamp": head.moment, "cwd": head.folder},
    }))
})
.with_boundary(write::append)
.recognised_by(FormatSigns {
    line: is_line,
    ..FormatSigns::NONE
});

/// Returns true for a line of one of this agent's kinds.
fn is_line(clues: &FormatClues) -> bool {
    let kinds = [
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
    ];
    clues.has_member("payload") && kinds.contains(&clues.kind())
}
