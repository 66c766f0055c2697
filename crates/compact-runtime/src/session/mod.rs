//! The life of a session over time: what starts a compaction, and what happens while it runs.
//!
//! At the soft threshold, or when a session is idle, a compaction runs beside it and its view is
//! swapped in at a later call; no call waits for it. At the trigger a call waits for one that runs,
//! within bounds, or compacts at once. A provider that refuses a prompt gets one smaller prompt, made
//! without asking any model. Counting, deciding and compacting are the manager's; when is decided here.

mod background;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use compact_core::event::{EventKind, OverflowAnswer, TraceContext};
use compact_core::identity::{Chain, EntryHash};
use compact_core::message::{Conversation, Entry};
use compact_core::pin;
use compact_core::policy::{DuringCompaction, KeepRecent, OnSummaryFailure};
use compact_core::receipt::Receipt;
use compact_core::token::{TokenAccount, Tokens};
use compact_core::trigger::{self, CompactionCause, TriggerDecision, Verdict};
use compact_core::usage::forecast::RequestPace;
use compact_core::wire::WireRules;
use compact_formats::Document;
use compact_formats::overflow::{Overflow, OverflowSign};
use compact_formats::usage::ReportedUsage;

use crate::error::Error;
use crate::manager::session_driver::BEFORE_MODEL_CALL;
use crate::manager::{Manager, Preflight, SessionState};
use crate::port::event::call_within;
use background::BackgroundCompaction;

/// A forecast is told when so few calls are left.
const FORECAST_CALLS: u64 = 3;

/// A summary that stands for a whole history takes this part of the window, within bounds: agents send it
/// with every request that follows.
const SUMMARY_SHARE: u64 = 10;
const SMALLEST_SUMMARY: u64 = 2_000;
const LARGEST_SUMMARY: u64 = 24_000;

/// A session that compacts itself as time goes by.
pub struct Session {
    manager: Arc<Manager>,
    session: SessionState,
    background: BackgroundMode,
    running: Option<BackgroundCompaction>,
    pace: RequestPace,
    /// The forecast that was told last.
    told: Option<u64>,
    /// The request that was refused and made smaller once.
    refused: Option<Chain>,
    /// What is protected by name, once it was looked up.
    protected: Option<BTreeSet<EntryHash>>,
}

/// Whether a session may compact beside its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackgroundMode {
    Allowed,
    Never,
}

impl Session {
    /// A session that has not said anything yet.
    pub fn new(manager: Arc<Manager>, id: impl Into<String>, rules: &WireRules) -> Session {
        Session {
            manager,
            session: SessionState::new(id, rules),
            background: BackgroundMode::Allowed,
            running: None,
            pace: RequestPace::default(),
            told: None,
            refused: None,
            protected: None,
        }
    }

    /// Another session of the same name that stands where this one does: what it is told from now on, and what it compacts,
    /// this one never hears of. What providers reported is left behind.
    pub fn fork(&self) -> Session {
        Session {
            session: self.session.fork(),
            protected: self.protected.clone(),
            background: self.background,
            ..Session::new(Arc::clone(&self.manager), "", &self.session.rules().clone())
        }
    }

    /// The same session without a thread of its own: it compacts within a call, at the trigger, or not at
    /// all. A measurement or a replay that must come out the same each time wants this.
    pub fn without_background(self) -> Session {
        Session {
            background: BackgroundMode::Never,
            ..self
        }
    }

    /// Makes the calls that follow part of the caller's trace; [`TraceContext::parse`] reads its header.
    pub fn trace_within(&mut self, parent: Option<TraceContext>) {
        self.session.trace_within(parent);
    }

    /// The session as it stands.
    pub fn state(&self) -> &SessionState {
        &self.session
    }

    /// True while a compaction runs beside the session.
    pub fn is_compacting(&self) -> bool {
        self.running
            .as_ref()
            .is_some_and(BackgroundCompaction::is_busy)
    }

    /// Adds what was said since. While a compaction runs, a person's words are queued behind the
    /// view that it makes, or refused, as the policy says; what agents and tools say always counts.
    pub fn append(&mut self, entries: impl IntoIterator<Item = Entry>) -> Result<(), Error> {
        let entries: Vec<Entry> = entries.into_iter().collect();
        if entries.iter().any(Entry::is_user_message) {
            self.admit()?;
        }
        self.session.append(entries);
        Ok(())
    }

    /// Takes the whole history again; new words of a person are admitted as in [`Self::append`].
    pub fn replace(&mut self, conversation: Conversation) -> Result<(), Error> {
        self.admit_new(&conversation)?;
        self.session.replace(conversation);
        Ok(())
    }

    /// Takes the whole history again as a document, and up what an earlier process left of it.
    pub async fn replace_document(
        &mut self,
        document: Document,
        conversation: Conversation,
    ) -> Result<(), Error> {
        self.admit_new(&conversation)?;
        self.session.replace_document(document, conversation);
        self.manager.resume(&mut self.session).await?;
        self.protect_flagged().await
    }

    /// Takes messages in that follow those of the document that was told last, in the form that they have there.
    /// False where the longer document must be told as a whole: then nothing has changed.
    pub async fn grow_document(&mut self, added: &[&str]) -> Result<bool, Error> {
        // What runs beside the session may refuse a person's words, and those are known once they are read.
        if self.is_compacting() {
            return Ok(false);
        }
        if self.session.grow_document(added).is_none() {
            return Ok(false);
        }
        self.manager.resume(&mut self.session).await?;
        self.protect_flagged().await?;
        Ok(true)
    }

    /// Protects entries by name from now on, in every process. A view that lacks one is given up.
    pub async fn protect(&mut self, names: &BTreeSet<EntryHash>) -> Result<(), Error> {
        let known = self.protected_names().await?;
        let new: BTreeSet<EntryHash> = names.difference(known).copied().collect();
        if new.is_empty() {
            return Ok(());
        }
        self.manager.protect(self.session.id(), &new).await?;
        // What runs beside the session does not know of them.
        self.give_up_background().await;
        self.session.drop_view_lacking(&new);
        self.protected.get_or_insert_default().extend(new);
        Ok(())
    }

    /// Lets entries go that were protected by name.
    pub async fn unprotect(&mut self, names: &BTreeSet<EntryHash>) -> Result<(), Error> {
        self.manager.unprotect(self.session.id(), names).await?;
        if let Some(known) = &mut self.protected {
            known.retain(|name| !names.contains(name));
        }
        Ok(())
    }

    /// A flag may be lost on the way, with what a client makes of a view: the session remembers it.
    async fn protect_flagged(&mut self) -> Result<(), Error> {
        let flag = &self.manager.policy.protected_flag;
        let entries = &self.session.history().entries;
        if !entries.iter().any(|e| e.meta.flags.contains(flag)) {
            return Ok(());
        }
        let names = pin::naming_hashes(entries, &self.session.hashes, |e| {
            e.meta.flags.contains(flag)
        });
        self.protect(&names).await
    }

    async fn protected_names(&mut self) -> Result<&BTreeSet<EntryHash>, Error> {
        if self.protected.is_none() {
            self.protected = Some(self.manager.protected_entries(self.session.id()).await?);
        }
        Ok(self.protected.get_or_insert_default())
    }

    fn admit_new(&self, conversation: &Conversation) -> Result<(), Error> {
        let said = |c: &Conversation| c.entries.iter().filter(|e| e.is_user_message()).count();
        if said(conversation) > said(self.session.history()) {
            self.admit()?;
        }
        Ok(())
    }

    /// Refuses a person's words while a compaction runs, where the policy says so.
    fn admit(&self) -> Result<(), Error> {
        let rejects = self.manager.policy.during_compaction == DuringCompaction::Reject;
        if rejects && self.is_compacting() {
            return Err(Error::Compacting(self.session.id().to_owned()));
        }
        Ok(())
    }

    /// What to send now. Waits for a compaction only at the trigger; on an error nothing has changed.
    pub async fn preflight(&mut self) -> Result<Preflight, Error> {
        let manager = Arc::clone(&self.manager);
        let began = manager.begin_call(&mut self.session, BEFORE_MODEL_CALL);
        let ready = self.run_preflight().await;
        manager.end_call(&mut self.session, &began, &ready);
        ready
    }

    async fn run_preflight(&mut self) -> Result<Preflight, Error> {
        let swapped = self.take_finished().await;
        let mut decision = self.manager.load_and_decide(&mut self.session).await;
        if decision.verdict >= Verdict::CompactSoon && self.running.is_none() {
            let manager = Arc::clone(&self.manager);
            if manager.catch_up(&mut self.session).await? {
                decision = manager.decide_pressure(&mut self.session);
            }
        }
        self.emit_forecast(&decision);
        let ready = match decision.verdict {
            Verdict::CompactNow | Verdict::Exceeded => self.compact_now(decision).await?,
            verdict => {
                self.manager.emit_bare_decision(&self.session, &decision);
                if verdict == Verdict::CompactSoon {
                    self.start_background(&decision);
                }
                self.manager.hand_out(&mut self.session, decision)
            }
        };
        Ok(Preflight {
            receipt: ready.receipt.or(swapped),
            ..ready
        })
    }

    /// Compacts whatever the pressure; what runs beside the session is given up.
    pub async fn manual_compact(&mut self, note: Option<&str>) -> Result<Preflight, Error> {
        self.give_up_background().await;
        let manager = Arc::clone(&self.manager);
        manager.manual_compact(&mut self.session, note).await
    }

    /// Compacts whatever the pressure, and keeps nothing but the summary, what is pinned and the pending
    /// request: for a host that goes on from a text alone.
    pub async fn summarize(&mut self, note: Option<&str>) -> Result<Preflight, Error> {
        self.give_up_background().await;
        let mut manager = Manager::clone(&self.manager);
        manager.policy.keep_recent = KeepRecent::None;
        let share = manager.window.0 / SUMMARY_SHARE;
        let most = manager.policy.target_tokens;
        let most = most.unwrap_or(share.clamp(SMALLEST_SUMMARY, LARGEST_SUMMARY));
        let session = &mut self.session;
        manager.compact_to(session, note, Tokens(most)).await
    }

    /// Takes what the provider reported of the last request; `None` when it reported nothing.
    pub fn observe(&mut self, reported: Option<ReportedUsage>) {
        self.manager.observe(&mut self.session, reported);
    }

    /// Tells that nothing happened for so long. Starts a compaction if the policy wants one then:
    /// at the soft threshold, or without one at half of the trigger. True when one was started.
    pub async fn report_idle(&mut self, quiet: Duration) -> bool {
        let policy = &self.manager.policy;
        let Some(least) = policy.idle_seconds.map(Duration::from_secs) else {
            return false;
        };
        let half = trigger::trigger_point(self.manager.window, policy).0 / 2;
        let has_soft = policy.soft_pct.is_some();
        if quiet < least {
            return false;
        }
        self.take_finished().await;
        let decision = self.manager.load_and_decide(&mut self.session).await;
        self.manager.load_attempts(&mut self.session).await;
        let is_due = match has_soft {
            true => decision.verdict >= Verdict::CompactSoon,
            false => decision.tokens.0 >= half,
        };
        let decision = TriggerDecision {
            cause: Some(CompactionCause::Idle),
            ..decision
        };
        is_due && self.start_background(&decision)
    }

    /// Waits at most `limit` for what runs beside the session and takes it over.
    pub async fn wait_for_background(&mut self, limit: Duration) -> Option<Receipt> {
        // It stays where it is while it is waited for: the caller may give up waiting.
        let running = self.running.as_mut()?;
        let result = running.wait(limit).await?;
        let decision = running.decision.clone();
        self.running = None;
        self.adopt_background(result, decision).await
    }

    /// Answers a provider that refused the prompt: a smaller view, made without any model, to be
    /// sent once. `None` when this is no overflow after all, when the smaller prompt was refused
    /// too, or when nothing smaller can be made: then the provider's error is the caller's answer.
    pub async fn overflowed(&mut self, overflow: Overflow) -> Result<Option<Preflight>, Error> {
        let tokens = self
            .manager
            .next_request_tokens(&mut self.session)
            .unwrap_or_default();
        let is_large = tokens.0.saturating_mul(2) >= self.manager.window.0;
        if overflow.sign == OverflowSign::Silent && !is_large {
            return Ok(None);
        }
        let request = self.session.history_chain();
        let again = self.refused.replace(request) == Some(request);
        let note = "the provider refused the prompt";
        let decision = TriggerDecision {
            cause: Some(CompactionCause::Overflow),
            ..trigger::decide_manual(tokens, self.manager.window, note)
        };
        let answer = match again {
            true => OverflowAnswer::GivenUp,
            false => OverflowAnswer::Smaller,
        };
        let overflowed = EventKind::Overflowed {
            tokens: overflow.tokens,
            limit: overflow.limit,
            answer,
        };
        self.emit(&decision, overflowed);
        if again {
            return Ok(None);
        }
        self.give_up_background().await;
        self.learn_window(overflow.limit);
        let manager = Manager::clone(&self.manager).without_models();
        let mut snapshot = self.session.snapshot(&decision, &*manager.estimator);
        snapshot.wanted = Some(smaller(&manager, &snapshot.account, &overflow));
        let before = self.session.previous_receipt();
        let ready = manager.compact_session(&mut self.session, snapshot).await?;
        // Another process may have made the smaller view already, perhaps one that ended since.
        let is_smaller = self.session.previous_receipt() != before;
        Ok(is_smaller.then_some(ready))
    }

    /// Emits what happened in the session under a decision.
    fn emit(&self, decision: &TriggerDecision, kind: EventKind) {
        let scope = self.manager.session_scope(&self.session, decision);
        self.manager.emit(&scope, kind);
    }

    /// Keeps prompts within another window from now on: the model changed, or its limit is known better.
    pub fn set_window(&mut self, window: Tokens) {
        if window != self.manager.window {
            let manager = Manager::clone(&self.manager);
            self.manager = Arc::new(manager.with_window(window));
        }
    }

    /// A provider knows its window better than any table.
    fn learn_window(&mut self, limit: Option<Tokens>) {
        if let Some(window) = limit.filter(|l| l.0 > 0 && *l < self.manager.window) {
            self.set_window(window);
        }
    }

    /// The trigger is reached: what runs is waited for, else the session is compacted at once.
    async fn compact_now(&mut self, decision: TriggerDecision) -> Result<Preflight, Error> {
        let manager = Arc::clone(&self.manager);
        if self.running.is_none() {
            return manager.run_preflight(&mut self.session).await;
        }
        let limit = Duration::from_secs(manager.policy.wait_seconds);
        let mut taken = self.wait_for_background(limit).await;
        if self.running.is_some() {
            taken = self.give_up_background().await;
            if taken.is_none() && self.report_too_late(&decision) {
                manager.emit_bare_decision(&self.session, &decision);
                return Ok(manager.hand_out(&mut self.session, decision));
            }
        }
        // What was swapped in may be full again by what came since.
        let alone = Manager::clone(&manager).without_models();
        let ready = alone.run_preflight(&mut self.session).await?;
        Ok(Preflight {
            receipt: ready.receipt.or(taken),
            ..ready
        })
    }

    /// Tells that what ran took too long. True where a summary by a model is a condition: then that
    /// is a failure, and no other view takes its place.
    fn report_too_late(&mut self, decision: &TriggerDecision) -> bool {
        let late = EventKind::Discarded {
            reason: "it took too long".to_owned(),
            waited_seconds: Some(self.manager.policy.wait_seconds),
        };
        self.emit(decision, late);
        let fails = self.manager.policy.on_summary_failure == OnSummaryFailure::Fail;
        if fails {
            self.session.note_failure(decision.tokens);
        }
        fails
    }

    /// Starts a compaction beside the session, if none runs and the last did not fail.
    fn start_background(&mut self, decision: &TriggerDecision) -> bool {
        let is_possible = self.background == BackgroundMode::Allowed && self.running.is_none();
        if !is_possible || !self.manager.may_attempt(&self.session, decision) {
            return false;
        }
        let mut snapshot = self.session.snapshot(decision, &*self.manager.estimator);
        // The call ends before the compaction does, so that has a span of its own within it.
        snapshot.call = Some(call_within(self.session.call.as_ref()));
        let manager = Arc::clone(&self.manager);
        let Some(running) = BackgroundCompaction::start(manager, snapshot, decision.clone()) else {
            return false;
        };
        self.running = Some(running);
        self.emit(decision, EventKind::Scheduled);
        true
    }

    /// Takes over what has finished; never waits.
    async fn take_finished(&mut self) -> Option<Receipt> {
        self.wait_for_background(Duration::ZERO).await
    }

    /// Gives up what runs; what is on record by now is taken over.
    async fn give_up_background(&mut self) -> Option<Receipt> {
        let running = self.running.as_mut()?;
        let outcome = running.give_up().await;
        let decision = running.decision.clone();
        self.running = None;
        self.adopt_background(outcome?, decision).await
    }

    async fn adopt_background(
        &mut self,
        result: background::BackgroundResult,
        decision: TriggerDecision,
    ) -> Option<Receipt> {
        let finished = match result {
            Ok(finished) => finished?,
            Err(error) => {
                self.note_background_error(&error, &decision);
                return None;
            }
        };
        let manager = Arc::clone(&self.manager);
        let scope = manager.session_scope(&self.session, &decision);
        let appended = self
            .session
            .history()
            .entries
            .len()
            .saturating_sub(finished.covered());
        let ready = manager
            .adopt_finished(&mut self.session, finished, decision)
            .await;
        let receipt = ready.receipt?;
        let appended = appended as u64;
        manager.emit_of_receipt(&scope, &receipt, EventKind::Swapped { appended });
        Some(receipt)
    }

    /// Remembers a failure; one that ended without an outcome has not been told yet.
    fn note_background_error(&mut self, error: &Error, decision: &TriggerDecision) {
        self.session.note_failure(decision.tokens);
        if matches!(error, Error::Interrupted) {
            let error = error.to_string();
            self.emit(decision, EventKind::Failed { error });
        }
    }

    /// Warns when the window will be full in a few calls, once for each number of them.
    fn emit_forecast(&mut self, decision: &TriggerDecision) {
        self.pace.add_request(decision.tokens);
        let point = trigger::trigger_point(self.manager.window, &self.manager.policy);
        let left = self
            .pace
            .calls_left(point)
            .filter(|left| *left <= FORECAST_CALLS);
        if decision.verdict.is_now() || left == self.told {
            return;
        }
        self.told = left;
        let (Some(left), Some(per_call)) = (left, self.pace.per_call()) else {
            return;
        };
        // Growth beyond what a fresh view leaves of the trigger point outruns it.
        let fresh = point.0 as f64 * self.manager.policy.target_of_trigger;
        let outruns = per_call.0 as f64 > point.0 as f64 - fresh;
        let forecast = EventKind::Forecast {
            calls_left: left,
            tokens_per_call: per_call,
            outruns_budget: outruns,
        };
        self.emit(decision, forecast);
    }
}

/// A budget that the provider will not refuse: in the provider's tokens where it told them, and at
/// most half of what was refused.
fn smaller(manager: &Manager, account: &TokenAccount, overflow: &Overflow) -> Tokens {
    let counted = overflow.tokens.unwrap_or(account.total());
    let target = manager.bounds(account, counted).target();
    target.min(Tokens(account.history.0 / 2))
}
