//! What makes two entries the same: a hash of role, texts, calls and results, and a chain of them.
//!
//! Left out on purpose: ids, timestamps, cache markers, reasoning, media, system and tools. Clients
//! change those between two requests of one conversation; the conversation stays the same. JSON that
//! calls and results carry is hashed in its canonical form, whoever wrote it last.

mod canonical;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use canonical::canonical_form;

use crate::halves::map_in_halves;
use crate::message::{Block, Entry};

/// Fewer entries are hashed before a second thread has begun.
const WORTH_A_THREAD: usize = 512;

/// The canonical hash of one entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryHash(pub [u8; 16]);

impl EntryHash {
    /// Hashes an entry in canonical form.
    pub fn from_entry(entry: &Entry) -> Self {
        Self::hash_with(entry, canonical_form)
    }

    /// Hashes an entry with its JSON as it is written: what versions before the canonical form left on
    /// record is known by it.
    pub fn as_written(entry: &Entry) -> Self {
        Self::hash_with(entry, |text| Cow::Borrowed(text))
    }

    fn hash_with(entry: &Entry, spelling: fn(&str) -> Cow<'_, str>) -> Self {
        let mut hasher = blake3::Hasher::new();
        field(&mut hasher, b'R', entry.role.as_str());
        for block in &entry.blocks {
            match block {
                Block::Text(text) => field(&mut hasher, b'T', text),
                Block::ToolCall {
                    name, arguments, ..
                } => {
                    field(&mut hasher, b'C', name);
                    field(&mut hasher, b'A', &spelling(arguments));
                }
                Block::ToolResult { content, .. } => {
                    field(&mut hasher, b'O', &spelling(content));
                }
                Block::Reasoning { .. } | Block::Media { .. } | Block::Opaque { .. } => {}
            }
        }
        EntryHash(truncate(hasher.finalize()))
    }

    /// Hashes every entry of a list.
    pub fn from_entries(entries: &[Entry]) -> Vec<EntryHash> {
        map_in_halves(entries, WORTH_A_THREAD, EntryHash::from_entry)
    }
}

fn field(hasher: &mut blake3::Hasher, tag: u8, text: &str) {
    hasher.update(&[tag]);
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

/// The first half of a hash.
fn truncate(hash: blake3::Hash) -> [u8; 16] {
    let half = hash.as_bytes().first_chunk();
    half.copied().unwrap_or_default()
}

/// Writes bytes as hexadecimal digits.
fn write_hex(bytes: &[u8; 16]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

/// Names a prefix: each link covers every entry before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain(pub [u8; 16]);

impl Chain {
    /// The empty prefix.
    pub const EMPTY: Chain = Chain([0; 16]);

    /// The prefix with one more entry.
    pub(crate) fn with_entry(self, next: EntryHash) -> Chain {
        let both = [self.0, next.0];
        Chain(truncate(blake3::hash(both.as_flattened())))
    }

    /// The chain over a list of hashes.
    pub fn from_hashes(hashes: &[EntryHash]) -> Chain {
        hashes
            .iter()
            .fold(Chain::EMPTY, |chain, hash| chain.with_entry(*hash))
    }

    /// The chain over a history: entries with their hashes, without the instructions at its head.
    pub fn from_history<'a>(entries: impl Iterator<Item = (&'a Entry, &'a EntryHash)>) -> Chain {
        history(entries).fold(Chain::EMPTY, Chain::with_entry)
    }

    /// The chain over every beginning of a history, the shortest first: one entry, two, and so on.
    pub fn prefix_chains<'a>(
        entries: impl Iterator<Item = (&'a Entry, &'a EntryHash)>,
    ) -> Vec<Chain> {
        let mut chain = Chain::EMPTY;
        let longer = |hash| {
            chain = chain.with_entry(hash);
            chain
        };
        history(entries).map(longer).collect()
    }
}

/// The hashes behind the instructions that a host re-sends by itself.
fn history<'a>(
    entries: impl Iterator<Item = (&'a Entry, &'a EntryHash)>,
) -> impl Iterator<Item = EntryHash> {
    let said = entries.skip_while(|(entry, _)| entry.is_leading());
    said.map(|(_, hash)| *hash)
}

macro_rules! hex_text {
    ($($type:ident)*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&write_hex(&self.0))
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&write_hex(&self.0))
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
                parse_hex(&text)
                    .map($type)
                    .ok_or_else(|| serde::de::Error::custom("expected 32 hex digits"))
            }
        }
    )*};
}
hex_text!(EntryHash Chain);

fn parse_hex(text: &str) -> Option<[u8; 16]> {
    let mut out = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}
