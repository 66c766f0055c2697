//! From a configuration and what Python lends to a manager: where ports meet their adapters.

use std::sync::Arc;

use compact_adapters::archive::ObjectArchive;
use compact_adapters::catalog::ObjectCatalog;
use compact_adapters::config::{Config, StorageAdapter, StorageConfig};
use compact_adapters::estimator;
use compact_adapters::store::Stores;
use compact_core::policy::Policy;
use compact_core::redact::{RedactionBoundary, Redactor, Scrub};
use compact_core::token::Estimator;
use compact_runtime::manager::ArchiveMode;
use compact_runtime::port::archive::{ArchiveStore, MemoryArchive};
use compact_runtime::port::catalog::{CompactionRecord, MemoryCatalog, SessionCatalog};
use compact_runtime::port::embedder::Embedder;
use compact_runtime::port::event::{EventSink, RedactingSink};
use compact_runtime::port::index::{MemoryIndex, RecallIndex};
use compact_runtime::port::summarizer::Summarizer;
use compact_runtime::{Manager, Recall};
use pyo3::prelude::*;

use crate::callback::{
    AskingCatalog, CallbackErrors, CarefulIndex, PythonEstimator, PythonScrub, PythonSink,
    PythonSummarizer,
};
use crate::failure::{ErrorClass, error_with_causes, error_with_message};
use crate::objects::PythonObjects;

/// Functions of the user's.
pub(crate) struct PythonCallbacks {
    pub(crate) emit: Py<PyAny>,
    pub(crate) before_record: Py<PyAny>,
    pub(crate) estimator: Option<(String, Py<PyAny>)>,
    pub(crate) summarizer: Option<(String, Py<PyAny>)>,
    pub(crate) redact: Option<Py<PyAny>>,
    /// A store of the user's that everything is kept in.
    pub(crate) objects: Option<Py<PyAny>>,
}

/// What an engine runs on.
pub(crate) struct EngineParts {
    pub(crate) manager: Arc<Manager>,
    pub(crate) recall: Option<Recall>,
    pub(crate) faults: Arc<CallbackErrors>,
    pub(crate) keeping: OriginalStorage,
    pub(crate) handing: StorageRedactors,
}

/// What is taken out of what the user's storage is handed.
pub(crate) struct StorageRedactors {
    /// Of an original.
    pub(crate) transcript: Arc<Redactor>,
    /// Of a summary.
    pub(crate) summary: Arc<Redactor>,
}

/// Where originals are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginalStorage {
    /// In the stores that the configuration names: those of `compactctl`, which reads the same.
    Stores,
    /// In a store of the user's.
    Objects,
    /// In this process.
    Memory,
    /// Nowhere.
    Nothing,
}

impl OriginalStorage {
    fn from_storage(storage: &StorageConfig, objects: Option<&Py<PyAny>>) -> OriginalStorage {
        match (storage.adapter, objects) {
            (StorageAdapter::Fs | StorageAdapter::S3, _) => OriginalStorage::Stores,
            (StorageAdapter::Custom, Some(_)) => OriginalStorage::Objects,
            (StorageAdapter::Custom, None) => OriginalStorage::Memory,
            (StorageAdapter::None, _) => OriginalStorage::Nothing,
        }
    }
}

/// Archive, catalog and index of one place.
struct EngineStores {
    archive: Option<Arc<dyn ArchiveStore>>,
    catalog: Arc<dyn SessionCatalog>,
    index: Option<Arc<dyn RecallIndex>>,
}

impl EngineStores {
    fn open(storage: &StorageConfig, objects: Option<Py<PyAny>>) -> Result<EngineStores, PyErr> {
        match (
            OriginalStorage::from_storage(storage, objects.as_ref()),
            objects,
        ) {
            (OriginalStorage::Stores, _) => EngineStores::open_configured(storage),
            (OriginalStorage::Objects, Some(objects)) => {
                Ok(EngineStores::open_objects(PythonObjects::new(objects)))
            }
            (OriginalStorage::Memory | OriginalStorage::Objects, _) => Ok(EngineStores {
                archive: Some(Arc::new(MemoryArchive::default())),
                catalog: Arc::new(MemoryCatalog::default()),
                index: Some(Arc::new(MemoryIndex::default())),
            }),
            (OriginalStorage::Nothing, _) => Ok(EngineStores {
                archive: None,
                catalog: Arc::new(MemoryCatalog::default()),
                index: None,
            }),
        }
    }

    /// A store that the user wrote; what can be drawn from it again, the index, is in memory.
    fn open_objects(objects: PythonObjects) -> EngineStores {
        let objects = Arc::new(objects);
        EngineStores {
            archive: Some(Arc::new(ObjectArchive::in_program_store(objects.clone()))),
            catalog: Arc::new(ObjectCatalog::new(objects)),
            index: Some(Arc::new(MemoryIndex::default())),
        }
    }

    fn open_configured(storage: &StorageConfig) -> Result<EngineStores, PyErr> {
        let failed = |error: &dyn std::error::Error| error_with_causes(ErrorClass::Storage, error);
        let wrong = |error: &dyn std::error::Error| error_with_causes(ErrorClass::Config, error);
        let root = storage.folder().map_err(|e| wrong(&e))?;
        let stores = Stores::new(storage, &root).map_err(|e| wrong(&e))?;
        Ok(EngineStores {
            archive: Some(stores.open_archive().map_err(|e| failed(&e))?),
            catalog: stores.open_catalog().map_err(|e| failed(&e))?,
            index: Some(stores.open_index().map_err(|e| failed(&e))?),
        })
    }
}

/// Builds everything that an engine runs on.
pub(crate) fn build_parts(
    config: &Config,
    callbacks: PythonCallbacks,
) -> Result<EngineParts, PyErr> {
    let keeping = OriginalStorage::from_storage(&config.storage, callbacks.objects.as_ref());
    let store = EngineStores::open(&config.storage, callbacks.objects)?;
    let faults = Arc::new(CallbackErrors::default());
    let redaction = PythonRedaction::from_config(config, callbacks.redact, &faults);
    let catalog: Arc<dyn SessionCatalog> = Arc::new(AskingCatalog {
        catalog: store.catalog,
        before_record: callbacks.before_record,
        faults: Arc::clone(&faults),
    });
    let summary = redaction.redactor_at(RedactionBoundary::Summary)?;
    let handing = redaction.storage_redactors()?;
    let sink: Arc<dyn EventSink> = Arc::new(PythonSink(callbacks.emit));
    let recall = store.archive.clone().zip(store.index);
    let recall = recall.map(|(archive, index)| Recall {
        archive,
        catalog: Arc::clone(&catalog),
        index: Arc::new(CarefulIndex {
            index,
            faults: Arc::clone(&faults),
        }),
        redactor: Arc::clone(&summary),
    });
    let manager = Manager {
        archive: store.archive,
        catalog,
        sink: Arc::new(RedactingSink::new(
            redaction.redactor_at(RedactionBoundary::Export)?,
            sink,
        )),
        estimator: estimator_of(config, callbacks.estimator, &faults),
        policy: config.policy.clone(),
        window: config.window(None).tokens,
        redactor: summary,
        storing: redaction.archive_mode()?,
        summarizer: summarizer_of(config, callbacks.summarizer)?,
        embedder: embedder_of(config),
    };
    Ok(EngineParts {
        manager: Arc::new(manager),
        recall,
        faults,
        keeping,
        handing,
    })
}

fn estimator_of(
    config: &Config,
    theirs: Option<(String, Py<PyAny>)>,
    faults: &Arc<CallbackErrors>,
) -> Arc<dyn Estimator> {
    match theirs {
        Some((name, function)) => Arc::new(PythonEstimator {
            name,
            function,
            faults: Arc::clone(faults),
        }),
        None => config.estimator.build_estimator(config.model.as_deref()),
    }
}

/// What is taken out of texts: what the configuration says, and what the user's function finds.
struct PythonRedaction<'c> {
    config: &'c Config,
    theirs: Option<Arc<dyn Scrub>>,
}

impl PythonRedaction<'_> {
    fn from_config<'c>(
        config: &'c Config,
        theirs: Option<Py<PyAny>>,
        faults: &Arc<CallbackErrors>,
    ) -> PythonRedaction<'c> {
        let scrub = |function| {
            let faults = Arc::clone(faults);
            Arc::new(PythonScrub { function, faults }) as Arc<dyn Scrub>
        };
        let theirs = theirs.map(scrub);
        PythonRedaction { config, theirs }
    }

    /// The function applies wherever its boundary is on, whether or not the maintained rules do.
    fn redactor_at(&self, boundary: RedactionBoundary) -> Result<Arc<Redactor>, PyErr> {
        let rules = &self.config.redaction;
        let made = rules.redactor(boundary);
        let made = made.map_err(|e| error_with_causes(ErrorClass::Config, &e))?;
        let is_on = match boundary {
            RedactionBoundary::Archive => rules.sinks.archive,
            RedactionBoundary::Export => rules.sinks.export,
            RedactionBoundary::Summary => rules.sinks.summary_prompt,
        };
        Ok(Arc::new(match &self.theirs {
            Some(scrub) if is_on => made.with_callback("redact", Arc::clone(scrub)),
            _ => made,
        }))
    }

    /// A storage of the user's is no place of ours: what is redacted there is redacted as where text
    /// leaves the process. Whether an original is, the archive's sink says.
    fn storage_redactors(&self) -> Result<StorageRedactors, PyErr> {
        let mut config = self.config.clone();
        config.redaction.sinks.export = config.redaction.sinks.archive;
        let original = PythonRedaction {
            config: &config,
            theirs: self.theirs.clone(),
        };
        Ok(StorageRedactors {
            transcript: original.redactor_at(RedactionBoundary::Export)?,
            summary: self.redactor_at(RedactionBoundary::Export)?,
        })
    }

    fn archive_mode(&self) -> Result<ArchiveMode, PyErr> {
        let archive = self.redactor_at(RedactionBoundary::Archive)?;
        Ok(match archive.is_off() {
            true => ArchiveMode::Exact,
            false => ArchiveMode::Redacted(archive),
        })
    }
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
        return Err(error_with_message(ErrorClass::Config, &message));
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
    let other = || {
        error_with_message(
            ErrorClass::Compact,
            "the receipt was written by another version",
        )
    };
    let policy: Policy = serde_json::from_value(field("policy")).map_err(|_| other())?;
    let name: String = serde_json::from_value(field("estimator")).map_err(|_| other())?;
    let estimator = if name == manager.estimator.name() {
        Arc::clone(&manager.estimator)
    } else {
        estimator::by_name(&name, None).map_err(|e| error_with_causes(ErrorClass::Compact, &e))?
    };
    Ok(Manager {
        policy,
        estimator,
        ..manager.clone()
    })
}
