//! `compact._native.CarriedTask`: carries a task from one session of an agent to the next, with the
//! checkpoints of `compact::agent`. Secrets that sessions printed are redacted; the task itself is not changed.
//! Python runs the sessions.

use compact::agent::{self, CheckpointNotes, CheckpointWrapping, checkpoint_budget};
use compact::format::{Format, TranscriptScope};
use compact::message::Ledger;
use compact::redact::{RedactionBoundary, RedactionCounts, RedactionRules, Redactor};
use compact::token::{EstimatorChoice, Tokens};
use pyo3::prelude::*;

use crate::failure::{ErrorClass, error_with_causes};

/// A task, and the ledger of its sessions so far.
#[pyclass(module = "compact._native")]
pub(crate) struct CarriedTask {
    task: String,
    window: Tokens,
    redactor: Redactor,
    ledger: Ledger,
}

#[pymethods]
impl CarriedTask {
    #[new]
    fn new(task: String, window: u64) -> PyResult<CarriedTask> {
        let redactor = RedactionRules::default().redactor(RedactionBoundary::Summary);
        Ok(CarriedTask {
            task,
            window: Tokens(window),
            redactor: redactor.map_err(|error| error_with_causes(ErrorClass::Config, &error))?,
            ledger: Ledger::default(),
        })
    }

    /// Adds the messages of a session, as a JSON list in Anthropic's format.
    fn add_messages(&mut self, py: Python<'_>, messages: String) -> PyResult<()> {
        let parsed =
            compact::format::parse(messages, Some(Format::Anthropic), TranscriptScope::Live)
                .map_err(|error| error_with_causes(ErrorClass::Format, &error))?;
        let (first, redactor) = (self.ledger.next, &self.redactor);
        let later =
            py.detach(|| Ledger::from_redacted(&parsed.conversation.entries, first, redactor));
        self.ledger.merge(later);
        Ok(())
    }

    /// Returns the first prompt of the next session, given the last one's answer, and the origin of its
    /// checkpoint: `tagged`, `raw`, or `built` from the ledger.
    #[pyo3(signature = (answer=None))]
    fn continuation(&self, answer: Option<&str>) -> (String, &'static str) {
        let found = answer.and_then(agent::extract_checkpoint);
        let source = match found.as_ref().map(|found| found.wrapping) {
            Some(CheckpointWrapping::Tagged | CheckpointWrapping::Unclosed) => "tagged",
            Some(CheckpointWrapping::Untagged) => "raw",
            None => "built",
        };
        let redacted = |text| {
            self.redactor
                .redact(text, &mut RedactionCounts::new())
                .into_owned()
        };
        let written = found.as_ref().map(|found| redacted(&found.text));
        let notes = CheckpointNotes {
            task: &self.task,
            written: written.as_deref(),
            ledger: &self.ledger,
            room: checkpoint_budget(self.window),
            estimator: &*EstimatorChoice::Heuristic.build_estimator(None),
        };
        let prompt = agent::continuation_prompt(&notes.write_checkpoint().text);
        (prompt, source)
    }
}

/// Returns the prompt that asks a full session for a checkpoint.
#[pyfunction]
pub(crate) fn checkpoint_request() -> &'static str {
    agent::checkpoint_request()
}

/// Returns the first prompt of a session that continues from a checkpoint.
#[pyfunction]
pub(crate) fn continuation_prompt(checkpoint: &str) -> String {
    agent::continuation_prompt(checkpoint)
}

/// Returns the checkpoint in an answer; `None` if there is none.
#[pyfunction]
pub(crate) fn extract_checkpoint(answer: &str) -> Option<String> {
    agent::extract_checkpoint(answer).map(|found| found.text)
}
