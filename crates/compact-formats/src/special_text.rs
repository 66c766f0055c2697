//! Texts that say what they are: other programs' summaries, client injections.
//!
//! A text with our own frame around it is not told apart here: anybody can write one, and only whoever
//! knows the compaction before can say whether it is ours.

use compact_core::engine::BRIDGE;
use compact_core::message::{Block, EntryKind, Role};

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

/// Elements that agents write around what no person said: reminders, commands, surroundings, notices.
/// An agent's history comes in its provider's format too, so every format knows them all.
const INJECTED: [&str; 22] = [
    // Claude Code
    "system-reminder",
    "command-name",
    "command-message",
    "command-args",
    "command-contents",
    "local-command-stdout",
    "local-command-stderr",
    "local-command-caveat",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
    "user-prompt-submit-hook",
    "task-notification",
    "ide_opened_file",
    "ide_selection",
    "new-diagnostics",
    // Codex
    "environment_context",
    "turn_aborted",
    "subagent_notification",
    "user_shell_command",
    // Gemini CLI
    "session_context",
    "hook_context",
];

/// Returns true for a text that a client wrote; `own` are elements that only one format knows as such. The
/// arguments of a command are the user's words.
pub(crate) fn is_injected(text: &str, own: &[&str]) -> bool {
    let has_arguments =
        || element_content(text, "command-args").is_some_and(|args| !args.trim().is_empty());
    let names: Vec<&str> = INJECTED.iter().chain(own).copied().collect();
    is_notice(text) || has_only_elements(text, &names) && !has_arguments()
}

/// Returns what agents say in the user's place without an element around it.
fn is_notice(text: &str) -> bool {
    let interruption = text.strip_prefix("[Request interrupted by user");
    interruption.is_some_and(|rest| rest.trim_end().find(']') == Some(rest.trim_end().len() - 1))
        || text.starts_with("Caveat: The messages below were generated")
        || text == "System: Please continue."
}

/// Returns what a message is by its texts: a summary, words that a client wrote, or what somebody said.
pub(crate) fn entry_kind(role: Role, blocks: &[Block]) -> EntryKind {
    let mut said = blocks.iter().filter_map(|block| match block {
        Block::Text(text) if !is_injected(text, &[]) => Some(text.as_str()),
        _ => None,
    });
    if let Some(summary) = said.next().and_then(summary_kind) {
        return summary;
    }
    let is_client = |block: &Block| matches!(block, Block::Text(text) if is_injected(text, &[]));
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

/// Returns the content of the element `name`, wherever it stands.
pub(crate) fn element_content<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(format!("<{name}>").as_str())?;
    rest.split_once(format!("</{name}>").as_str())
        .map(|(inside, _)| inside)
}
