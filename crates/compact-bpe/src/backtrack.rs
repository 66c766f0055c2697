//! Counts the tokens of a long piece in a time that grows with its length.
//!
//! Tokens are the outcome of merging exactly when each two neighbours are (`is_final_pair`), and
//! there is but one such row of tokens. So the longest token is taken at each place; where it does not go
//! with the one before it, the next shorter, and where none does, the one before it is shortened. A place
//! from which there is no way on is remembered, so that no place is left twice.

use crate::vocabulary::{Rank, Vocabulary};

/// Slots for pairs that were looked at. A long piece repeats its pairs.
const PAIRS: usize = 1 << 12;

/// Memory that is kept from piece to piece.
#[derive(Default)]
pub(crate) struct Backtracking {
    /// The tokens so far.
    row: Vec<Token>,
    /// Places from which no row goes on.
    dead_ends: Vec<u64>,
    /// Pairs of ranks, and whether they are final. Ranks are counted from one, so that no pair is 0.
    pairs: Vec<(u64, bool)>,
}

#[derive(Clone, Copy)]
struct Token {
    rank: Rank,
    length: usize,
}

/// Counts the tokens of a piece.
pub(crate) fn count(vocabulary: &Vocabulary, piece: &[u8], memory: &mut Backtracking) -> usize {
    memory.begin(piece.len());
    let mut search = Search {
        vocabulary,
        piece,
        memory,
    };
    let (mut at, mut wanted) = (0, search.longest_token(0, usize::MAX));
    while let Some(token) = wanted {
        let end = at + token.length;
        if !search.memory.is_dead_end(end) && search.follows(at, token) {
            search.memory.row.push(token);
            (at, wanted) = (end, search.longest_token(end, usize::MAX));
            continue;
        }
        wanted = search.longest_token(at, token.length - 1);
        if wanted.is_none() {
            search.memory.mark_dead_end(at);
            wanted = search.memory.row.pop();
            at -= wanted.map_or(0, |token| token.length);
        }
    }
    let count = search.memory.row.len();
    memory.end();
    count
}

struct Search<'a> {
    vocabulary: &'a Vocabulary,
    piece: &'a [u8],
    memory: &'a mut Backtracking,
}

impl Search<'_> {
    /// The longest token at a place, of at most so many bytes.
    fn longest_token(&self, at: usize, at_most: usize) -> Option<Token> {
        let rest = self.piece.get(at..)?;
        let longest = self.vocabulary.longest_from(rest).min(at_most);
        (1..=longest.min(rest.len())).rev().find_map(|length| {
            let rank = self.vocabulary.rank(rest.get(..length)?)?;
            Some(Token { rank, length })
        })
    }

    /// True when a token at `at` goes with the one before it.
    fn follows(&mut self, at: usize, token: Token) -> bool {
        let Some(last) = self.memory.row.last().copied() else {
            return true;
        };
        let key = u64::from(last.rank + 1) << 32 | u64::from(token.rank + 1);
        let slot = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize;
        if let Some((known, is_final)) = self.memory.pairs.get(slot)
            && *known == key
        {
            return *is_final;
        }
        let is_final = is_final_pair(self.vocabulary, self.piece, at, [last.rank, token.rank]);
        if let Some(known) = self.memory.pairs.get_mut(slot) {
            *known = (key, is_final);
        }
        is_final
    }
}

/// True when two tokens that meet at `middle` stay two. Merges are undone from the latest on, and at each step the two
/// that then met must not have been merged before what was undone.
fn is_final_pair(vocabulary: &Vocabulary, piece: &[u8], middle: usize, pair: [Rank; 2]) -> bool {
    let [mut left, mut right] = pair;
    let mut limit = Rank::MAX;
    loop {
        let rest = piece
            .get(middle - vocabulary.length(left)..)
            .unwrap_or_default();
        let length = vocabulary.length(left) + vocabulary.length(right);
        let union = rest
            .get(..length)
            .filter(|_| length <= vocabulary.longest_from(rest))
            .and_then(|union| vocabulary.rank(union));
        if union.is_some_and(|rank| rank < limit && vocabulary.halves(rank) == [left, right]) {
            return false;
        }
        let [_, inner_left] = vocabulary.halves(left);
        let [inner_right, _] = vocabulary.halves(right);
        let can_undo = (inner_left != left, inner_right != right);
        match can_undo {
            (false, false) => return true,
            (true, is_right) if left > right || !is_right => (limit, left) = (left, inner_left),
            // Of equals the left one is merged first.
            _ => (limit, right) = (right + 1, inner_right),
        }
    }
}

impl Backtracking {
    fn begin(&mut self, length: usize) {
        self.row.clear();
        self.dead_ends.clear();
        self.dead_ends.resize(length / 64 + 1, 0);
        self.pairs.resize(PAIRS, (0, false));
    }

    fn is_dead_end(&self, at: usize) -> bool {
        let word = self.dead_ends.get(at / 64).copied().unwrap_or(0);
        word >> (at % 64) & 1 == 1
    }

    fn mark_dead_end(&mut self, at: usize) {
        if let Some(word) = self.dead_ends.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// Gives back what only an unusual piece needed.
    fn end(&mut self) {
        self.row.shrink_to(1 << 14);
        self.dead_ends.shrink_to(1 << 10);
    }
}
