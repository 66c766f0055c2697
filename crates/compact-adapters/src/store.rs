//! The stores that a configuration names: archive, catalog and recall index, embedded or shared.
//!
//! Nothing is connected to before it is used. With no configuration everything is in one folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use compact_runtime::port::archive::{ArchiveError, ArchiveStore};
use compact_runtime::port::catalog::{CatalogError, SessionCatalog};
use compact_runtime::port::index::{IndexError, RecallIndex};

use crate::archive::ObjectArchive;
use crate::catalog::{PostgresCatalog, SqliteCatalog};
use crate::config::{Storage, StorageAdapter};
use crate::postgres::Server;
use crate::recall::{PostgresIndex, SealedIndex, SqliteIndex};
use crate::seal::{Seal, SealError};

/// The catalog's file in the data directory.
const CATALOG: &str = "catalog.db";

/// The recall index's file there: a file of its own, since it can be thrown away.
const RECALL: &str = "recall.db";

/// The same where it is encrypted: what was written in the clear is not to be mixed with it.
const SEALED_RECALL: &str = "recall-sealed.db";

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

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Stores {
    storage: Storage,
    root: PathBuf,
    server: Option<Server>,
    seal: Option<Seal>,
}

impl Stores {
    /// The stores of a configuration; `root` is the data directory. Secrets are read from the
    /// environment now.
    pub fn new(storage: &Storage, root: &Path) -> Result<Stores, StoreError> {
        let address = storage.address().map(|a| a.with_password_from_env());
        let server = address.map(Server::new).transpose();
        let seal = storage.archive.key_env.as_deref().map(Seal::from_env);
        Ok(Stores {
            server: server.map_err(StoreError::Thread)?,
            seal: seal.transpose()?,
            storage: storage.clone(),
            root: root.to_owned(),
        })
    }

    /// True once something may have been stored.
    pub fn exist(&self) -> bool {
        self.server.is_some() || self.catalog_file().exists()
    }

    fn catalog_file(&self) -> PathBuf {
        let named = self.storage.catalog_file();
        named.unwrap_or_else(|| self.root.join(CATALOG))
    }

    /// Where originals are, in words.
    pub fn archive_place(&self) -> String {
        let bucket = self.storage.bucket();
        match self.storage.adapter {
            StorageAdapter::S3 if bucket.prefix.is_empty() => format!("s3://{}", bucket.name),
            StorageAdapter::S3 => format!("s3://{}/{}", bucket.name, bucket.prefix),
            _ => self.root.display().to_string(),
        }
    }

    /// Where receipts are, in words.
    pub fn catalog_place(&self) -> String {
        match &self.server {
            Some(server) => server.place().to_owned(),
            None => self.catalog_file().display().to_string(),
        }
    }

    /// The originals.
    pub fn archive(&self) -> Result<Arc<dyn ArchiveStore>, ArchiveError> {
        Ok(Arc::new(self.objects()?))
    }

    /// The originals as what they are stored in.
    pub fn objects(&self) -> Result<ObjectArchive, ArchiveError> {
        let archive = match self.storage.adapter {
            StorageAdapter::S3 => ObjectArchive::in_bucket(&self.storage.bucket())?,
            _ => ObjectArchive::open(&self.root)?,
        };
        Ok(match &self.seal {
            Some(seal) => archive.sealed(seal.clone()),
            None => archive,
        })
    }

    /// The receipts.
    pub fn catalog(&self) -> Result<Arc<dyn SessionCatalog>, CatalogError> {
        let time = Duration::from_secs(self.storage.lease_seconds);
        Ok(match &self.server {
            Some(server) => Arc::new(PostgresCatalog::new(server.clone()).with_lease_time(time)),
            None => {
                let catalog = SqliteCatalog::open(&self.catalog_file())?;
                Arc::new(catalog.with_lease_time(time))
            }
        })
    }

    /// The shared catalog, if the configuration names one.
    pub fn shared_catalog(&self) -> Option<PostgresCatalog> {
        self.server.clone().map(PostgresCatalog::new)
    }

    /// The recall index.
    pub fn index(&self) -> Result<Arc<dyn RecallIndex>, IndexError> {
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

    /// The recall index, if there is one.
    pub fn index_if_any(&self) -> Result<Option<Arc<dyn RecallIndex>>, IndexError> {
        let files = [RECALL, SEALED_RECALL];
        let is_there = files.iter().any(|file| self.root.join(file).exists());
        (self.server.is_some() || is_there)
            .then(|| self.index())
            .transpose()
    }
}
