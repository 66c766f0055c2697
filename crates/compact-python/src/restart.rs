//! `compact._native.Carried`: a task on its way from session to session of an agent, as
//! `compact::agent` carries it, without the secrets that its sessions printed. The task stays as
//! it is. Sessions themselves are Python's.

use compact::agent::{self, CheckpointNotes, CheckpointWrapping, checkpoint_budget};
use compact::format::{Format, TranscriptScope};
use compact::message::Ledger;
use compact::redact::{RedactionBoundary, RedactionCounts, RedactionRules, Redactor};
use compact::token::{EstimatorChoice, Tokens};
use pyo3::prelude::*;

use crate::failure::{ErrorClass, error_with_causes};

/// A task, and what its sessions established so far.
#[pyclass(module = "compact._native")]
pub(crate) struct Carried {
    task: String,
    window: Tokens,
    redactor: Redactor,
    ledger: Ledger,
}

#[pymethods]
impl Carried {
    #[new]
    fn new(task: String, window: u64) -> PyResult<Carried> {
        let redactor = RedactionRules::default().redactor(RedactionBoundary::Summary);
        Ok(Carried {
            task,
            window: Tokens(window),
            redactor: redactor.map_err(|error| error_with_causes(ErrorClass::Config, &error))?,
            ledger: Ledger::default(),
        })
    }

    /// Takes what a session said: a JSON list of messages as Anthropic has them.
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

    /// What the next session begins with, given what the last one answered, and where it comes from:
    /// `tagged`, `raw`, or `built` from what was heard.
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

/// What a full session is asked.
#[pyfunction]
pub(crate) fn checkpoint_request() -> &'static str {
    agent::checkpoint_request()
}

/// What a session begins with that goes on from a checkpoint.
#[pyfunction]
pub(crate) fn continuation_prompt(checkpoint: &str) -> String {
    agent::continuation_prompt(checkpoint)
}

/// The checkpoint in an answer; `None` when there is none in it.
#[pyfunction]
pub(crate) fn extract_checkpoint(answer: &str) -> Option<String> {
    agent::extract_checkpoint(answer).map(|found| found.text)
}
