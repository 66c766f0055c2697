//! Remembers what short pieces cost: a text repeats its words.
//!
//! A direct-mapped table for each thread and encoding. A piece whose slot holds another takes it over.

use std::cell::RefCell;

use crate::Encoding;
use crate::merge::Scratch;
use crate::split::Piece;

/// Slots of a table. 16,384 are half a megabyte, and hold most of the words of a session.
const SLOTS: usize = 1 << 14;

/// Bytes of the longest piece that is remembered: with its length it fills a key of 16 bytes.
const LONGEST: usize = 15;

thread_local! {
    static O200K: RefCell<PieceCache> = RefCell::default();
    static CL100K: RefCell<PieceCache> = RefCell::default();
}

/// What pieces cost.
#[derive(Default)]
pub(crate) struct PieceCache {
    slots: Vec<CachedPiece>,
    scratch: Scratch,
}

#[derive(Clone, Copy, Default)]
struct CachedPiece {
    /// The piece and its length; no piece has the key 0.
    key: u128,
    tokens: u32,
}

/// The slots, borrowed for one text.
pub(crate) struct CacheSlots<'a>(&'a mut [CachedPiece]);

impl PieceCache {
    /// Works with this thread's cache. Nothing that it calls may count again.
    pub(crate) fn with<T>(
        encoding: Encoding,
        work: impl FnOnce(&mut CacheSlots<'_>, &mut Scratch) -> T,
    ) -> T {
        let cell = match encoding {
            Encoding::O200k => &O200K,
            Encoding::Cl100k => &CL100K,
        };
        cell.with_borrow_mut(|cache| {
            cache.slots.resize(SLOTS, CachedPiece::default());
            work(&mut CacheSlots(&mut cache.slots), &mut cache.scratch)
        })
    }
}

impl CacheSlots<'_> {
    /// What a piece costs, counted if it is not remembered.
    #[inline]
    pub(crate) fn count_or(
        &mut self,
        piece: Piece<'_>,
        count: impl FnOnce(&[u8]) -> usize,
    ) -> usize {
        let Some(key) = key_of(piece) else {
            return count(piece.bytes());
        };
        let folded = (key as u64) ^ ((key >> 64) as u64).rotate_left(23);
        let at = (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50) as usize;
        let Some(slot) = self.0.get_mut(at) else {
            return count(piece.bytes());
        };
        if slot.key != key {
            let tokens = count(piece.bytes()) as u32;
            *slot = CachedPiece { key, tokens };
        }
        slot.tokens as usize
    }
}

/// The bytes of a piece with their number; `None` when they are too many.
#[inline]
fn key_of(piece: Piece<'_>) -> Option<u128> {
    if piece.length > LONGEST {
        return None;
    }
    let bytes = match piece.from.first_chunk::<16>() {
        Some(chunk) => u128::from_le_bytes(*chunk),
        None => piece
            .from
            .iter()
            .rev()
            .fold(0, |key, byte| key << 8 | u128::from(*byte)),
    };
    let mask = (1u128 << (8 * piece.length)) - 1;
    Some(bytes & mask | (piece.length as u128) << 120)
}
