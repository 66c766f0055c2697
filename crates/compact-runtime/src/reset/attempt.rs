//! One attempt, in the order that hosts rely on: close the input, keep what the summarizer is given,
//! compact, keep the summary, replace the history, say so, open the input.

use compact_core::event::CallOutcome;
use compact_core::reset::ResetEvent;
use compact_core::token::Tokens;
use compact_core::trigger::{CompactionCause, Verdict};
use tokio::sync::watch;

use super::{
    FinishedReset, HardReset, InputState, MeasuredPressure, ResetCheck, summarizer_input,
    summary_text,
};
use crate::error::Error;
use crate::manager::emit::CallStart;
use crate::manager::session_state::{ENTRIES_FORMAT, serialize_entries};
use crate::manager::{CommittedCompaction, CompactionRequest, RequestOutcome};
use crate::port::event::call_within;
use crate::port::transcript::Artifact;

/// Closes the input as long as it lives, and leaves it as it should be then.
struct ClosedInput {
    input: watch::Sender<InputState>,
    after: InputState,
}

impl ClosedInput {
    /// An attempt that is abandoned changes nothing: what was dead stays dead.
    fn new(input: &watch::Sender<InputState>) -> ClosedInput {
        let after = input.send_replace(InputState::Compacting);
        ClosedInput {
            input: input.clone(),
            after,
        }
    }
}

impl Drop for ClosedInput {
    fn drop(&mut self) {
        self.input.send_replace(self.after);
    }
}

impl HardReset {
    /// Makes an attempt as a call of its own: everything that is told of it carries the same span.
    pub(super) async fn attempt(
        &mut self,
        pressure: MeasuredPressure,
    ) -> Result<ResetCheck, Error> {
        let began = CallStart::now("hard_reset");
        self.call = Some(call_within(self.parent.as_ref()));
        let result = self.attempt_reset(&pressure).await;
        let outcome = match &result {
            Ok(ResetCheck::Compacted(_)) => CallOutcome::Compacted,
            Ok(ResetCheck::Unchanged) => CallOutcome::Unchanged,
            Ok(ResetCheck::Failed(_)) | Err(_) => CallOutcome::Failed,
        };
        let scope = self.event_scope(&pressure);
        self.manager.emit_call_ended(&scope, &began, outcome);
        self.call = None;
        result
    }

    async fn attempt_reset(&mut self, pressure: &MeasuredPressure) -> Result<ResetCheck, Error> {
        let mut closed = ClosedInput::new(&self.input);
        self.state.attempt(pressure.decision.tokens);
        self.emit_reset_event(pressure, self.started(pressure));
        let at = self.manager.clock.now();
        let sections = self.summarizer_sections(pressure).await;
        let input = self
            .keep_artifact(pressure, Artifact::SummarizerInput, at, &sections.concat())
            .await;
        let cause = pressure.decision.cause;
        let cause = cause.unwrap_or(CompactionCause::Asked);
        match self.compact_history(&sections, cause).await {
            Ok(commit) => {
                let text = summary_text(&commit.compaction.view);
                let summary = self
                    .keep_artifact(pressure, Artifact::Summary, at, &text)
                    .await;
                self.replace_history(&commit);
                let tokens_after = self.account().total();
                closed.after = InputState::Open;
                Ok(self.succeed(
                    pressure,
                    tokens_after,
                    FinishedReset {
                        receipt: commit.receipt,
                        summarizer_input: input,
                        summary,
                    },
                ))
            }
            Err(error) => {
                let failed = self.fail(pressure, error, input);
                closed.after = if failed.is_err() {
                    InputState::Dead
                } else {
                    InputState::Open
                };
                failed
            }
        }
    }

    /// What the summarizer is given.
    async fn summarizer_sections(&self, pressure: &MeasuredPressure) -> Vec<String> {
        let events = self.transcript(pressure).await;
        let redactor = &self.manager.redactor;
        summarizer_input(&self.conversation, events.as_deref(), redactor)
    }

    /// All that the window allows is allowed: what a reset keeps is bounded by itself, the summary
    /// by a sixteenth of the window.
    async fn compact_history(
        &mut self,
        sections: &[String],
        cause: CompactionCause,
    ) -> Result<CommittedCompaction, Error> {
        let account = self.account();
        let most = self.manager.largest_budget(&account);
        let budget = most.min(account.history - Tokens(1));
        let original = serialize_entries(&self.conversation.entries);
        let request =
            CompactionRequest::new(&self.conversation, &self.rules, ENTRIES_FORMAT, original)
                .with_session(self.session_id.as_str())
                .with_budget(budget)
                .with_summary_limit(Tokens(self.manager.window.0 / 16))
                .with_host_rendering(sections)
                .because_of(cause)
                .within_span(self.call.as_ref());
        match self.manager.compact(&request).await? {
            RequestOutcome::Done(commit) => Ok(*commit),
            RequestOutcome::Unchanged { tokens, .. } => Err(Error::NothingToCompact { tokens }),
            RequestOutcome::Declined { reason, .. } => Err(Error::Declined(reason)),
        }
    }

    /// Replaces the history. Nothing waits from here on, so it happens whole or not at all.
    fn replace_history(&mut self, commit: &CommittedCompaction) {
        self.conversation.entries = commit.compaction.view.shown_entries(&self.conversation);
        self.state.succeed();
    }

    fn succeed(
        &self,
        pressure: &MeasuredPressure,
        tokens_after: Tokens,
        reset: FinishedReset,
    ) -> ResetCheck {
        let event = ResetEvent::ContextCompacted {
            tokens_before: pressure.decision.tokens.0,
            tokens_after: tokens_after.0,
            max_tokens: self.manager.window.0,
            trigger_reason: pressure.reason,
            model: self.model(),
            transcript_path: self.transcript_path(),
            summarizer_input_path: reset.summarizer_input.clone(),
            summary_path: reset.summary.clone(),
            compaction_count: self.state.compaction_count,
        };
        self.emit_reset_event(pressure, event);
        ResetCheck::Compacted(Box::new(reset))
    }

    /// Nothing was changed: says so, and whether the session can go on.
    pub(super) fn fail(
        &self,
        pressure: &MeasuredPressure,
        error: Error,
        summarizer_input_path: Option<String>,
    ) -> Result<ResetCheck, Error> {
        let exceeded = pressure.decision.verdict == Verdict::Exceeded;
        let event = ResetEvent::ContextCompactionFailed {
            error: public_message(&error),
            context_exceeded: exceeded,
            tokens_current: pressure.decision.tokens.0,
            max_tokens: self.manager.window.0,
            trigger_reason: pressure.reason,
            model: self.model(),
            transcript_path: self.transcript_path(),
            summarizer_input_path,
        };
        self.emit_reset_event(pressure, event);
        if exceeded {
            self.input.send_replace(InputState::Dead);
            return Err(Error::SessionDead);
        }
        Ok(ResetCheck::Failed(error))
    }

    fn started(&self, pressure: &MeasuredPressure) -> ResetEvent {
        ResetEvent::ContextCompactionStarted {
            tokens_before: pressure.decision.tokens.0,
            max_tokens: self.manager.window.0,
            trigger_reason: pressure.reason,
            model: self.model(),
        }
    }
}

/// An error as events may tell it: a server's words may repeat what it was sent.
fn public_message(error: &Error) -> String {
    match error {
        Error::Summary { summarizer, .. } => format!("the summarizer {summarizer} failed"),
        other => other.to_string(),
    }
}
