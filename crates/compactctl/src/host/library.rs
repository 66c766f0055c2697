//! What hooks archived and runs kept, as part of the archive: listed, restored, verified, recalled and
//! pruned like what was compacted.
//!
//! Both stay plain files that a person may remove; nothing is stored twice. A file goes by a receipt
//! of its own, the hash of its place, and is read when somebody asks: one that is gone is forgotten
//! with the next question. What is written goes to the store beneath.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use compact_adapters::run::{KeptSession, kept_sessions};
use compact_adapters::shelf::{self, HookArchive};
use compact_core::identity::{Chain, EntryHash};
use compact_formats::{Scope, parse};
use compact_runtime::manager::{ENTRIES, serialized};
use compact_runtime::port::archive::{ArchiveError, ArchiveStore, PackId, PackInfo};
use compact_runtime::port::catalog::{
    Attempt, CatalogError, CompactionRecord, Continues, Lease, SessionCatalog, SessionInfo,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::world::HOOKS;

/// The field of a receipt that says who left a file.
pub const ORIGIN: &str = "origin";

/// A store with what hooks and runs left in the data directory beside it.
pub struct Library<S: ?Sized> {
    beneath: Arc<S>,
    copies: Vec<Copy>,
}

/// One file of a session.
#[derive(Clone, Debug)]
struct Copy {
    session: String,
    at: Timestamp,
    origin: Origin,
}

/// Who left it.
#[derive(Clone, Debug)]
enum Origin {
    /// A hook: a transcript.
    Hook(HookArchive),
    /// A run: what its agent printed, so many bytes so far.
    Run(KeptSession, u64),
}

impl<S: ?Sized> Library<S> {
    /// A store, and what lies in a data directory.
    pub fn new(beneath: Arc<S>, root: &Path) -> Library<S> {
        let mut copies: Vec<Copy> = copies(root).collect();
        copies.sort_by(|a, b| (a.at, a.file()).cmp(&(b.at, b.file())));
        Library { beneath, copies }
    }

    fn copy_of(&self, pack: &PackId) -> Option<&Copy> {
        self.copies.iter().find(|copy| copy.pack() == *pack)
    }

    fn of_session(&self, session: &str) -> impl DoubleEndedIterator<Item = &Copy> {
        self.copies.iter().filter(move |c| c.session == session)
    }
}

/// True when a hook or a run left something.
pub fn has_copies(root: &Path) -> bool {
    copies(root).next().is_some()
}

/// How many files hooks left in a data directory, and how many runs did.
pub fn counts(root: &Path) -> (usize, usize) {
    let (hooks, runs): (Vec<Copy>, Vec<Copy>) =
        copies(root).partition(|copy| matches!(copy.origin, Origin::Hook(_)));
    (hooks.len(), runs.len())
}

fn copies(root: &Path) -> impl Iterator<Item = Copy> {
    let archived = shelf::archives(&root.join(HOOKS)).map(Copy::of);
    archived.chain(kept_sessions(root).into_iter().filter_map(Copy::of_run))
}

impl Copy {
    fn of(archive: HookArchive) -> Copy {
        Copy {
            session: archive.session.clone(),
            at: archive.at,
            origin: Origin::Hook(archive),
        }
    }

    fn of_run(kept: KeptSession) -> Option<Copy> {
        let found = fs::metadata(&kept.file).ok()?;
        Some(Copy {
            session: kept.run_id.clone(),
            at: Timestamp::try_from(found.modified().ok()?).ok()?,
            origin: Origin::Run(kept, found.len()),
        })
    }

    fn file(&self) -> &Path {
        match &self.origin {
            Origin::Hook(archive) => &archive.path,
            Origin::Run(kept, _) => &kept.file,
        }
    }

    fn pack(&self) -> PackId {
        let place = shelf::receipt_of(self.file());
        match &self.origin {
            Origin::Hook(_) => place,
            // A session that goes on is read again.
            Origin::Run(_, bytes) => {
                let text = format!("{place} {bytes}");
                PackId(*blake3::hash(text.as_bytes()).as_bytes())
            }
        }
    }

    /// What is searched and expanded.
    fn read(&self) -> Option<Bytes> {
        match &self.origin {
            Origin::Hook(archive) => shelf::read(&archive.path).ok().map(Bytes::from),
            Origin::Run(kept, _) => kept.entries().ok().map(|entries| serialized(&entries)),
        }
    }

    /// The name of the format, and what tells its entries apart; `None` for a file that nobody can read.
    fn entries(&self) -> Option<(String, Vec<EntryHash>)> {
        if let Origin::Run(kept, _) = &self.origin {
            let hashes = EntryHash::all(&kept.entries().ok()?);
            return Some((ENTRIES.to_owned(), hashes));
        }
        let parsed = parse(self.read()?, None, Scope::Whole).ok()?;
        let hashes = EntryHash::all(&parsed.conversation.entries);
        Some((parsed.document.format().name().to_owned(), hashes))
    }

    /// What stands for a receipt.
    fn told(&self) -> Value {
        let (origin, bytes) = match &self.origin {
            Origin::Hook(_) => (
                "hook",
                fs::metadata(self.file()).map_or(0, |found| found.len()),
            ),
            Origin::Run(_, bytes) => ("run", *bytes),
        };
        json!({
            "receipt_id": self.receipt(),
            "session_id": self.session,
            ORIGIN: origin,
            "file": self.file(),
            "bytes": bytes,
            "exact": self.is_exact(),
            "created_at": self.at.to_string(),
        })
    }

    /// Reads all of it; a hook wrote down what it is to hold.
    fn check(&self) -> Result<(), String> {
        let flaw = match &self.origin {
            Origin::Hook(archive) => archive.check().err().map(|flaw| flaw.to_string()),
            Origin::Run(kept, _) => kept.entries().err().map(|error| error.to_string()),
        };
        flaw.map_or(Ok(()), |flaw| {
            Err(format!("{}: {flaw}", self.file().display()))
        })
    }

    fn remove(&self) -> std::io::Result<()> {
        match &self.origin {
            Origin::Hook(archive) => archive.remove(),
            Origin::Run(kept, _) => fs::remove_file(&kept.file),
        }
    }

    fn is_exact(&self) -> bool {
        match &self.origin {
            Origin::Hook(archive) => archive.exact,
            Origin::Run(..) => true,
        }
    }

    fn receipt(&self) -> String {
        self.pack().to_string()
    }

    /// The record of a compaction that took everything; `None` for a file that nobody can read.
    fn record(&self) -> Option<CompactionRecord> {
        let (format, entry_hashes) = self.entries()?;
        Some(CompactionRecord {
            receipt_id: self.receipt(),
            session_id: self.session.clone(),
            created_at: self.at.to_string(),
            summary_version: 0,
            previous: None,
            input_pack: Some(self.pack()),
            format,
            receipt: self.told(),
            entry_hashes,
            view_hashes: Vec::new(),
            new_from: 0,
            continues: Continues::Transcript,
            source_chain: None,
        })
    }
}

#[async_trait]
impl ArchiveStore for Library<dyn ArchiveStore> {
    async fn put(&self, plain: Bytes, base: Option<&PackId>) -> Result<PackInfo, ArchiveError> {
        self.beneath.put(plain, base).await
    }

    async fn get(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        match self.copy_of(id).and_then(Copy::read) {
            Some(bytes) => Ok(bytes),
            None => self.beneath.get(id).await,
        }
    }

    async fn info(&self, id: &PackId) -> Result<PackInfo, ArchiveError> {
        let Some(copy) = self.copy_of(id) else {
            return self.beneath.info(id).await;
        };
        let bytes = fs::metadata(copy.file()).map_or(0, |found| found.len());
        Ok(PackInfo {
            id: *id,
            plain_bytes: bytes,
            stored_bytes: bytes,
            base: None,
        })
    }

    async fn list(&self) -> Result<Vec<PackId>, ArchiveError> {
        let mut packs = self.beneath.list().await?;
        packs.extend(self.copies.iter().map(Copy::pack));
        Ok(packs)
    }

    async fn verify(&self, id: &PackId) -> Result<(), ArchiveError> {
        let Some(copy) = self.copy_of(id) else {
            return self.beneath.verify(id).await;
        };
        copy.check()
            .map_err(|reason| ArchiveError::Damaged { pack: *id, reason })
    }

    async fn remove(&self, id: &PackId) -> Result<(), ArchiveError> {
        let Some(copy) = self.copy_of(id) else {
            return self.beneath.remove(id).await;
        };
        copy.remove().map_err(|source| ArchiveError::Store {
            action: format!("remove {}", copy.file().display()),
            source: source.into(),
        })
    }

    async fn put_record(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError> {
        self.beneath.put_record(id, plain).await
    }

    async fn record(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        self.beneath.record(id).await
    }

    async fn records(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.beneath.records().await
    }

    async fn remove_record(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.beneath.remove_record(id).await
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
        let beneath = self.beneath.latest(session).await?;
        let copy = self.of_session(session).next_back().and_then(Copy::record);
        Ok(beneath.into_iter().chain(copy).max_by_key(time))
    }

    async fn chain(&self, session: &str) -> Result<Vec<CompactionRecord>, CatalogError> {
        let mut chain = self.beneath.chain(session).await?;
        chain.extend(self.of_session(session).filter_map(Copy::record));
        chain.sort_by_key(time);
        Ok(chain)
    }

    async fn sessions_with(
        &self,
        histories: &[Chain],
    ) -> Result<Vec<(String, Chain)>, CatalogError> {
        self.beneath.sessions_with(histories).await
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
                let last = copies.last().filter(|copy| is_after(copy, info));
                if let Some(copy) = last {
                    info.last_receipt = Some(copy.receipt());
                    info.last_at = Some(copy.at.to_string());
                }
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
        let mut packs = self.beneath.packs().await?;
        packs.extend(self.copies.iter().map(Copy::pack));
        Ok(packs)
    }

    async fn remove_receipt(&self, session: &str, receipt_id: &str) -> Result<(), CatalogError> {
        self.beneath.remove_receipt(session, receipt_id).await
    }

    async fn remove_session(&self, session: &str) -> Result<(), CatalogError> {
        self.beneath.remove_session(session).await
    }
}

/// When it was made, whichever way it was written down.
fn time(record: &CompactionRecord) -> Timestamp {
    record.created_at.parse().unwrap_or_default()
}

/// True when a file is later than all that is on record of its session.
fn is_after(copy: &Copy, info: &SessionInfo) -> bool {
    let last = info.last_at.as_deref();
    let last: Timestamp = last.and_then(|at| at.parse().ok()).unwrap_or_default();
    copy.at > last
}
