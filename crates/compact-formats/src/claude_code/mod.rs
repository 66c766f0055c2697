//! Claude Code sessions: one JSON line per event, chained by `parentUuid`.
//!
//! One message of the API is spread over several lines with one `message.id`; those lines are
//! entries of one group. `isSidechain` lines are other contexts, `toolUseResult` repeats the result
//! beside it, and lines that are no message (snapshots, hooks, durations) are furniture.
//!
//! The order of lines is the order of the conversation. Parallel tool calls fork the chain without
//! leaving it, so `parentUuid` is followed for rewinds only: a prompt whose parent stands
//! before another prompt rewinds to it, and the branch between the two is not in any context. One whose
//! parents lead past a boundary leaves what hangs on that behind.

mod line;
mod link;
mod read;
mod stretch;
mod write;

#[cfg(test)]
mod tests;

use compact_core::wire::{Placement, ReasoningRule, WireRules};
use serde_json::json;

pub(crate) use self::link::read_links;
use crate::convert::{BlankSource, SessionHead};
use crate::detect::{FormatClues, FormatSigns};
use crate::wire::Wire;

static RULES: WireRules = WireRules {
    name: "claude-code",
    placements: &[Placement::UserMessage],
    // The agent resumes with a new request, which ends a running tool loop.
    reasoning: ReasoningRule::StripAfterEdit,
    opens_with_user: true,
    ..WireRules::LENIENT
};

pub(crate) static WIRE: Wire =
    Wire::new(&RULES, read::read, write::emit, write::extend, blank_line)
        .with_boundary(write::append)
        .recognised_by(FormatSigns {
            line: is_line,
            ..FormatSigns::NONE
        });

fn blank_line(head: &SessionHead<'_>) -> BlankSource {
    let line = json!({
        "uuid": "", "sessionId": head.session, "timestamp": head.moment, "cwd": head.folder,
    });
    BlankSource::LineSample(format!("{line}\n"))
}

/// Returns true for what only this agent writes on its lines.
fn is_line(clues: &FormatClues) -> bool {
    let keys = ["parentUuid", "sessionId", "leafUuid", "snapshot"];
    let is_other = clues.has_member("role") || clues.has_member("payload");
    !is_other && keys.iter().any(|key| clues.has_member(key))
}
