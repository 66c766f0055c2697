//! Builds the engine from a configuration and the callbacks that Python passes.

use std::sync::Arc;

use compact::config::{Config, ExporterKind, IndexingMoment, StorageAdapter, StorageConfig};
use compact::manager::Manager;
use compact::store::{MemoryCatalog, ObjectArchive, ObjectCatalog};
use compact::{Compact, CompactBuilder};
use pyo3::prelude::*;

use crate::callback::{
    CallbackErrors, GuardedCatalog, GuardedIndex, PythonEstimator, PythonScrub, PythonSink,
    PythonSummarizer,
};
use crate::failure::from_error;
use crate::indexer::Indexer;
use crate::objects::PythonObjects;

/// The functions and objects that Python passes to an engine.
pub(crate) struct PythonCallbacks {
    pub(crate) emit: Py<PyAny>,
    pub(crate) before_record: Py<PyAny>,
    pub(crate) estimator: Option<(String, Py<PyAny>)>,
    pub(crate) summarizer: Option<(String, Py<PyAny>)>,
    pub(crate) redact: Option<Py<PyAny>>,
    /// The user's store in which everything is kept.
    pub(crate) objects: Option<Py<PyAny>>,
}

/// The parts that an engine consists of.
pub(crate) struct EngineParts {
    pub(crate) compact: Compact,
    pub(crate) manager: Arc<Manager>,
    pub(crate) faults: Arc<CallbackErrors>,
    pub(crate) keeping: OriginalStorage,
    /// What adds to the recall index; nothing where that would call Python.
    pub(crate) indexer: Option<Indexer>,
}

/// Where originals are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginalStorage {
    /// In the stores that the configuration names, which `compactctl` can read too.
    Stores,
    /// In the user's store.
    Objects,
    /// In the memory of this process.
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

/// Builds the parts of an engine and opens its stores; fails if the configuration is wrong or a store cannot
/// be opened.
pub(crate) fn build_parts(
    mut config: Config,
    callbacks: PythonCallbacks,
) -> Result<EngineParts, PyErr> {
    let keeping = OriginalStorage::from_storage(&config.storage, callbacks.objects.as_ref());
    let indexes = keeping == OriginalStorage::Stores
        && callbacks.redact.is_none()
        && config.storage.indexing == IndexingMoment::Background;
    // Python's own queue delivers events to the exporters.
    config.telemetry.exporter = ExporterKind::None;
    let faults = Arc::new(CallbackErrors::default());
    let builder = Compact::builder()
        .config(config)
        .event_sink(Arc::new(PythonSink(callbacks.emit)));
    let builder = lend_stores(builder, keeping, callbacks.objects);
    let builder = guard_stores(builder, callbacks.before_record, &faults);
    let functions = (callbacks.estimator, callbacks.summarizer, callbacks.redact);
    let compact = lend_functions(builder, functions, &faults).build();
    let compact = compact.map_err(|error| from_error(&error))?;
    let manager = compact.manager().map_err(|error| from_error(&error))?;
    Ok(EngineParts {
        indexer: indexes.then(|| Indexer::new(compact.clone())),
        compact,
        manager,
        faults,
        keeping,
    })
}

fn lend_stores(
    builder: CompactBuilder,
    keeping: OriginalStorage,
    objects: Option<Py<PyAny>>,
) -> CompactBuilder {
    match (keeping, objects) {
        (OriginalStorage::Stores, _) => builder,
        // The index can be rebuilt from the store, so it is kept in memory.
        (OriginalStorage::Objects, Some(objects)) => {
            let objects = Arc::new(PythonObjects::new(objects));
            builder
                .archive(Arc::new(ObjectArchive::in_program_store(objects.clone())))
                .catalog(Arc::new(ObjectCatalog::new(objects)))
        }
        (OriginalStorage::Memory | OriginalStorage::Objects, _) => builder.in_memory(),
        (OriginalStorage::Nothing, _) => builder.catalog(Arc::new(MemoryCatalog::default())),
    }
}

/// Makes catalog and index refuse to record anything after a callback failed.
fn guard_stores(
    builder: CompactBuilder,
    before_record: Py<PyAny>,
    faults: &Arc<CallbackErrors>,
) -> CompactBuilder {
    let before_record = Arc::new(before_record);
    let (of_catalog, of_index) = (Arc::clone(faults), Arc::clone(faults));
    builder
        .wrap_catalog(move |catalog| {
            Arc::new(GuardedCatalog {
                catalog,
                before_record: Arc::clone(&before_record),
                faults: Arc::clone(&of_catalog),
            })
        })
        .wrap_index(move |index| {
            Arc::new(GuardedIndex {
                index,
                faults: Arc::clone(&of_index),
            })
        })
}

/// A function of the user with the name of its class.
type NamedFunction = (String, Py<PyAny>);

fn lend_functions(
    mut builder: CompactBuilder,
    (estimator, summarizer, redact): (
        Option<NamedFunction>,
        Option<NamedFunction>,
        Option<Py<PyAny>>,
    ),
    faults: &Arc<CallbackErrors>,
) -> CompactBuilder {
    if let Some((name, function)) = estimator {
        let faults = Arc::clone(faults);
        builder = builder.estimator(Arc::new(PythonEstimator {
            name,
            function,
            faults,
        }));
    }
    if let Some((name, function)) = summarizer {
        let faults = Arc::clone(faults);
        builder = builder.summarizer(Arc::new(PythonSummarizer {
            name,
            function,
            faults,
        }));
    }
    if let Some(function) = redact {
        let faults = Arc::clone(faults);
        builder = builder.redact(Arc::new(PythonScrub { function, faults }));
    }
    builder
}
