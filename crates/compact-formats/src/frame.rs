//! Texts that say what they are: our own summaries, other programs' summaries, client injections.

use compact_core::conform::BRIDGE;
use compact_core::message::EntryKind;
use compact_core::summarize::frame;

/// What the user says where a provider wants the user to open and nobody did.
pub(crate) const OPENING: &str = "[the conversation begins here]";

/// How agents open the message that carries the summary of their own compaction. It comes in the
/// user's place, but a model wrote it: no sentence of it is the user's order.
const CONTINUATIONS: [&str; 2] = [
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
];

/// What a text is when it is a summary, ours or an agent's, or words of ours that hold a place.
pub(crate) fn summary(text: &str) -> Option<EntryKind> {
    if text == BRIDGE || text == OPENING {
        return Some(EntryKind::Injected);
    }
    if CONTINUATIONS
        .iter()
        .any(|opening| text.starts_with(opening))
        && frame::parse(text).is_none()
    {
        return Some(EntryKind::ForeignSummary);
    }
    let frame::Frame { version, receipt } = frame::parse(text)?;
    Some(EntryKind::Summary { version, receipt })
}

/// True when a text is nothing but elements with these names, one after another.
pub(crate) fn only_elements(text: &str, names: &[&str]) -> bool {
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

/// What follows the element `name` that opens `text`.
fn after_element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let inside = text.strip_prefix('<')?.strip_prefix(name)?;
    if !inside.starts_with(['>', ' ', '\n']) {
        return None;
    }
    let close = format!("</{name}>");
    inside.split_once(close.as_str()).map(|(_, after)| after)
}

/// The content of the element `name`, wherever it stands.
pub(crate) fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(format!("<{name}>").as_str())?;
    rest.split_once(format!("</{name}>").as_str())
        .map(|(inside, _)| inside)
}
