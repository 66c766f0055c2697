//! The texts of a reset's artifacts: what the summarizer is given, and what it gave.

use compact_core::frame;
use compact_core::message::{Conversation, Entry, EntryKind};
use compact_core::redact::{RedactionCounts, Redactor};
use compact_core::reset::{events_of, render_sections, summary_of};
use compact_core::view::View;
use serde_json::Value;

/// What a summarizer is given, one text for each event: what happened since the last compaction
/// behind the summary that it left, redacted. Without events, those that the conversation stands for.
pub fn summarizer_input(
    conversation: &Conversation,
    events: Option<&[Value]>,
    redactor: &Redactor,
) -> Vec<String> {
    let previous = conversation
        .entries
        .iter()
        .rfind(|e| is_summary(e))
        .map(Entry::plain_text);
    let drawn: Vec<Value>;
    let events = match events {
        Some(events) => events,
        None => {
            drawn = conversation.entries.iter().flat_map(events_of).collect();
            &drawn
        }
    };
    let redacted = |text: String| {
        redactor
            .redact(&text, &mut RedactionCounts::new())
            .into_owned()
    };
    let told = render_sections(events, previous.as_deref().map(summary_of));
    told.into_iter().map(redacted).collect()
}

/// True for a summary of ours, or what stands as one: a summarizer is told it as what came before.
fn is_summary(entry: &Entry) -> bool {
    matches!(entry.meta.kind, EntryKind::Summary { .. }) || frame::is_whole(&entry.plain_text())
}

/// The summary that a view carries, without its frame.
pub fn summary_text(view: &View) -> String {
    let text = view
        .summary()
        .map_or_else(String::new, |entry| entry.plain_text());
    format!("{}\n", summary_of(&text))
}
