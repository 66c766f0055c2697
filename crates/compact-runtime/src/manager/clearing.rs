//! Tool results that a client cleared in place.
//!
//! Clients make old results shorter to save room: the same entries with the same calls and texts, and
//! less in some results. That is no other history, and what the results said stays known.

use compact_core::identity::EntryHash;
use compact_core::message::{Block, Entry};

/// True when a history is the one before with some results made shorter, and its end as it was.
pub(super) fn is_history_cleared<'a>(
    old: impl ExactSizeIterator<Item = (&'a Entry, &'a EntryHash)>,
    new: impl ExactSizeIterator<Item = (&'a Entry, &'a EntryHash)>,
) -> bool {
    let is_whole = old.len() <= new.len();
    let mut is_same_end = false;
    let mut pairs = old.zip(new);
    let same = pairs.all(|((before, was), (now, is))| {
        is_same_end = was == is;
        is_same_end || is_cleared(before, now)
    });
    is_whole && same && is_same_end
}

/// True when `new` is `old` with at least one result made shorter and nothing else changed.
fn is_cleared(old: &Entry, new: &Entry) -> bool {
    let (before, after) = (compared_blocks(old), compared_blocks(new));
    let is_shorter = before
        .iter()
        .zip(&after)
        .any(|(was, is)| is_shortened(was, is));
    let mut pairs = before.iter().zip(&after);
    let is_same = pairs.all(|(was, is)| is_shortened(was, is) || says_same(was, is));
    old.role == new.role && before.len() == after.len() && is_shorter && is_same
}

/// The blocks that identity looks at.
fn compared_blocks(entry: &Entry) -> Vec<&Block> {
    let counts = |block: &&Block| {
        matches!(
            block,
            Block::Text(_) | Block::ToolCall { .. } | Block::ToolResult { .. }
        )
    };
    entry.blocks.iter().filter(counts).collect()
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
