//! The tokens of an encoding with their ranks, as tables that the build script laid out.

use crate::Encoding;
use crate::hash::{hash_bytes, start_slot};

/// Bits of a slot that hold a rank plus one; the others hold bits of the token's hash.
const RANK_BITS: u32 = 18;

/// A token's place in the order of merges: the lower, the earlier.
pub(crate) type Rank = u32;

/// A hash table from bytes to ranks. Numbers are little-endian and have four bytes.
pub(crate) struct Vocabulary {
    /// Open addressing, a power of two, no deletions.
    slots: &'static [u8],
    /// Where the bytes of each token begin, and where the last ends.
    offsets: &'static [u8],
    bytes: &'static [u8],
    /// The ranks of the two tokens that each is merged from last; a byte has itself for both.
    halves: &'static [u8],
    /// The length of the longest token that begins with two bytes, by these as a number.
    longest: &'static [u8],
    /// The same for four bytes, by their slot; 0 where no token begins so.
    far: &'static [u8],
}

macro_rules! vocabulary {
    ($name:literal) => {
        Vocabulary {
            slots: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".slots")),
            offsets: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".offsets")),
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bytes")),
            halves: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".halves")),
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
            let slot = read_number(self.slots, at)?;
            if slot == 0 {
                return None;
            }
            let rank = (slot & ((1 << RANK_BITS) - 1)) - 1;
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
        let half = |nth| read_number(self.halves, rank as usize * 2 + nth);
        [half(0).unwrap_or(rank), half(1).unwrap_or(rank)]
    }

    /// How many bytes a token has.
    pub(crate) fn length(&self, rank: Rank) -> usize {
        let offset = |nth| read_number(self.offsets, rank as usize + nth).unwrap_or(0);
        offset(1).saturating_sub(offset(0)) as usize
    }

    fn token(&self, rank: Rank) -> Option<&'static [u8]> {
        let start = read_number(self.offsets, rank as usize)? as usize;
        let end = read_number(self.offsets, rank as usize + 1)? as usize;
        self.bytes.get(start..end)
    }
}

fn read_number(numbers: &[u8], at: usize) -> Option<u32> {
    let bytes = numbers.get(at * 4..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}
