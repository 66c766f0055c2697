//! The system prompt of a continued session: the base, and last of all the summary.

use crate::frame;

/// The section, with `{summary}` where the summary goes.
pub(super) const SECTION: &str = include_str!("../../templates/continuation_system.md");

/// The heading and the notice: what a section of ours begins with.
fn section_opening() -> &'static str {
    SECTION
        .split_once("{summary}")
        .map_or(SECTION, |(opening, _)| opening)
}

/// The summary in a continuation section: its body without any frame.
pub fn summary_of(text: &str) -> &str {
    let inner = text
        .split_once(section_opening())
        .and_then(|(_, rest)| rest.rsplit_once("</summary>"))
        .map_or(text, |(inner, _)| inner);
    frame::body(inner).unwrap_or(inner).trim()
}
