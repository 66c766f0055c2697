//! OpenAI Responses: a request body with `instructions` and `input`, or the bare list of items.
//!
//! An item is one entry. Items that the model made in one response are a group: reasoning without
//! the item that followed it is refused, and so is an item by its id without the reasoning that it
//! came with. Where a group is no longer whole, its reasoning goes and with it the ids of the rest.
//!
//! A body that leaves its history on the server cannot be rewritten from here, and says so.

pub(crate) mod item;
mod read;
mod write;

#[cfg(test)]
mod tests;

use compact_core::view::View;
use compact_core::wire::{Placement, ReasoningRule, WireRules};

use crate::error::FormatError;
use crate::source::Reading;
use crate::wire::{Page, Wire};
use crate::{Document, Scope};

const BODY: WireRules = WireRules {
    name: "openai-responses",
    placements: &[
        Placement::UserMessage,
        Placement::NewSessionPrompt,
        Placement::SystemSuffix,
    ],
    ..WireRules::LENIENT
};

static RULES: WireRules = BODY;

/// Nothing is stored and reasoning came without its content: the provider would not find it.
static FORGETFUL: WireRules = WireRules {
    name: "openai-responses-unstored",
    reasoning: ReasoningRule::StripAfterEdit,
    ..BODY
};

static MORE_RULES: [&WireRules; 1] = [&FORGETFUL];

pub(crate) struct Responses;

impl Wire for Responses {
    fn rules(&self) -> &'static WireRules {
        &RULES
    }

    fn more_rules(&self) -> &'static [&'static WireRules] {
        &MORE_RULES
    }

    fn read(&self, source: &[u8], _scope: Scope) -> Result<Reading, FormatError> {
        read::read(source)
    }

    fn emit(&self, page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
        write::emit(page, view)
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
