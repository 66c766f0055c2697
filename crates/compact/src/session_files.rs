//! What hooks archived and runs kept, as part of the archive: listed, restored, verified, recalled and
//! pruned like what was compacted.
//!
//! Both stay plain files that a person may remove; nothing is stored twice. A file goes by a receipt
//! of its own, the hash of its place, and is read when somebody asks: one that is gone is forgotten
//! with the next question. What is written goes to the store beneath.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use compact_adapters::hook_store::{self, HookArchive};
use compact_adapters::run::{KeptSession, kept_sessions};
use compact_core::identity::{Chain, EntryHash};
use compact_formats::{TranscriptScope, parse};
use compact_runtime::manager::{ENTRIES_FORMAT, serialize_entries};
use compact_runtime::port::archive::{ArchiveError, ArchiveStore, PackId, PackInfo};
use compact_runtime::port::catalog::{
    Attempt, CatalogError, CompactionRecord, InputRelation, Lease, SessionCatalog, SessionInfo,
    StoredReceipt,
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The folder of what hooks left behind in the data directory.
pub const HOOKS_FOLDER: &str = "hooks";

/// A store together with the files that hooks and runs left in the data directory.
pub struct StoreWithFiles<S: ?Sized> {
    beneath: Arc<S>,
    copies: Vec<SessionFile>,
}

/// One file of a session.
#[derive(Clone, Debug)]
struct SessionFile {
    session: String,
    at: Timestamp,
    origin: FileOrigin,
}

/// What wrote the file.
#[derive(Clone, Debug)]
enum FileOrigin {
    /// A hook: a transcript.
    Hook(HookArchive),
    /// A run: what its agent printed, so many bytes so far.
    Run(KeptSession, u64),
}

impl<S: ?Sized> StoreWithFiles<S> {
    /// Combines a store with the files in a data directory.
    pub fn new(beneath: Arc<S>, root: &Path) -> StoreWithFiles<S> {
        let mut copies: Vec<SessionFile> = find_session_files(root).collect();
        copies.sort_by(|a, b| (a.at, a.path()).cmp(&(b.at, b.path())));
        StoreWithFiles { beneath, copies }
    }

    fn file_of_pack(&self, pack: &PackId) -> Option<&SessionFile> {
        self.copies.iter().find(|copy| copy.pack_id() == *pack)
    }

    fn files_of_session(&self, session: &str) -> impl DoubleEndedIterator<Item = &SessionFile> {
        self.copies.iter().filter(move |c| c.session == session)
    }
}

/// What left a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionOrigin {
    /// A compaction, through whichever door.
    Compaction,
    /// A hook, which copied a transcript.
    Hook,
    /// A run of an agent.
    Run,
    /// A person, who went back before a compaction of another one.
    Branch,
}

/// The files of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionCopies {
    /// What left the last one.
    pub(crate) origin: SessionOrigin,
}

/// Returns the files of each session that has some.
pub(crate) fn copies_by_session(root: &Path) -> HashMap<String, SessionCopies> {
    let mut found: HashMap<String, SessionCopies> = HashMap::new();
    for file in find_session_files(root) {
        let origin = match &file.origin {
            FileOrigin::Hook(_) => SessionOrigin::Hook,
            FileOrigin::Run(..) => SessionOrigin::Run,
        };
        found.insert(file.session, SessionCopies { origin });
    }
    found
}

/// Returns whether hooks or runs left any file.
pub fn has_session_files(root: &Path) -> bool {
    find_session_files(root).next().is_some()
}

/// Counts the files of hooks and of runs in a data directory.
pub fn count_by_origin(root: &Path) -> (usize, usize) {
    let (hooks, runs): (Vec<SessionFile>, Vec<SessionFile>) =
        find_session_files(root).partition(|copy| matches!(copy.origin, FileOrigin::Hook(_)));
    (hooks.len(), runs.len())
}

fn find_session_files(root: &Path) -> impl Iterator<Item = SessionFile> {
    let archived = hook_store::list_archives(&root.join(HOOKS_FOLDER)).map(SessionFile::from_hook);
    archived.chain(
        kept_sessions(root)
            .into_iter()
            .filter_map(SessionFile::from_run),
    )
}

impl SessionFile {
    fn from_hook(archive: HookArchive) -> SessionFile {
        SessionFile {
            session: archive.session.clone(),
            at: archive.at,
            origin: FileOrigin::Hook(archive),
        }
    }

    fn from_run(kept: KeptSession) -> Option<SessionFile> {
        let found = fs::metadata(&kept.file).ok()?;
        Some(SessionFile {
            session: kept.run_id.clone(),
            at: Timestamp::try_from(found.modified().ok()?).ok()?,
            origin: FileOrigin::Run(kept, found.len()),
        })
    }

    fn path(&self) -> &Path {
        match &self.origin {
            FileOrigin::Hook(archive) => &archive.path,
            FileOrigin::Run(kept, _) => &kept.file,
        }
    }

    fn pack_id(&self) -> PackId {
        let place = hook_store::receipt_of(self.path());
        match &self.origin {
            FileOrigin::Hook(_) => place,
            // A session that goes on is read again.
            FileOrigin::Run(_, bytes) => {
                let text = format!("{place} {bytes}");
                PackId(*blake3::hash(text.as_bytes()).as_bytes())
            }
        }
    }

    /// Reads the content for searching and expanding.
    fn read(&self) -> Option<Bytes> {
        match &self.origin {
            FileOrigin::Hook(archive) => hook_store::read_regular_file(&archive.path)
                .ok()
                .map(Bytes::from),
            FileOrigin::Run(kept, _) => kept
                .read_entries()
                .ok()
                .map(|entries| serialize_entries(&entries)),
        }
    }

    /// Returns the name of the format and the hashes of the entries; `None` if the file cannot be read.
    fn format_and_hashes(&self) -> Option<(String, Vec<EntryHash>)> {
        if let FileOrigin::Run(kept, _) = &self.origin {
            let hashes = EntryHash::from_entries(&kept.read_entries().ok()?);
            return Some((ENTRIES_FORMAT.to_owned(), hashes));
        }
        let parsed = parse(self.read()?, None, TranscriptScope::Whole).ok()?;
        let hashes = EntryHash::from_entries(&parsed.conversation.entries);
        Some((parsed.document.format().name().to_owned(), hashes))
    }

    /// Returns a receipt for the file.
    fn receipt(&self) -> StoredReceipt {
        let (origin, bytes) = match &self.origin {
            FileOrigin::Hook(_) => (
                "hook",
                fs::metadata(self.path()).map_or(0, |found| found.len()),
            ),
            FileOrigin::Run(_, bytes) => ("run", *bytes),
        };
        StoredReceipt::from(json!({
            "receipt_id": self.receipt_id(),
            "session_id": self.session,
            "origin": origin,
            "file": self.path(),
            "bytes": bytes,
            "exact": self.is_exact(),
            "created_at": self.at.to_string(),
        }))
    }

    /// Reads all of it; a hook wrote down what it is to hold.
    fn check(&self) -> Result<(), String> {
        let flaw = match &self.origin {
            FileOrigin::Hook(archive) => archive.check().err().map(|flaw| flaw.to_string()),
            FileOrigin::Run(kept, _) => kept.read_entries().err().map(|error| error.to_string()),
        };
        flaw.map_or(Ok(()), |flaw| {
            Err(format!("{}: {flaw}", self.path().display()))
        })
    }

    fn remove(&self) -> std::io::Result<()> {
        match &self.origin {
            FileOrigin::Hook(archive) => archive.remove(),
            FileOrigin::Run(kept, _) => fs::remove_file(&kept.file),
        }
    }

    fn is_exact(&self) -> bool {
        match &self.origin {
            FileOrigin::Hook(archive) => archive.exact,
            FileOrigin::Run(..) => true,
        }
    }

    fn receipt_id(&self) -> String {
        self.pack_id().to_string()
    }

    /// Returns a record as of a compaction that took the whole file; `None` if it cannot be read.
    fn to_record(&self) -> Option<CompactionRecord> {
        let (format, entry_hashes) = self.format_and_hashes()?;
        Some(CompactionRecord {
            receipt_id: self.receipt_id(),
            session_id: self.session.clone(),
            created_at: self.at.to_string(),
            summary_version: 0,
            previous: None,
            input_pack: Some(self.pack_id()),
            format,
            receipt: self.receipt(),
            entry_hashes,
            view_hashes: Vec::new(),
            new_from: 0,
            continues: InputRelation::Transcript,
            source_chain: None,
        })
    }
}

#[async_trait]
impl ArchiveStore for StoreWithFiles<dyn ArchiveStore> {
    async fn put(&self, plain: Bytes, base: Option<&PackId>) -> Result<PackInfo, ArchiveError> {
        self.beneath.put(plain, base).await
    }

    async fn get(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        match self.file_of_pack(id).and_then(SessionFile::read) {
            Some(bytes) => Ok(bytes),
            None => self.beneath.get(id).await,
        }
    }

    async fn info(&self, id: &PackId) -> Result<PackInfo, ArchiveError> {
        let Some(copy) = self.file_of_pack(id) else {
            return self.beneath.info(id).await;
        };
        let bytes = fs::metadata(copy.path()).map_or(0, |found| found.len());
        Ok(PackInfo {
            id: *id,
            plain_bytes: bytes,
            stored_bytes: bytes,
            base: None,
        })
    }

    async fn list(&self) -> Result<Vec<PackId>, ArchiveError> {
        let mut packs = self.beneath.list().await?;
        packs.extend(self.copies.iter().map(SessionFile::pack_id));
        Ok(packs)
    }

    async fn list_sizes(&self) -> Result<Vec<(PackId, u64)>, ArchiveError> {
        let mut sizes = self.beneath.list_sizes().await?;
        let size = |copy: &SessionFile| fs::metadata(copy.path()).map_or(0, |found| found.len());
        sizes.extend(self.copies.iter().map(|copy| (copy.pack_id(), size(copy))));
        Ok(sizes)
    }

    async fn verify(&self, id: &PackId) -> Result<(), ArchiveError> {
        let Some(copy) = self.file_of_pack(id) else {
            return self.beneath.verify(id).await;
        };
        copy.check()
            .map_err(|reason| ArchiveError::Damaged { pack: *id, reason })
    }

    async fn remove(&self, id: &PackId) -> Result<(), ArchiveError> {
        let Some(copy) = self.file_of_pack(id) else {
            return self.beneath.remove(id).await;
        };
        copy.remove().map_err(|source| ArchiveError::Store {
            action: format!("remove {}", copy.path().display()),
            source: source.into(),
        })
    }

    async fn put_record(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError> {
        self.beneath.put_record(id, plain).await
    }

    async fn get_record(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        self.beneath.get_record(id).await
    }

    async fn list_records(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.beneath.list_records().await
    }

    async fn remove_record(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.beneath.remove_record(id).await
    }

    async fn put_derived(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError> {
        self.beneath.put_derived(id, plain).await
    }

    async fn get_derived(&self, id: &PackId) -> Result<Option<Bytes>, ArchiveError> {
        self.beneath.get_derived(id).await
    }
}

#[async_trait]
impl SessionCatalog for StoreWithFiles<dyn SessionCatalog> {
    async fn save_record(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        self.beneath.save_record(record).await
    }

    async fn save_record_under(
        &self,
        lease: &Lease,
        record: &CompactionRecord,
    ) -> Result<(), CatalogError> {
        self.beneath.save_record_under(lease, record).await
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

    async fn find_record(
        &self,
        receipt_id: &str,
    ) -> Result<Option<CompactionRecord>, CatalogError> {
        let is_short = receipt_id.len() < compact_runtime::port::catalog::MIN_PREFIX;
        let mut copies = self.copies.iter();
        let copy = copies.find(|copy| !is_short && copy.receipt_id().starts_with(receipt_id));
        match copy.and_then(SessionFile::to_record) {
            Some(record) => Ok(Some(record)),
            None => self.beneath.find_record(receipt_id).await,
        }
    }

    async fn latest_record(&self, session: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        let beneath = self.beneath.latest_record(session).await?;
        let copy = self
            .files_of_session(session)
            .next_back()
            .and_then(SessionFile::to_record);
        Ok(beneath.into_iter().chain(copy).max_by_key(record_time))
    }

    async fn session_records(&self, session: &str) -> Result<Vec<CompactionRecord>, CatalogError> {
        let mut chain = self.beneath.session_records(session).await?;
        chain.extend(
            self.files_of_session(session)
                .filter_map(SessionFile::to_record),
        );
        chain.sort_by_key(record_time);
        Ok(chain)
    }

    async fn find_sessions(
        &self,
        histories: &[Chain],
    ) -> Result<Vec<(String, Chain)>, CatalogError> {
        self.beneath.find_sessions(histories).await
    }

    async fn sessions(&self) -> Result<Vec<SessionInfo>, CatalogError> {
        let mut sessions = self.beneath.sessions().await?;
        let mut more: BTreeMap<&str, Vec<&SessionFile>> = BTreeMap::new();
        for copy in &self.copies {
            more.entry(&copy.session).or_default().push(copy);
        }
        for info in &mut sessions {
            if let Some(copies) = more.remove(info.session_id.as_str()) {
                info.compactions += copies.len() as u64;
                let last = copies.last().filter(|copy| is_after(copy, info));
                if let Some(copy) = last {
                    info.last_receipt = Some(copy.receipt_id());
                    info.last_at = Some(copy.at.to_string());
                }
            }
        }
        sessions.extend(more.into_iter().map(|(session, copies)| SessionInfo {
            session_id: session.to_owned(),
            compactions: copies.len() as u64,
            last_receipt: copies.last().map(|copy| copy.receipt_id()),
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

    async fn save_attempt(&self, session: &str, attempt: &Attempt) -> Result<(), CatalogError> {
        self.beneath.save_attempt(session, attempt).await
    }

    async fn last_attempt(&self, session: &str) -> Result<Option<Attempt>, CatalogError> {
        self.beneath.last_attempt(session).await
    }

    async fn referenced_packs(&self) -> Result<Vec<PackId>, CatalogError> {
        let mut packs = self.beneath.referenced_packs().await?;
        packs.extend(self.copies.iter().map(SessionFile::pack_id));
        Ok(packs)
    }

    async fn remove_receipt(&self, session: &str, receipt_id: &str) -> Result<(), CatalogError> {
        self.beneath.remove_receipt(session, receipt_id).await
    }

    async fn remove_session(&self, session: &str) -> Result<(), CatalogError> {
        self.beneath.remove_session(session).await
    }
}

/// Returns the time of a record; the beginning of time if it cannot be read.
fn record_time(record: &CompactionRecord) -> Timestamp {
    record.created_at.parse().unwrap_or_default()
}

/// Returns whether a file is newer than everything recorded of its session.
fn is_after(copy: &SessionFile, info: &SessionInfo) -> bool {
    let last = info.last_at.as_deref();
    let last: Timestamp = last.and_then(|at| at.parse().ok()).unwrap_or_default();
    copy.at > last
}
