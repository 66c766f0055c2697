//! A session under the profile `hard-reset`: when it grows too large, its history is cleared and it
//! goes on from a summary at the end of its system prompt.
//!
//! The host tells the session what is said and asks before each turn; the session keeps the
//! transcript, decides, resets, and says what happened. A reset replaces the history whole or leaves
//! it untouched, whatever fails and whenever it is abandoned. Files may fail or hang: that costs the
//! files, and an event says so, never the compaction.

mod attempt;
mod input;
mod record;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use compact_core::event::TraceContext;
use compact_core::identity::EntryHash;
use compact_core::message::{Conversation, Entry, EntryKind};
use compact_core::outline::{Outline, UnitHealth};
use compact_core::reset::{CompactionState, TriggerReason, events_of};
use compact_core::token::{TokenAccount, TokenCache, Tokens};
use compact_core::trigger::{self, CompactionCause, TriggerDecision, Verdict};
use compact_core::usage::Usage;
use compact_core::window::Window;
use compact_core::wire::WireRules;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::error::Error;
use crate::manager::Manager;
use crate::port::catalog::StoredReceipt;
use crate::port::event::call_within;
use crate::port::transcript::TranscriptStore;

pub use input::{summarizer_input, summary_text};

/// Whether a session takes input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InputState {
    /// It does.
    #[default]
    Open,
    /// It is being compacted: later.
    Compacting,
    /// It is over its limit and could not be compacted: never again.
    Dead,
}

/// What came of a check.
#[derive(Debug)]
pub enum ResetCheck {
    /// There is room, or this turn's attempt has been made.
    Unchanged,
    /// The history was reset.
    Compacted(Box<FinishedReset>),
    /// The attempt failed and nothing was changed; there is still room to go on.
    Failed(Error),
}

/// A finished reset.
#[derive(Debug)]
pub struct FinishedReset {
    /// The receipt.
    pub receipt: StoredReceipt,
    /// Where the summarizer's input is kept, if it could be.
    pub summarizer_input: Option<String>,
    /// Where the summary is kept, if it could be.
    pub summary: Option<String>,
}

/// One session that is reset when it grows too large.
pub struct HardReset {
    manager: Manager,
    store: Option<Arc<dyn TranscriptStore>>,
    session_id: String,
    rules: WireRules,
    conversation: Conversation,
    cache: TokenCache,
    state: CompactionState,
    input: watch::Sender<InputState>,
    /// The caller's span, and that of the attempt that is being made.
    parent: Option<TraceContext>,
    call: Option<TraceContext>,
}

/// The size of the context with what it rests on.
#[derive(Clone, Debug)]
struct MeasuredPressure {
    decision: TriggerDecision,
    reason: TriggerReason,
}

impl HardReset {
    /// A session that begins with `base`: its instructions, tools and model, and after a restart of
    /// the host what it had come to.
    pub fn new(
        session_id: impl Into<String>,
        base: Conversation,
        rules: &WireRules,
        manager: Manager,
        store: Option<Arc<dyn TranscriptStore>>,
    ) -> HardReset {
        HardReset {
            manager,
            store,
            session_id: session_id.into(),
            rules: rules.clone(),
            conversation: base,
            cache: TokenCache::default(),
            state: CompactionState::default(),
            input: watch::Sender::new(InputState::Open),
            parent: None,
            call: None,
        }
    }

    /// Returns the session's name.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Makes the attempts that follow part of the caller's trace; [`TraceContext::parse`] reads its header.
    pub fn trace_within(&mut self, parent: Option<TraceContext>) {
        self.parent = parent;
    }

    /// What to send: instructions, the continuation when there was a reset, and what was said since.
    pub fn messages(&self) -> &Conversation {
        &self.conversation
    }

    /// The session's compactions so far.
    pub fn state(&self) -> &CompactionState {
        &self.state
    }

    /// What the next request would cost, and what the model takes.
    pub fn context_size(&mut self) -> (Tokens, Tokens) {
        let pressure = self.measure_pressure();
        (pressure.decision.tokens, self.manager.window)
    }

    /// Whether input is taken, and every change of it.
    pub fn input_state(&self) -> watch::Receiver<InputState> {
        self.input.subscribe()
    }

    /// Another model answers from now on: its limit counts, unless one is configured.
    pub fn set_model(&mut self, model: &str, configured: Option<Tokens>) {
        self.manager.window = Window::for_model(configured, Some(model)).tokens;
        self.conversation.model = Some(model.to_owned());
    }

    /// A person says something: the turn begins, and this is where the history may be reset. An
    /// error means that the session is dead and nobody will answer.
    pub async fn begin_turn(&mut self, message: Entry) -> Result<ResetCheck, Error> {
        self.alive()?;
        self.state.begin_turn();
        self.append([message]);
        self.check(|verdict| verdict.is_now()).await
    }

    /// Before a model call within a turn. A turn is not interrupted by choice, only when the
    /// call would be refused otherwise; never while tool calls wait for their results.
    pub async fn before_call(&mut self) -> Result<ResetCheck, Error> {
        self.alive()?;
        let outline = Outline::from_conversation(&self.conversation);
        if outline.units.iter().any(|u| u.health == UnitHealth::Open) {
            return Ok(ResetCheck::Unchanged);
        }
        self.check(|verdict| verdict == Verdict::Exceeded).await
    }

    /// A person asks for another attempt, whatever the pressure; a dead session that succeeds lives.
    pub async fn retry(&mut self) -> Result<ResetCheck, Error> {
        self.state.retry();
        let mut pressure = self.measure_pressure();
        pressure.decision.cause = Some(CompactionCause::Asked);
        self.attempt(pressure).await
    }

    /// Adds what the model and its tools said.
    pub fn append(&mut self, entries: impl IntoIterator<Item = Entry>) {
        for entry in entries {
            for event in events_of(&entry) {
                self.write_down(&event);
            }
            self.conversation.entries.push(entry);
        }
    }

    /// Writes an event down that is no message: an approval, a refusal, an error.
    pub fn record_event(&self, event: &Value) {
        self.write_down(event);
    }

    /// The provider counted the prompt of the call just made: call this before its answer is
    /// appended.
    pub fn report_usage(&mut self, usage: Usage) {
        let estimate = self.account().total();
        self.state.report(usage.prompt_tokens().0, estimate);
    }

    /// Waits until everything said so far is durable in the transcript.
    pub async fn flush(&self) -> Result<(), Error> {
        match &self.store {
            None => Ok(()),
            Some(store) => Ok(store.flush(&self.session_id).await?),
        }
    }

    /// Starts a new session with the same instructions; the old one's transcript stays.
    pub fn start_new(&mut self, session_id: impl Into<String>) {
        let leading = self.conversation.leading_instructions();
        self.conversation.entries.truncate(leading);
        self.session_id = session_id.into();
        self.state = CompactionState::default();
        self.input.send_replace(InputState::Open);
    }

    fn alive(&self) -> Result<(), Error> {
        match *self.input.borrow() {
            InputState::Dead => Err(Error::SessionDead),
            InputState::Open | InputState::Compacting => Ok(()),
        }
    }

    async fn check(&mut self, is_time: impl Fn(Verdict) -> bool) -> Result<ResetCheck, Error> {
        let pressure = self.measure_pressure();
        let decision = &pressure.decision;
        let needless = decision.verdict != Verdict::Exceeded && !self.has_past();
        if needless || !is_time(decision.verdict) {
            return Ok(ResetCheck::Unchanged);
        }
        if self.state.may_attempt(decision.tokens) {
            return self.attempt(pressure).await;
        }
        // This turn's attempt has failed. Whether the session can go on is another question.
        match decision.verdict {
            Verdict::Exceeded => {
                self.call = Some(call_within(self.parent.as_ref()));
                self.fail(&pressure, Error::SessionDead, None)
            }
            _ => Ok(ResetCheck::Unchanged),
        }
    }

    /// Whether anything was said that a summary could stand for: a large request alone has no past.
    fn has_past(&self) -> bool {
        let said =
            |e: &&Entry| !e.is_leading() && !matches!(e.meta.kind, EntryKind::Summary { .. });
        self.conversation.entries.iter().filter(said).count() > 1
    }

    fn measure_pressure(&mut self) -> MeasuredPressure {
        let estimate = self.account().total();
        let (tokens, reason) = self.state.pressure(estimate);
        MeasuredPressure {
            decision: trigger::decide(tokens, self.manager.window, &self.manager.policy),
            reason,
        }
    }

    fn account(&mut self) -> TokenAccount {
        let hashes = EntryHash::from_entries(&self.conversation.entries);
        let estimator = &*self.manager.estimator;
        TokenAccount::count_conversation(&self.conversation, &hashes, estimator, &mut self.cache)
    }
}
