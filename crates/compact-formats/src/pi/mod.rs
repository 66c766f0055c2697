//! pi sessions: one JSON line per event, a tree by `parentId` whose last line is where it stands.
//!
//! The context is the way from the root to the last line; other branches were left. A `compaction`
//! line is a boundary: its summary comes first, then what it kept of the lines before it, then what
//! follows. Files of the first version have no ids and are one branch. Changes of the model or of
//! the thinking level are furniture. Replies that were aborted or failed are never sent again.

mod line;
mod read;
mod write;

#[cfg(test)]
mod tests;

use compact_core::wire::{Placement, ReasoningRule, WireRules};
use serde_json::json;

use self::write::PiAgent;
use crate::chain;
use crate::convert::BlankSource;
use crate::detect::{FormatClues, FormatSigns};
use crate::wire::Wire;

static RULES: WireRules = WireRules {
    name: "pi",
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
    |page, view| chain::write::emit(&PiAgent, page, view),
    chain::extend,
    |head| {
        BlankSource::from_line(json!({
            "type": "session", "version": 3, "id": head.session, "timestamp": head.moment,
            "cwd": head.folder,
        }))
    },
)
.with_boundary(|page, view, stamp| chain::write::append(&PiAgent, page, view, stamp))
.recognised_by(FormatSigns {
    line: is_line,
    ..FormatSigns::NONE
});

/// Returns true for the head of a session or a message in it.
fn is_line(clues: &FormatClues) -> bool {
    let is_head = clues.kind() == "session" && clues.has_member("timestamp");
    let is_other = ["role", "uuid", "payload"];
    (is_head || clues.kind() == "message") && !is_other.iter().any(|key| clues.has_member(key))
}
