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

use compact_core::view::View;
use compact_core::wire::{Placement, ReasoningRule, WireRules};

use crate::error::FormatError;
use crate::source::Reading;
use crate::wire::{Page, Wire};
use crate::{Document, Scope, Stamp};

static RULES: WireRules = WireRules {
    name: "copilot",
    placements: &[Placement::UserMessage],
    // The model behind the client may be any; the strictest one binds reasoning to its prefix.
    // The agent resumes with a new request, which ends a running tool loop.
    reasoning: ReasoningRule::StripAfterEdit,
    opens_with_user: true,
    ..WireRules::LENIENT
};

pub(crate) struct Copilot;

impl Wire for Copilot {
    fn rules(&self) -> &'static WireRules {
        &RULES
    }

    fn read(&self, source: &[u8], scope: Scope) -> Result<Reading, FormatError> {
        read::read(source, scope)
    }

    fn emit(&self, page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
        write::emit(page, view)
    }

    fn append(
        &self,
        page: &Page<'_>,
        view: &View,
        stamp: &Stamp<'_>,
    ) -> Result<Vec<u8>, FormatError> {
        write::append(page, view, stamp)
    }

    fn extend(
        &self,
        first: &Document,
        later: &Page<'_>,
        from: usize,
    ) -> Result<Vec<u8>, FormatError> {
        write::extend(first, later, from)
    }
}
