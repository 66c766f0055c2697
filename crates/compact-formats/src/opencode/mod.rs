//! opencode exports: the session's `info` and its `messages`, each an `info` with `parts`.
//!
//! A `tool` part holds a call and its result; an assistant's message may hold several steps. So a
//! message is read as segments: what a step said, what its tools answered, the next step. Snapshots,
//! patches and step markers are furniture and stay in their message. A user's message with a
//! `compaction` part and the summary that answers it are a boundary: the context begins with that
//! summary.

mod message;

#[cfg(test)]
mod tests;

use compact_core::wire::{Placement, ReasoningRule, WireRules};
use serde_json::json;

use self::message::OpenCodeWire;
use crate::convert::BlankSource;
use crate::detect::{FormatClues, FormatSigns};
use crate::segment;
use crate::wire::Wire;

static RULES: WireRules = WireRules {
    name: "opencode",
    placements: &[Placement::UserMessage],
    // The model behind the client may be any; the strictest one binds reasoning to its prefix.
    // The agent resumes with a new request, which ends a running tool loop.
    reasoning: ReasoningRule::StripAfterEdit,
    opens_with_user: true,
    ..WireRules::LENIENT
};

pub(crate) static WIRE: Wire = Wire::new(
    &RULES,
    |source, scope| segment::read(&OpenCodeWire, source, scope),
    |page, view| segment::emit(&OpenCodeWire, page, view),
    segment::extend,
    |head| {
        let info = json!({"id": head.session, "title": "", "version": "", "time": {"created": 0, "updated": 0}});
        BlankSource::from_value(json!({"info": info, "messages": []}))
    },
)
.recognised_by(FormatSigns {
    document: is_export,
    ..FormatSigns::NONE
});

/// Returns true for an export: its messages are no chat.
fn is_export(clues: &FormatClues) -> bool {
    let is_other = clues.has_member("role") || clues.has_member("projectHash");
    let has_both = clues.has_member("messages") && clues.has_member("info");
    has_both && !is_other && !clues.opens_list_with("messages", "role")
}
