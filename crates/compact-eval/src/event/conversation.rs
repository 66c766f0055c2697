//! Any other format: the conversation that `compact-formats` reads, block by block.

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_formats::{Format, FormatError, Scope};

use super::{called, said};
use crate::metric::{Event, Voice};

/// The events of a session in a format.
pub(super) fn events(
    session: &[u8],
    format: Format,
    scope: Scope,
) -> Result<Vec<Event>, FormatError> {
    let parsed = compact_formats::parse(session.to_vec(), Some(format), scope)?;
    Ok(of_entries(&parsed.conversation.entries))
}

fn of_entries(entries: &[Entry]) -> Vec<Event> {
    let mut events = Vec::new();
    for entry in entries {
        let voice = voice(entry);
        if voice == Voice::Summary {
            events.push(said(Voice::Boundary, ""));
        }
        events.extend(entry.blocks.iter().filter_map(|b| event(b, voice)));
    }
    events
}

fn voice(entry: &Entry) -> Voice {
    match (&entry.meta.kind, entry.role) {
        (EntryKind::Summary { .. } | EntryKind::ForeignSummary, _) => Voice::Summary,
        (_, Role::System | Role::Developer) => Voice::System,
        (_, Role::User) => Voice::User,
        (_, Role::Assistant) => Voice::Assistant,
        (_, Role::Tool) => Voice::Result,
    }
}

fn event(block: &Block, voice: Voice) -> Option<Event> {
    match block {
        Block::Text(text) => Some(said(voice, text.as_str())),
        Block::ToolCall {
            name, arguments, ..
        } => Some(called(name, arguments)),
        Block::ToolResult { content, .. } => Some(said(Voice::Result, content.as_str())),
        Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => None,
    }
}
