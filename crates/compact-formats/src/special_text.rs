//! Texts that say what they are: other programs' summaries, client injections.
//!
//! A text with our own frame around it is not told apart here: anybody can write one, and only whoever
//! knows the compaction before can say whether it is ours.

use compact_core::engine::BRIDGE;
use compact_core::message::{Block, EntryKind, Role};
use compact_core::speech::{Speech, attribute_speech};

use crate::source::EntryDraft;

/// What the user says where a provider wants the user to open and nobody did.
pub(crate) const OPENING: &str = "[the conversation begins here]";

/// How agents open the message that carries the summary of their own compaction. It comes in the
/// user's place, but a model wrote it: no sentence of it is the user's order.
const CONTINUATIONS: [&str; 2] = [
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
];

/// Returns what a text is when it is an agent's summary, or words of ours that hold a place.
pub(crate) fn summary_kind(text: &str) -> Option<EntryKind> {
    if text == BRIDGE || text == OPENING {
        return Some(EntryKind::Injected);
    }
    let mut openings = CONTINUATIONS.iter();
    let is_continuation = openings.any(|opening| text.starts_with(opening));
    is_continuation.then_some(EntryKind::ForeignSummary)
}

/// Returns true for a text in the user's place of which no word is the person's.
pub(crate) fn is_injected(text: &str) -> bool {
    !text.trim().is_empty() && attribute_speech(text) == Speech::Host
}

/// Marks the entries in the user's place that a host wrote: every word of theirs is its own. A command that follows
/// a tool's result is one, too: a person's waits for the end of the turn, so the model gave it.
pub(crate) fn note_speakers(drafts: &mut [EntryDraft]) {
    note_speakers_after(None, drafts);
}

/// Does the same for entries that follow one of this role.
pub(crate) fn note_speakers_after(role: Option<Role>, drafts: &mut [EntryDraft]) {
    let mut follows_result = role == Some(Role::Tool);
    for draft in drafts.iter_mut() {
        let is_words = draft.role == Role::User && draft.meta.kind == EntryKind::Message;
        if is_words {
            draft.meta.kind = match follows_result && draft.blocks.iter().any(is_command) {
                true => EntryKind::Injected,
                false => entry_kind(draft.role, &draft.blocks),
            };
        }
        follows_result = draft.role == Role::Tool;
    }
}

/// Returns whether a block is a host's record of a command that was given.
fn is_command(block: &Block) -> bool {
    let openings = ["<command-name>", "<command-message>"];
    matches!(block, Block::Text(text) if openings.iter().any(|tag| text.trim_start().starts_with(tag)))
}

/// Returns what a message is by its texts: a summary, words that a client wrote, or what somebody said.
pub(crate) fn entry_kind(role: Role, blocks: &[Block]) -> EntryKind {
    let mut said = blocks.iter().filter_map(|block| match block {
        Block::Text(text) if !is_injected(text) => Some(text.as_str()),
        _ => None,
    });
    if let Some(summary) = said.next().and_then(summary_kind) {
        return summary;
    }
    let is_client = |block: &Block| matches!(block, Block::Text(text) if is_injected(text));
    match role == Role::User && !blocks.is_empty() && blocks.iter().all(is_client) {
        true => EntryKind::Injected,
        false => EntryKind::Message,
    }
}

/// Returns whether a text is nothing but elements with these names, one after another.
pub(crate) fn has_only_elements(text: &str, names: &[&str]) -> bool {
    let mut rest = text.trim();
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        match names.iter().find_map(|name| after_element(rest, name)) {
            Some(after) => rest = after.trim_start(),
            None => return false,
        }
    }
    true
}

/// Returns what follows the element `name` that opens `text`.
fn after_element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let inside = text.strip_prefix('<')?.strip_prefix(name)?;
    if !inside.starts_with(['>', ' ', '\n']) {
        return None;
    }
    let close = format!("</{name}>");
    inside.split_once(close.as_str()).map(|(_, after)| after)
}
