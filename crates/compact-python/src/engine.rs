//! `compact._native.Engine`: a manager with its live sessions.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use compact::format::{ParsedTranscript, overflow};
use compact::manager::{self, Manager, RuntimeError};
use compact::message::{Chain, Conversation, Entry, EntryHash};
use compact::recall::{HitOrder, RecallQuery, SecretDisplay};
use compact::redact::{RedactionBoundary, RedactionCounts, Redactor};
use compact::store::{CompactionRecord, find_named_record};
use compact::{Compact, Error, Prompt, Session, SessionTable, TableLimits};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyList};
use serde_json::{Value, json};

use crate::callback::CallbackErrors;
use crate::exchange::{ClientHistory, PassedHistory, SentItem, SentMessages};
use crate::failure::{self, ErrorClass, error_with_causes, error_with_message};
use crate::function::{format_named, parse_config, source_named};
use crate::indexer::Indexer;
use crate::manager::{EngineParts, OriginalStorage, PythonCallbacks, build_parts};
use crate::reset::ResetSession;
use crate::runtime::block_on;
use crate::session::{HeldSession, SessionSlot};
use crate::{hook_store, lookup, transcript};

/// Runs compactions for the sessions of one configuration.
#[pyclass(frozen, module = "compact._native")]
pub(crate) struct Engine {
    compact: Compact,
    manager: Arc<Manager>,
    faults: Arc<CallbackErrors>,
    keeping: OriginalStorage,
    indexer: Option<Indexer>,
    sessions: SessionTable<SessionSlot>,
}

/// The answer to a call as Python gets it: messages (`None` for all that were passed), changed members beside
/// them, the decision and the receipt as JSON, the session's name, and the mark of the history.
type PythonAnswer<'py> = (
    Option<Bound<'py, PyList>>,
    Option<String>,
    String,
    Option<String>,
    String,
    u64,
);

/// The answer to a call before it is converted to Python values.
struct CallAnswer {
    sent: SentMessages,
    decision: String,
    receipt: Option<String>,
    session_id: String,
    mark: u64,
}

/// What a caller wants done with a history before the next request.
enum EngineCall<'a> {
    Preflight,
    Compact(&'a str),
    Overflow(overflow::Overflow),
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (
        config, emit, before_record, estimator=None, summarizer=None, redact=None, objects=None,
        max_sessions=256
    ))]
    #[expect(clippy::too_many_arguments, reason = "one argument of Python's each")]
    fn new(
        py: Python<'_>,
        config: &str,
        emit: Py<PyAny>,
        before_record: Py<PyAny>,
        estimator: Option<(String, Py<PyAny>)>,
        summarizer: Option<(String, Py<PyAny>)>,
        redact: Option<Py<PyAny>>,
        objects: Option<Py<PyAny>>,
        max_sessions: usize,
    ) -> PyResult<Engine> {
        let config = parse_config("CompactConfig", config)?;
        let callbacks = PythonCallbacks {
            emit,
            before_record,
            estimator,
            summarizer,
            redact,
            objects,
        };
        let parts = py.detach(|| build_parts(config, callbacks))?;
        let EngineParts {
            compact,
            manager,
            faults,
            keeping,
            indexer,
        } = parts;
        Ok(Engine {
            compact,
            manager,
            faults,
            keeping,
            indexer,
            sessions: SessionTable::new(TableLimits {
                sessions: max_sessions,
                weight: u64::MAX,
            }),
        })
    }

    /// Returns what to send now, and compacts if the history outgrew the window. Without a name, the
    /// session is the one that this history continues.
    fn preflight<'py>(
        &self,
        py: Python<'py>,
        session_id: Option<&str>,
        format: Option<&str>,
        head: String,
        list: String,
        items: Vec<PyBackedStr>,
    ) -> PyResult<PythonAnswer<'py>> {
        let history = client_history(format, head, list, items)?;
        let answer = self.run_detached(py, || {
            self.answer_history(session_id, &history, EngineCall::Preflight)
        })?;
        to_python_answer(py, answer)
    }

    /// Begins a session under the profile `hard-reset`.
    #[pyo3(signature = (session_id, base, emit=None))]
    fn reset_session(
        &self,
        session_id: &str,
        base: String,
        emit: Option<Py<PyAny>>,
    ) -> PyResult<ResetSession> {
        ResetSession::open(
            &self.compact,
            Arc::clone(&self.faults),
            session_id,
            base,
            emit,
        )
    }

    /// Returns the chart of a session on record as SVG, and what it shows in words.
    fn session_chart(&self, py: Python<'_>, session_id: &str) -> PyResult<(String, String)> {
        let chart = py.detach(|| run_blocking(self.compact.session_chart(session_id)))?;
        Ok((chart.to_standalone_svg(), chart.describe()))
    }

    /// Adds messages to the history that a session was passed last, which `mark` names, and returns what to send
    /// now; `None` if it was passed another one since, or if the longer history must be passed as a whole.
    #[expect(clippy::needless_pass_by_value, reason = "Python hands over a value")]
    fn append<'py>(
        &self,
        py: Python<'py>,
        session_id: &str,
        mark: u64,
        items: Vec<PyBackedStr>,
    ) -> PyResult<Option<PythonAnswer<'py>>> {
        let answer = self.run_detached(py, || self.answer_appended(session_id, mark, &items))?;
        answer
            .map(|answer| to_python_answer(py, answer))
            .transpose()
    }

    /// Compacts whatever the pressure, and returns what to send.
    #[expect(clippy::too_many_arguments, reason = "one argument of Python's each")]
    fn manual_compact<'py>(
        &self,
        py: Python<'py>,
        session_id: Option<&str>,
        format: Option<&str>,
        head: String,
        list: String,
        items: Vec<PyBackedStr>,
        note: &str,
    ) -> PyResult<PythonAnswer<'py>> {
        let history = client_history(format, head, list, items)?;
        let answer = self.run_detached(py, || {
            self.answer_history(session_id, &history, EngineCall::Compact(note))
        })?;
        to_python_answer(py, answer)
    }

    /// Returns a smaller prompt for a provider that refused the last one as too long; `None` if it refused
    /// for another reason, or if nothing smaller can be made.
    #[expect(clippy::too_many_arguments, reason = "one argument of Python's each")]
    fn overflowed<'py>(
        &self,
        py: Python<'py>,
        session_id: Option<&str>,
        format: Option<&str>,
        head: String,
        list: String,
        items: Vec<PyBackedStr>,
        status: u16,
        body: &str,
    ) -> PyResult<Option<PythonAnswer<'py>>> {
        let Some(overflow) = overflow::find_in_response(status, None, body.as_bytes()) else {
            return Ok(None);
        };
        let history = client_history(format, head, list, items)?;
        let answer = self.run_detached(py, || {
            self.answer_history(session_id, &history, EngineCall::Overflow(overflow))
        })?;
        let made = answer.receipt.is_some();
        made.then(|| to_python_answer(py, answer)).transpose()
    }

    /// Protects messages of a session, and returns the hashes that name them.
    #[pyo3(signature = (session_id, format, items))]
    fn protect(
        &self,
        py: Python<'_>,
        session_id: &str,
        format: Option<&str>,
        items: Vec<PyBackedStr>,
    ) -> PyResult<Vec<String>> {
        let history = client_history(format, String::new(), String::new(), items)?;
        self.run_detached(py, || {
            let names = history.entry_names()?;
            let (slot, _) = self.sessions.find_or_add(session_id, SessionSlot::default);
            let mut held = slot.hold()?;
            let live = held.get_or_create(&self.compact, session_id);
            run_blocking(live.protect(&names))?;
            Ok(names.iter().map(ToString::to_string).collect())
        })
    }

    /// Ends the protection of messages of a session, and returns their hashes.
    #[pyo3(signature = (session_id, format, items))]
    fn unprotect(
        &self,
        py: Python<'_>,
        session_id: &str,
        format: Option<&str>,
        items: Vec<PyBackedStr>,
    ) -> PyResult<Vec<String>> {
        let history = client_history(format, String::new(), String::new(), items)?;
        self.run_detached(py, || {
            let names = history.entry_names()?;
            let (slot, _) = self.sessions.find_or_add(session_id, SessionSlot::default);
            let mut held = slot.hold()?;
            let live = held.get_or_create(&self.compact, session_id);
            run_blocking(live.unprotect(&names))?;
            Ok(names.iter().map(ToString::to_string).collect())
        })
    }

    /// Records the usage that a provider reported for the last request, as JSON; `None` for no report.
    fn observe(
        &self,
        py: Python<'_>,
        session_id: &str,
        source: &str,
        report: Option<&str>,
    ) -> PyResult<()> {
        let reported = match report {
            Some(text) => {
                let value: Value = serde_json::from_str(text)
                    .map_err(|e| error_with_causes(ErrorClass::Format, &e))?;
                source_named(source)?.read(&value)
            }
            None => None,
        };
        self.run_detached(py, || {
            let (slot, _) = self.sessions.find_or_add(session_id, SessionSlot::default);
            let mut held = slot.hold()?;
            if let Some(live) = held.existing_session() {
                live.observe_report(reported);
            }
            Ok(())
        })
    }

    /// Reports that a session was idle for so many seconds; true if that started a compaction.
    fn idle(&self, py: Python<'_>, session_id: &str, seconds: f64) -> PyResult<bool> {
        let quiet = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        self.run_detached(py, || {
            let (slot, _) = self.sessions.find_or_add(session_id, SessionSlot::default);
            let mut held = slot.hold()?;
            match held.existing_session() {
                Some(live) => block_on(live.report_idle(quiet)),
                None => Ok(false),
            }
        })
    }

    /// Appends a boundary and a smaller view to an agent's transcript, and returns it with the receipt;
    /// `None` if there is no need. With a note it compacts whatever the pressure.
    #[pyo3(signature = (session_id, source, format, note=None))]
    fn rewrite(
        &self,
        py: Python<'_>,
        session_id: Option<&str>,
        source: String,
        format: &str,
        note: Option<&str>,
    ) -> PyResult<Option<(String, String)>> {
        let format = format_named(format)?;
        self.run_detached(py, || {
            transcript::rewrite_transcript(&self.manager, session_id, source, format, note)
        })
    }

    /// Searches what is archived, and returns the hits as JSON.
    #[pyo3(signature = (query, session_id=None, limit=8, unredacted=false))]
    fn recall(
        &self,
        py: Python<'_>,
        query: &str,
        session_id: Option<&str>,
        limit: usize,
        unredacted: bool,
    ) -> PyResult<String> {
        self.require_archive()?;
        let query = RecallQuery {
            text: query,
            session_id,
            limit,
            secrets: SecretDisplay::shown_if(unredacted),
            ..RecallQuery::default()
        };
        let answer = self.run_detached(py, || run_blocking(self.compact.search(&query)))?;
        Ok(json!(answer.hits).to_string())
    }

    /// Returns the entry that a pointer names: session, receipt, role, text and its own JSON.
    #[pyo3(signature = (pointer, session_id=None, unredacted=false))]
    fn expand(
        &self,
        py: Python<'_>,
        pointer: &str,
        session_id: Option<&str>,
        unredacted: bool,
    ) -> PyResult<String> {
        self.require_archive()?;
        let secrets = SecretDisplay::shown_if(unredacted);
        let found = self.run_detached(py, || match session_id {
            Some(session) => run_blocking(self.compact.expand_within(session, pointer, secrets)),
            None => run_blocking(self.compact.expand(pointer, secrets)),
        })?;
        let answer = json!({
            "session_id": found.session_id,
            "receipt_id": found.receipt_id,
            "ordinal": found.ordinal,
            "role": found.role,
            "text": found.text(),
            "source": String::from_utf8_lossy(&found.source),
            "exact": found.exact,
        });
        Ok(answer.to_string())
    }

    /// Searches what is archived, and returns the hits as text for a model.
    #[pyo3(signature = (query, session_id=None, limit=8, after=None, latest=false))]
    fn recall_text(
        &self,
        py: Python<'_>,
        query: &str,
        session_id: Option<&str>,
        limit: usize,
        after: Option<u64>,
        latest: bool,
    ) -> PyResult<String> {
        self.require_archive()?;
        let query = RecallQuery {
            text: query,
            session_id,
            after,
            order: match latest {
                true => HitOrder::Latest,
                false => HitOrder::Best,
            },
            limit,
            ..RecallQuery::default()
        };
        let answer = self.run_detached(py, || run_blocking(self.compact.search(&query)))?;
        Ok(lookup::render_hits(&answer))
    }

    /// Returns the entries that a pointer names as text for a model.
    #[pyo3(signature = (pointer, session_id=None, grep=None, lines=None, around=0))]
    fn expand_text(
        &self,
        py: Python<'_>,
        pointer: &str,
        session_id: Option<&str>,
        grep: Option<&str>,
        lines: Option<&str>,
        around: u64,
    ) -> PyResult<String> {
        self.require_archive()?;
        let read = || {
            run_blocking(async {
                let query = lookup::expand_query(pointer, session_id, grep, lines, around)?;
                self.compact.read(&query).await
            })
        };
        Ok(lookup::render_entries(&self.run_detached(py, read)?))
    }

    /// Returns what a session knows after its last compaction, as JSON.
    fn remember(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        self.run_detached(py, || {
            let record = self.resolve_record(name)?;
            let manager = self.manager_under_terms(&record)?;
            let memory = run_blocking(async { Ok(manager.memory_layers(&record).await?) })?;
            let mut ledger = json!(memory.ledger);
            if let Some(fields) = ledger.as_object_mut() {
                // Excerpts are only there for summaries to quote from, and as long as the conversation.
                fields.remove("excerpts");
            }
            let answer = json!({
                "session_id": record.session_id,
                "receipt_id": record.receipt_id,
                "summary_version": record.summary_version,
                "pinned": memory.pinned.iter().map(entry_json).collect::<Vec<_>>(),
                "ledger": ledger,
                "summary": memory.summary,
                "recent": memory.recent.iter().map(entry_json).collect::<Vec<_>>(),
            });
            Ok(answer.to_string())
        })
    }

    /// Returns the original of a receipt or of a whole session: its bytes, format, and whether it is exact.
    fn restore<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<(Bound<'py, PyBytes>, String, bool)> {
        let (original, format) = self.run_detached(py, || {
            let record = self.resolve_record(name)?;
            let original = run_blocking(async { Ok(self.manager.restore(name).await?) })?;
            Ok((original, record.format))
        })?;
        let bytes = PyBytes::new(py, &original.bytes);
        Ok((bytes, format, original.exact))
    }

    /// Returns the receipts of a session as a JSON list, the oldest first.
    fn receipts(&self, py: Python<'_>, session_id: &str) -> PyResult<String> {
        let chain = async { Ok(self.manager.catalog().session_records(session_id).await?) };
        let chain = self.run_detached(py, || run_blocking(chain))?;
        let receipts: Vec<Value> = chain
            .into_iter()
            .map(|record| record.receipt.into_json())
            .collect();
        Ok(json!(receipts).to_string())
    }

    /// Recomputes a receipt from the archive, and returns what differs as a JSON list.
    fn verify(&self, py: Python<'_>, receipt_id: &str) -> PyResult<String> {
        self.run_detached(py, || {
            let record = self.resolve_record(receipt_id)?;
            let manager = self.manager_under_terms(&record)?;
            let verified = async { Ok(manager.verify_receipt(&record.receipt_id).await?) };
            Ok(json!(run_blocking(verified)?.mismatches).to_string())
        })
    }

    /// Drops a session's state from memory; what is archived stays.
    fn forget(&self, py: Python<'_>, session_id: &str) -> PyResult<()> {
        self.run_detached(py, || {
            self.sessions.remove(session_id);
            self.release_session(session_id)
        })
    }

    /// Archives an agent's transcript where hooks do, redacted as this engine's archive; returns the path and
    /// the size in bytes.
    #[pyo3(signature = (repository, session_id, transcript=None))]
    #[expect(clippy::needless_pass_by_value, reason = "Python hands over a value")]
    fn archive_transcript(
        &self,
        py: Python<'_>,
        repository: PathBuf,
        session_id: &str,
        transcript: Option<PathBuf>,
    ) -> PyResult<(PathBuf, u64)> {
        self.run_detached(py, || {
            hook_store::archive_for_engine(
                &self.compact.archive_mode(),
                &repository,
                session_id,
                transcript,
            )
        })
    }

    /// Redacts a message of an original for the user's storage.
    fn redact_original(&self, py: Python<'_>, message: &str) -> PyResult<String> {
        self.run_detached(py, || {
            Ok(redact_json(
                message,
                self.compact.redactor_for_handed_original(),
            ))
        })
    }

    /// Redacts a summary for the user's storage.
    fn redact_summary(&self, py: Python<'_>, message: &str) -> PyResult<String> {
        self.run_detached(py, || {
            Ok(redact_json(
                message,
                self.compact.redactor(RedactionBoundary::Export),
            ))
        })
    }

    /// Waits until what was archived is indexed, for at most so many seconds.
    fn finish_indexing(&self, py: Python<'_>, seconds: f64) {
        let limit = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        if let Some(indexer) = &self.indexer {
            py.detach(|| indexer.wait(limit));
        }
    }

    /// Counts the sessions in memory.
    fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the window, in tokens.
    fn window(&self) -> u64 {
        self.manager.window().0
    }
}

impl Engine {
    /// Runs a call with the interpreter detached.
    fn run_detached<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> PyResult<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| self.faults.run_call(work))
    }

    fn answer_history(
        &self,
        session_id: Option<&str>,
        history: &ClientHistory,
        call: EngineCall<'_>,
    ) -> PyResult<CallAnswer> {
        let parsed = history.parse()?;
        let Some(name) = session_id else {
            return self.answer_unnamed(history, parsed, call);
        };
        let slot = self.session_slot(name)?;
        let mut held = slot.hold()?;
        self.answer_session(&mut held, name, history, parsed, call)
    }

    fn session_slot(&self, name: &str) -> PyResult<Arc<SessionSlot>> {
        let (slot, evicted) = self.sessions.find_or_add(name, SessionSlot::default);
        for name in evicted {
            self.release_session(&name)?;
        }
        Ok(slot)
    }

    /// Answers for the session that a history continues, or else for a new one.
    fn answer_unnamed(
        &self,
        history: &ClientHistory,
        parsed: ParsedTranscript,
        call: EngineCall<'_>,
    ) -> PyResult<CallAnswer> {
        let beginnings = history_beginnings(&parsed.conversation);
        let mut name = match self.sessions.find_continued("", &beginnings) {
            Some(live) => Some(live),
            None => run_blocking(async {
                Ok(self.manager.find_session(&parsed.conversation, "").await?)
            })?,
        };
        loop {
            let name = name
                .take()
                .unwrap_or_else(|| manager::new_session_name(&beginnings));
            let slot = self.session_slot(&name)?;
            let mut held = slot.hold()?;
            // Somebody else may have continued it meanwhile: then this is a new session.
            if !held.is_continued_by(&beginnings) {
                continue;
            }
            let answer = self.answer_session(&mut held, &name, history, parsed, call);
            if let Some(state) = held.existing_session().and_then(|live| live.state()) {
                self.sessions
                    .note_chains("", &name, state.continuation_chains());
            }
            return answer;
        }
    }

    /// Removes the records of a session that are kept in this process only.
    fn release_session(&self, session_id: &str) -> PyResult<()> {
        if self.keeping != OriginalStorage::Nothing {
            return Ok(());
        }
        run_blocking(async { Ok(self.manager.catalog().remove_session(session_id).await?) })
    }

    fn answer_session(
        &self,
        held: &mut HeldSession<'_>,
        session_id: &str,
        history: &ClientHistory,
        parsed: ParsedTranscript,
        call: EngineCall<'_>,
    ) -> PyResult<CallAnswer> {
        // After an error it is not known which history the session has.
        held.take_passed();
        let live = held.get_or_create(&self.compact, session_id);
        let prompt = run_blocking(call.run_on(live, parsed))?;
        self.build_answer(held, session_id, prompt, history.to_passed())
    }

    fn answer_appended(
        &self,
        session_id: &str,
        mark: u64,
        items: &[PyBackedStr],
    ) -> PyResult<Option<CallAnswer>> {
        let Some(slot) = self.sessions.find(session_id) else {
            return Ok(None);
        };
        let mut held = slot.hold()?;
        let passed = held.take_passed().filter(|passed| passed.mark == mark);
        let (Some(mut passed), Some(live)) = (passed, held.existing_session()) else {
            return Ok(None);
        };
        let texts: Vec<&str> = items.iter().map(|item| &**item).collect();
        let Some(prompt) = run_blocking(live.append(&texts))? else {
            return Ok(None);
        };
        passed.rename();
        self.build_answer(&mut held, session_id, Some(prompt), passed)
            .map(Some)
    }

    /// Builds the answer to a call; `passed` is what the session was passed in it.
    fn build_answer(
        &self,
        held: &mut HeldSession<'_>,
        session_id: &str,
        prompt: Option<Prompt>,
        mut passed: PassedHistory,
    ) -> PyResult<CallAnswer> {
        let session_id = session_id.to_owned();
        let mark = passed.mark;
        let Some(prompt) = prompt else {
            return Ok(CallAnswer {
                sent: SentMessages::default(),
                decision: "null".to_owned(),
                receipt: None,
                session_id,
                mark,
            });
        };
        if let Some(indexer) = self.indexer.as_ref().filter(|_| prompt.receipt().is_some()) {
            indexer.start();
        }
        let state = held.existing_session().and_then(|live| live.state());
        let sent = passed.sent_messages(&prompt, state.and_then(|state| state.document()))?;
        held.note_passed(passed);
        Ok(CallAnswer {
            sent,
            decision: json!(prompt.decision()).to_string(),
            receipt: prompt.receipt().map(|receipt| json!(receipt).to_string()),
            session_id,
            mark,
        })
    }

    /// Returns the manager with the settings that a receipt was made with.
    fn manager_under_terms(&self, record: &CompactionRecord) -> PyResult<Manager> {
        let store = self.compact.store_as_is();
        let manager = store.and_then(|store| self.compact.manager_under_terms(store, record));
        manager.map_err(|error| failure::from_error(&error))
    }

    fn require_archive(&self) -> PyResult<()> {
        match self.keeping {
            OriginalStorage::Nothing => Err(error_with_message(
                ErrorClass::NotFound,
                "nothing is archived: pass a storage to the manager",
            )),
            _ => Ok(()),
        }
    }

    /// Finds the record of a receipt, or the last record of a session.
    fn resolve_record(&self, name: &str) -> PyResult<CompactionRecord> {
        run_blocking(async {
            let named = find_named_record(&**self.manager.catalog(), name).await?;
            let named = named.ok_or_else(|| RuntimeError::NotFound(name.to_owned()))?;
            Ok(named.into_record())
        })
    }
}

impl EngineCall<'_> {
    /// Runs the call on a session; `None` if nothing smaller can be sent.
    async fn run_on(
        self,
        live: &mut Session,
        history: ParsedTranscript,
    ) -> Result<Option<Prompt>, Error> {
        match self {
            EngineCall::Preflight => live.preflight(history).await.map(Some),
            EngineCall::Compact(note) => live.compact(history, Some(note)).await.map(Some),
            EngineCall::Overflow(overflow) => live.shrink(history, overflow).await,
        }
    }
}

pub(crate) fn run_blocking<T>(work: impl Future<Output = Result<T, Error>>) -> PyResult<T> {
    block_on(work)?.map_err(|error| failure::from_error(&error))
}

fn client_history(
    format: Option<&str>,
    head: String,
    list: String,
    items: Vec<PyBackedStr>,
) -> PyResult<ClientHistory> {
    Ok(ClientHistory {
        format: format.map(format_named).transpose()?,
        head,
        list,
        items,
    })
}

/// Returns the chain of every beginning of a history.
fn history_beginnings(conversation: &Conversation) -> Vec<Chain> {
    let hashes = EntryHash::from_entries(&conversation.entries);
    Chain::prefix_chains(conversation.entries.iter().zip(&hashes))
}

fn to_python_answer(py: Python<'_>, answer: CallAnswer) -> PyResult<PythonAnswer<'_>> {
    let items = answer.sent.items.map(|items| list_items(py, items));
    Ok((
        items.transpose()?,
        answer.sent.beside,
        answer.decision,
        answer.receipt,
        answer.session_id,
        answer.mark,
    ))
}

fn list_items(py: Python<'_>, items: Vec<SentItem>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for item in items {
        match item {
            SentItem::Same(index) => list.append(index)?,
            SentItem::Other(json) => list.append(json)?,
        }
    }
    Ok(list)
}

/// Redacts the texts of a JSON document.
fn redact_json(json: &str, redactor: &Redactor) -> String {
    redactor
        .redact_json(json, &mut RedactionCounts::new())
        .into_owned()
}

/// Returns an entry's role and text as JSON.
fn entry_json(entry: &Entry) -> Value {
    let parts = entry.blocks.iter().flat_map(|block| block.text_parts());
    let parts: Vec<&str> = parts.filter(|text| !text.is_empty()).collect();
    json!({ "role": entry.role, "text": parts.join("\n") })
}
