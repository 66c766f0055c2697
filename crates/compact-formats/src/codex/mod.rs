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

use compact_core::view::View;
use compact_core::wire::{Placement, WireRules};

use crate::error::FormatError;
use crate::source::Reading;
use crate::wire::{Page, Wire};
use crate::{Document, Scope, Stamp};

static RULES: WireRules = WireRules {
    name: "codex",
    placements: &[Placement::UserMessage],
    ..WireRules::LENIENT
};

pub(crate) struct Codex;

impl Wire for Codex {
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
