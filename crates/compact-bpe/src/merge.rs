//! How many tokens a piece comes to.
//!
//! Byte-pair encoding begins with single bytes and merges, again and again, the two neighbours whose
//! union has the lowest rank, the first of equals. Short pieces, which nearly all are, do just that, and
//! look through all neighbours each time. In a long one that would take a time that grows with its square:
//! there `backtrack` looks for the tokens from left to right.

use crate::backtrack::{self, Backtracking};
use crate::vocabulary::{Rank, Vocabulary};

/// Bytes from which on looking for tokens from left to right is quicker than merging.
const BACKTRACK_FROM: usize = 64;

/// No rank: the neighbours cannot be merged.
const NEVER: Rank = Rank::MAX;

/// Memory that is kept from piece to piece.
#[derive(Default)]
pub(crate) struct Scratch {
    parts: Vec<Part>,
    backtracking: Backtracking,
}

/// A token so far, and the rank of its union with the next.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    union: Rank,
}

/// Merges pieces by the ranks of a vocabulary.
pub(crate) struct Merger<'a> {
    vocabulary: &'a Vocabulary,
    scratch: &'a mut Scratch,
}

impl<'a> Merger<'a> {
    pub(crate) fn new(vocabulary: &'a Vocabulary, scratch: &'a mut Scratch) -> Merger<'a> {
        Merger {
            vocabulary,
            scratch,
        }
    }

    /// Counts the tokens of a piece.
    pub(crate) fn count(&mut self, piece: &[u8]) -> usize {
        if self.vocabulary.rank(piece).is_some() {
            return 1;
        }
        let Scratch {
            parts,
            backtracking,
        } = &mut *self.scratch;
        match piece.len() < BACKTRACK_FROM {
            true => {
                merge_all(self.vocabulary, piece, parts);
                parts.len()
            }
            false => backtrack::count(self.vocabulary, piece, backtracking),
        }
    }
}

/// Merges until nothing is left to merge.
fn merge_all(vocabulary: &Vocabulary, piece: &[u8], parts: &mut Vec<Part>) {
    let union_of = |start: usize, end: usize| {
        let token = piece.get(start..end);
        token
            .and_then(|token| vocabulary.rank(token))
            .unwrap_or(NEVER)
    };
    parts.clear();
    parts.extend((0..piece.len()).map(|start| Part {
        start,
        union: union_of(start, start + 2),
    }));
    while let Some(at) = lowest_union(parts) {
        parts.remove(at + 1);
        for changed in [Some(at), at.checked_sub(1)].into_iter().flatten() {
            let end = union_end(parts, changed, piece.len());
            if let Some(part) = parts.get_mut(changed) {
                part.union = end.map_or(NEVER, |end| union_of(part.start, end));
            }
        }
    }
}

fn lowest_union(parts: &[Part]) -> Option<usize> {
    let ranked = parts.iter().enumerate();
    let (at, part) = ranked.min_by_key(|(_, part)| part.union)?;
    (part.union != NEVER).then_some(at)
}

/// Where the union of a part with the next would end; `None` for the last.
fn union_end(parts: &[Part], at: usize, length: usize) -> Option<usize> {
    parts.get(at + 1)?;
    Some(parts.get(at + 2).map_or(length, |after| after.start))
}
