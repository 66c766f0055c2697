//! What the user wrote in Python, behind the engine's ports.
//!
//! A port that cannot fail notes what was raised, and the compaction is refused before it goes on
//! record: the caller gets the error, and nothing has changed. Events are handed to a queue of
//! Python's, which never waits.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use async_trait::async_trait;
use compact::event::EventSink;
use compact::message::Chain;
use compact::redact::{Scrub, placeholder};
use compact::store::{
    Attempt, CatalogError, CompactionRecord, IndexAddition, IndexError, IndexLookup, Lease,
    LookupResult, PackId, RecallIndex, SessionCatalog, SessionInfo,
};
use compact::summarizer::{
    ModelQuestion, Summarizer, SummarizerAnswer, SummarizerError, SummarizerInfo,
};
use compact::token::{Estimator, Heuristic, Tokens, Units};
use pyo3::prelude::*;
use serde_json::Value;

thread_local! {
    /// How many calls of the engine this thread is in: a callback may make another.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Whether a callback raised on this thread, which nobody waits for.
    static FAILED: Cell<bool> = const { Cell::new(false) };
}

/// Whose a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadOwner {
    /// It is in a call of the engine.
    Call(ThreadId, u32),
    /// It works for one that is.
    Worker,
    /// It compacts in the background: what fails there is told by an event and raised to nobody.
    Background,
}

impl ThreadOwner {
    fn current() -> ThreadOwner {
        let thread = thread::current();
        match (DEPTH.get(), thread.name()) {
            (0, Some("compact-background")) => ThreadOwner::Background,
            (0, _) => ThreadOwner::Worker,
            (depth, _) => ThreadOwner::Call(thread.id(), depth),
        }
    }
}

/// The first error that callbacks raised in each call.
///
/// A worker's error is that of every call that is open, since nobody knows whose it is: a call that fails
/// for nothing may be made again, one that goes on after a failed callback may not.
#[derive(Debug, Default)]
pub(crate) struct CallbackErrors(Mutex<NotedErrors>);

#[derive(Debug, Default)]
struct NotedErrors {
    /// The open calls, with what was raised in them.
    calls: HashMap<(ThreadId, u32), Option<PyErr>>,
    /// Whether a worker failed and the background has not heard of it.
    worker: bool,
}

impl CallbackErrors {
    fn lock_noted(&self) -> MutexGuard<'_, NotedErrors> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_error(&self, error: PyErr) {
        match ThreadOwner::current() {
            ThreadOwner::Background => FAILED.set(true),
            ThreadOwner::Call(thread, depth) => {
                let mut noted = self.lock_noted();
                noted
                    .calls
                    .entry((thread, depth))
                    .or_default()
                    .get_or_insert(error);
            }
            ThreadOwner::Worker => {
                // An interpreter that is shutting down has nobody who waits for it.
                let _ = call_python(|py| {
                    let mut noted = self.lock_noted();
                    noted.worker = true;
                    for fault in noted.calls.values_mut() {
                        fault.get_or_insert_with(|| error.clone_ref(py));
                    }
                    Ok(())
                });
            }
        }
    }

    /// Whether something was raised in this call.
    fn has_error(&self) -> bool {
        let mut noted = self.lock_noted();
        match ThreadOwner::current() {
            ThreadOwner::Background => {
                let of_worker = std::mem::take(&mut noted.worker);
                FAILED.set(FAILED.get() || of_worker);
                FAILED.get()
            }
            ThreadOwner::Call(thread, depth) => {
                matches!(noted.calls.get(&(thread, depth)), Some(Some(_)))
            }
            ThreadOwner::Worker => noted.worker && noted.calls.values().all(Option::is_some),
        }
    }

    /// Runs a call of the engine. What callbacks raise in it is the caller's, in their own words.
    pub(crate) fn run_call<T>(&self, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        let depth = DEPTH.get() + 1;
        let call = (thread::current().id(), depth);
        DEPTH.set(depth);
        self.lock_noted().calls.insert(call, None);
        let answer = work();
        let fault = self.lock_noted().calls.remove(&call).flatten();
        DEPTH.set(depth - 1);
        fault.map_or(answer, Err)
    }
}

/// Calls Python. What is called may call the engine, which must be able to wait; an interpreter that
/// is shutting down calls nothing any more.
pub(crate) fn call_python<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> PyResult<T> {
    let gone = || pyo3::exceptions::PyRuntimeError::new_err("the interpreter is shutting down");
    let attached = || Python::try_attach(work).unwrap_or_else(|| Err(gone()));
    tokio::task::block_in_place(attached)
}

/// Counts texts with a function `(text) -> int`.
pub(crate) struct PythonEstimator {
    pub(crate) name: String,
    pub(crate) function: Py<PyAny>,
    pub(crate) faults: Arc<CallbackErrors>,
}

impl Estimator for PythonEstimator {
    fn name(&self) -> &str {
        &self.name
    }

    fn count_units(&self, text: &str) -> Units {
        let count = |py: Python<'_>| self.function.call1(py, (text,))?.extract::<u64>(py);
        match call_python(count) {
            Ok(units) => Units(units),
            Err(error) => {
                self.faults.note_error(error);
                Units(Heuristic.count_units(text).0 / 4)
            }
        }
    }
}

/// Takes out of texts what a function `(text) -> text` finds. What it fails on is withheld, and the call
/// that it belongs to fails.
pub(crate) struct PythonScrub {
    pub(crate) function: Py<PyAny>,
    pub(crate) faults: Arc<CallbackErrors>,
}

impl Scrub for PythonScrub {
    fn scrub(&self, text: &str) -> Option<String> {
        let withheld = || Some(placeholder("redact", text));
        if self.faults.has_error() {
            return withheld();
        }
        match call_python(|py| self.function.call1(py, (text,))?.extract::<String>(py)) {
            Ok(changed) => Some(changed),
            Err(error) => {
                self.faults.note_error(error);
                withheld()
            }
        }
    }
}

/// Hands events to a function `(json) -> None` that never waits.
pub(crate) struct PythonSink(pub(crate) Py<PyAny>);

impl EventSink for PythonSink {
    fn emit(&self, event: &Value) {
        let json = event.to_string();
        // A queue that is gone has nobody behind it.
        let _ = call_python(|py| self.0.call1(py, (json,)).map(drop));
    }
}

/// Asks a function `(system, prompt, limit) -> str`.
pub(crate) struct PythonSummarizer {
    pub(crate) name: String,
    pub(crate) function: Py<PyAny>,
}

#[async_trait]
impl Summarizer for PythonSummarizer {
    fn describe(&self) -> SummarizerInfo {
        SummarizerInfo {
            name: self.name.clone(),
            window: None,
            continues: None,
            most_requests: 8,
        }
    }

    async fn answer(&self, question: &ModelQuestion) -> Result<SummarizerAnswer, SummarizerError> {
        let Tokens(limit) = question.limit;
        let ask = |py: Python<'_>| {
            let arguments = (question.system.as_str(), question.prompt.as_str(), limit);
            self.function.call1(py, arguments)?.extract::<String>(py)
        };
        match call_python(ask) {
            Ok(text) => Ok(SummarizerAnswer {
                text,
                ..SummarizerAnswer::default()
            }),
            Err(error) => Err(SummarizerError::Raised(error_class_name(&error))),
        }
    }
}

/// The class of an error: its words may repeat what a callback was given.
fn error_class_name(error: &PyErr) -> String {
    let name = |py: Python<'_>| Ok(error.get_type(py).name()?.to_string());
    call_python(name).unwrap_or_else(|_| "an error".to_owned())
}

/// An index that takes nothing in which a redactor withheld what it failed on: it would stay that way.
pub(crate) struct CarefulIndex {
    pub(crate) index: Arc<dyn RecallIndex>,
    pub(crate) faults: Arc<CallbackErrors>,
}

#[async_trait]
impl RecallIndex for CarefulIndex {
    async fn receipts(&self) -> Result<Vec<(String, String)>, IndexError> {
        self.index.receipts().await
    }
    async fn add(&self, addition: IndexAddition) -> Result<(), IndexError> {
        if self.faults.has_error() {
            return Err(IndexError::Store {
                action: "add to the recall index".to_owned(),
                source: RAISED.into(),
            });
        }
        self.index.add(addition).await
    }
    async fn forget(&self, session: &str) -> Result<(), IndexError> {
        self.index.forget(session).await
    }
    async fn find(&self, lookup: &IndexLookup) -> Result<LookupResult, IndexError> {
        self.index.find(lookup).await
    }
}

/// Why a store is not asked; the caller gets what was raised.
const RAISED: &str = "a callback raised an error";

/// A catalog that asks Python before it records: `(session_id, receipt) -> None`.
pub(crate) struct AskingCatalog {
    pub(crate) catalog: Arc<dyn SessionCatalog>,
    pub(crate) before_record: Arc<Py<PyAny>>,
    pub(crate) faults: Arc<CallbackErrors>,
}

impl AskingCatalog {
    fn ask_before_record(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        if !self.faults.has_error() {
            let arguments = (&record.session_id, record.receipt.to_string());
            let asked = call_python(|py| self.before_record.call1(py, arguments).map(drop));
            let Err(error) = asked else { return Ok(()) };
            self.faults.note_error(error);
        }
        Err(CatalogError::Store {
            action: "record a compaction".to_owned(),
            source: RAISED.into(),
        })
    }
}

#[async_trait]
impl SessionCatalog for AskingCatalog {
    async fn save_record(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        self.ask_before_record(record)?;
        self.catalog.save_record(record).await
    }
    async fn save_record_under(
        &self,
        lease: &Lease,
        record: &CompactionRecord,
    ) -> Result<(), CatalogError> {
        self.ask_before_record(record)?;
        self.catalog.save_record_under(lease, record).await
    }
    fn lease_time(&self) -> std::time::Duration {
        self.catalog.lease_time()
    }
    async fn claim(&self, session: &str) -> Result<Option<Lease>, CatalogError> {
        self.catalog.claim(session).await
    }
    async fn renew(&self, lease: &Lease) -> Result<bool, CatalogError> {
        self.catalog.renew(lease).await
    }
    async fn release(&self, lease: &Lease) -> Result<(), CatalogError> {
        self.catalog.release(lease).await
    }
    async fn find_record(&self, receipt: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        self.catalog.find_record(receipt).await
    }
    async fn latest_record(&self, session: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        self.catalog.latest_record(session).await
    }
    async fn session_records(&self, session: &str) -> Result<Vec<CompactionRecord>, CatalogError> {
        self.catalog.session_records(session).await
    }
    async fn find_sessions(
        &self,
        histories: &[Chain],
    ) -> Result<Vec<(String, Chain)>, CatalogError> {
        self.catalog.find_sessions(histories).await
    }
    async fn sessions(&self) -> Result<Vec<SessionInfo>, CatalogError> {
        self.catalog.sessions().await
    }
    async fn save_event(&self, session: &str, event: &Value) -> Result<(), CatalogError> {
        self.catalog.save_event(session, event).await
    }
    async fn events(&self, session: &str) -> Result<Vec<Value>, CatalogError> {
        self.catalog.events(session).await
    }
    async fn save_attempt(&self, session: &str, attempt: &Attempt) -> Result<(), CatalogError> {
        self.catalog.save_attempt(session, attempt).await
    }
    async fn last_attempt(&self, session: &str) -> Result<Option<Attempt>, CatalogError> {
        self.catalog.last_attempt(session).await
    }
    async fn referenced_packs(&self) -> Result<Vec<PackId>, CatalogError> {
        self.catalog.referenced_packs().await
    }
    async fn remove_receipt(&self, session: &str, receipt: &str) -> Result<(), CatalogError> {
        self.catalog.remove_receipt(session, receipt).await
    }
    async fn remove_session(&self, session: &str) -> Result<(), CatalogError> {
        self.catalog.remove_session(session).await
    }
}
