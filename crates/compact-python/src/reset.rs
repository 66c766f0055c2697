//! `compact._native.ResetSession`: a session under the profile `hard-reset`. Commands and answers are JSON, as those of
//! `compactctl reset`.

use std::sync::{Arc, Mutex, PoisonError};

use compact::event::EventSink;
use compact::format::Format;
use compact::reset::{self, InputState, ResetCommand};
use compact::{Compact, History};
use pyo3::prelude::*;
use tokio::sync::watch;

use crate::callback::{CallbackErrors, PythonSink};
use crate::engine::run_blocking;
use crate::failure::{ErrorClass, error_with_causes, error_with_message, from_error};

/// A session, used by one thread at a time.
#[pyclass(frozen, module = "compact._native")]
pub(crate) struct ResetSession {
    session: Mutex<reset::ResetSession>,
    input: watch::Receiver<InputState>,
    faults: Arc<CallbackErrors>,
}

impl ResetSession {
    /// Begins a session with messages of the chat format; `emit` hears of its events.
    pub(crate) fn open(
        compact: &Compact,
        faults: Arc<CallbackErrors>,
        id: &str,
        base: String,
        emit: Option<Py<PyAny>>,
    ) -> PyResult<ResetSession> {
        let base = History::from(base).in_format(Format::OpenAiChat);
        let own = emit.map(|emit| Arc::new(PythonSink(emit)) as Arc<dyn EventSink>);
        let session = compact.reset_session_with_sink(id, base, own);
        let session = session.map_err(|error| from_error(&error))?;
        Ok(ResetSession {
            input: session.watch_input(),
            session: Mutex::new(session),
            faults,
        })
    }
}

#[pymethods]
impl ResetSession {
    /// Does what a command asks for, and returns the answer.
    fn perform(&self, py: Python<'_>, command: &str) -> PyResult<String> {
        let command: ResetCommand = serde_json::from_str(command)
            .map_err(|error| error_with_causes(ErrorClass::Format, &error))?;
        let is_said = matches!(command, ResetCommand::Send { .. });
        if is_said && *self.input.borrow() == InputState::Compacting {
            return Err(error_with_message(
                ErrorClass::SessionBusy,
                "the session is being compacted and takes no input: send it again",
            ));
        }
        py.detach(|| {
            self.faults.run_call(|| {
                let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
                let answer = run_blocking(session.perform(command))?;
                serde_json::to_string(&answer)
                    .map_err(|error| error_with_causes(ErrorClass::Compact, &error))
            })
        })
    }

    /// Returns whether input is taken: `open`, `compacting` or `dead`; at once, whatever the session does.
    fn input(&self) -> &'static str {
        match *self.input.borrow() {
            InputState::Open => "open",
            InputState::Compacting => "compacting",
            InputState::Dead => "dead",
        }
    }

    /// Waits until everything said so far is durable in the transcript.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            run_blocking(session.flush())
        })
    }
}
