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
use compact_core::identity::Chain;
use compact_core::prompt::Answer;
use compact_core::redact::{Scrub, placeholder};
use compact_core::token::{Estimator, Heuristic, Tokens, Units};
use compact_runtime::port::archive::PackId;
use compact_runtime::port::catalog::{
    Attempt, CatalogError, CompactionRecord, Lease, SessionCatalog, SessionInfo,
};
use compact_runtime::port::event::EventSink;
use compact_runtime::port::index::{Addition, Found, IndexError, Lookup, RecallIndex};
use compact_runtime::port::summarizer::{About, Question, Summarizer, SummarizerError};
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
enum Place {
    /// It is in a call of the engine.
    Call(ThreadId, u32),
    /// It works for one that is.
    Worker,
    /// It compacts in the background: what fails there is told by an event and raised to nobody.
    Background,
}

impl Place {
    fn here() -> Place {
        let thread = thread::current();
        match (DEPTH.get(), thread.name()) {
            (0, Some("compact-background")) => Place::Background,
            (0, _) => Place::Worker,
            (depth, _) => Place::Call(thread.id(), depth),
        }
    }
}

/// The first error that callbacks raised in each call.
///
/// A worker's error is that of every call that is open, since nobody knows whose it is: a call that fails
/// for nothing may be made again, one that goes on after a failed callback may not.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    /// The open calls, with what was raised in them.
    calls: HashMap<(ThreadId, u32), Option<PyErr>>,
    /// Whether a worker failed and the background has not heard of it.
    worker: bool,
}

impl Faults {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, error: PyErr) {
        match Place::here() {
            Place::Background => FAILED.set(true),
            Place::Call(thread, depth) => {
                let mut noted = self.noted();
                noted
                    .calls
                    .entry((thread, depth))
                    .or_default()
                    .get_or_insert(error);
            }
            Place::Worker => {
                // An interpreter that is shutting down has nobody who waits for it.
                let _ = call(|py| {
                    let mut noted = self.noted();
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
    fn is_noted(&self) -> bool {
        let mut noted = self.noted();
        match Place::here() {
            Place::Background => {
                let of_worker = std::mem::take(&mut noted.worker);
                FAILED.set(FAILED.get() || of_worker);
                FAILED.get()
            }
            Place::Call(thread, depth) => {
                matches!(noted.calls.get(&(thread, depth)), Some(Some(_)))
            }
            Place::Worker => noted.worker && noted.calls.values().all(Option::is_some),
        }
    }

    /// Runs a call of the engine. What callbacks raise in it is the caller's, in their own words.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        let depth = DEPTH.get() + 1;
        let call = (thread::current().id(), depth);
        DEPTH.set(depth);
        self.noted().calls.insert(call, None);
        let answer = work();
        let fault = self.noted().calls.remove(&call).flatten();
        DEPTH.set(depth - 1);
        fault.map_or(answer, Err)
    }
}

/// Calls Python. What is called may call the engine, which must be able to wait; an interpreter that
/// is shutting down calls nothing any more.
pub(crate) fn call<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> PyResult<T> {
    let gone = || pyo3::exceptions::PyRuntimeError::new_err("the interpreter is shutting down");
    let attached = || Python::try_attach(work).unwrap_or_else(|| Err(gone()));
    tokio::task::block_in_place(attached)
}

/// Counts texts with a function `(text) -> int`.
pub(crate) struct PythonEstimator {
    pub(crate) name: String,
    pub(crate) function: Py<PyAny>,
    pub(crate) faults: Arc<Faults>,
}

impl Estimator for PythonEstimator {
    fn name(&self) -> &str {
        &self.name
    }

    fn units(&self, text: &str) -> Units {
        let count = |py: Python<'_>| self.function.call1(py, (text,))?.extract::<u64>(py);
        match call(count) {
            Ok(units) => Units(units),
            Err(error) => {
                self.faults.note(error);
                Units(Heuristic.units(text).0 / 4)
            }
        }
    }
}

/// Takes out of texts what a function `(text) -> text` finds. What it fails on is withheld, and the call
/// that it belongs to fails.
pub(crate) struct PythonScrub {
    pub(crate) function: Py<PyAny>,
    pub(crate) faults: Arc<Faults>,
}

impl Scrub for PythonScrub {
    fn scrub(&self, text: &str) -> Option<String> {
        let withheld = || Some(placeholder("redact", text));
        if self.faults.is_noted() {
            return withheld();
        }
        match call(|py| self.function.call1(py, (text,))?.extract::<String>(py)) {
            Ok(changed) => Some(changed),
            Err(error) => {
                self.faults.note(error);
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
        let _ = call(|py| self.0.call1(py, (json,)).map(drop));
    }
}

/// Asks a function `(system, prompt, limit) -> str`.
pub(crate) struct PythonSummarizer {
    pub(crate) name: String,
    pub(crate) function: Py<PyAny>,
}

#[async_trait]
impl Summarizer for PythonSummarizer {
    fn about(&self) -> About {
        About {
            name: self.name.clone(),
            window: None,
            continues: None,
            most_requests: 8,
        }
    }

    async fn answer(&self, question: &Question) -> Result<Answer, SummarizerError> {
        let Tokens(limit) = question.limit;
        let ask = |py: Python<'_>| {
            let arguments = (question.system.as_str(), question.prompt.as_str(), limit);
            self.function.call1(py, arguments)?.extract::<String>(py)
        };
        match call(ask) {
            Ok(text) => Ok(Answer {
                text,
                ..Answer::default()
            }),
            Err(error) => Err(SummarizerError::Raised(kind(&error))),
        }
    }
}

/// The class of an error: its words may repeat what a callback was given.
fn kind(error: &PyErr) -> String {
    let name = |py: Python<'_>| Ok(error.get_type(py).name()?.to_string());
    call(name).unwrap_or_else(|_| "an error".to_owned())
}

/// An index that takes nothing in which a redactor withheld what it failed on: it would stay that way.
pub(crate) struct CarefulIndex {
    pub(crate) index: Arc<dyn RecallIndex>,
    pub(crate) faults: Arc<Faults>,
}

#[async_trait]
impl RecallIndex for CarefulIndex {
    async fn receipts(&self) -> Result<Vec<(String, String)>, IndexError> {
        self.index.receipts().await
    }
    async fn add(&self, addition: Addition) -> Result<(), IndexError> {
        if self.faults.is_noted() {
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
    async fn find(&self, lookup: &Lookup) -> Result<Found, IndexError> {
        self.index.find(lookup).await
    }
}

/// Why a store is not asked; the caller gets what was raised.
const RAISED: &str = "a callback raised an error";

/// A catalog that asks Python before it records: `(session_id, receipt) -> None`.
pub(crate) struct AskingCatalog {
    pub(crate) catalog: Arc<dyn SessionCatalog>,
    pub(crate) before_record: Py<PyAny>,
    pub(crate) faults: Arc<Faults>,
}

impl AskingCatalog {
    fn ask(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        if !self.faults.is_noted() {
            let arguments = (&record.session_id, record.receipt.to_string());
            let asked = call(|py| self.before_record.call1(py, arguments).map(drop));
            let Err(error) = asked else { return Ok(()) };
            self.faults.note(error);
        }
        Err(CatalogError::Store {
            action: "record a compaction".to_owned(),
            source: RAISED.into(),
        })
    }
}

#[async_trait]
impl SessionCatalog for AskingCatalog {
    async fn record(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        self.ask(record)?;
        self.catalog.record(record).await
    }
    async fn record_under(
        &self,
        lease: &Lease,
        record: &CompactionRecord,
    ) -> Result<(), CatalogError> {
        self.ask(record)?;
        self.catalog.record_under(lease, record).await
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
    async fn by_receipt(&self, receipt: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        self.catalog.by_receipt(receipt).await
    }
    async fn latest(&self, session: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        self.catalog.latest(session).await
    }
    async fn chain(&self, session: &str) -> Result<Vec<CompactionRecord>, CatalogError> {
        self.catalog.chain(session).await
    }
    async fn sessions_with(
        &self,
        histories: &[Chain],
    ) -> Result<Vec<(String, Chain)>, CatalogError> {
        self.catalog.sessions_with(histories).await
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
    async fn record_attempt(&self, session: &str, attempt: &Attempt) -> Result<(), CatalogError> {
        self.catalog.record_attempt(session, attempt).await
    }
    async fn last_attempt(&self, session: &str) -> Result<Option<Attempt>, CatalogError> {
        self.catalog.last_attempt(session).await
    }
    async fn packs(&self) -> Result<Vec<PackId>, CatalogError> {
        self.catalog.packs().await
    }
    async fn remove_receipt(&self, session: &str, receipt: &str) -> Result<(), CatalogError> {
        self.catalog.remove_receipt(session, receipt).await
    }
    async fn remove_session(&self, session: &str) -> Result<(), CatalogError> {
        self.catalog.remove_session(session).await
    }
}
