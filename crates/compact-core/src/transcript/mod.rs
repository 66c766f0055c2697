//! A session as the events its host raised: what was said, asked for, allowed and answered.
//!
//! An event is the host's own JSON and stays that: a `type` names it, the rest is read
//! leniently. This module knows which events belong in a transcript, draws them from entries for
//! hosts that raise none, and renders them for a summarizer. It reads and writes no file.

mod render;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::message::{Block, Entry, EntryKind, Role};

pub use render::render_sections;

/// What an event is to a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscriptEventKind {
    /// A person's words: opens a turn.
    User,
    /// The model asks for a tool.
    ToolRequest,
    /// A person is asked, allows or denies; or a rule does it for them.
    Approval,
    /// A tool's answer.
    ToolResult,
    /// A complete answer of the model.
    Assistant,
    /// The conversation before this was compacted.
    Boundary,
    /// A piece of an answer that will come whole: not for a transcript.
    Fragment,
    /// Thoughts and the program's own bookkeeping: recorded, and no business of a summarizer.
    Aside,
    /// Anything else.
    Other,
}

impl TranscriptEventKind {
    /// Reads the kind off an event's `type`.
    pub fn from_event(event: &Value) -> TranscriptEventKind {
        match event_type(event) {
            "user_message" => TranscriptEventKind::User,
            "tool_request" => TranscriptEventKind::ToolRequest,
            "tool_approval_request" | "tool_approved" | "tool_auto_approved" | "tool_denied" => {
                TranscriptEventKind::Approval
            }
            "tool_result" => TranscriptEventKind::ToolResult,
            "completed" => TranscriptEventKind::Assistant,
            "context_compacted" => TranscriptEventKind::Boundary,
            "text_delta" | "reasoning_delta" => TranscriptEventKind::Fragment,
            "started"
            | "reasoning"
            | "context_warning"
            | "context_compaction_started"
            | "context_compaction_failed" => TranscriptEventKind::Aside,
            _ => TranscriptEventKind::Other,
        }
    }

    /// Whether such an event is written down.
    pub fn is_recorded(self) -> bool {
        self != TranscriptEventKind::Fragment
    }
}

/// The event's `type`; empty when it has none.
fn event_type(event: &Value) -> &str {
    event.get("type").and_then(Value::as_str).unwrap_or("")
}

/// The events that an entry stands for. Instructions and summaries are the host's to re-send, and
/// reasoning is not said to anyone.
pub fn events_of(entry: &Entry) -> Vec<Value> {
    if entry.role.is_instruction() || matches!(entry.meta.kind, EntryKind::Summary { .. }) {
        return Vec::new();
    }
    let mut events: Vec<Value> = Vec::new();
    let said = entry_words(entry);
    if !said.is_empty() {
        events.push(match entry.role {
            Role::User if entry.meta.kind == EntryKind::Message => {
                json!({"type": "user_message", "content": said})
            }
            Role::Assistant if entry.meta.kind != EntryKind::HostedTool => {
                json!({"type": "completed", "response": said})
            }
            _ => json!({"type": "injected", "role": entry.role, "content": said}),
        });
    }
    events.extend(entry.blocks.iter().filter_map(tool_event));
    events
}

/// The entry's words, media by their labels.
fn entry_words(entry: &Entry) -> String {
    let parts = entry.blocks.iter().filter_map(|block| match block {
        Block::Text(text) if !text.is_empty() => Some(text.clone()),
        Block::Media { label, .. } => Some(format!("[{label}]")),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("\n")
}

fn tool_event(block: &Block) -> Option<Value> {
    match block {
        Block::ToolCall {
            id,
            name,
            arguments,
        } => Some(json!({
            "type": "tool_request",
            "tool_name": name,
            "args": serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments)),
            "request_id": id,
        })),
        Block::ToolResult {
            call,
            content,
            is_error,
        } => Some(json!({
            "type": "tool_result",
            "request_id": call,
            "result": content,
            "success": !is_error,
        })),
        _ => None,
    }
}

/// The part of a transcript that the next summary must tell: what follows the last compaction, and
/// the request that was pending then, which is still in the context. With it, how many turns
/// came before.
pub(crate) fn since_boundary(events: &[Value]) -> (usize, impl Iterator<Item = &Value>) {
    let boundary = events
        .iter()
        .rposition(|e| TranscriptEventKind::from_event(e) == TranscriptEventKind::Boundary);
    let (before, after) = events
        .split_at_checked(boundary.map_or(0, |b| b + 1))
        .unwrap_or((&[], events));
    let is_user = |e: &&Value| TranscriptEventKind::from_event(e) == TranscriptEventKind::User;
    let turns = before.iter().filter(is_user).count();
    let pending = before.iter().rfind(is_user);
    (
        turns - usize::from(pending.is_some()),
        pending.into_iter().chain(after),
    )
}
