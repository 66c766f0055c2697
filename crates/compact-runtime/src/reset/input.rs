//! The texts of a reset's artifacts: what the summarizer is given, and what it gave.

use compact_core::message::{Conversation, Entry, EntryKind};
use compact_core::redact::{Counts, Redactor};
use compact_core::reset::summary_of;
use compact_core::transcript::{events_of, render};
use compact_core::view::View;
use serde_json::Value;

/// What a summarizer is given: the events since the last compaction behind the summary that it
/// left, redacted. Without events, those that the conversation stands for.
pub fn summarizer_input(
    conversation: &Conversation,
    events: Option<&[Value]>,
    redactor: &Redactor,
) -> String {
    let previous = conversation
        .entries
        .iter()
        .rfind(|e| matches!(e.meta.kind, EntryKind::Summary { .. }))
        .map(Entry::plain_text);
    let drawn: Vec<Value>;
    let events = match events {
        Some(events) => events,
        None => {
            drawn = conversation.entries.iter().flat_map(events_of).collect();
            &drawn
        }
    };
    let text = render(events, previous.as_deref().map(summary_of));
    redactor.redact(&text, &mut Counts::new()).into_owned()
}

/// The summary that a view carries, without its frame.
pub fn summary_text(view: &View) -> String {
    let text = view
        .summary()
        .map_or_else(String::new, |entry| entry.plain_text());
    format!("{}\n", summary_of(&text))
}
