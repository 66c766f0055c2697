//! Texts that say what they are: our own summaries, other programs' summaries, client injections.

use compact_core::message::EntryKind;

/// Reads `<COMPACT-SUMMARY vN receipt=ID>` at the start of a text.
pub(crate) fn summary(text: &str) -> Option<EntryKind> {
    let rest = text.trim_start().strip_prefix("<COMPACT-SUMMARY v")?;
    let (head, _) = rest.split_once('>')?;
    let mut words = head.split_ascii_whitespace();
    let version = words.next()?.parse().ok()?;
    let receipt = words
        .find_map(|word| word.strip_prefix("receipt="))
        .map(|id| id.trim_matches('"').to_owned());
    Some(EntryKind::Summary { version, receipt })
}

/// Reads our frame anywhere in a summary line of a host, which may put a preface before it.
pub(crate) fn summary_within(text: &str) -> Option<EntryKind> {
    text.find("<COMPACT-SUMMARY v")
        .and_then(|at| text.get(at..))
        .and_then(summary)
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
