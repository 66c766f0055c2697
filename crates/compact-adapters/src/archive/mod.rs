//! The archive over any object store: a folder, a bucket that speaks S3, memory.
//!
//! A pack is the object `packs/<2 hex>/<id>.pack`, a record `receipts/<2 hex>/<id>.pack` in the same
//! form, and what a folder keeps of them to be quicker `ledgers/<2 hex>/<id>.pack`. Names are hashes: no session id, file name or other text from outside is ever part of one. Packs are written once and read with
//! suspicion. Where a store cannot be relied on to let only one writer create an object, nothing is
//! lost: whoever writes a pack writes the same content, and reads it back.

mod exclusion;
mod fault;
mod fs;
mod pack;
mod s3;
#[cfg(test)]
mod tests;

use std::path::Path as FsPath;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use compact_runtime::port::archive::{ArchiveError, ArchiveStore, PackId, PackInfo};
use compact_runtime::port::clock::{Clock, SystemClock};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, WriteMultipart};
use tokio::sync::OnceCell;

pub use exclusion::Exclusion;
use pack::{DecodedFrame, HEAD_BYTES, MAX_PLAIN, PackFlaw, PackHead, PackHistory};
pub use s3::{Bucket, BucketAddressing, BucketEncryption};

use crate::seal::Seal;
use crate::waiting::run_waiting;

/// How often a pack is written again that was found cut short right after it was written.
const REWRITES: usize = 3;

/// The longest chain of bases: beyond it a pack stands alone, so that reading stays quick. A longer one is
/// refused.
const MAX_DEPTH: u8 = 32;

pub(crate) const PACKS: &str = "packs";

pub(crate) const RECORDS: &str = "receipts";

pub(crate) const DERIVED: &str = "ledgers";

/// The kinds of objects in an archive, each in its own folder.
#[derive(Clone, Copy, Debug)]
enum ObjectKind {
    Packs,
    Records,
    Derived,
}

impl ObjectKind {
    fn prefix(self) -> &'static str {
        match self {
            ObjectKind::Packs => PACKS,
            ObjectKind::Records => RECORDS,
            ObjectKind::Derived => DERIVED,
        }
    }

    fn location(self, id: &PackId) -> Path {
        let name = id.to_string();
        let shard: String = name.chars().take(2).collect();
        Path::from_iter([self.prefix(), &shard, &format!("{name}.pack")])
    }

    /// Returns the object that lives at a place; none for a file that this archive did not write.
    fn id_at(self, place: &Path) -> Option<PackId> {
        let id = place.filename()?.strip_suffix(".pack")?.parse().ok()?;
        (self.location(&id) == *place).then_some(id)
    }
}

/// A larger pack is sent in parts.
const PART_BYTES: usize = 8 << 20;

/// So many parts are on their way at once.
const MAX_PARTS_IN_FLIGHT: usize = 4;

/// Packs in an object store.
#[derive(Clone, Debug)]
pub struct ObjectArchive {
    store: Arc<dyn ObjectStore>,
    medium: Medium,
    /// Whether what follows from packs is kept: where reading it is quicker than making it again.
    keeps_derived: bool,
    /// Where a bucket is, for whoever has to be told that something is wrong there.
    place: Option<Arc<str>>,
    seal: Option<Arc<Seal>>,
    clock: Arc<dyn Clock>,
}

/// The kind of store behind an archive.
#[derive(Clone, Debug)]
enum Medium {
    /// A folder: only one creates a file, and files are written in one piece.
    Folder,
    /// Anything else: what it promises is tried out before the first write.
    Service(Arc<OnceCell<Exclusion>>),
}

/// How long to wait before an answer that broke off is asked for again.
const READ_AGAIN_AFTER: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(400)];

impl ObjectArchive {
    /// Returns an archive in a store that is already open.
    pub fn new(store: Arc<dyn ObjectStore>) -> ObjectArchive {
        ObjectArchive {
            store,
            medium: Medium::Service(Arc::default()),
            keeps_derived: false,
            place: None,
            seal: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// Returns an archive in a program's own store, which takes each object in one piece.
    pub fn in_program_store(store: Arc<dyn ObjectStore>) -> ObjectArchive {
        ObjectArchive {
            medium: Medium::Folder,
            ..ObjectArchive::new(store)
        }
    }

    /// Returns an archive in a directory, created if it is not there: files 0600 in directories 0700,
    /// synced before `put` returns.
    pub fn open(root: &FsPath) -> Result<ObjectArchive, ArchiveError> {
        let files = fs::PrivateFiles::open(root).map_err(|source| {
            archive_error(format!("open the archive in {}", root.display()), source)
        })?;
        Ok(ObjectArchive {
            medium: Medium::Folder,
            keeps_derived: true,
            ..ObjectArchive::new(Arc::new(files))
        })
    }

    /// Returns an archive in a bucket; nothing is sent before it is used.
    pub fn in_bucket(bucket: &Bucket) -> Result<ObjectArchive, ArchiveError> {
        let store = s3::open(bucket)
            .map_err(|source| archive_error(format!("open the bucket {}", bucket.name), source))?;
        Ok(ObjectArchive {
            place: Some(bucket.display_name().into()),
            ..ObjectArchive::new(store)
        })
    }

    /// Returns the archive with encryption for whatever it writes from now on. What was written in the
    /// clear before stays readable.
    pub fn with_seal(self, seal: Seal) -> ObjectArchive {
        ObjectArchive {
            seal: Some(Arc::new(seal)),
            ..self
        }
    }

    /// Dates what it finds out about its store by `clock` instead of the machine's.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> ObjectArchive {
        ObjectArchive { clock, ..self }
    }

    /// Returns whether the store lets only one writer create a pack; tried out if it is not known.
    pub async fn exclusion(&self) -> Result<Exclusion, ArchiveError> {
        let Medium::Service(known) = &self.medium else {
            return Ok(Exclusion::Works);
        };
        let verdict = known
            .get_or_try_init(|| exclusion::find_exclusion(&*self.store, self.clock.now()))
            .await;
        verdict
            .copied()
            .map_err(|source| self.explain_store_error("write to the archive".to_owned(), source))
    }

    /// Returns the stored bytes of an object, checked, with its head.
    async fn fetch(
        &self,
        shelf: ObjectKind,
        id: PackId,
    ) -> Result<(Bytes, PackHead), ArchiveError> {
        let stored = self.read_with_retries(&shelf.location(&id)).await;
        let stored = stored.map_err(|error| self.explain_read_error(id, error))?;
        let head = pack::check(&stored).map_err(|flaw| damaged_pack(id, &flaw))?;
        Ok((stored, head))
    }

    /// Returns the stored bytes; an answer that breaks off is asked for again.
    async fn read_with_retries(&self, place: &Path) -> Result<Bytes, object_store::Error> {
        for pause in READ_AGAIN_AFTER {
            match self.store.get(place).await?.bytes().await {
                Ok(stored) => return Ok(stored),
                Err(_) => tokio::time::sleep(pause).await,
            }
        }
        self.store.get(place).await?.bytes().await
    }

    /// Returns the pack and what it builds on, the pack itself first.
    async fn fetch_chain(&self, id: PackId) -> Result<Vec<StoredPack>, ArchiveError> {
        let (stored, head) = self.fetch(ObjectKind::Packs, id).await?;
        // Nothing deeper is ever written, and reading it would cost as much for each link.
        if head.depth > MAX_DEPTH {
            return Err(damaged_pack(id, &PackFlaw::Chain));
        }
        let mut depth = head.depth;
        let mut next = head.base;
        let mut chain = vec![StoredPack { id, stored }];
        // The depth counts down to zero, so a chain ends whatever the files say.
        while let Some(base) = next {
            let above = chain.last().map_or(id, |link| link.id);
            let (stored, head) =
                self.fetch(ObjectKind::Packs, base)
                    .await
                    .map_err(|error| match error {
                        ArchiveError::Missing { .. } => {
                            ArchiveError::MissingBase { pack: above, base }
                        }
                        other => other,
                    })?;
            if head.depth.checked_add(1) != Some(depth) {
                return Err(damaged_pack(above, &PackFlaw::Chain));
            }
            depth = head.depth;
            next = head.base;
            chain.push(StoredPack { id: base, stored });
        }
        Ok(chain)
    }

    /// Returns what a new pack can build on: nothing when the base is unreadable or at the end of a long
    /// chain. Archiving what is at hand matters more than damage below, which reading names.
    async fn read_history(&self, base: Option<&PackId>) -> Result<PackHistory, ArchiveError> {
        let Some(&base) = base else {
            return Ok(PackHistory::default());
        };
        match self.fetch_chain(base).await {
            Ok(chain) if chain.len() <= usize::from(MAX_DEPTH) => {
                let seal = self.seal.clone();
                let decoded = run_pack_work(move || decode_chain(chain, seal.as_deref())).await?;
                Ok(decoded.map(DecodedPack::into_history).unwrap_or_default())
            }
            Err(
                error @ (ArchiveError::Store { .. }
                | ArchiveError::Refused { .. }
                | ArchiveError::Unreachable { .. }),
            ) => Err(error),
            Ok(_) | Err(_) => Ok(PackHistory::default()),
        }
    }

    /// Writes a pack. What the store does not promise by itself is seen by reading it back.
    async fn write_pack(
        &self,
        id: PackId,
        stored: Bytes,
        mode: PutMode,
    ) -> Result<(), ArchiveError> {
        let mut written = self.try_write(id, stored.clone(), mode).await;
        // Where a store lets writers overtake each other, it may have shown half of what another writes.
        for _ in 0..REWRITES {
            if !matches!(written, Err(ArchiveError::Damaged { .. })) {
                break;
            }
            written = self.try_write(id, stored.clone(), PutMode::Overwrite).await;
        }
        written
    }

    async fn try_write(
        &self,
        id: PackId,
        stored: Bytes,
        mode: PutMode,
    ) -> Result<(), ArchiveError> {
        let exclusion = self.exclusion().await?;
        let in_parts = stored.len() > PART_BYTES && matches!(self.medium, Medium::Service(_));
        let place = ObjectKind::Packs.location(&id);
        let written = match (in_parts, exclusion, mode) {
            (true, ..) => self.write_in_parts(&place, stored).await,
            (false, Exclusion::Works, mode) => self
                .store
                .put_opts(&place, stored.into(), mode.into())
                .await
                .map(drop),
            (false, ..) => self.store.put(&place, stored.into()).await.map(drop),
        };
        match written {
            // Someone else put the same content meanwhile.
            Ok(()) | Err(object_store::Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(self.explain_store_error(format!("write pack {id}"), error)),
        }
        if in_parts || exclusion != Exclusion::Works {
            self.verify(&id).await?;
        }
        Ok(())
    }

    /// Returns every object of a kind, in the order of their ids.
    async fn list_ids(&self, shelf: ObjectKind) -> Result<Vec<PackId>, ArchiveError> {
        let listed = self.list_objects(shelf).await?;
        Ok(listed.into_iter().map(|(id, _)| id).collect())
    }

    /// Returns what is on a shelf with the bytes that it takes, in the order of ids.
    async fn list_objects(&self, shelf: ObjectKind) -> Result<Vec<(PackId, u64)>, ArchiveError> {
        let prefix = Path::from(shelf.prefix());
        let sized = |meta: ObjectMeta| shelf.id_at(&meta.location).map(|id| (id, meta.size));
        let mut listed: Vec<(PackId, u64)> = self
            .store
            .list(Some(&prefix))
            .try_filter_map(|meta| std::future::ready(Ok(sized(meta))))
            .try_collect()
            .await
            .map_err(|source| self.explain_store_error("list the archive".to_owned(), source))?;
        listed.sort_unstable();
        Ok(listed)
    }

    async fn delete(&self, shelf: ObjectKind, id: &PackId) -> Result<(), ArchiveError> {
        match self.store.delete(&shelf.location(id)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.explain_store_error(format!("remove {id}"), error)),
        }
    }

    /// Removes all that was made from packs: it may tell of one that is gone.
    async fn delete_derived(&self) -> Result<(), ArchiveError> {
        if !self.keeps_derived {
            return Ok(());
        }
        for id in self.list_ids(ObjectKind::Derived).await? {
            self.delete(ObjectKind::Derived, &id).await?;
        }
        Ok(())
    }

    async fn write_in_parts(&self, place: &Path, stored: Bytes) -> object_store::Result<()> {
        let upload = self.store.put_multipart(place).await?;
        let mut writer = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let mut rest = stored;
        while !rest.is_empty() {
            writer.wait_for_capacity(MAX_PARTS_IN_FLIGHT).await?;
            writer.put(rest.split_to(rest.len().min(PART_BYTES)));
        }
        writer.finish().await.map(drop)
    }
}

/// One pack of a chain, as stored.
struct StoredPack {
    id: PackId,
    stored: Bytes,
}

#[async_trait]
impl ArchiveStore for ObjectArchive {
    async fn put(&self, plain: Bytes, base: Option<&PackId>) -> Result<PackInfo, ArchiveError> {
        let plain_bytes = plain.len() as u64;
        if plain_bytes > MAX_PLAIN {
            return Err(ArchiveError::TooLarge {
                bytes: plain_bytes,
                limit: MAX_PLAIN,
            });
        }
        let history = self.read_history(base).await?;
        let base = history.top;
        let id = PackId::of(&plain, base.as_ref());
        let known = match self.verify(&id).await {
            Ok(()) => self.info(&id).await,
            Err(error) => Err(error),
        };
        let mode = match known {
            Ok(info) => return Ok(info),
            Err(ArchiveError::Missing { .. }) => PutMode::Create,
            // The bytes at hand are the cure.
            Err(ArchiveError::Damaged { .. }) => PutMode::Overwrite,
            Err(other) => return Err(other),
        };
        let seal = self.seal.clone();
        let stored: Bytes =
            run_pack_work(move || pack::encode(&plain, &history, &id, seal.as_deref()))
                .await?
                .map_err(|source| archive_error(format!("compress pack {id}"), source))?
                .into();
        let stored_bytes = stored.len() as u64;
        self.write_pack(id, stored, mode).await?;
        Ok(PackInfo {
            id,
            plain_bytes,
            stored_bytes,
            base,
        })
    }

    async fn get(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        let chain = self.fetch_chain(*id).await?;
        let seal = self.seal.clone();
        let decoded = run_pack_work(move || decode_chain(chain, seal.as_deref())).await??;
        Ok(decoded.frame.plain.into())
    }

    async fn info(&self, id: &PackId) -> Result<PackInfo, ArchiveError> {
        let place = ObjectKind::Packs.location(id);
        let meta = self
            .store
            .head(&place)
            .await
            .map_err(|error| self.explain_read_error(*id, error))?;
        if meta.size < HEAD_BYTES as u64 {
            return Err(damaged_pack(*id, &PackFlaw::Short));
        }
        let bytes = self.store.get_range(&place, 0..HEAD_BYTES as u64).await;
        let bytes = bytes.map_err(|error| self.explain_read_error(*id, error))?;
        let (head, _) = PackHead::split(&bytes).map_err(|flaw| damaged_pack(*id, &flaw))?;
        Ok(PackInfo {
            id: *id,
            plain_bytes: head.plain_bytes,
            stored_bytes: meta.size,
            base: head.base,
        })
    }

    async fn list(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.list_ids(ObjectKind::Packs).await
    }

    async fn list_sizes(&self) -> Result<Vec<(PackId, u64)>, ArchiveError> {
        self.list_objects(ObjectKind::Packs).await
    }

    async fn remove(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.delete_derived().await?;
        self.delete(ObjectKind::Packs, id).await
    }

    async fn put_record(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError> {
        let stored = pack::encode(&plain, &PackHistory::default(), id, self.seal.as_deref())
            .map_err(|source| archive_error(format!("compress record {id}"), source))?;
        let place = ObjectKind::Records.location(id);
        let written = self.store.put(&place, stored.into()).await;
        written.map_err(|error| self.explain_store_error(format!("write record {id}"), error))?;
        Ok(())
    }

    async fn get_record(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        let (stored, _) = self.fetch(ObjectKind::Records, *id).await?;
        let plain = pack::decode(&stored, id, &PackHistory::default(), self.seal.as_deref());
        let decoded = plain.map_err(|flaw| damaged_pack(*id, &flaw))?;
        Ok(decoded.plain.into())
    }

    async fn list_records(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.list_ids(ObjectKind::Records).await
    }

    async fn remove_record(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.delete_derived().await?;
        self.delete(ObjectKind::Records, id).await
    }

    async fn put_derived(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError> {
        if !self.keeps_derived {
            return Ok(());
        }
        let (seal, id) = (self.seal.clone(), *id);
        let encode = move || pack::encode_derived(&plain, &id, seal.as_deref());
        let stored = run_pack_work(encode).await?;
        let stored = stored.map_err(|source| archive_error(format!("compress {id}"), source))?;
        let place = ObjectKind::Derived.location(&id);
        let written = self.store.put(&place, stored.into()).await;
        written.map_err(|error| self.explain_store_error(format!("write {id}"), error))?;
        Ok(())
    }

    async fn get_derived(&self, id: &PackId) -> Result<Option<Bytes>, ArchiveError> {
        if !self.keeps_derived {
            return Ok(None);
        }
        let (stored, _) = match self.fetch(ObjectKind::Derived, *id).await {
            Err(ArchiveError::Missing { .. }) => return Ok(None),
            fetched => fetched?,
        };
        let plain = pack::decode(&stored, id, &PackHistory::default(), self.seal.as_deref());
        let decoded = plain.map_err(|flaw| damaged_pack(*id, &flaw))?;
        Ok(Some(decoded.plain.into()))
    }
}

/// A pack that was decoded, with what stands below it.
struct DecodedPack {
    id: PackId,
    frame: DecodedFrame,
    below: PackHistory,
}

impl DecodedPack {
    /// The whole as a history for the next one.
    fn into_history(self) -> PackHistory {
        let mut history = self.below;
        history.push(self.id, self.frame);
        history
    }
}

/// Decodes from the lowest base upwards, checking each content against its name; returns the topmost pack.
fn decode_chain(
    mut chain: Vec<StoredPack>,
    seal: Option<&Seal>,
) -> Result<DecodedPack, ArchiveError> {
    let mut below = PackHistory::default();
    loop {
        let Some(StoredPack { id, stored }) = chain.pop() else {
            return Err(archive_error("read a pack".to_owned(), "there is none"));
        };
        let frame =
            pack::decode(&stored, &id, &below, seal).map_err(|flaw| damaged_pack(id, &flaw))?;
        drop(stored);
        if PackId::of(&frame.plain, below.top.as_ref()) != id {
            return Err(damaged_pack(id, &PackFlaw::Content));
        }
        let decoded = DecodedPack { id, frame, below };
        if chain.is_empty() {
            return Ok(decoded);
        }
        below = decoded.into_history();
    }
}

async fn run_pack_work<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ArchiveError> {
    let done = run_waiting(work).await;
    done.map_err(|source| archive_error("finish work on a pack".to_owned(), source))
}

fn damaged_pack(pack: PackId, flaw: &PackFlaw) -> ArchiveError {
    match flaw {
        PackFlaw::Version(found) => ArchiveError::Newer {
            pack,
            found: u32::from(*found),
        },
        PackFlaw::Locked => ArchiveError::Locked { pack },
        other => ArchiveError::Damaged {
            pack,
            reason: other.to_string(),
        },
    }
}

fn archive_error(
    action: String,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> ArchiveError {
    ArchiveError::Store {
        action,
        source: source.into(),
    }
}
