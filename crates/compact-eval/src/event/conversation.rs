//! Any other format: the conversation that `compact-formats` reads, block by block.

use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_formats::{Format, FormatError, TranscriptScope};

use super::{call_event, text_event};
use crate::metric::{EventVoice, MetricEvent};

/// Returns the events of a session in a format.
pub(super) fn read_entries(
    session: &[u8],
    format: Format,
    scope: TranscriptScope,
) -> Result<Vec<MetricEvent>, FormatError> {
    let parsed = compact_formats::parse(session.to_vec(), Some(format), scope)?;
    Ok(entries_to_events(&parsed.conversation.entries))
}

fn entries_to_events(entries: &[Entry]) -> Vec<MetricEvent> {
    let mut events = Vec::new();
    for entry in entries {
        let voice = entry_voice(entry);
        if voice == EventVoice::Summary {
            events.push(text_event(EventVoice::Boundary, ""));
        }
        events.extend(entry.blocks.iter().filter_map(|b| block_to_event(b, voice)));
    }
    events
}

fn entry_voice(entry: &Entry) -> EventVoice {
    match (&entry.meta.kind, entry.role) {
        (EntryKind::Summary { .. } | EntryKind::ForeignSummary, _) => EventVoice::Summary,
        (EntryKind::HostedTool, _) => EventVoice::Result,
        (_, Role::System | Role::Developer) => EventVoice::System,
        (_, Role::User) => EventVoice::User,
        (_, Role::Assistant) => EventVoice::Assistant,
        (_, Role::Tool) => EventVoice::Result,
    }
}

fn block_to_event(block: &Block, voice: EventVoice) -> Option<MetricEvent> {
    match block {
        Block::Text(text) => Some(text_event(voice, text.as_str())),
        Block::ToolCall {
            name, arguments, ..
        } => Some(call_event(name, arguments)),
        Block::ToolResult { content, .. } => Some(text_event(EventVoice::Result, content.as_str())),
        Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => None,
    }
}
