//! The archive over any object store: a folder, a bucket that speaks S3, memory.
//!
//! A pack is the object `packs/<2 hex>/<id>.pack`, a record `receipts/<2 hex>/<id>.pack` in the same
//! form. Names are hashes: no session id, file name or other text from outside is ever part of one. Packs are written once and read with
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
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, WriteMultipart};
use tokio::sync::OnceCell;

pub use exclusion::Exclusion;
use pack::{Flaw, HEAD_BYTES, Head, History, MAX_PLAIN};
pub use s3::{Bucket, ServerSide, Style};

use crate::seal::Seal;

/// The longest chain of bases: beyond it a pack stands alone, so that reading stays quick.
const MAX_DEPTH: u8 = 32;

pub(crate) const PACKS: &str = "packs";

pub(crate) const RECORDS: &str = "receipts";

/// Where the objects of a kind are.
#[derive(Clone, Copy, Debug)]
enum Shelf {
    Packs,
    Records,
}

impl Shelf {
    fn prefix(self) -> &'static str {
        match self {
            Shelf::Packs => PACKS,
            Shelf::Records => RECORDS,
        }
    }

    fn location(self, id: &PackId) -> Path {
        let name = id.to_string();
        let shard: String = name.chars().take(2).collect();
        Path::from_iter([self.prefix(), &shard, &format!("{name}.pack")])
    }

    /// The object that lives at a place; none for a file that this archive did not write.
    fn id_at(self, place: &Path) -> Option<PackId> {
        let id = place.filename()?.strip_suffix(".pack")?.parse().ok()?;
        (self.location(&id) == *place).then_some(id)
    }
}

/// A larger pack is sent in parts.
const LARGE: usize = 8 << 20;

/// So many parts are on their way at once.
const PARTS: usize = 4;

/// Packs in an object store.
#[derive(Clone, Debug)]
pub struct ObjectArchive {
    store: Arc<dyn ObjectStore>,
    medium: Medium,
    /// Where a bucket is, for whoever has to be told that something is wrong there.
    place: Option<Arc<str>>,
    seal: Option<Arc<Seal>>,
}

/// What kind of store it is.
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
    /// An archive in a store that is already open.
    pub fn new(store: Arc<dyn ObjectStore>) -> ObjectArchive {
        ObjectArchive {
            store,
            medium: Medium::Service(Arc::default()),
            place: None,
            seal: None,
        }
    }

    /// An archive in a program's own store, which takes each object in one piece.
    pub fn in_pieces(store: Arc<dyn ObjectStore>) -> ObjectArchive {
        ObjectArchive {
            medium: Medium::Folder,
            ..ObjectArchive::new(store)
        }
    }

    /// An archive in a directory, created if it is not there: files 0600 in directories 0700,
    /// synced before `put` returns.
    pub fn open(root: &FsPath) -> Result<ObjectArchive, ArchiveError> {
        let files = fs::PrivateFiles::open(root)
            .map_err(|source| failed(format!("open the archive in {}", root.display()), source))?;
        Ok(ObjectArchive {
            medium: Medium::Folder,
            ..ObjectArchive::new(Arc::new(files))
        })
    }

    /// An archive in a bucket; nothing is sent before it is used.
    pub fn in_bucket(bucket: &Bucket) -> Result<ObjectArchive, ArchiveError> {
        let store = s3::open(bucket)
            .map_err(|source| failed(format!("open the bucket {}", bucket.name), source))?;
        Ok(ObjectArchive {
            place: Some(bucket.place().into()),
            ..ObjectArchive::new(store)
        })
    }

    /// The same, encrypting whatever it writes from now on. What was written in the clear before is
    /// read as it is.
    pub fn sealed(self, seal: Seal) -> ObjectArchive {
        ObjectArchive {
            seal: Some(Arc::new(seal)),
            ..self
        }
    }

    /// Whether the store lets only one writer create a pack; tried out if it is not known.
    pub async fn exclusion(&self) -> Result<Exclusion, ArchiveError> {
        let Medium::Service(known) = &self.medium else {
            return Ok(Exclusion::Works);
        };
        let verdict = known.get_or_try_init(|| exclusion::of(&*self.store)).await;
        verdict
            .copied()
            .map_err(|source| self.failed("write to the archive".to_owned(), source))
    }

    /// The stored bytes of an object, checked, with its head.
    async fn fetch(&self, shelf: Shelf, id: PackId) -> Result<(Bytes, Head), ArchiveError> {
        let stored = self.read(&shelf.location(&id)).await;
        let stored = stored.map_err(|error| self.absent(id, error))?;
        let head = pack::check(&stored).map_err(|flaw| damaged(id, &flaw))?;
        Ok((stored, head))
    }

    /// The stored bytes; an answer that breaks off is asked for again.
    async fn read(&self, place: &Path) -> Result<Bytes, object_store::Error> {
        for pause in READ_AGAIN_AFTER {
            match self.store.get(place).await?.bytes().await {
                Ok(stored) => return Ok(stored),
                Err(_) => tokio::time::sleep(pause).await,
            }
        }
        self.store.get(place).await?.bytes().await
    }

    /// The pack and what it builds on, the pack itself first.
    async fn fetch_chain(&self, id: PackId) -> Result<Vec<Link>, ArchiveError> {
        let (stored, head) = self.fetch(Shelf::Packs, id).await?;
        let mut depth = head.depth;
        let mut next = head.base;
        let mut chain = vec![Link { id, stored }];
        // The depth counts down to zero, so a chain ends whatever the files say.
        while let Some(base) = next {
            let above = chain.last().map_or(id, |link| link.id);
            let (stored, head) =
                self.fetch(Shelf::Packs, base)
                    .await
                    .map_err(|error| match error {
                        ArchiveError::Missing { .. } => {
                            ArchiveError::MissingBase { pack: above, base }
                        }
                        other => other,
                    })?;
            if head.depth.checked_add(1) != Some(depth) {
                return Err(damaged(above, &Flaw::Chain));
            }
            depth = head.depth;
            next = head.base;
            chain.push(Link { id: base, stored });
        }
        Ok(chain)
    }

    /// What a new pack can build on: nothing when the base is unreadable or at the end of a long
    /// chain. Archiving what is at hand matters more than damage below, which reading names.
    async fn history(&self, base: Option<&PackId>) -> Result<History, ArchiveError> {
        let Some(&base) = base else {
            return Ok(History::default());
        };
        match self.fetch_chain(base).await {
            Ok(chain) if chain.len() <= usize::from(MAX_DEPTH) => {
                let seal = self.seal.clone();
                let decoded = blocking(move || decode_chain(chain, seal.as_deref())).await?;
                Ok(decoded.map(|(_, history)| history).unwrap_or_default())
            }
            Err(
                error @ (ArchiveError::Store { .. }
                | ArchiveError::Refused { .. }
                | ArchiveError::Unreachable { .. }),
            ) => Err(error),
            Ok(_) | Err(_) => Ok(History::default()),
        }
    }

    /// Writes a pack. What the store does not promise by itself is seen by reading it back.
    async fn write(&self, id: PackId, stored: Bytes, mode: PutMode) -> Result<(), ArchiveError> {
        let exclusion = self.exclusion().await?;
        let in_parts = stored.len() > LARGE && matches!(self.medium, Medium::Service(_));
        let place = Shelf::Packs.location(&id);
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
            Err(error) => return Err(self.failed(format!("write pack {id}"), error)),
        }
        if in_parts || exclusion != Exclusion::Works {
            self.verify(&id).await?;
        }
        Ok(())
    }

    /// Every object of a kind, in the order of their ids.
    async fn ids(&self, shelf: Shelf) -> Result<Vec<PackId>, ArchiveError> {
        let prefix = Path::from(shelf.prefix());
        let mut ids: Vec<PackId> = self
            .store
            .list(Some(&prefix))
            .try_filter_map(|meta| std::future::ready(Ok(shelf.id_at(&meta.location))))
            .try_collect()
            .await
            .map_err(|source| self.failed("list the archive".to_owned(), source))?;
        ids.sort_unstable();
        Ok(ids)
    }

    async fn delete(&self, shelf: Shelf, id: &PackId) -> Result<(), ArchiveError> {
        match self.store.delete(&shelf.location(id)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(format!("remove {id}"), error)),
        }
    }

    async fn write_in_parts(&self, place: &Path, stored: Bytes) -> object_store::Result<()> {
        let upload = self.store.put_multipart(place).await?;
        let mut writer = WriteMultipart::new_with_chunk_size(upload, LARGE);
        let mut rest = stored;
        while !rest.is_empty() {
            writer.wait_for_capacity(PARTS).await?;
            writer.put(rest.split_to(rest.len().min(LARGE)));
        }
        writer.finish().await.map(drop)
    }
}

/// One pack of a chain, as stored.
struct Link {
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
        let history = self.history(base).await?;
        let base = history.top;
        let id = PackId::of(&plain, base.as_ref());
        let mode = match self.verify(&id).await {
            Ok(()) => return self.info(&id).await,
            Err(ArchiveError::Missing { .. }) => PutMode::Create,
            // The bytes at hand are the cure.
            Err(ArchiveError::Damaged { .. }) => PutMode::Overwrite,
            Err(other) => return Err(other),
        };
        let seal = self.seal.clone();
        let stored: Bytes = blocking(move || pack::encode(&plain, &history, &id, seal.as_deref()))
            .await?
            .map_err(|source| failed(format!("compress pack {id}"), source))?
            .into();
        let stored_bytes = stored.len() as u64;
        self.write(id, stored, mode).await?;
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
        let (plain, _) = blocking(move || decode_chain(chain, seal.as_deref())).await??;
        Ok(plain.into())
    }

    async fn info(&self, id: &PackId) -> Result<PackInfo, ArchiveError> {
        let place = Shelf::Packs.location(id);
        let meta = self
            .store
            .head(&place)
            .await
            .map_err(|error| self.absent(*id, error))?;
        if meta.size < HEAD_BYTES as u64 {
            return Err(damaged(*id, &Flaw::Short));
        }
        let bytes = self.store.get_range(&place, 0..HEAD_BYTES as u64).await;
        let bytes = bytes.map_err(|error| self.absent(*id, error))?;
        let (head, _) = Head::split(&bytes).map_err(|flaw| damaged(*id, &flaw))?;
        Ok(PackInfo {
            id: *id,
            plain_bytes: head.plain_bytes,
            stored_bytes: meta.size,
            base: head.base,
        })
    }

    async fn list(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.ids(Shelf::Packs).await
    }

    async fn remove(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.delete(Shelf::Packs, id).await
    }

    async fn put_record(&self, id: &PackId, plain: Bytes) -> Result<(), ArchiveError> {
        let stored = pack::encode(&plain, &History::default(), id, self.seal.as_deref())
            .map_err(|source| failed(format!("compress record {id}"), source))?;
        let place = Shelf::Records.location(id);
        let written = self.store.put(&place, stored.into()).await;
        written.map_err(|error| self.failed(format!("write record {id}"), error))?;
        Ok(())
    }

    async fn record(&self, id: &PackId) -> Result<Bytes, ArchiveError> {
        let (stored, _) = self.fetch(Shelf::Records, *id).await?;
        let plain = pack::decode(&stored, id, &History::default(), self.seal.as_deref());
        Ok(plain.map_err(|flaw| damaged(*id, &flaw))?.into())
    }

    async fn records(&self) -> Result<Vec<PackId>, ArchiveError> {
        self.ids(Shelf::Records).await
    }

    async fn remove_record(&self, id: &PackId) -> Result<(), ArchiveError> {
        self.delete(Shelf::Records, id).await
    }
}

/// Decodes from the lowest base upwards, checking each content against its name. Returns the plain
/// bytes of the topmost pack, and the whole as a history for the next.
fn decode_chain(
    mut chain: Vec<Link>,
    seal: Option<&Seal>,
) -> Result<(Vec<u8>, History), ArchiveError> {
    let mut history = History::default();
    let mut plain = Vec::new();
    while let Some(Link { id, stored }) = chain.pop() {
        plain = pack::decode(&stored, &id, &history, seal).map_err(|flaw| damaged(id, &flaw))?;
        if PackId::of(&plain, history.top.as_ref()) != id {
            return Err(damaged(id, &Flaw::Content));
        }
        history.push(id, &plain);
    }
    Ok((plain, history))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ArchiveError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|source| failed("finish work on a pack".to_owned(), source))
}

fn damaged(pack: PackId, flaw: &Flaw) -> ArchiveError {
    match flaw {
        Flaw::Version(found) => ArchiveError::Newer {
            pack,
            found: u32::from(*found),
        },
        Flaw::Locked => ArchiveError::Locked { pack },
        other => ArchiveError::Damaged {
            pack,
            reason: other.to_string(),
        },
    }
}

fn failed(
    action: String,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> ArchiveError {
    ArchiveError::Store {
        action,
        source: source.into(),
    }
}
