//! Gemini: a `generateContent` request body with `contents` and `systemInstruction`, or the list.
//!
//! A content is one entry, except that a person's words after function responses are one by
//! themselves. Calls need no ids on this wire: those without are paired with their responses by
//! name and order. Thought signatures stay on the part that carries them, and what the engine adds
//! is signed with the value that the provider takes in place of one. Names may be written in
//! camel or snake case; new parts are written in camel case.

mod part;
mod read;
mod write;

#[cfg(test)]
mod tests;

use compact_core::view::View;
use compact_core::wire::{Placement, WireRules};

use crate::body;
use crate::error::FormatError;
use crate::source::Reading;
use crate::wire::{Page, Wire};
use crate::{Document, Scope};

const BODY: WireRules = WireRules {
    name: "gemini",
    placements: &[
        Placement::UserMessage,
        Placement::NewSessionPrompt,
        Placement::SystemSuffix,
    ],
    alternation: true,
    opens_with_user: true,
    ends_with_user: true,
    ..WireRules::LENIENT
};

static RULES: WireRules = BODY;

/// A bare list, or a body whose instructions are cached: there is no place to write them.
static WITHOUT_INSTRUCTIONS: WireRules = WireRules {
    name: "gemini-contents",
    placements: &[Placement::UserMessage, Placement::NewSessionPrompt],
    ..BODY
};

static MORE_RULES: [&WireRules; 1] = [&WITHOUT_INSTRUCTIONS];

pub(crate) struct Gemini;

impl Wire for Gemini {
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
        body::extend(&write::Contents, first, later, from)
    }
}
