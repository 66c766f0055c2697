//! Asking a full session for its checkpoint, and what the next session is told with or without one.

use compact_core::restart::{
    Extracted, Notes, Wrapping, checkpoint_request, continuation_prompt, extract_checkpoint,
};
use compact_core::token::Tokens;
use compact_formats::stream::End;

use super::event::{CheckpointSource, RunEvent};
use super::session::Session;
use super::{RunError, Runner};

/// What an agent answered to the request for a checkpoint.
pub(super) struct Asked {
    found: Option<Extracted>,
    /// Why there is no checkpoint.
    reason: Option<String>,
}

impl Asked {
    /// No answer, and why.
    pub fn nothing(reason: &str) -> Asked {
        Asked {
            found: None,
            reason: Some(reason.to_owned()),
        }
    }

    /// What an answer holds.
    fn of(words: &str, none: &str) -> Asked {
        match extract_checkpoint(words) {
            Some(found) => Asked {
                found: Some(found),
                reason: None,
            },
            None => Asked::nothing(none),
        }
    }

    fn source(&self) -> CheckpointSource {
        match self.found.as_ref().map(|found| found.wrapping) {
            Some(Wrapping::Tagged | Wrapping::Unclosed) => CheckpointSource::Tagged,
            Some(Wrapping::Untagged) => CheckpointSource::Raw,
            None => CheckpointSource::Built,
        }
    }
}

impl Runner<'_> {
    /// Asks the session itself, within the time there is. Only a person or the end of the time stops
    /// a restart here: an agent that cannot answer is spoken for.
    pub(super) async fn ask(&mut self, session: &mut Session) -> Result<Asked, RunError> {
        let time = self.checkpoint_time()?;
        let session_id = session.id();
        self.record
            .told(&RunEvent::CheckpointRequested { session_id });
        let asked = tokio::time::timeout(time, self.answer(session)).await;
        match asked {
            Ok(Err(RunError::Agent(error))) => Ok(Asked::nothing(&error.to_string())),
            Ok(answered) => answered,
            Err(_) => {
                self.time_left()?;
                let reason = format!("no answer within {} s", time.as_secs_f64());
                Ok(Asked::nothing(&reason))
            }
        }
    }

    async fn answer(&mut self, session: &mut Session) -> Result<Asked, RunError> {
        session.agent.say(checkpoint_request()).await?;
        let (words, end) = self.reply(session).await?;
        Ok(match end {
            End::Done(repeated) if words.trim().is_empty() => {
                Asked::of(&repeated.unwrap_or_default(), "the agent gave none")
            }
            End::Done(_) => Asked::of(&words, "the agent gave none"),
            End::TooLong => Asked::nothing("the request for one is too long"),
            // Half an answer is a checkpoint only if it says so.
            End::Failed(why) => {
                let asked = Asked::of(&words, "the agent gave none");
                match asked.source() {
                    CheckpointSource::Tagged => asked,
                    _ => Asked::nothing(&format!("the agent failed: {why}")),
                }
            }
        })
    }

    /// The prompt that the next session begins with.
    pub(super) fn continuation(&mut self, asked: &Asked, room: Tokens) -> String {
        let written = asked.found.as_ref();
        let written = written.map(|found| self.terms.redacted(&found.text));
        let checkpoint = Notes {
            task: &self.state.task,
            written: written.as_deref(),
            ledger: &self.state.ledger,
            room,
            estimator: self.terms.estimator,
        }
        .checkpoint();
        let prompt = continuation_prompt(&checkpoint.text);
        let reason = asked.reason.as_deref();
        self.state.counters.count(asked.source());
        self.record.told(&RunEvent::Checkpoint {
            source: asked.source(),
            reason: reason.map(|reason| self.terms.redacted(reason).into_owned()),
            prompt_tokens: self.tokens(&prompt),
            anchors: checkpoint.anchors,
            noted: checkpoint.noted,
            shown: checkpoint.shown,
        });
        prompt
    }
}
