//! Remembers what long texts cost. A compaction counts a long result several times: to measure it, to see how far it must
//! be cut, and to write what is left of it.
//!
//! A direct-mapped table for all threads, keyed by the hash of the text. A text whose slot holds another takes it over.

use std::sync::{Mutex, PoisonError};

use blake3::Hash;
use compact_bpe::Encoding;

/// Shorter texts are counted as quickly as they are found again.
const LONG: usize = 16 << 10;

/// How many texts are remembered: 10 kB for all of them.
const SLOTS: usize = 256;

static COUNTS: Mutex<[Option<(Hash, usize)>; SLOTS]> = Mutex::new([None; SLOTS]);

/// Counts the tokens of a text, or remembers what they came to.
pub(super) fn count_tokens(encoding: Encoding, text: &str) -> usize {
    if text.len() < LONG {
        return encoding.count(text);
    }
    let key = key_of(encoding, text);
    let slot = usize::from(*key.as_bytes().first().unwrap_or(&0));
    let table = || COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Some((known, count))) = table().get(slot)
        && *known == key
    {
        return *count;
    }
    let count = encoding.count(text);
    if let Some(place) = table().get_mut(slot) {
        *place = Some((key, count));
    }
    count
}

fn key_of(encoding: Encoding, text: &str) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(match encoding {
        Encoding::O200k => b"o",
        Encoding::Cl100k => b"c",
    });
    hasher.update(text.as_bytes()).finalize()
}
