//! The tokens of an encoding with their ranks, as tables that the build script laid out.

use std::ops::Range;

use crate::Encoding;
use crate::hash::{hash_bytes, start_slot};

/// Bits of a slot that hold a rank plus one; the others hold bits of the token's hash. A row has as many for each half.
const RANK_BITS: u32 = 18;

const RANK_MASK: u32 = (1 << RANK_BITS) - 1;

/// A token's place in the order of merges: the lower, the earlier.
pub(crate) type Rank = u32;

/// A hash table from bytes to ranks. Numbers are little-endian.
pub(crate) struct Vocabulary {
    /// Open addressing, a power of two of four bytes each, no deletions.
    slots: &'static [u8],
    /// For each token eight bytes: the ranks of the two that it is merged from last, and above them where its bytes
    /// begin; then where the last ends. A byte has itself for both.
    tokens: &'static [u8],
    bytes: &'static [u8],
    /// The length of the longest token that begins with two bytes, by these as a number.
    longest: &'static [u8],
    /// The same for four bytes, by their slot; 0 where no token begins so.
    far: &'static [u8],
}

macro_rules! vocabulary {
    ($name:literal) => {
        Vocabulary {
            slots: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".slots")),
            tokens: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".tokens")),
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bytes")),
            longest: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".longest")),
            far: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".far")),
        }
    };
}

static O200K: Vocabulary = vocabulary!("o200k");
static CL100K: Vocabulary = vocabulary!("cl100k");

impl Encoding {
    pub(crate) fn vocabulary(self) -> &'static Vocabulary {
        match self {
            Encoding::O200k => &O200K,
            Encoding::Cl100k => &CL100K,
        }
    }
}

impl Vocabulary {
    /// The rank of a token, if the bytes are one.
    pub(crate) fn rank(&self, token: &[u8]) -> Option<Rank> {
        let hash = hash_bytes(token);
        let mask = self.slots.len() / 4 - 1;
        let tag = (hash >> 50) as u32;
        let mut at = hash as usize & mask;
        loop {
            let slot = read_slot(self.slots, at)?;
            if slot == 0 {
                return None;
            }
            let rank = (slot & RANK_MASK) - 1;
            if slot >> RANK_BITS == tag && self.token(rank) == Some(token) {
                return Some(rank);
            }
            at = (at + 1) & mask;
        }
    }

    /// The length of the longest token that may begin a text, by its first four bytes, or two.
    pub(crate) fn longest_from(&self, text: &[u8]) -> usize {
        let far = text.first_chunk::<4>().map(|start| {
            let far = self.far.get(start_slot(*start)).copied();
            usize::from(far.unwrap_or(u8::MAX))
        });
        match far {
            Some(0) => self.longest_by_two_bytes(text).min(3),
            Some(far) => far,
            None => self.longest_by_two_bytes(text),
        }
    }

    fn longest_by_two_bytes(&self, text: &[u8]) -> usize {
        let Some(start) = text.first_chunk::<2>() else {
            return text.len();
        };
        let longest = self.longest.get(usize::from(u16::from_le_bytes(*start)));
        usize::from(longest.copied().unwrap_or(u8::MAX))
    }

    /// The two tokens that a token is merged from last; a byte has itself for both.
    pub(crate) fn halves(&self, rank: Rank) -> [Rank; 2] {
        let Some(row) = self.row(rank as usize) else {
            return [rank; 2];
        };
        [row, row >> RANK_BITS].map(|bits| bits as Rank & RANK_MASK)
    }

    /// How many bytes a token has.
    pub(crate) fn length(&self, rank: Rank) -> usize {
        let span = self.span(rank).unwrap_or_default();
        span.end.saturating_sub(span.start)
    }

    fn token(&self, rank: Rank) -> Option<&'static [u8]> {
        self.bytes.get(self.span(rank)?)
    }

    /// Where the bytes of a token are.
    fn span(&self, rank: Rank) -> Option<Range<usize>> {
        let offset = |at| Some((self.row(at)? >> (2 * RANK_BITS)) as usize);
        let at = rank as usize;
        Some(offset(at)?..offset(at + 1)?)
    }

    fn row(&self, at: usize) -> Option<u64> {
        let bytes = self.tokens.get(at * 8..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*bytes))
    }
}

fn read_slot(slots: &[u8], at: usize) -> Option<u32> {
    let bytes = slots.get(at * 4..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}
