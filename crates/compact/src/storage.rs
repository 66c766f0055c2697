//! Where everything is kept: the stores that the configuration names, or those that the program lends.
//!
//! Reading never writes: where nothing was stored yet, a reader gets empty stores in memory. What hooks
//! and runs left beside the configured stores is read with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compact_adapters::store::Stores;
use compact_runtime::port::archive::{ArchiveStore, MemoryArchive};
use compact_runtime::port::catalog::{
    CompactionRecord, MemoryCatalog, NamedRecord, SessionCatalog, find_named_record,
};
use compact_runtime::port::index::{MemoryIndex, RecallIndex};

use crate::error::Error;

/// An archive with its catalog.
#[derive(Clone)]
pub struct StorePair {
    /// The archive of originals and views.
    pub archive: Arc<dyn ArchiveStore>,
    /// The catalog of receipts.
    pub catalog: Arc<dyn SessionCatalog>,
}

impl StorePair {
    /// Stores in this process alone, with nothing in them.
    pub fn in_memory() -> StorePair {
        StorePair {
            archive: Arc::new(MemoryArchive::default()),
            catalog: Arc::new(MemoryCatalog::default()),
        }
    }

    /// Finds the receipt or the session that a name stands for.
    pub async fn find_named(&self, name: &str) -> Result<NamedRecord, Error> {
        let named = find_named_record(&*self.catalog, name).await?;
        named.ok_or_else(|| compact_runtime::Error::NotFound(name.to_owned()).into())
    }

    /// Finds the compaction whose memory a name stands for: of a session, the last one that made a
    /// summary. A hook may have copied the transcript since, and its copy knows none.
    pub async fn find_remembered(&self, name: &str) -> Result<CompactionRecord, Error> {
        let is_copy = |record: &CompactionRecord| record.receipt.origin().is_some();
        let latest = match self.find_named(name).await? {
            NamedRecord::Session(latest) if is_copy(&latest) => latest,
            other => return Ok(other.into_record()),
        };
        let records = self.catalog.session_records(&latest.session_id).await?;
        let made = records.into_iter().rfind(|record| !is_copy(record));
        Ok(made.unwrap_or(latest))
    }
}

/// The stores that a program passes instead of the configured ones.
#[derive(Clone)]
pub(crate) struct LentStores {
    pub(crate) archive: Option<Arc<dyn ArchiveStore>>,
    pub(crate) catalog: Arc<dyn SessionCatalog>,
    pub(crate) index: Arc<dyn RecallIndex>,
}

impl LentStores {
    pub(crate) fn in_memory() -> LentStores {
        let StorePair { archive, catalog } = StorePair::in_memory();
        LentStores {
            archive: Some(archive),
            catalog,
            index: Arc::new(MemoryIndex::default()),
        }
    }

    /// Returns the pair, with an empty archive if none was passed.
    fn pair(&self) -> StorePair {
        let none = || Arc::new(MemoryArchive::default()) as Arc<dyn ArchiveStore>;
        StorePair {
            archive: self.archive.clone().unwrap_or_else(none),
            catalog: Arc::clone(&self.catalog),
        }
    }
}

/// The configured stores, in their data directory.
#[derive(Clone, Debug)]
pub(crate) struct ConfiguredStores {
    pub(crate) root: PathBuf,
    pub(crate) stores: Stores,
}

/// The stores in use.
#[derive(Clone)]
pub(crate) enum Storage {
    /// Where the configuration says; nothing is opened before it is used.
    Configured(Box<ConfiguredStores>),
    /// Where the program says.
    Lent(LentStores),
}

impl Storage {
    /// Returns the configured stores, if those are used.
    pub(crate) fn configured(&self) -> Option<&ConfiguredStores> {
        match self {
            Storage::Configured(configured) => Some(configured),
            Storage::Lent(_) => None,
        }
    }

    /// Returns the data directory, if there is one.
    pub(crate) fn root(&self) -> Option<&Path> {
        self.configured()
            .map(|configured| configured.root.as_path())
    }

    /// Returns whether something may have been stored.
    pub(crate) fn has_data(&self) -> bool {
        match self {
            Storage::Configured(configured) => configured.stores.has_data(),
            Storage::Lent(_) => true,
        }
    }

    /// Returns the stores as they are; empty ones in memory if there are none.
    pub(crate) fn as_is(&self) -> Result<StorePair, Error> {
        match self {
            Storage::Lent(lent) => Ok(lent.pair()),
            Storage::Configured(configured) if configured.stores.has_data() => Ok(StorePair {
                archive: configured.stores.open_archive()?,
                catalog: configured.stores.open_catalog_to_read()?,
            }),
            Storage::Configured(_) => Ok(StorePair::in_memory()),
        }
    }

    /// Returns the stores, and creates them if they do not exist.
    pub(crate) fn to_write(&self) -> Result<StorePair, Error> {
        match self {
            Storage::Lent(lent) => Ok(lent.pair()),
            Storage::Configured(configured) => Ok(StorePair {
                archive: configured.stores.open_archive()?,
                catalog: configured.stores.open_catalog()?,
            }),
        }
    }

    /// Returns the recall index, and creates it if it does not exist.
    pub(crate) fn index(&self) -> Result<Arc<dyn RecallIndex>, Error> {
        match self {
            Storage::Lent(lent) => Ok(Arc::clone(&lent.index)),
            Storage::Configured(configured) => Ok(configured.stores.open_index()?),
        }
    }

    /// Returns the recall index, if there is one.
    pub(crate) fn index_if_any(&self) -> Result<Option<Arc<dyn RecallIndex>>, Error> {
        match self {
            Storage::Lent(lent) => Ok(Some(Arc::clone(&lent.index))),
            Storage::Configured(configured) => Ok(configured.stores.open_index_if_any()?),
        }
    }
}
