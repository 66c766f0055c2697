//! From one archive to another: every pack under the same id.

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

/// Copies what `to` does not have. Each pack is read and checked on the way; it is stored as `to`
/// stores, encrypted or not. What was copied stays when a later pack fails, so it can be repeated.
/// Records at the addresses of `except` are left to the caller.
pub async fn copy_archive(
    from: &dyn ArchiveStore,
    to: &dyn ArchiveStore,
    except: &BTreeSet<PackId>,
) -> Result<CopiedPacks, ArchiveError> {
    let mut there: BTreeSet<PackId> = to.list().await?.into_iter().collect();
    let mut copied = CopiedPacks::default();
    for pack in from.list().await? {
        // A pack is stored as the difference to its base, so that must be there first.
        for id in missing_packs(from, pack, &there).await? {
            copied.bytes += copy_one(from, to, id).await?;
            copied.packs += 1;
            there.insert(id);
        }
    }
    // Records last: none ever names a pack that is not there.
    let records = from.list_records().await?;
    for id in records.into_iter().filter(|id| !except.contains(id)) {
        to.put_record(&id, from.get_record(&id).await?).await?;
    }
    Ok(copied)
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
