//! Asking a full session for its checkpoint, and what the next session is told with or without one.

use compact_core::event::{CheckpointSource, RunStep};
use compact_core::restart::{
    CheckpointNotes, CheckpointWrapping, ExtractedCheckpoint, checkpoint_request,
    continuation_prompt, extract_checkpoint,
};
use compact_core::token::Tokens;
use compact_formats::stream::TurnEnd;

use super::session::RunSession;
use super::{RunError, Runner};

/// What an agent answered to the request for a checkpoint.
pub(super) struct CheckpointAnswer {
    found: Option<ExtractedCheckpoint>,
    /// Why there is no checkpoint.
    reason: Option<String>,
}

impl CheckpointAnswer {
    /// No answer, and why.
    pub(super) fn without_checkpoint(reason: &str) -> CheckpointAnswer {
        CheckpointAnswer {
            found: None,
            reason: Some(reason.to_owned()),
        }
    }

    /// What an answer holds.
    fn from_answer(words: &str, none: &str) -> CheckpointAnswer {
        match extract_checkpoint(words) {
            Some(found) => CheckpointAnswer {
                found: Some(found),
                reason: None,
            },
            None => CheckpointAnswer::without_checkpoint(none),
        }
    }

    fn source(&self) -> CheckpointSource {
        match self.found.as_ref().map(|found| found.wrapping) {
            Some(CheckpointWrapping::Tagged | CheckpointWrapping::Unclosed) => {
                CheckpointSource::Tagged
            }
            Some(CheckpointWrapping::Untagged) => CheckpointSource::Raw,
            None => CheckpointSource::Built,
        }
    }
}

/// What was said in a turn with its result, which some agents repeat it in and others add.
fn whole_answer(words: String, result: &str) -> String {
    match words.contains(result.trim()) {
        true => words,
        false => format!("{words}\n{result}"),
    }
}

impl Runner<'_> {
    /// Asks the session itself, within the time there is. Only a person or the end of the time stops
    /// a restart here: an agent that cannot answer is spoken for.
    pub(super) async fn ask_checkpoint(
        &mut self,
        session: &mut RunSession,
    ) -> Result<CheckpointAnswer, RunError> {
        let time = self.checkpoint_time()?;
        self.report_step(RunStep::CheckpointRequested);
        let asked = tokio::time::timeout(time, self.read_checkpoint(session)).await;
        match asked {
            Ok(Err(RunError::Agent(error))) => {
                Ok(CheckpointAnswer::without_checkpoint(&error.to_string()))
            }
            Ok(answered) => answered,
            Err(_) => {
                self.time_left()?;
                let reason = format!("no answer within {} s", time.as_secs_f64());
                Ok(CheckpointAnswer::without_checkpoint(&reason))
            }
        }
    }

    async fn read_checkpoint(
        &mut self,
        session: &mut RunSession,
    ) -> Result<CheckpointAnswer, RunError> {
        session.agent.send_prompt(checkpoint_request()).await?;
        let (words, end) = self.reply(session).await?;
        Ok(match end {
            TurnEnd::Done(result) => {
                let answer = whole_answer(words, result.as_deref().unwrap_or_default());
                CheckpointAnswer::from_answer(&answer, "the agent gave none")
            }
            TurnEnd::TooLong => {
                CheckpointAnswer::without_checkpoint("the request for one is too long")
            }
            // Half an answer is a checkpoint only if it says so.
            TurnEnd::Failed(why) => {
                let asked = CheckpointAnswer::from_answer(&words, "the agent gave none");
                match asked.source() {
                    CheckpointSource::Tagged => asked,
                    _ => CheckpointAnswer::without_checkpoint(&format!("the agent failed: {why}")),
                }
            }
        })
    }

    /// The prompt that the next session begins with.
    pub(super) fn continuation(&mut self, asked: &CheckpointAnswer, room: Tokens) -> String {
        let written = asked.found.as_ref();
        let written = written.map(|found| self.terms.redact_text(&found.text));
        let checkpoint = CheckpointNotes {
            task: &self.state.task,
            written: written.as_deref(),
            ledger: &self.state.ledger,
            room,
            estimator: self.terms.estimator,
        }
        .write_checkpoint();
        let prompt = continuation_prompt(&checkpoint.text);
        self.state.counters.count_checkpoint(asked.source());
        self.report_step(RunStep::Checkpoint {
            source: asked.source(),
            reason: asked.reason.clone(),
            tokens_before: self.gauge.tokens(self.terms.estimator),
            tokens_after: self.count_tokens(&prompt),
            anchors: checkpoint.anchors,
            noted: checkpoint.noted,
            shown: checkpoint.shown,
        });
        prompt
    }
}
