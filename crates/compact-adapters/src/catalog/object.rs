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
    /// The catalog in a store; nothing is read before it is asked.
    pub fn new(store: Arc<dyn ObjectStore>) -> ObjectCatalog {
        ObjectCatalog {
            store,
            known: MemoryCatalog::default(),
            places: Mutex::default(),
        }
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<Path, (String, String)>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, session: &str, receipt: &str) -> Option<Path> {
        let places = self.places();
        let found = places
            .iter()
            .find(|(_, (of, id))| of == session && id == receipt);
        found.map(|(place, _)| place.clone())
    }

    /// Reads what was recorded below a folder since it was last looked at.
    async fn refresh(&self, folder: &Path) -> Result<(), CatalogError> {
        let listed = self.store.list(Some(folder)).try_collect::<Vec<_>>().await;
        let listed = listed.map_err(|source| failed("list the records", source))?;
        let mut new = Vec::new();
        for meta in listed {
            if !self.places().contains_key(&meta.location) {
                new.extend(self.read(meta.location).await?);
            }
        }
        new.sort_by(|(one, a), (other, b)| (&a.created_at, one).cmp(&(&b.created_at, other)));
        for (place, record) in new {
            self.known.record(&record).await?;
            let key = (record.session_id, record.receipt_id);
            self.places().insert(place, key);
        }
        Ok(())
    }

    /// The record at a place; none where it has just been removed.
    async fn read(&self, place: Path) -> Result<Option<(Path, CompactionRecord)>, CatalogError> {
        let bytes = match self.store.get(&place).await {
            Ok(found) => found.bytes().await,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => Err(error),
        };
        let bytes = bytes.map_err(|source| failed("read a record", source))?;
        let record = serde_json::from_slice(&bytes).map_err(|error| CatalogError::Damaged {
            place: place.to_string(),
            reason: error.to_string(),
        })?;
        Ok(Some((place, record)))
    }

    /// Writes what is known of a receipt.
    async fn save(&self, session: &str, receipt: &str) -> Result<(), CatalogError> {
        let chain = self.known.chain(session).await?;
        let nth = chain.iter().position(|known| known.receipt_id == receipt);
        let Some((nth, record)) = nth.and_then(|nth| Some((nth, chain.get(nth)?))) else {
            return Ok(());
        };
        let new = || folder_of(session).join(format!("{nth:08}-{receipt}.json"));
        let place = self.place(session, receipt).unwrap_or_else(new);
        let json = serde_json::to_vec(record).map_err(|source| failed("write a record", source))?;
        let written = self.store.put(&place, json.into()).await;
        written.map_err(|source| failed("write a record", source))?;
        let key = (session.to_owned(), receipt.to_owned());
        self.places().insert(place, key);
        Ok(())
    }

    /// Makes a record that is in memory last; one that cannot is forgotten again.
    async fn keep(&self, record: &CompactionRecord, is_new: IsNew) -> Result<(), CatalogError> {
        let (session, receipt) = (&record.session_id, &record.receipt_id);
        let kept = self.save(session, receipt).await;
        if kept.is_err() && is_new == IsNew::Yes {
            self.known.remove_receipt(session, receipt).await?;
        }
        kept
    }

    async fn is_new(&self, record: &CompactionRecord) -> Result<IsNew, CatalogError> {
        self.refresh(&folder_of(&record.session_id)).await?;
        let place = self.place(&record.session_id, &record.receipt_id);
        Ok(place.map_or(IsNew::Yes, |_| IsNew::No))
    }

    async fn erase(
        &self,
        is_meant: impl Fn(&str, &str) -> bool + Send,
    ) -> Result<(), CatalogError> {
        let meant =
            |(_, (session, receipt)): &(&Path, &(String, String))| is_meant(session, receipt);
        let gone: Vec<Path> = self
            .places()
            .iter()
            .filter(meant)
            .map(|(p, _)| p.clone())
            .collect();
        for place in gone {
            match self.store.delete(&place).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(source) => return Err(failed("remove a record", source)),
            }
            self.places().remove(&place);
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

fn all() -> Path {
    Path::from(PREFIX)
}

/// A session id is no path: its hash is.
fn folder_of(session: &str) -> Path {
    let hash = blake3::hash(session.as_bytes()).to_hex();
    Path::from_iter([PREFIX, &hash])
}

fn failed(
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
    async fn record(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        let is_new = self.is_new(record).await?;
        self.known.record(record).await?;
        self.keep(record, is_new).await
    }

    async fn record_under(
        &self,
        lease: &Lease,
        record: &CompactionRecord,
    ) -> Result<(), CatalogError> {
        let is_new = self.is_new(record).await?;
        self.known.record_under(lease, record).await?;
        self.keep(record, is_new).await
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

    async fn by_receipt(&self, receipt: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        self.refresh(&all()).await?;
        self.known.by_receipt(receipt).await
    }

    async fn chain(&self, session: &str) -> Result<Vec<CompactionRecord>, CatalogError> {
        self.refresh(&folder_of(session)).await?;
        self.known.chain(session).await
    }

    async fn sessions_with(
        &self,
        histories: &[Chain],
    ) -> Result<Vec<(String, Chain)>, CatalogError> {
        self.refresh(&all()).await?;
        self.known.sessions_with(histories).await
    }

    async fn sessions(&self) -> Result<Vec<SessionInfo>, CatalogError> {
        self.refresh(&all()).await?;
        self.known.sessions().await
    }

    async fn save_event(&self, session: &str, event: &Value) -> Result<(), CatalogError> {
        self.known.save_event(session, event).await
    }

    async fn events(&self, session: &str) -> Result<Vec<Value>, CatalogError> {
        self.known.events(session).await
    }

    async fn record_attempt(&self, session: &str, attempt: &Attempt) -> Result<(), CatalogError> {
        self.known.record_attempt(session, attempt).await
    }

    async fn last_attempt(&self, session: &str) -> Result<Option<Attempt>, CatalogError> {
        self.known.last_attempt(session).await
    }

    async fn packs(&self) -> Result<Vec<PackId>, CatalogError> {
        self.refresh(&all()).await?;
        self.known.packs().await
    }

    async fn remove_receipt(&self, session: &str, receipt: &str) -> Result<(), CatalogError> {
        self.refresh(&folder_of(session)).await?;
        self.erase(|of, id| of == session && id == receipt).await?;
        self.known.remove_receipt(session, receipt).await
    }

    async fn remove_session(&self, session: &str) -> Result<(), CatalogError> {
        self.refresh(&folder_of(session)).await?;
        self.erase(|of, _| of == session).await?;
        self.known.remove_session(session).await
    }
}

#[cfg(test)]
mod tests {
    use compact_runtime::port::catalog::conformance::{sample, suite};
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
        let first = sample("s", "receipt-1");
        one.record(&first).await.unwrap();
        assert_eq!(other.chain("s").await.unwrap(), vec![first.clone()]);
        let second = sample("s", "receipt-2");
        other.record(&second).await.unwrap();
        let whole = vec![first, second.clone()];
        assert_eq!(one.chain("s").await.unwrap(), whole);
        assert_eq!(one.by_receipt("receipt-2").await.unwrap(), Some(second));
        let later = ObjectCatalog::new(store);
        assert_eq!(later.sessions().await.unwrap().len(), 1);
        later.remove_session("s").await.unwrap();
        let left = ObjectCatalog::new(Arc::clone(&later.store));
        assert_eq!(left.chain("s").await.unwrap(), vec![]);
    }
}
