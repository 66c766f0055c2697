//! Tool results that a client cleared in place.
//!
//! Clients make old results shorter to save room: the same entries with the same calls and texts, and
//! less in some results. That is no other history, and what the results said stays known.

use compact_core::message::{Block, Entry};

/// True when `new` is `old` with at least one result made shorter and nothing else changed.
pub(super) fn is_cleared(old: &Entry, new: &Entry) -> bool {
    let (mut before, mut after) = (words(old), words(new));
    let mut is_shorter = false;
    let same = old.role == new.role
        && before.by_ref().zip(after.by_ref()).all(|(was, is)| {
            let shorter = is_shortened(was, is);
            is_shorter |= shorter;
            shorter || says_same(was, is)
        });
    same && is_shorter
        && old.blocks.len() >= new.blocks.len()
        && words(old).count() == words(new).count()
}

/// The blocks that identity looks at.
fn words(entry: &Entry) -> impl Iterator<Item = &Block> {
    let counts = |block: &&Block| {
        matches!(
            block,
            Block::Text(_) | Block::ToolCall { .. } | Block::ToolResult { .. }
        )
    };
    entry.blocks.iter().filter(counts)
}

fn is_shortened(was: &Block, is: &Block) -> bool {
    match (was, is) {
        (Block::ToolResult { content: was, .. }, Block::ToolResult { content: is, .. }) => {
            is.len() < was.len()
        }
        _ => false,
    }
}

fn says_same(was: &Block, is: &Block) -> bool {
    was.text_parts() == is.text_parts() && std::mem::discriminant(was) == std::mem::discriminant(is)
}
