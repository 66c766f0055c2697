//! One attempt, in the order of seed 001: close the input, keep what the summarizer is given,
//! compact, keep the summary, replace the history, say so, open the input.

use compact_core::reset::ResetEvent;
use compact_core::token::Tokens;
use compact_core::trigger::Verdict;
use jiff::Timestamp;
use tokio::sync::watch;

use super::{Checked, HardReset, Input, Pressure, Reset, summarizer_input, summary_text};
use crate::error::Error;
use crate::manager::session::{ENTRIES, serialized};
use crate::manager::{Commit, Compacted, Request};
use crate::port::transcript::Artifact;

/// Closes the input as long as it lives, and leaves it as it should be then.
struct Closed {
    input: watch::Sender<Input>,
    after: Input,
}

impl Closed {
    /// An attempt that is abandoned changes nothing: what was dead stays dead.
    fn new(input: &watch::Sender<Input>) -> Closed {
        let after = input.send_replace(Input::Compacting);
        Closed {
            input: input.clone(),
            after,
        }
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.input.send_replace(self.after);
    }
}

impl HardReset {
    pub(super) async fn attempt(&mut self, pressure: Pressure) -> Result<Checked, Error> {
        let mut closed = Closed::new(&self.input);
        self.state.attempt(pressure.decision.tokens);
        self.say(&pressure, &self.started(&pressure));
        let at = Timestamp::now();
        let told = self.told(&pressure).await;
        let input = self
            .keep(&pressure, Artifact::SummarizerInput, at, &told.concat())
            .await;
        match self.compact(&told).await {
            Ok(commit) => {
                let text = summary_text(&commit.compaction.view);
                let summary = self.keep(&pressure, Artifact::Summary, at, &text).await;
                self.replace(&commit);
                closed.after = Input::Open;
                Ok(self.succeed(
                    &pressure,
                    Reset {
                        receipt: commit.receipt,
                        summarizer_input: input,
                        summary,
                    },
                ))
            }
            Err(error) => {
                let failed = self.fail(&pressure, error, input);
                closed.after = if failed.is_err() {
                    Input::Dead
                } else {
                    Input::Open
                };
                failed
            }
        }
    }

    /// What the summarizer is given.
    async fn told(&self, pressure: &Pressure) -> Vec<String> {
        let events = self.transcript(pressure).await;
        let redactor = &self.manager.redactor;
        summarizer_input(&self.conversation, events.as_deref(), redactor)
    }

    /// All that the window allows is allowed: what a reset keeps is bounded by itself, the summary
    /// by a sixteenth of the window.
    async fn compact(&mut self, told: &[String]) -> Result<Commit, Error> {
        let account = self.account();
        let most = self.manager.largest_budget(&account);
        let budget = most.min(account.history - Tokens(1));
        let request = Request {
            conversation: &self.conversation,
            rules: &self.rules,
            format: ENTRIES,
            original: serialized(&self.conversation.entries),
            session_id: Some(&self.session_id),
            budget: Some(budget),
            summary_limit: Some(Tokens(self.manager.window.0 / 16)),
            note: None,
            told: Some(told),
            parent: None,
        };
        match self.manager.compact(&request).await? {
            Compacted::Done(commit) => Ok(*commit),
            Compacted::Unchanged { tokens, .. } => Err(Error::NothingToCompact { tokens }),
            Compacted::Declined { reason, .. } => Err(Error::Declined(reason)),
        }
    }

    /// Replaces the history. Nothing waits from here on, so it happens whole or not at all.
    fn replace(&mut self, commit: &Commit) {
        self.conversation.entries = commit.compaction.view.entries(&self.conversation);
        self.state.succeed();
    }

    fn succeed(&self, pressure: &Pressure, reset: Reset) -> Checked {
        let event = ResetEvent::ContextCompacted {
            tokens_before: pressure.decision.tokens.0,
            trigger_reason: pressure.reason,
            model: self.model(),
            transcript_path: self.transcript_path(),
            summarizer_input_path: reset.summarizer_input.clone(),
            summary_path: reset.summary.clone(),
            compaction_count: self.state.compaction_count,
        };
        self.say(pressure, &event);
        Checked::Compacted(Box::new(reset))
    }

    /// Nothing was changed: says so, and whether the session can go on.
    pub(super) fn fail(
        &self,
        pressure: &Pressure,
        error: Error,
        summarizer_input_path: Option<String>,
    ) -> Result<Checked, Error> {
        let exceeded = pressure.decision.verdict == Verdict::Exceeded;
        let event = ResetEvent::ContextCompactionFailed {
            error: public(&error),
            context_exceeded: exceeded,
            tokens_current: pressure.decision.tokens.0,
            max_tokens: self.manager.window.0,
            trigger_reason: pressure.reason,
            model: self.model(),
            transcript_path: self.transcript_path(),
            summarizer_input_path,
        };
        self.say(pressure, &event);
        if exceeded {
            self.input.send_replace(Input::Dead);
            return Err(Error::SessionDead);
        }
        Ok(Checked::Failed(error))
    }

    fn started(&self, pressure: &Pressure) -> ResetEvent {
        ResetEvent::ContextCompactionStarted {
            tokens_before: pressure.decision.tokens.0,
            max_tokens: self.manager.window.0,
            trigger_reason: pressure.reason,
            model: self.model(),
        }
    }
}

/// An error as events may tell it: a server's words may repeat what it was sent.
fn public(error: &Error) -> String {
    match error {
        Error::Summary { summarizer, .. } => format!("the summarizer {summarizer} failed"),
        other => other.to_string(),
    }
}
