//! A catalog in any object store: one small object per compaction, for programs that keep everything
//! in a store of their own.
//!
//! What is on record is read once and kept in memory; before each answer the names are listed, so what
//! another process recorded is seen. Leases, events and attempts are this process's own: a session is
//! for one process at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use compact_core::identity::Chain;
use compact_runtime::port::archive::PackId;
use compact_runtime::port::catalog::{
    Attempt, CatalogError, CompactionRecord, Lease, MemoryCatalog, SessionCatalog, SessionInfo,
};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::Value;

const PREFIX: &str = "catalog";

/// Records in an object store.
#[derive(Debug)]
pub struct ObjectCatalog {
    store: Arc<dyn ObjectStore>,
    known: MemoryCatalog,
    /// Where the record of each session and receipt is.
    places: Mutex<BTreeMap<Path, (String, String)>>,
}

impl ObjectCatalog {
    /// Returns the catalog in a store; nothing is read before it is asked.
    pub fn new(store: Arc<dyn ObjectStore>) -> ObjectCatalog {
        ObjectCatalog {
            store,
            known: MemoryCatalog::default(),
            places: Mutex::default(),
        }
    }

    fn lock_locations(&self) -> MutexGuard<'_, BTreeMap<Path, (String, String)>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_location(&self, session: &str, receipt: &str) -> Option<Path> {
        let places = self.lock_locations();
        let found = places
            .iter()
            .find(|(_, (of, id))| of == session && id == receipt);
        found.map(|(place, _)| place.clone())
    }

    /// Reads what was recorded below a folder since it was last looked at.
    async fn refresh(&self, folder: &Path) -> Result<(), CatalogError> {
        let listed = self.store.list(Some(folder)).try_collect::<Vec<_>>().await;
        let listed = listed.map_err(|source| object_catalog_error("list the records", source))?;
        let mut new = Vec::new();
        for meta in listed {
            if !self.lock_locations().contains_key(&meta.location) {
                new.extend(self.fetch_record(meta.location).await?);
            }
        }
        new.sort_by(|(one, a), (other, b)| (&a.created_at, one).cmp(&(&b.created_at, other)));
        for (place, record) in new {
            self.known.save_record(&record).await?;
            let key = (record.session_id, record.receipt_id);
            self.lock_locations().insert(place, key);
        }
        Ok(())
    }

    /// Returns the record at a place; none where it has just been removed.
    async fn fetch_record(
        &self,
        place: Path,
    ) -> Result<Option<(Path, CompactionRecord)>, CatalogError> {
        let bytes = match self.store.get(&place).await {
            Ok(found) => found.bytes().await,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => Err(error),
        };
        let bytes = bytes.map_err(|source| object_catalog_error("read a record", source))?;
        let record = serde_json::from_slice(&bytes).map_err(|error| CatalogError::Damaged {
            place: place.to_string(),
            reason: error.to_string(),
        })?;
        Ok(Some((place, record)))
    }

    /// Writes what is known of a receipt.
    async fn write_record(&self, session: &str, receipt: &str) -> Result<(), CatalogError> {
        let chain = self.known.session_records(session).await?;
        let nth = chain.iter().position(|known| known.receipt_id == receipt);
        let Some((nth, record)) = nth.and_then(|nth| Some((nth, chain.get(nth)?))) else {
            return Ok(());
        };
        let new = || session_folder(session).join(format!("{nth:08}-{receipt}.json"));
        let place = self.find_location(session, receipt).unwrap_or_else(new);
        let json = serde_json::to_vec(record)
            .map_err(|source| object_catalog_error("write a record", source))?;
        let written = self.store.put(&place, json.into()).await;
        written.map_err(|source| object_catalog_error("write a record", source))?;
        let key = (session.to_owned(), receipt.to_owned());
        self.lock_locations().insert(place, key);
        Ok(())
    }

    /// Makes a record that is in memory last; one that cannot is forgotten again.
    async fn persist_record(
        &self,
        record: &CompactionRecord,
        is_new: IsNew,
    ) -> Result<(), CatalogError> {
        let (session, receipt) = (&record.session_id, &record.receipt_id);
        let kept = self.write_record(session, receipt).await;
        if kept.is_err() && is_new == IsNew::Yes {
            self.known.remove_receipt(session, receipt).await?;
        }
        kept
    }

    async fn is_new(&self, record: &CompactionRecord) -> Result<IsNew, CatalogError> {
        self.refresh(&session_folder(&record.session_id)).await?;
        let place = self.find_location(&record.session_id, &record.receipt_id);
        Ok(place.map_or(IsNew::Yes, |_| IsNew::No))
    }

    async fn delete_records(
        &self,
        is_meant: impl Fn(&str, &str) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let meant =
            |(_, (session, receipt)): &(&Path, &(String, String))| is_meant(session, receipt);
        let gone: Vec<Path> = self
            .lock_locations()
            .iter()
            .filter(meant)
            .map(|(p, _)| p.clone())
            .collect();
        for place in gone {
            match self.store.delete(&place).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(source) => return Err(object_catalog_error("remove a record", source)),
            }
            self.lock_locations().remove(&place);
        }
        Ok(())
    }
}

/// Whether a receipt was on record before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsNew {
    Yes,
    No,
}

fn root_folder() -> Path {
    Path::from(PREFIX)
}

/// Returns the folder of a session, named by a hash because a session id is not a path.
fn session_folder(session: &str) -> Path {
    let hash = blake3::hash(session.as_bytes()).to_hex();
    Path::from_iter([PREFIX, &hash])
}

fn object_catalog_error(
    action: &str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> CatalogError {
    CatalogError::Store {
        action: action.to_owned(),
        source: source.into(),
    }
}

#[async_trait]
impl SessionCatalog for ObjectCatalog {
    async fn save_record(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        let is_new = self.is_new(record).await?;
        self.known.save_record(record).await?;
        self.persist_record(record, is_new).await
    }

    async fn save_record_under(
        &self,
        lease: &Lease,
        record: &CompactionRecord,
    ) -> Result<(), CatalogError> {
        let is_new = self.is_new(record).await?;
        self.known.save_record_under(lease, record).await?;
        self.persist_record(record, is_new).await
    }

    fn lease_time(&self) -> Duration {
        self.known.lease_time()
    }

    async fn claim(&self, session: &str) -> Result<Option<Lease>, CatalogError> {
        self.known.claim(session).await
    }

    async fn renew(&self, lease: &Lease) -> Result<bool, CatalogError> {
        self.known.renew(lease).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), CatalogError> {
        self.known.release(lease).await
    }

    async fn find_record(&self, receipt: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        self.refresh(&root_folder()).await?;
        self.known.find_record(receipt).await
    }

    async fn session_records(&self, session: &str) -> Result<Vec<CompactionRecord>, CatalogError> {
        self.refresh(&session_folder(session)).await?;
        self.known.session_records(session).await
    }

    async fn find_sessions(
        &self,
        histories: &[Chain],
    ) -> Result<Vec<(String, Chain)>, CatalogError> {
        self.refresh(&root_folder()).await?;
        self.known.find_sessions(histories).await
    }

    async fn sessions(&self) -> Result<Vec<SessionInfo>, CatalogError> {
        self.refresh(&root_folder()).await?;
        self.known.sessions().await
    }

    async fn save_event(&self, session: &str, event: &Value) -> Result<(), CatalogError> {
        self.known.save_event(session, event).await
    }

    async fn events(&self, session: &str) -> Result<Vec<Value>, CatalogError> {
        self.known.events(session).await
    }

    async fn save_attempt(&self, session: &str, attempt: &Attempt) -> Result<(), CatalogError> {
        self.known.save_attempt(session, attempt).await
    }

    async fn last_attempt(&self, session: &str) -> Result<Option<Attempt>, CatalogError> {
        self.known.last_attempt(session).await
    }

    async fn referenced_packs(&self) -> Result<Vec<PackId>, CatalogError> {
        self.refresh(&root_folder()).await?;
        self.known.referenced_packs().await
    }

    async fn remove_receipt(&self, session: &str, receipt: &str) -> Result<(), CatalogError> {
        self.refresh(&session_folder(session)).await?;
        self.delete_records(|of, id| of == session && id == receipt)
            .await?;
        self.known.remove_receipt(session, receipt).await
    }

    async fn remove_session(&self, session: &str) -> Result<(), CatalogError> {
        self.refresh(&session_folder(session)).await?;
        self.delete_records(|of, _| of == session).await?;
        self.known.remove_session(session).await
    }
}

#[cfg(test)]
mod tests {
    use compact_runtime::port::catalog::conformance::{sample_record, suite};
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn it_is_a_catalog() {
        suite(&ObjectCatalog::new(Arc::new(InMemory::new()))).await;
    }

    #[tokio::test]
    async fn what_one_process_records_another_finds() {
        let store = Arc::new(InMemory::new());
        let (one, other) = (
            ObjectCatalog::new(store.clone()),
            ObjectCatalog::new(store.clone()),
        );
        let first = sample_record("s", "receipt-1");
        one.save_record(&first).await.unwrap();
        assert_eq!(
            other.session_records("s").await.unwrap(),
            vec![first.clone()]
        );
        let second = sample_record("s", "receipt-2");
        other.save_record(&second).await.unwrap();
        let whole = vec![first, second.clone()];
        assert_eq!(one.session_records("s").await.unwrap(), whole);
        assert_eq!(one.find_record("receipt-2").await.unwrap(), Some(second));
        let later = ObjectCatalog::new(store);
        assert_eq!(later.sessions().await.unwrap().len(), 1);
        later.remove_session("s").await.unwrap();
        let left = ObjectCatalog::new(Arc::clone(&later.store));
        assert_eq!(left.session_records("s").await.unwrap(), vec![]);
    }
}
