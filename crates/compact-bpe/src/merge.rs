//! How many tokens a piece comes to.
//!
//! Byte-pair encoding begins with single bytes and merges, again and again, the two neighbours whose
//! union has the lowest rank, the first of equals. Short pieces, which nearly all are, look through all
//! neighbours each time; long ones keep them in a queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::vocabulary::{Rank, Vocabulary};

/// Bytes of the longest piece that is merged as a whole. A longer one would need memory of some forty
/// times its size.
pub const LONGEST_PIECE: usize = 1 << 18;

/// Bytes from which on a queue is quicker than looking through all neighbours.
const QUEUE_FROM: usize = 96;

/// No rank: the neighbours cannot be merged.
const NEVER: Rank = Rank::MAX;

/// Memory that is kept from piece to piece.
#[derive(Default)]
pub(crate) struct Scratch {
    parts: Vec<Part>,
    links: Vec<Link>,
    queue: BinaryHeap<Reverse<Merge>>,
}

/// A token so far, and the rank of its union with the next.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    union: Rank,
}

/// A token so far, found by where it begins.
#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    /// Where it ends and the next begins; [`GONE`] when another has swallowed it.
    next: u32,
}

const GONE: u32 = u32::MAX;

/// Two neighbours that may be merged. The order of the fields is that of the merges.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Merge {
    rank: Rank,
    start: u32,
    middle: u32,
    end: u32,
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

    /// The tokens of a piece.
    pub(crate) fn count(&mut self, piece: &[u8]) -> usize {
        piece
            .chunks(LONGEST_PIECE)
            .map(|part| self.count_part(part))
            .sum()
    }

    fn count_part(&mut self, piece: &[u8]) -> usize {
        if self.vocabulary.rank(piece).is_some() {
            return 1;
        }
        match piece.len() < QUEUE_FROM {
            true => self.count_by_scan(piece),
            false => self.count_by_queue(piece),
        }
    }

    fn count_by_scan(&mut self, piece: &[u8]) -> usize {
        let mut parts = std::mem::take(&mut self.scratch.parts);
        parts.clear();
        parts.extend((0..piece.len()).map(|start| Part {
            start,
            union: self.rank(piece, start, start + 2),
        }));
        let lowest = |parts: &[Part]| {
            let ranked = parts.iter().enumerate();
            let (at, part) = ranked.min_by_key(|(_, part)| part.union)?;
            (part.union != NEVER).then_some(at)
        };
        while let Some(at) = lowest(&parts) {
            parts.remove(at + 1);
            self.rank_union(piece, &mut parts, at);
            if let Some(before) = at.checked_sub(1) {
                self.rank_union(piece, &mut parts, before);
            }
        }
        let count = parts.len();
        self.scratch.parts = parts;
        count
    }

    /// Ranks the union of the part at `at` with the one behind it.
    fn rank_union(&self, piece: &[u8], parts: &mut [Part], at: usize) {
        let start_of = |at: usize| parts.get(at).map(|part| part.start);
        let end = match (start_of(at + 1), start_of(at + 2)) {
            (None, _) => None,
            (Some(_), next) => Some(next.unwrap_or(piece.len())),
        };
        if let Some(part) = parts.get_mut(at) {
            part.union = end.map_or(NEVER, |end| self.rank(piece, part.start, end));
        }
    }

    fn count_by_queue(&mut self, piece: &[u8]) -> usize {
        let length = piece.len() as u32;
        let mut links = std::mem::take(&mut self.scratch.links);
        let mut queue = std::mem::take(&mut self.scratch.queue);
        links.clear();
        links.extend((0..length).map(|at| Link {
            previous: at.wrapping_sub(1),
            next: at + 1,
        }));
        queue.extend((1..length).filter_map(|at| self.merge_of(piece, at - 1, at, at + 1)));
        let mut count = piece.len();
        while let Some(Reverse(merge)) = queue.pop() {
            let next_of = |at: u32| links.get(at as usize).map(|link| link.next);
            if next_of(merge.start) != Some(merge.middle)
                || next_of(merge.middle) != Some(merge.end)
            {
                continue;
            }
            count -= 1;
            set(&mut links, merge.middle, |link| link.next = GONE);
            set(&mut links, merge.start, |link| link.next = merge.end);
            set(&mut links, merge.end, |link| link.previous = merge.start);
            if let Some(after) = links.get(merge.end as usize) {
                queue.extend(self.merge_of(piece, merge.start, merge.end, after.next));
            }
            let previous = links.get(merge.start as usize).map(|link| link.previous);
            if let Some(previous) = previous.filter(|_| merge.start > 0) {
                queue.extend(self.merge_of(piece, previous, merge.start, merge.end));
            }
        }
        (self.scratch.links, self.scratch.queue) = (links, queue);
        self.scratch.shrink();
        count
    }

    fn merge_of(&self, piece: &[u8], start: u32, middle: u32, end: u32) -> Option<Reverse<Merge>> {
        let rank = self.rank(piece, start as usize, end as usize);
        (rank != NEVER).then_some(Reverse(Merge {
            rank,
            start,
            middle,
            end,
        }))
    }

    fn rank(&self, piece: &[u8], start: usize, end: usize) -> Rank {
        let token = piece.get(start..end);
        token
            .and_then(|token| self.vocabulary.rank(token))
            .unwrap_or(NEVER)
    }
}

fn set(links: &mut [Link], at: u32, change: impl FnOnce(&mut Link)) {
    if let Some(link) = links.get_mut(at as usize) {
        change(link);
    }
}

impl Scratch {
    /// Gives back what only an unusual piece needed.
    fn shrink(&mut self) {
        self.links.shrink_to(1 << 14);
        self.queue.shrink_to(1 << 14);
    }
}
