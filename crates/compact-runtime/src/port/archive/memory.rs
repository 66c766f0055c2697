//! An archive for programs that keep nothing: as durable as the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use super::{ArchiveError, ArchiveStore, PackId, PackInfo};

/// Packs in memory, uncompressed.
#[derive(Debug, Default)]
pub struct MemoryArchive {
    packs: Mutex<BTreeMap<PackId, MemoryPack>>,
    records: Mutex<BTreeMap<PackId, Bytes>>,
    derived: Mutex<BTreeMap<PackId, Bytes>>,
}

#[derive(Clone, Debug)]
struct MemoryPack {
    plain: Bytes,
    base: Option<PackId>,
}

impl MemoryPack {
    fn to_info(&self, id: PackId) -> PackInfo {
        let bytes = self.plain.len() as u64;
        PackInfo {
            id,
            plain_bytes: bytes,
            stored_bytes: bytes,
            base: self.base,
        }
    }
}

impl MemoryArchive {
    fn lock_packs(&self) -> MutexGuard<'_, BTreeMap<PackId, MemoryPack>> {
        self.packs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_records(&self) -> MutexGuard<'_, BTreeMap<PackId, Bytes>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_derived(&self) -> MutexGuard<'_, BTreeMap<PackId, Bytes>> {
        self.derived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pack(&self, id: &PackId) -> Result<MemoryPack, ArchiveError> {
        let missing = ArchiveError::Missing { pack: *id };
        self.lock_packs().get(id).cloned().ok_or(missing)
    }
}

#[async_trait]
impl ArchiveStore for MemoryArchive {
    async fn put(&self, plain: Bytes, base: Option<&PackId>) -> Result<PackInfo, ArchiveError> {
        let mut packs = self.lock_packs();
        let base = base.filter(|base| packs.contains_key(base)).copied();
        let id = PackId::of(&plain, base.as_ref());
        Ok(packs
            .entry(id)
            .or_insert(MemoryPack { plain, base })
            .to_info(id))
    }

    async fn get(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        self.pack(id).map(|pack| pack.plain)
    }

    async fn info(&self, id: &PackId) -> Result<PackInfo, ArchiveError> {
        self.pack(id).map(|pack| pack.to_info(*id))
    }

    async fn list(&self) -> Result<Vec<PackId>, ArchiveError> {
        Ok(self.lock_packs().keys().copied().collect())
    }

    async fn remove(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.lock_packs().remove(id);
        self.lock_derived().clear();
        Ok(())
    }

    async fn put_record(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError> {
        self.lock_records().insert(*id, plain);
        Ok(())
    }

    async fn get_record(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        let missing = ArchiveError::Missing { pack: *id };
        self.lock_records().get(id).cloned().ok_or(missing)
    }

    async fn list_records(&self) -> Result<Vec<PackId>, ArchiveError> {
        Ok(self.lock_records().keys().copied().collect())
    }

    async fn remove_record(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.lock_records().remove(id);
        self.lock_derived().clear();
        Ok(())
    }

    async fn put_derived(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError> {
        self.lock_derived().insert(*id, plain);
        Ok(())
    }

    async fn get_derived(&self, id: &PackId) -> Result<Option<Bytes>, ArchiveError> {
        Ok(self.lock_derived().get(id).cloned())
    }
}
