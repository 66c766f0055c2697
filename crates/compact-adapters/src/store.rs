//! The stores that a configuration names: archive, catalog and recall index, embedded or shared.
//!
//! Nothing is connected to before it is used. With no configuration everything is in one folder.

#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use compact_runtime::port::archive::{ArchiveError, ArchiveStore};
use compact_runtime::port::catalog::{CatalogError, SessionCatalog};
use compact_runtime::port::clock::{Clock, SystemClock};
use compact_runtime::port::index::{IndexError, RecallIndex};

use crate::archive::{self, ObjectArchive};
use crate::catalog::{PostgresCatalog, SqliteCatalog};
use crate::config::{StorageAdapter, StorageConfig};
use crate::postgres::PostgresServer;
use crate::private;
use crate::recall::{PostgresIndex, SealedIndex, SqliteIndex};
use crate::seal::{Seal, SealError};

/// The catalog's file in the data directory.
const CATALOG: &str = "catalog.db";

/// The recall index's file there: a file of its own, since it can be thrown away.
const RECALL: &str = "recall.db";

/// The same where it is encrypted: what was written in the clear is not to be mixed with it.
const SEALED_RECALL: &str = "recall-sealed.db";

/// The file beside it that is locked by whoever brings it up to date.
const RECALL_LOCK: &str = "recall.lock";

/// The turn of the one process of this machine that brings the recall index up to date. It ends when this is
/// dropped, or with the process.
#[derive(Debug)]
pub struct IndexTurn {
    lock: File,
}

impl Drop for IndexTurn {
    fn drop(&mut self) {
        // A process that was forked meanwhile holds the file too: closing it would not be enough.
        let _ = self.lock.unlock();
    }
}

/// Why stores cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no key for the archive.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// A thread for connections could not be started.
    #[error("cannot start the thread that talks to the catalog")]
    Thread(#[source] std::io::Error),
}

/// The configured stores, opened when they are needed.
#[derive(Clone, Debug)]
pub struct Stores {
    storage: StorageConfig,
    root: PathBuf,
    server: Option<PostgresServer>,
    seal: Option<Seal>,
    clock: Arc<dyn Clock>,
}

impl Stores {
    /// Returns the stores of a configuration; `root` is the data directory. Secrets are read from the
    /// environment now.
    pub fn new(storage: &StorageConfig, root: &Path) -> Result<Stores, StoreError> {
        let address = storage
            .catalog_address()
            .map(|a| a.with_password_from_env());
        let server = address.map(PostgresServer::new).transpose();
        let seal = storage.archive.key_env.as_deref().map(Seal::from_env);
        Ok(Stores {
            server: server.map_err(StoreError::Thread)?,
            seal: seal.transpose()?,
            storage: storage.clone(),
            root: root.to_owned(),
            clock: Arc::new(SystemClock),
        })
    }

    /// Reads the time from `clock`, but for the leases of a shared catalog, which has its own.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Stores {
        Stores { clock, ..self }
    }

    /// Returns true once something may have been stored.
    pub fn has_data(&self) -> bool {
        self.server.is_some() || self.catalog_file().exists() || self.has_objects()
    }

    /// Returns whether there are packs or records in the folder.
    fn has_objects(&self) -> bool {
        let is_folder = self.storage.adapter.is_folder();
        let folders = [archive::PACKS, archive::RECORDS];
        is_folder
            && folders
                .iter()
                .any(|folder| has_file(&self.root.join(folder)))
    }

    /// Returns whether there are records in the folder: each was in the catalog before.
    fn has_records(&self) -> bool {
        self.storage.adapter.is_folder() && has_file(&self.root.join(archive::RECORDS))
    }

    /// Returns why an embedded catalog does not tell what the archive holds; `None` when it may.
    fn find_catalog_loss(&self, file: &Path) -> Option<CatalogError> {
        let state = match fs::metadata(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => "missing",
            Ok(found) if found.len() == 0 => "empty",
            _ => return None,
        };
        self.has_objects().then(|| CatalogError::Lost {
            place: file.display().to_string(),
            state,
        })
    }

    fn catalog_file(&self) -> PathBuf {
        let named = self.storage.catalog_file();
        named.unwrap_or_else(|| self.root.join(CATALOG))
    }

    /// Returns where originals are, in words.
    pub fn archive_location(&self) -> String {
        let bucket = self.storage.bucket();
        match self.storage.adapter {
            StorageAdapter::S3 if bucket.prefix.is_empty() => format!("s3://{}", bucket.name),
            StorageAdapter::S3 => format!("s3://{}/{}", bucket.name, bucket.prefix),
            StorageAdapter::Fs | StorageAdapter::Custom | StorageAdapter::None => {
                self.root.display().to_string()
            }
        }
    }

    /// Returns where receipts are, in words.
    pub fn catalog_location(&self) -> String {
        match &self.server {
            Some(server) => server.location().to_owned(),
            None => self.catalog_file().display().to_string(),
        }
    }

    /// Opens the archive of originals.
    pub fn open_archive(&self) -> Result<Arc<dyn ArchiveStore>, ArchiveError> {
        Ok(Arc::new(self.open_object_archive()?))
    }

    /// Returns the originals as what they are stored in.
    pub fn open_object_archive(&self) -> Result<ObjectArchive, ArchiveError> {
        let archive = match self.storage.adapter {
            StorageAdapter::S3 => ObjectArchive::in_bucket(&self.storage.bucket())?,
            StorageAdapter::Fs | StorageAdapter::Custom | StorageAdapter::None => {
                ObjectArchive::open(&self.root)?
            }
        };
        let archive = archive.with_clock(Arc::clone(&self.clock));
        Ok(match &self.seal {
            Some(seal) => archive.with_seal(seal.clone()),
            None => archive,
        })
    }

    /// Opens the catalog of receipts.
    pub fn open_catalog(&self) -> Result<Arc<dyn SessionCatalog>, CatalogError> {
        self.open_catalog_with(SqliteCatalog::open)
    }

    /// Returns the receipts, also where nothing can be written.
    pub fn open_catalog_to_read(&self) -> Result<Arc<dyn SessionCatalog>, CatalogError> {
        self.open_catalog_with(SqliteCatalog::open_to_read)
    }

    fn open_catalog_with(
        &self,
        open: fn(&Path) -> Result<SqliteCatalog, CatalogError>,
    ) -> Result<Arc<dyn SessionCatalog>, CatalogError> {
        if let Some(catalog) = self.shared_catalog() {
            return Ok(Arc::new(catalog));
        }
        let file = self.catalog_file();
        if let Some(lost) = self.find_catalog_loss(&file) {
            return Err(lost);
        }
        let catalog = open(&file)?;
        match catalog.is_empty()? && self.has_records() {
            true => Err(CatalogError::Lost {
                place: file.display().to_string(),
                state: "empty",
            }),
            false => Ok(Arc::new(self.with_lease_terms(catalog))),
        }
    }

    /// Returns the receipts to be made again: one that is damaged is moved aside first, and its new place is
    /// said.
    pub async fn open_catalog_to_rebuild(
        &self,
    ) -> Result<(Arc<dyn SessionCatalog>, Option<PathBuf>), CatalogError> {
        if self.server.is_some() {
            return Ok((self.open_catalog()?, None));
        }
        let file = self.catalog_file();
        let found = match SqliteCatalog::open(&file) {
            Ok(catalog) => catalog.check_integrity().await.map(|()| catalog),
            Err(error) => Err(error),
        };
        match found {
            Ok(catalog) => Ok((Arc::new(self.with_lease_terms(catalog)), None)),
            Err(CatalogError::Damaged { .. }) => {
                let aside = move_aside(&file).map_err(|source| CatalogError::Store {
                    action: format!("move {} aside", file.display()),
                    source: source.into(),
                })?;
                let catalog = SqliteCatalog::open(&file)?;
                Ok((Arc::new(self.with_lease_terms(catalog)), Some(aside)))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the shared catalog, if the configuration names one.
    pub fn shared_catalog(&self) -> Option<PostgresCatalog> {
        let catalog = PostgresCatalog::new(self.server.clone()?);
        Some(catalog.with_lease_time(self.lease_time()))
    }

    fn with_lease_terms(&self, catalog: SqliteCatalog) -> SqliteCatalog {
        let catalog = catalog.with_clock(Arc::clone(&self.clock));
        catalog.with_lease_time(self.lease_time())
    }

    fn lease_time(&self) -> Duration {
        Duration::from_secs(self.storage.lease_seconds)
    }

    /// Returns the recall index.
    pub fn open_index(&self) -> Result<Arc<dyn RecallIndex>, IndexError> {
        let (server, seal) = (self.server.clone(), self.seal.clone());
        Ok(match (server, seal) {
            (Some(server), None) => Arc::new(PostgresIndex::new(server)),
            (Some(server), Some(seal)) => {
                Arc::new(SealedIndex::new(PostgresIndex::new(server), seal))
            }
            (None, None) => Arc::new(SqliteIndex::open(&self.root.join(RECALL))?),
            (None, Some(seal)) => {
                let index = SqliteIndex::open(&self.root.join(SEALED_RECALL))?;
                // What it holds is drawn again; in the clear it has no place beside a sealed archive.
                SqliteIndex::remove(&self.root.join(RECALL))?;
                Arc::new(SealedIndex::new(index, seal))
            }
        })
    }

    /// Takes the turn to bring the recall index up to date; `None` while another process has it, and where
    /// nothing was ever stored or nothing can be written.
    pub fn take_index_turn(&self) -> Option<IndexTurn> {
        self.try_index_turn().ok()
    }

    fn try_index_turn(&self) -> Result<IndexTurn, TryLockError> {
        let mut options = OpenOptions::new();
        let file = self.root.join(RECALL_LOCK);
        let lock = private::open(options.append(true).create(true), &file);
        let lock = lock.map_err(TryLockError::Error)?;
        lock.try_lock()?;
        Ok(IndexTurn { lock })
    }

    /// Takes the turn, and waits for whoever has it for at most `patience`; `None` after that: a process that
    /// was stopped keeps nobody from searching.
    pub async fn wait_for_index_turn(&self, patience: Duration) -> Option<IndexTurn> {
        let start = Instant::now();
        loop {
            match self.try_index_turn() {
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                turn => return turn.ok(),
            }
        }
    }

    /// Returns the recall index, if there is one.
    pub fn open_index_if_any(&self) -> Result<Option<Arc<dyn RecallIndex>>, IndexError> {
        let files = [RECALL, SEALED_RECALL];
        let is_there = files.iter().any(|file| self.root.join(file).exists());
        (self.server.is_some() || is_there)
            .then(|| self.open_index())
            .transpose()
    }
}

/// Returns whether one of the folders in a folder has a file.
fn has_file(folder: &Path) -> bool {
    let shards = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files = shards.flat_map(|shard| fs::read_dir(shard.path()));
    files.any(|mut files| files.next().is_some())
}

/// Gives a file another name, with the log and the index that SQLite keeps beside it.
fn move_aside(file: &Path) -> io::Result<PathBuf> {
    let beside = |base: &Path, suffix: &str| {
        let mut name = base.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let free = (1..).map(|nth| beside(file, &format!(".damaged-{nth}")));
    let aside = free.into_iter().find(|path| !path.exists());
    let aside = aside.ok_or_else(|| io::Error::from(ErrorKind::AlreadyExists))?;
    for suffix in ["-wal", "-shm", ""] {
        match fs::rename(beside(file, suffix), beside(&aside, suffix)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}
