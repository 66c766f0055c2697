//! What the hooks archived, as part of what is recalled.
//!
//! Their copies stay plain files that a person may remove; nothing is stored twice. A copy goes by a
//! receipt of its own, the hash of its place, and is read when somebody asks: a file that is gone is
//! forgotten with the next question. Nothing is written through here but to the store beneath.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use compact_core::identity::EntryHash;
use compact_formats::{Scope, parse};
use compact_runtime::port::archive::{ArchiveError, ArchiveStore, PackId, PackInfo};
use compact_runtime::port::catalog::{
    Attempt, CatalogError, CompactionRecord, Continues, Lease, SessionCatalog, SessionInfo,
};
use jiff::Timestamp;
use jiff::civil::DateTime;
use serde_json::{Value, json};

use super::shelf;

/// A store with the hooks' archives beside it.
pub struct Library<S: ?Sized> {
    beneath: Arc<S>,
    copies: Vec<Copy>,
}

/// One file that a hook archived.
#[derive(Clone, Debug)]
struct Copy {
    file: PathBuf,
    session: String,
    at: Timestamp,
    is_exact: bool,
}

impl<S: ?Sized> Library<S> {
    /// A store, and what lies below the folder of all hooks.
    pub fn new(beneath: Arc<S>, hooks: &Path) -> Library<S> {
        let mut copies: Vec<Copy> = files(hooks).filter_map(Copy::of).collect();
        copies.sort_by(|a, b| (a.at, &a.file).cmp(&(b.at, &b.file)));
        Library { beneath, copies }
    }

    fn of_session(&self, session: &str) -> impl DoubleEndedIterator<Item = &Copy> {
        self.copies.iter().filter(move |c| c.session == session)
    }
}

/// True when a hook archived something.
pub fn has_copies(hooks: &Path) -> bool {
    files(hooks).any(|file| Copy::of(file).is_some())
}

fn files(hooks: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = fs::read_dir(hooks).into_iter().flatten().flatten();
    let archives = folders.flat_map(|folder| fs::read_dir(folder.path().join("archives")));
    archives.flatten().flatten().map(|entry| entry.path())
}

impl Copy {
    /// Reads what a name says: `{session}_{date}_{time}_{micros}_transcript`.
    fn of(file: PathBuf) -> Option<Copy> {
        let stem = file.file_stem()?.to_str()?;
        let mut parts = stem.rsplitn(5, '_');
        let kind = parts.next()?.strip_prefix("transcript")?.to_owned();
        let (micros, time, date) = (parts.next()?, parts.next()?, parts.next()?);
        let stamp = format!("{date}{time}.{micros}");
        let at = DateTime::strptime("%Y%m%d%H%M%S.%f", stamp).ok()?;
        Some(Copy {
            session: parts.next()?.to_owned(),
            at: at.in_tz("UTC").ok()?.timestamp(),
            is_exact: !kind.starts_with(shelf::REDACTED),
            file,
        })
    }

    fn pack(&self) -> PackId {
        shelf::receipt_of(&self.file)
    }

    fn receipt(&self) -> String {
        self.pack().to_string()
    }

    /// The record of a compaction that took everything; `None` for a file that nobody can read.
    fn record(&self) -> Option<CompactionRecord> {
        let bytes = shelf::read(&self.file).ok()?;
        let parsed = parse(Bytes::from(bytes), None, Scope::Whole).ok()?;
        Some(CompactionRecord {
            receipt_id: self.receipt(),
            session_id: self.session.clone(),
            created_at: self.at.to_string(),
            summary_version: 0,
            previous: None,
            input_pack: Some(self.pack()),
            format: parsed.document.format().name().to_owned(),
            receipt: json!({ "exact": self.is_exact }),
            entry_hashes: EntryHash::all(&parsed.conversation.entries),
            view_hashes: Vec::new(),
            new_from: 0,
            continues: Continues::Transcript,
        })
    }
}

#[async_trait]
impl ArchiveStore for Library<dyn ArchiveStore> {
    async fn put(&self, plain: Bytes, base: Option<&PackId>) -> Result<PackInfo, ArchiveError> {
        self.beneath.put(plain, base).await
    }

    async fn get(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        let copy = self.copies.iter().find(|copy| copy.pack() == *id);
        match copy.and_then(|copy| shelf::read(&copy.file).ok()) {
            Some(bytes) => Ok(Bytes::from(bytes)),
            None => self.beneath.get(id).await,
        }
    }

    async fn info(&self, id: &PackId) -> Result<PackInfo, ArchiveError> {
        self.beneath.info(id).await
    }

    async fn list(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.beneath.list().await
    }

    async fn remove(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.beneath.remove(id).await
    }
}

#[async_trait]
impl SessionCatalog for Library<dyn SessionCatalog> {
    async fn record(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        self.beneath.record(record).await
    }

    async fn record_under(
        &self,
        lease: &Lease,
        record: &CompactionRecord,
    ) -> Result<(), CatalogError> {
        self.beneath.record_under(lease, record).await
    }

    fn lease_time(&self) -> std::time::Duration {
        self.beneath.lease_time()
    }

    async fn claim(&self, session: &str) -> Result<Option<Lease>, CatalogError> {
        self.beneath.claim(session).await
    }

    async fn renew(&self, lease: &Lease) -> Result<bool, CatalogError> {
        self.beneath.renew(lease).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), CatalogError> {
        self.beneath.release(lease).await
    }

    async fn by_receipt(&self, receipt_id: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        let is_short = receipt_id.len() < compact_runtime::port::catalog::MIN_PREFIX;
        let mut copies = self.copies.iter();
        let copy = copies.find(|copy| !is_short && copy.receipt().starts_with(receipt_id));
        match copy.and_then(Copy::record) {
            Some(record) => Ok(Some(record)),
            None => self.beneath.by_receipt(receipt_id).await,
        }
    }

    async fn latest(&self, session: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        match self.of_session(session).next_back().and_then(Copy::record) {
            Some(record) => Ok(Some(record)),
            None => self.beneath.latest(session).await,
        }
    }

    async fn chain(&self, session: &str) -> Result<Vec<CompactionRecord>, CatalogError> {
        let mut chain = self.beneath.chain(session).await?;
        chain.extend(self.of_session(session).filter_map(Copy::record));
        Ok(chain)
    }

    async fn sessions(&self) -> Result<Vec<SessionInfo>, CatalogError> {
        let mut sessions = self.beneath.sessions().await?;
        let mut more: BTreeMap<&str, Vec<&Copy>> = BTreeMap::new();
        for copy in &self.copies {
            more.entry(&copy.session).or_default().push(copy);
        }
        for info in &mut sessions {
            if let Some(copies) = more.remove(info.session_id.as_str()) {
                info.compactions += copies.len() as u64;
            }
        }
        sessions.extend(more.into_iter().map(|(session, copies)| SessionInfo {
            session_id: session.to_owned(),
            compactions: copies.len() as u64,
            last_receipt: copies.last().map(|copy| copy.receipt()),
            last_at: copies.last().map(|copy| copy.at.to_string()),
            format: None,
        }));
        Ok(sessions)
    }

    async fn save_event(&self, session: &str, event: &Value) -> Result<(), CatalogError> {
        self.beneath.save_event(session, event).await
    }

    async fn events(&self, session: &str) -> Result<Vec<Value>, CatalogError> {
        self.beneath.events(session).await
    }

    async fn record_attempt(&self, session: &str, attempt: &Attempt) -> Result<(), CatalogError> {
        self.beneath.record_attempt(session, attempt).await
    }

    async fn last_attempt(&self, session: &str) -> Result<Option<Attempt>, CatalogError> {
        self.beneath.last_attempt(session).await
    }

    async fn packs(&self) -> Result<Vec<PackId>, CatalogError> {
        self.beneath.packs().await
    }

    async fn remove_receipt(&self, session: &str, receipt_id: &str) -> Result<(), CatalogError> {
        self.beneath.remove_receipt(session, receipt_id).await
    }

    async fn remove_session(&self, session: &str) -> Result<(), CatalogError> {
        self.beneath.remove_session(session).await
    }
}
