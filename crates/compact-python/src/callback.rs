//! Implements the engine's ports with callbacks that the user wrote in Python.
//!
//! A port that cannot fail notes an error that a callback raised, and the compaction is refused before it is
//! recorded: the caller gets the error, and nothing has changed. Events go to a queue in Python, which never
//! waits.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use async_trait::async_trait;
use compact::event::{ConsoleFormat, Event, EventSink};
use compact::message::Chain;
use compact::redact::{Scrub, placeholder};
use compact::store::{
    Attempt, CatalogError, CompactionRecord, IndexAddition, IndexError, IndexLookup, Lease,
    LookupResult, PackId, RecallCandidate, RecallIndex, SessionCatalog, SessionInfo,
};
use compact::summarizer::{
    ModelQuestion, QuestionForm, Summarizer, SummarizerAnswer, SummarizerError, SummarizerInfo,
};
use compact::token::{Estimator, Heuristic, Tokens, Units};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use serde_json::Value;

thread_local! {
    /// How many nested calls of the engine this thread is in; a callback may make another.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Whether a callback raised on this background thread.
    static FAILED: Cell<bool> = const { Cell::new(false) };
}

/// What a thread works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadOwner {
    /// It is in a call of the engine, at this depth.
    Call(ThreadId, u32),
    /// It works for a call that another thread made.
    Worker,
    /// It compacts in the background; an error there is reported by an event.
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
/// A worker's error counts for every open call, since nobody knows which one it belongs to: a call that fails
/// needlessly can be repeated, but one must not continue after a failed callback.
#[derive(Debug, Default)]
pub(crate) struct CallbackErrors(Mutex<NotedErrors>);

#[derive(Debug, Default)]
struct NotedErrors {
    /// The open calls, with the first error that was raised in each.
    calls: HashMap<(ThreadId, u32), Option<PyErr>>,
    /// Whether a worker failed since a background compaction last looked.
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
                // While the interpreter shuts down, nobody waits for the error.
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

    /// Returns whether a callback raised in this call.
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

    /// Runs a call of the engine, and returns the error that a callback raised in it, if any.
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

/// Calls Python in a place where blocking is allowed, since the callback may call the engine again. Fails
/// while the interpreter shuts down.
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

/// Redacts texts with a function `(text) -> text`. A text that it fails on is withheld, and the call fails.
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
    fn emit(&self, event: &Event) {
        let json = ConsoleFormat::Json.format_event(event);
        // If the queue is gone, nobody receives events.
        let _ = call_python(|py| self.0.call1(py, (json,)).map(drop));
    }
}

/// Summarizes with a function `(messages, style, system, prompt, limit) -> str`: the messages as tuples of
/// ordinal, role, tool and text, our own prompt for them, and the limit in tokens.
pub(crate) struct PythonSummarizer {
    pub(crate) name: String,
    pub(crate) function: Py<PyAny>,
    pub(crate) faults: Arc<CallbackErrors>,
}

impl PythonSummarizer {
    fn call_function(&self, py: Python<'_>, question: &ModelQuestion) -> PyResult<String> {
        let messages: Vec<_> = question
            .messages
            .iter()
            .map(|m| {
                (
                    m.ordinal,
                    m.role.as_str(),
                    m.tool.as_deref(),
                    m.text.as_str(),
                )
            })
            .collect();
        let Tokens(limit) = question.limit;
        let (style, system) = (question.style.as_str(), question.system.as_str());
        let arguments = (messages, style, system, question.prompt.as_str(), limit);
        self.function.call1(py, arguments)?.extract::<String>(py)
    }

    /// Ends the call if it was interrupted; any other error is a summary that is missing.
    fn note_failure(&self, error: PyErr) -> SummarizerError {
        let name = error_class_name(&error);
        let is_interrupt = call_python(|py| Ok(!error.is_instance_of::<PyException>(py)));
        if is_interrupt.unwrap_or(true) {
            self.faults.note_error(error);
        }
        SummarizerError::Raised(name)
    }
}

#[async_trait]
impl Summarizer for PythonSummarizer {
    fn describe(&self) -> SummarizerInfo {
        SummarizerInfo {
            name: self.name.clone(),
            window: None,
            continues: None,
            most_requests: 8,
            reads: QuestionForm::Messages,
        }
    }

    async fn answer(&self, question: &ModelQuestion) -> Result<SummarizerAnswer, SummarizerError> {
        match call_python(|py| self.call_function(py, question)) {
            Ok(text) => Ok(SummarizerAnswer {
                text,
                ..SummarizerAnswer::default()
            }),
            Err(error) => Err(self.note_failure(error)),
        }
    }
}

/// Returns the class of an error; its message may repeat what the callback was given.
fn error_class_name(error: &PyErr) -> String {
    let name = |py: Python<'_>| Ok(error.get_type(py).name()?.to_string());
    call_python(name).unwrap_or_else(|_| "an error".to_owned())
}

/// An index that adds nothing after a redactor failed, since withheld texts would stay withheld.
pub(crate) struct GuardedIndex {
    pub(crate) index: Arc<dyn RecallIndex>,
    pub(crate) faults: Arc<CallbackErrors>,
}

#[async_trait]
impl RecallIndex for GuardedIndex {
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
    async fn entries_at(
        &self,
        session: &str,
        ordinals: &[u64],
    ) -> Result<Vec<RecallCandidate>, IndexError> {
        self.index.entries_at(session, ordinals).await
    }
}

/// Why a store was not called; the caller gets the error that was raised.
const RAISED: &str = "a callback raised an error";

/// A catalog that calls `(session_id, receipt) -> None` before it records, and records nothing if that raises.
pub(crate) struct GuardedCatalog {
    pub(crate) catalog: Arc<dyn SessionCatalog>,
    pub(crate) before_record: Arc<Py<PyAny>>,
    pub(crate) faults: Arc<CallbackErrors>,
}

impl GuardedCatalog {
    fn call_before_record(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        if !self.faults.has_error() {
            let arguments = (&record.session_id, record.receipt.to_string());
            let called = call_python(|py| self.before_record.call1(py, arguments).map(drop));
            let Err(error) = called else { return Ok(()) };
            self.faults.note_error(error);
        }
        Err(CatalogError::Store {
            action: "record a compaction".to_owned(),
            source: RAISED.into(),
        })
    }
}

#[async_trait]
impl SessionCatalog for GuardedCatalog {
    async fn save_record(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        self.call_before_record(record)?;
        self.catalog.save_record(record).await
    }
    async fn save_record_under(
        &self,
        lease: &Lease,
        record: &CompactionRecord,
    ) -> Result<(), CatalogError> {
        self.call_before_record(record)?;
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
