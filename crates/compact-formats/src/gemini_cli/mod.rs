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
use serde_json::json;

use self::message::GeminiCliWire;
pub(crate) use self::message::kind_of_words;
use crate::convert::BlankSource;
use crate::detect::{FormatClues, FormatSigns};
use crate::error::FormatError;
use crate::segment;
use crate::source::{SourceLayout, TranscriptReading};
use crate::wire::{self, DocumentContext, Wire};
use crate::{BoundaryStamp, Document, TranscriptScope};

static RULES: WireRules = WireRules {
    name: "gemini-cli",
    placements: &[Placement::UserMessage],
    opens_with_user: true,
    ..WireRules::LENIENT
};

pub(crate) static WIRE: Wire = Wire::new(&RULES, read, emit, extend, |head| {
    BlankSource::from_value(json!({
        "sessionId": head.session, "projectHash": "", "startTime": head.moment,
        "lastUpdated": head.moment, "messages": [],
    }))
})
.with_boundary(append)
.recognised_by(FormatSigns {
    document: is_chat,
    line: is_head_line,
    ..FormatSigns::NONE
});

/// Returns true for a chat in one document.
fn is_chat(clues: &FormatClues) -> bool {
    let has_both = clues.has_member("messages") && clues.has_member("projectHash");
    has_both && !clues.has_member("role")
}

/// Returns true for the first line of a chat in lines.
fn is_head_line(clues: &FormatClues) -> bool {
    clues.has_member("projectHash") && clues.has_member("sessionId")
}

fn read(source: &[u8], scope: TranscriptScope) -> Result<TranscriptReading, FormatError> {
    match lines::is_lines(source) {
        true => lines::read(source, scope),
        false => segment::read(&GeminiCliWire, source, scope),
    }
}

fn emit(page: &DocumentContext<'_>, view: &View) -> Result<Vec<u8>, FormatError> {
    match page.document.layout {
        SourceLayout::Lines { .. } => lines::emit(page, view),
        SourceLayout::List { .. } => segment::emit(&GeminiCliWire, page, view),
    }
}

fn append(
    page: &DocumentContext<'_>,
    view: &View,
    stamp: &BoundaryStamp<'_>,
) -> Result<Vec<u8>, FormatError> {
    match page.document.layout {
        SourceLayout::Lines { .. } => lines::append(page, view, stamp),
        SourceLayout::List { .. } => wire::no_boundary(page, view, stamp),
    }
}

fn extend(
    first: &Document,
    later: &DocumentContext<'_>,
    from: usize,
) -> Result<Vec<u8>, FormatError> {
    match (&first.layout, &later.document.layout) {
        (SourceLayout::Lines { .. }, SourceLayout::Lines { .. }) => {
            lines::extend(first, later, from)
        }
        _ => segment::extend(first, later, from),
    }
}
