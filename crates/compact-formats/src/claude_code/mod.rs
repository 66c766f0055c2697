//! Claude Code sessions: one JSON line per event, chained by `parentUuid`.
//!
//! One message of the API is spread over several lines with one `message.id`; those lines are
//! entries of one group. `isSidechain` lines are other contexts, `toolUseResult` repeats the result
//! beside it, and lines that are no message (snapshots, hooks, durations) are furniture.
//!
//! The order of lines is the order of the conversation. Parallel tool calls fork the chain without
//! leaving it, so `parentUuid` is followed for one purpose only: a prompt whose parent stands
//! before another prompt rewinds to it, and the branch between the two is not in any context.

mod line;
mod read;
mod write;

#[cfg(test)]
mod tests;

use compact_core::view::View;
use compact_core::wire::{Placement, ReasoningRule, WireRules};

pub(crate) use self::line::is_injected;
use crate::error::FormatError;
use crate::source::Reading;
use crate::wire::{Page, Wire};
use crate::{Document, Scope, Stamp};

static RULES: WireRules = WireRules {
    name: "claude-code",
    placements: &[Placement::UserMessage],
    // The agent resumes with a new request, which ends a running tool loop.
    reasoning: ReasoningRule::StripAfterEdit,
    opens_with_user: true,
    ..WireRules::LENIENT
};

pub(crate) struct ClaudeCode;

impl Wire for ClaudeCode {
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
