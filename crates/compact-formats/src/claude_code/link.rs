//! How the lines of a piece of a session hang together.

use super::line::{ClaudeCodeLine, ClaudeCodeLineKind};
use crate::source;

/// A line of the main context.
pub(crate) struct BranchLink {
    /// What others hang on.
    pub(crate) id: Option<String>,
    /// What it hangs on, if it is a prompt that hangs on anything.
    pub(crate) prompts_after: Option<String>,
    /// What it says once more, after a boundary of ours.
    pub(crate) repeats: Option<String>,
}

/// Returns the lines of a piece; what cannot be read is left out.
pub(crate) fn read_links(piece: &[u8]) -> impl Iterator<Item = BranchLink> {
    let spans = source::line_spans(piece).into_iter();
    spans.filter_map(|span| {
        let line: ClaudeCodeLine<'_> = serde_json::from_slice(piece.get(span)?).ok()?;
        (line.kind() != ClaudeCodeLineKind::OtherContext).then(|| BranchLink {
            id: line.uuid().map(String::from),
            prompts_after: line.parent().filter(|_| line.is_prompt()).map(String::from),
            repeats: line.compacted_from().map(String::from),
        })
    })
}
