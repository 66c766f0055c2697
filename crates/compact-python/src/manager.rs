//! From a configuration and what Python lends to a manager: where ports meet their adapters.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compact_adapters::archive::ObjectArchive;
use compact_adapters::catalog::SqliteCatalog;
use compact_adapters::config::{Config, StorageAdapter};
use compact_adapters::estimator;
use compact_adapters::recall::SqliteIndex;
use compact_core::policy::Policy;
use compact_core::redact::{Boundary, Redactor};
use compact_core::token::Estimator;
use compact_runtime::manager::Storing;
use compact_runtime::port::archive::{ArchiveStore, MemoryArchive};
use compact_runtime::port::catalog::{CompactionRecord, MemoryCatalog, SessionCatalog};
use compact_runtime::port::embedder::Embedder;
use compact_runtime::port::event::{EventSink, Redacting};
use compact_runtime::port::index::{MemoryIndex, RecallIndex};
use compact_runtime::port::summarizer::Summarizer;
use compact_runtime::{Manager, Recall};
use pyo3::prelude::*;

use crate::callback::{AskingCatalog, Faults, PythonEstimator, PythonSink, PythonSummarizer};
use crate::failure::{Class, raise, told};

/// The catalog's and the recall index's files: those of `compactctl`, which reads the same folder.
const CATALOG: &str = "catalog.db";
const RECALL: &str = "recall.db";

/// Functions of the user's.
pub(crate) struct Callbacks {
    pub(crate) emit: Py<PyAny>,
    pub(crate) before_record: Py<PyAny>,
    pub(crate) estimator: Option<(String, Py<PyAny>)>,
    pub(crate) summarizer: Option<(String, Py<PyAny>)>,
}

/// What an engine runs on.
pub(crate) struct Parts {
    pub(crate) manager: Arc<Manager>,
    pub(crate) recall: Option<Recall>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) keeping: Keeping,
}

/// Where originals are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// In a folder.
    Files(PathBuf),
    /// In this process.
    Memory,
    /// Nowhere.
    Nothing,
}

impl Keeping {
    fn of(config: &Config) -> Result<Keeping, PyErr> {
        match (config.storage.adapter, &config.storage.path) {
            (StorageAdapter::Fs, Some(path)) => Ok(Keeping::Files(path.clone())),
            (StorageAdapter::Fs, None) => Err(told(
                Class::Config,
                "storage.path is not set: name a folder, as in FileStorage(\"./.compact/archive\")",
            )),
            (StorageAdapter::Custom, _) => Ok(Keeping::Memory),
            (StorageAdapter::None, _) => Ok(Keeping::Nothing),
            (other, _) => Err(told(
                Class::Config,
                &format!("storage.adapter {other:?} is not part of this package"),
            )),
        }
    }
}

/// Archive, catalog and index of one place.
struct Store {
    archive: Option<Arc<dyn ArchiveStore>>,
    catalog: Arc<dyn SessionCatalog>,
    index: Option<Arc<dyn RecallIndex>>,
}

impl Store {
    fn open(keeping: &Keeping) -> Result<Store, PyErr> {
        match keeping {
            Keeping::Files(root) => Store::files(root),
            Keeping::Memory => Ok(Store {
                archive: Some(Arc::new(MemoryArchive::default())),
                catalog: Arc::new(MemoryCatalog::default()),
                index: Some(Arc::new(MemoryIndex::default())),
            }),
            Keeping::Nothing => Ok(Store {
                archive: None,
                catalog: Arc::new(MemoryCatalog::default()),
                index: None,
            }),
        }
    }

    fn files(root: &Path) -> Result<Store, PyErr> {
        let failed = |error: &dyn std::error::Error| raise(Class::Storage, error);
        let archive = ObjectArchive::open(root).map_err(|e| failed(&e))?;
        let catalog = SqliteCatalog::open(&root.join(CATALOG)).map_err(|e| failed(&e))?;
        let index = SqliteIndex::open(&root.join(RECALL)).map_err(|e| failed(&e))?;
        Ok(Store {
            archive: Some(Arc::new(archive)),
            catalog: Arc::new(catalog),
            index: Some(Arc::new(index)),
        })
    }
}

/// Builds everything that an engine runs on.
pub(crate) fn build(config: &Config, callbacks: Callbacks) -> Result<Parts, PyErr> {
    let keeping = Keeping::of(config)?;
    let store = Store::open(&keeping)?;
    let faults = Arc::new(Faults::default());
    let catalog: Arc<dyn SessionCatalog> = Arc::new(AskingCatalog {
        catalog: store.catalog,
        before_record: callbacks.before_record,
        faults: Arc::clone(&faults),
    });
    let summary = redactor(config, Boundary::Summary)?;
    let sink: Arc<dyn EventSink> = Arc::new(PythonSink(callbacks.emit));
    let recall = store.archive.clone().zip(store.index);
    let recall = recall.map(|(archive, index)| Recall {
        archive,
        catalog: Arc::clone(&catalog),
        index,
        redactor: Arc::clone(&summary),
    });
    let manager = Manager {
        archive: store.archive,
        catalog,
        sink: Arc::new(Redacting::new(redactor(config, Boundary::Export)?, sink)),
        estimator: estimator_of(config, callbacks.estimator, &faults),
        policy: config.policy.clone(),
        window: config.window(None).tokens,
        redactor: summary,
        storing: storing(config)?,
        summarizer: summarizer_of(config, callbacks.summarizer)?,
        embedder: embedder_of(config),
    };
    Ok(Parts {
        manager: Arc::new(manager),
        recall,
        faults,
        keeping,
    })
}

fn estimator_of(
    config: &Config,
    theirs: Option<(String, Py<PyAny>)>,
    faults: &Arc<Faults>,
) -> Arc<dyn Estimator> {
    match theirs {
        Some((name, function)) => Arc::new(PythonEstimator {
            name,
            function,
            faults: Arc::clone(faults),
        }),
        None => config.estimator.estimator(config.model.as_deref()),
    }
}

fn redactor(config: &Config, boundary: Boundary) -> Result<Arc<Redactor>, PyErr> {
    let made = config.redaction.redactor(boundary);
    Ok(Arc::new(made.map_err(|e| raise(Class::Config, &e))?))
}

fn storing(config: &Config) -> Result<Storing, PyErr> {
    if config.redaction.enabled && config.redaction.sinks.archive {
        return Ok(Storing::Redacted(redactor(config, Boundary::Archive)?));
    }
    Ok(Storing::Exact)
}

fn summarizer_of(
    config: &Config,
    theirs: Option<(String, Py<PyAny>)>,
) -> Result<Option<Arc<dyn Summarizer>>, PyErr> {
    if let Some((name, function)) = theirs {
        return Ok(Some(Arc::new(PythonSummarizer { name, function })));
    }
    if let Some(variable) = config.summarizer.missing_key() {
        let message = format!("the summarizer needs a key, and {variable} is not set");
        return Err(told(Class::Config, &message));
    }
    let built = config.summarizer.build().map(|mut summarizer| {
        summarizer.model = summarizer.model.or_else(|| config.model.clone());
        Arc::new(summarizer) as Arc<dyn Summarizer>
    });
    Ok(built)
}

fn embedder_of(config: &Config) -> Option<Arc<dyn Embedder>> {
    let built = config.embeddings.build()?;
    Some(Arc::new(built))
}

/// The manager under the terms that a receipt was made under.
pub(crate) fn under_terms(manager: &Manager, record: &CompactionRecord) -> Result<Manager, PyErr> {
    let field = |name: &str| record.receipt.get(name).cloned().unwrap_or_default();
    let other = || told(Class::Compact, "the receipt was written by another version");
    let policy: Policy = serde_json::from_value(field("policy")).map_err(|_| other())?;
    let name: String = serde_json::from_value(field("estimator")).map_err(|_| other())?;
    let estimator = if name == manager.estimator.name() {
        Arc::clone(&manager.estimator)
    } else {
        estimator::by_name(&name, None).map_err(|e| raise(Class::Compact, &e))?
    };
    Ok(Manager {
        policy,
        estimator,
        ..manager.clone()
    })
}
