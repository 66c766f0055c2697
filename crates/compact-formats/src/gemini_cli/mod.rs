//! Gemini CLI chats: `~/.gemini/tmp/*/chats/session-*.json`, and `.jsonl` as it writes them now.
//!
//! A `gemini` message holds thoughts, words and tool calls together with their results, so it is two
//! entries: what the model said, and what its tools answered. Messages of other types (`info`,
//! `warning`, `error`) are for the person at the terminal and in no context.

mod lines;
mod message;

#[cfg(test)]
mod tests;

use compact_core::view::View;
use compact_core::wire::{Placement, WireRules};

use self::message::GeminiMessages;
pub(crate) use self::message::kind_of_words;
use crate::error::FormatError;
use crate::segment;
use crate::source::{Layout, Reading};
use crate::wire::{self, Page, Wire};
use crate::{Document, Scope, Stamp};

static RULES: WireRules = WireRules {
    name: "gemini-cli",
    placements: &[Placement::UserMessage],
    opens_with_user: true,
    ..WireRules::LENIENT
};

pub(crate) static WIRE: Wire = Wire::new(&RULES, read, emit, extend).with_boundary(append);

fn read(source: &[u8], scope: Scope) -> Result<Reading, FormatError> {
    match lines::is_lines(source) {
        true => lines::read(source, scope),
        false => segment::read(&GeminiMessages, source, scope),
    }
}

fn emit(page: &Page<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    match page.document.layout {
        Layout::Lines { .. } => lines::emit(page, view),
        Layout::List { .. } => segment::emit(&GeminiMessages, page, view),
    }
}

fn append(page: &Page<'_>, view: &View, stamp: &Stamp<'_>) -> Result<Vec<u8>, FormatError> {
    match page.document.layout {
        Layout::Lines { .. } => lines::append(page, view, stamp),
        Layout::List { .. } => wire::no_boundary(page, view, stamp),
    }
}

fn extend(first: &Document, later: &Page<'_>, from: usize) -> Result<Vec<u8>, FormatError> {
    match (&first.layout, &later.document.layout) {
        (Layout::Lines { .. }, Layout::Lines { .. }) => lines::extend(first, later, from),
        _ => segment::extend(first, later, from),
    }
}
