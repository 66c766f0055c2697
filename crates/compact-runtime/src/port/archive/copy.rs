//! From one archive to another: every pack under the same id. Records are the caller's to write.

use std::collections::BTreeSet;

use super::{ArchiveError, ArchiveStore, PackId};

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopiedPacks {
    /// Packs that the other archive did not have.
    pub packs: u64,
    /// The size of what they hold.
    pub bytes: u64,
}

/// What packs may hold together that come from elsewhere, however small they are; beyond it they need a byte
/// for every [`MAX_RATIO`] bytes. Ordinary archives, in which each compaction repeats the one before, have
/// one for every few hundred at most.
const FREE_BYTES: u64 = 256 << 20;

/// How many bytes each stored byte may stand for.
const MAX_RATIO: u64 = 1024;

/// Copies the packs that `to` does not have. Each is read and checked on the way; it is stored as `to`
/// stores, encrypted or not. What was copied stays when a later pack fails, so it can be repeated. Packs
/// that claim to hold more than `FREE_BYTES` and their size allow are refused before any is read.
pub async fn copy_packs(
    from: &dyn ArchiveStore,
    to: &dyn ArchiveStore,
) -> Result<CopiedPacks, ArchiveError> {
    let mut there: BTreeSet<PackId> = to.list().await?.into_iter().collect();
    let listed = from.list().await?;
    check_size(from, listed.iter().filter(|id| !there.contains(id))).await?;
    let mut copied = CopiedPacks::default();
    for pack in listed {
        // A pack is stored as the difference to its base, so that must be there first.
        for id in missing_packs(from, pack, &there).await? {
            copied.bytes += copy_one(from, to, id).await?;
            copied.packs += 1;
            there.insert(id);
        }
    }
    Ok(copied)
}

/// Refuses packs that were made to keep whoever reads them busy.
async fn check_size(
    from: &dyn ArchiveStore,
    packs: impl Iterator<Item = &PackId>,
) -> Result<(), ArchiveError> {
    let (mut plain, mut stored) = (0_u64, 0_u64);
    for id in packs {
        let info = from.info(id).await?;
        plain = plain.saturating_add(info.plain_bytes);
        stored = stored.saturating_add(info.stored_bytes);
    }
    let limit = FREE_BYTES.saturating_add(stored.saturating_mul(MAX_RATIO));
    match plain > limit {
        true => Err(ArchiveError::Inflated { stored, plain }),
        false => Ok(()),
    }
}

/// The pack and the bases that are not there yet, the lowest first.
async fn missing_packs(
    from: &dyn ArchiveStore,
    pack: PackId,
    there: &BTreeSet<PackId>,
) -> Result<Vec<PackId>, ArchiveError> {
    let mut line = Vec::new();
    let mut next = Some(pack);
    while let Some(id) = next.filter(|id| !there.contains(id) && !line.contains(id)) {
        line.push(id);
        next = from.info(&id).await?.base;
    }
    line.reverse();
    Ok(line)
}

async fn copy_one(
    from: &dyn ArchiveStore,
    to: &dyn ArchiveStore,
    id: PackId,
) -> Result<u64, ArchiveError> {
    let base = from.info(&id).await?.base;
    let plain = from.get(&id).await?;
    let bytes = plain.len() as u64;
    let stored = to.put(plain, base.as_ref()).await?;
    if stored.id == id {
        return Ok(bytes);
    }
    Err(ArchiveError::Store {
        action: format!("copy pack {id}"),
        source: format!("the other archive stored it as {}", stored.id).into(),
    })
}
