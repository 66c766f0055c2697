//! The archive: immutable packs of bytes, named by what they hold.
//!
//! A pack is the exact input of one compaction, the view that was made of it, or what a model said. It
//! may name a *base*, an earlier pack that it resembles, and is then stored as the difference. Which
//! pack belongs to whom is said by *records* beside the packs, one per compaction and session: they are
//! what a catalog is made of again. A record is named by a hash, so no session id ever becomes a path.

pub mod conformance;
mod copy;
mod memory;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use bytes::Bytes;
use compact_core::error::Hinted;
use serde::{Deserialize, Serialize};

pub use copy::{CopiedPacks, copy_packs};
pub use memory::MemoryArchive;

/// The content address of a pack: a hash of its plain bytes and of its base's address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackId(pub [u8; 32]);

impl PackId {
    /// The address of `plain` stored against `base`.
    pub fn of(plain: &[u8], base: Option<&PackId>) -> PackId {
        let mut hasher = blake3::Hasher::new_derive_key("compact archive pack 1");
        match base {
            None => hasher.update(&[0]),
            Some(base) => hasher.update(&[1]).update(&base.0),
        };
        PackId(*hasher.update(plain).finalize().as_bytes())
    }

    /// The address of the record of a receipt in a session. It follows from whose it is and not from
    /// what it says: two sessions that compact the same thing have two, and a record is found without
    /// a catalog.
    pub fn of_record(session: &str, receipt_id: &str) -> PackId {
        let mut hasher = blake3::Hasher::new_derive_key("compact archive record 1");
        hasher.update(&(session.len() as u64).to_le_bytes());
        hasher.update(session.as_bytes());
        PackId(*hasher.update(receipt_id.as_bytes()).finalize().as_bytes())
    }
}

impl fmt::Display for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A text that is no pack id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a pack id: expected 64 lower-case hex digits")]
pub struct InvalidPackId(String);

impl FromStr for PackId {
    type Err = InvalidPackId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidPackId(text.chars().take(80).collect());
        // One spelling only: an id is also a file name, and file names may ignore case.
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(invalid());
        }
        let hash = blake3::Hash::from_hex(text).map_err(|_| invalid())?;
        Ok(PackId(*hash.as_bytes()))
    }
}

impl Serialize for PackId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PackId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What a pack is, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackInfo {
    /// Its address.
    pub id: PackId,
    /// The size of what it holds.
    pub plain_bytes: u64,
    /// The size it takes in the store.
    pub stored_bytes: u64,
    /// The pack that must be present to read this one.
    pub base: Option<PackId>,
}

/// Why the archive could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.sentence())]
#[non_exhaustive]
pub enum ArchiveError {
    /// Nothing is stored under this address.
    Missing {
        /// The address asked for.
        pack: PackId,
    },
    /// A pack is there, but the one that it builds on is not.
    MissingBase {
        /// The pack that names the base.
        pack: PackId,
        /// The absent one.
        base: PackId,
    },
    /// The stored bytes are not what was put there.
    Damaged {
        /// The pack whose own bytes are wrong.
        pack: PackId,
        /// What the check found.
        reason: String,
    },
    /// The pack was written by a later version of this program.
    Newer {
        /// The pack.
        pack: PackId,
        /// Its format.
        found: u32,
    },
    /// The pack is encrypted, and there is no key that opens it.
    Locked {
        /// The pack.
        pack: PackId,
    },
    /// More than one pack may hold.
    TooLarge {
        /// The size asked for.
        bytes: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// Packs from elsewhere that claim to hold more than their size can.
    Inflated {
        /// How many bytes they have.
        stored: u64,
        /// How many they claim to hold.
        plain: u64,
    },
    /// A receipt from elsewhere that would be taken for one that is on record.
    ForeignClash {
        /// The receipt.
        receipt: String,
    },
    /// The store is not as it was configured, or lets nobody in who comes like this.
    Refused {
        /// What was being done.
        action: String,
        /// What is wrong, and where.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// The store does not answer.
    Unreachable {
        /// What was being done.
        action: String,
        /// Who does not answer, and how it shows.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// The store behind the archive failed.
    Store {
        /// What was being done, and to what.
        action: String,
        /// The store's own error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Hinted for ArchiveError {
    fn message(&self) -> String {
        match self {
            ArchiveError::Missing { pack } => format!("pack {pack} is not in the archive"),
            ArchiveError::MissingBase { pack, base } => {
                format!("pack {pack} cannot be read: its base {base} is not in the archive")
            }
            ArchiveError::Damaged { pack, reason } => format!(
                "pack {pack} is damaged ({reason}): restore its file from a backup or remove it"
            ),
            ArchiveError::Newer { pack, found } => format!(
                "pack {pack} has format {found}, which this version does not know: upgrade Compact"
            ),
            ArchiveError::Locked { pack } => format!(
                "pack {pack} is encrypted with a key that is not at hand: name its variable in \
                 storage.archive.key_env"
            ),
            ArchiveError::TooLarge { bytes, limit } => format!(
                "{bytes} bytes are more than the {limit} that one pack may hold: split the input"
            ),
            ArchiveError::Inflated { stored, plain } => format!(
                "packs of {stored} bytes claim to hold {plain}: at most 256 MiB and 1,024 for each are \
                 believed, and nothing was copied"
            ),
            ArchiveError::ForeignClash { receipt } => format!(
                "receipt {receipt} would be taken for another one that is on record: somebody made it up, \
                 and nothing was copied"
            ),
            ArchiveError::Refused { action, reason, .. }
            | ArchiveError::Unreachable { action, reason, .. } => {
                format!("cannot {action}: {reason}")
            }
            ArchiveError::Store { action, .. } => format!("cannot {action}"),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ArchiveError::Refused { hint, .. } | ArchiveError::Unreachable { hint, .. } => {
                Some(hint.clone())
            }
            _ => None,
        }
    }
}

/// Keeps packs. Implementations are safe to share between tasks and processes.
#[async_trait]
pub trait ArchiveStore: Send + Sync {
    /// Stores `plain`, as a difference to `base` where that pays, and returns only once it is
    /// durable. Putting the same thing twice is one pack. The store may leave the base out (it is
    /// unreadable, or the chain of bases is long); the answer says which base, and so which id.
    async fn put(&self, plain: Bytes, base: Option<&PackId>) -> Result<PackInfo, ArchiveError>;

    /// The plain bytes of a pack, checked against its address.
    async fn get(&self, id: &PackId) -> Result<Bytes, ArchiveError>;

    /// What a pack is, from its head alone: nothing is decoded.
    async fn info(&self, id: &PackId) -> Result<PackInfo, ArchiveError>;

    /// Every pack of the store, damaged ones included, in the order of their ids.
    async fn list(&self) -> Result<Vec<PackId>, ArchiveError>;

    /// Every pack with the bytes that it takes; 0 for one that cannot be read.
    async fn list_sizes(&self) -> Result<Vec<(PackId, u64)>, ArchiveError> {
        let mut sizes = Vec::new();
        for id in self.list().await? {
            let info = self.info(&id).await;
            sizes.push((id, info.map_or(0, |info| info.stored_bytes)));
        }
        Ok(sizes)
    }

    /// Reads a pack in full and checks it; an error names the pack that is at fault.
    async fn verify(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.get(id).await.map(drop)
    }

    /// Removes a pack; one that is not there is no error. Packs that build on it become
    /// unreadable, so ask [`reachable_packs`] first.
    async fn remove(&self, id: &PackId) -> Result<(), ArchiveError>;

    /// Keeps a record under an address of [`PackId::of_record`], in place of the one that was there;
    /// returns only once it is durable.
    async fn put_record(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError>;

    /// What was kept under the address of a record, checked.
    async fn get_record(&self, id: &PackId) -> Result<Bytes, ArchiveError>;

    /// The addresses of all records, damaged ones included, in order.
    async fn list_records(&self) -> Result<Vec<PackId>, ArchiveError>;

    /// Removes a record; one that is not there is no error.
    async fn remove_record(&self, id: &PackId) -> Result<(), ArchiveError>;

    /// Keeps what follows from packs and can be made from them again, in place of what was there under the address. A
    /// store need not: this one keeps nothing. One that does removes all of it with any pack and any record.
    async fn put_derived(&self, _id: &PackId, _plain: Bytes) -> Result<(), ArchiveError> {
        Ok(())
    }

    /// What was kept so under an address, checked; `None` where nothing is.
    async fn get_derived(&self, _id: &PackId) -> Result<Option<Bytes>, ArchiveError> {
        Ok(None)
    }
}

/// `roots` and every pack that is needed to read them: what a clean-up must keep. Roots that are
/// gone stay in the answer; there is nothing behind them to protect.
pub async fn reachable_packs(
    store: &dyn ArchiveStore,
    roots: impl IntoIterator<Item = PackId> + Send,
) -> Result<BTreeSet<PackId>, ArchiveError> {
    let mut found = BTreeSet::new();
    let mut open: Vec<PackId> = roots.into_iter().collect();
    while let Some(id) = open.pop() {
        if !found.insert(id) {
            continue;
        }
        match store.info(&id).await {
            Ok(info) => open.extend(info.base),
            Err(ArchiveError::Missing { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(found)
}

/// Counts the stored packs that nothing needs which starts at `roots`. There is none where a pack cannot be read: what
/// it builds on is not known.
pub async fn count_unnamed_packs(
    store: &dyn ArchiveStore,
    roots: impl IntoIterator<Item = PackId> + Send,
) -> Result<usize, ArchiveError> {
    let named = match reachable_packs(store, roots).await {
        Ok(named) => named,
        Err(ArchiveError::Damaged { .. } | ArchiveError::Newer { .. }) => return Ok(0),
        Err(other) => return Err(other),
    };
    let stored = store.list().await?;
    Ok(stored.iter().filter(|pack| !named.contains(pack)).count())
}
