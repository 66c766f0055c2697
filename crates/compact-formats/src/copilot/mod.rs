//! Copilot CLI sessions: `~/.copilot/session-state/*/events.jsonl`, one event per line.
//!
//! Messages and completed tool executions are entries; hooks, permissions, turns and executions that
//! start are furniture, most of which repeats what a message says. `session.compaction_complete` is
//! a boundary: the system's words stay, its summary follows, then what came after. Events of
//! sub-agents, which name the call that runs them, are other contexts.

mod event;
mod read;
mod write;

#[cfg(test)]
mod tests;

use compact_core::wire::{Placement, ReasoningRule, WireRules};
use serde_json::json;

use self::write::CopilotAgent;
use crate::chain;
use crate::convert::BlankSource;
use crate::detect::{FormatClues, FormatSigns};
use crate::wire::Wire;

static RULES: WireRules = WireRules {
    name: "copilot",
    placements: &[Placement::UserMessage],
    // The model behind the client may be any; the strictest one binds reasoning to its prefix.
    // The agent resumes with a new request, which ends a running tool loop.
    reasoning: ReasoningRule::StripAfterEdit,
    opens_with_user: true,
    ..WireRules::LENIENT
};

pub(crate) static WIRE: Wire = Wire::new(
    &RULES,
    read::read,
    |page, view| chain::write::emit(&CopilotAgent, page, view),
    chain::extend,
    |head| {
        BlankSource::from_line(json!({
            "type": "session.start", "data": {"sessionId": head.session, "version": 1},
            "id": head.session, "timestamp": head.moment, "parentId": null,
        }))
    },
)
.with_boundary(|page, view, stamp| chain::write::append(&CopilotAgent, page, view, stamp))
.recognised_by(FormatSigns {
    line: is_event,
    ..FormatSigns::NONE
});

/// Returns true for an event: its kind is a name with a dot.
fn is_event(clues: &FormatClues) -> bool {
    clues.has_member("data") && clues.kind().contains('.')
}
