//! Driving a session: count, decide, compact a snapshot of it, adopt what came of it.
//!
//! Everything that can wait happens on a snapshot, so a caller that gives up at any moment leaves
//! the session as it was. Whether an attempt may be made is judged by the outcome of the last one,
//! which the catalog remembers for the next process.

use compact_core::engine::ViewBounds;
use compact_core::error::CompactError;
use compact_core::event::{EventKind, EventScope, UsageReport};
use compact_core::message::Entry;
use compact_core::policy::EconomyMode;
use compact_core::token::{Estimator, EstimatorExt, Heuristic, Tokens, Units};
use compact_core::trigger::economy::{self, CacheMultiples, EconomyNumbers};
use compact_core::trigger::{self, TriggerDecision, Verdict};
use compact_core::usage::gauge::LiveContext;
use compact_core::usage::{OnMissing, Semantics, Usage};
use compact_core::window;
use compact_formats::usage::ReportedUsage;

use super::gate::CommitGate;
use super::job::JobOutcome;
use super::session_state::{
    AttemptState, FinishedCompaction, Preflight, SessionSnapshot, SessionState, StaleCompaction,
};
use super::{Manager, count};
use crate::error::Error;
use crate::port::catalog::{Attempt, Lease};

/// The call that a host makes before each of its own to a model.
pub(crate) const BEFORE_MODEL_CALL: &str = "before_model_call";

impl Manager {
    /// Takes up what an earlier process left: a history that opens with a view of ours goes on from
    /// the compaction that its summary names, with its ledger. Each history is looked up once.
    pub(crate) async fn resume(&self, session: &mut SessionState) -> Result<(), Error> {
        if !session.is_unknown() {
            return Ok(());
        }
        let (source, hashes) = (&session.source, &session.hashes);
        let prior = self.find_prior(source, hashes, &session.id).await?;
        session.continue_from(prior);
        Ok(())
    }

    /// Counts, decides, and compacts when it must, as part of a call. On an error nothing has changed.
    pub(crate) async fn run_preflight(
        &self,
        session: &mut SessionState,
    ) -> Result<Preflight, Error> {
        let decision = self.load_and_decide(session).await;
        if !decision.verdict.is_now() || !self.may_attempt(session, &decision) {
            self.emit_bare_decision(session, &decision);
            return match session.refusal(&decision) {
                Some(error) => Err(error.clone().into()),
                None => Ok(self.hand_out(session, decision)),
            };
        }
        let malformed = session.malformed_in_newest_step();
        if malformed > 0 {
            self.emit_bare_decision(session, &decision);
            let scope = self.session_scope(session, &decision);
            self.emit(&scope, EventKind::Skipped { malformed });
            return Ok(self.hand_out(session, decision));
        }
        let snapshot = session.snapshot(&decision, &*self.estimator);
        self.compact_session(session, snapshot).await
    }

    /// Compacts whatever the pressure; the note says who asked, `manual` by default.
    pub(crate) async fn manual_compact(
        &self,
        session: &mut SessionState,
        note: Option<&str>,
    ) -> Result<Preflight, Error> {
        self.compact_to(session, note, Tokens(u64::MAX)).await
    }

    /// The same to at most so many tokens.
    pub(crate) async fn compact_to(
        &self,
        session: &mut SessionState,
        note: Option<&str>,
        most: Tokens,
    ) -> Result<Preflight, Error> {
        let note = note.unwrap_or("manual");
        session.allow_retry();
        let tokens = self.next_request_tokens(session).unwrap_or_default();
        let decision = trigger::decide_manual(tokens, self.window, note);
        let mut snapshot = session.snapshot(&decision, &*self.estimator);
        snapshot.note = Some(note.to_owned());
        // Who asks wants less than there is, also far below the trigger.
        snapshot.wanted = Some(Tokens(snapshot.account.history.0 / 2).min(most));
        let began = self.begin_call(session, "manual_compact");
        snapshot.call.clone_from(&session.call);
        let ready = self.compact_session(session, snapshot).await;
        self.end_call(session, &began, &ready);
        ready
    }

    /// Takes what the provider reported of the request that was handed out last; `None` when it
    /// reported nothing. Hand it over before the next preflight.
    pub(crate) fn observe(&self, session: &mut SessionState, reported: Option<ReportedUsage>) {
        let policy = self.policy.usage;
        let usable = reported.filter(|r| r.semantics != Semantics::None);
        let Some(reported) = usable else {
            if policy.on_missing == OnMissing::Disable {
                session.usage.disable_tracking();
            }
            session.note_missing_usage();
            return self.emit_usage(session, EventKind::UsageMissing);
        };
        if policy.reenable_on_usage {
            session.usage.enable_tracking();
        }
        let semantics = policy.semantics.unwrap_or(reported.semantics);
        session.note_usage(reported.usage, semantics, policy.formula);
        session
            .cache_history
            .note_request(reported.usage, self.clock.now());
        self.emit_usage(session, EventKind::Usage);
    }

    /// The last turn and the totals, as the seed's log line has them.
    fn emit_usage(&self, session: &mut SessionState, kind: fn(UsageReport) -> EventKind) {
        let decision = self.decide_pressure(session);
        let (last, totals) = (
            session.usage.last().unwrap_or_default(),
            session.usage.totals(),
        );
        let report = UsageReport {
            turn_input: last.input_tokens,
            turn_output: last.output_tokens,
            turn_cache_read: last.cache_read_tokens,
            input_tokens: totals.input_tokens,
            output_tokens: totals.output_tokens,
            cache_read_tokens: totals.cache_read_tokens,
            cache_creation_tokens: totals.cache_creation_tokens,
            turn_cache_creation: last.cache_creation_tokens,
            turn_cost_usd: self.request_cost(session, last),
            tracking: session.usage.is_tracking_enabled(),
            pressure: decision.pressure,
        };
        self.emit(&self.session_scope(session, &decision), kind(report));
    }

    /// What a request cost, where the model's prices are known.
    fn request_cost(&self, session: &SessionState, usage: Usage) -> Option<f64> {
        let model = window::find_model(session.source.model.as_deref()?)?;
        model.price.map(|price| price.request_cost(&usage))
    }

    pub(crate) fn session_scope(
        &self,
        session: &SessionState,
        decision: &TriggerDecision,
    ) -> EventScope {
        let model = session.source.model.as_deref();
        EventScope {
            call: session.call.clone(),
            ..EventScope::new(&session.id, model, decision, &self.policy)
        }
    }

    /// The verdict on a session; what is on record of its attempts is taken in where it leads to one.
    pub(crate) async fn load_and_decide(&self, session: &mut SessionState) -> TriggerDecision {
        if self.policy.economy.mode() != EconomyMode::Off {
            self.measure_lifetime(session).await;
        }
        let decision = self.decide_pressure(session);
        if decision.verdict >= Verdict::CompactSoon {
            self.load_attempts(session).await;
        }
        decision
    }

    /// Takes in what is on record of a session's attempts.
    pub(crate) async fn load_attempts(&self, session: &mut SessionState) {
        if session.attempts == AttemptState::Unread {
            session.attempts = self.attempts_on_record(&session.id).await;
        }
    }

    pub(crate) fn decide_pressure(&self, session: &mut SessionState) -> TriggerDecision {
        match self.next_request_tokens(session) {
            Some(tokens) => {
                let decision = trigger::decide(tokens, self.window, &self.policy);
                let numbers = self.economy_numbers(session, tokens);
                economy::decide_economy(decision, self.policy.economy.mode(), numbers)
            }
            None => trigger::decide_untracked(self.window),
        }
    }

    /// What a compaction of a session would be weighed by; `None` where nothing is weighed, or its prices
    /// or its cache are not known.
    fn economy_numbers(&self, session: &SessionState, tokens: Tokens) -> Option<EconomyNumbers> {
        let policy = &self.policy.economy;
        if policy.mode() == EconomyMode::Off {
            return None;
        }
        let seen = &session.cache_history;
        let warmth = seen.warmth(self.clock.now(), policy.cache_seconds())?;
        let price = window::find_model(session.source.model.as_deref()?)?.price?;
        let multiples = CacheMultiples::from_price(&price)?;
        // What the host sends again with every request counts as part of a view: rather too much than too little.
        let bounds = ViewBounds {
            window: self.window,
            policy: &self.policy,
            fixed: Tokens(0),
            wanted: None,
        };
        let view = bounds.target().min(tokens);
        let lifetime = session.lifetime.as_ref();
        let measured = lifetime.and_then(|known| known.further_requests(seen.requests));
        let read_by_model = tokens.0 as f64 * multiples.read;
        let written = view.0 as f64 * price.output / price.input;
        Some(EconomyNumbers {
            history: tokens,
            view,
            multiples,
            warmth,
            further_requests: policy.further_requests(seen.requests, measured),
            growth: seen.growth(),
            summary_cost: self
                .summarizer
                .as_ref()
                .map_or(0.0, |_| read_by_model + written),
            rework: policy.rework(tokens - view),
        })
    }

    pub(crate) fn may_attempt(&self, session: &SessionState, decision: &TriggerDecision) -> bool {
        // What is larger than the window cannot be sent as it is: whatever stood in the way is tried
        // again, and raised again.
        let is_needed = decision.verdict == Verdict::Exceeded && session.is_hindered;
        is_needed || session.may_attempt(decision.tokens, self.policy.attempts_per_turn)
    }

    /// The last attempt, if it failed and nothing succeeded since. A catalog that cannot say does
    /// not keep anyone from trying.
    async fn attempts_on_record(&self, id: &str) -> AttemptState {
        let Ok(Some(attempt)) = self.catalog.last_attempt(id).await else {
            return AttemptState::Clear;
        };
        let latest = self.catalog.latest_record(id).await.ok().flatten();
        let is_over = latest.is_some_and(|record| record.created_at > attempt.at);
        let is_unknown = [super::DOES_NOT_FIT, super::STORE_FAILED].contains(&&*attempt.outcome);
        if is_over || is_unknown || attempt.outcome == super::RETRY_ASKED {
            return AttemptState::Clear;
        }
        AttemptState::Failed {
            turn: attempt.turn,
            tokens: Tokens(attempt.tokens),
            count: 1,
        }
    }

    /// What the next request costs; `None` while pressure is not tracked.
    pub(crate) fn next_request_tokens(&self, session: &mut SessionState) -> Option<Tokens> {
        if !session.usage.is_tracking_enabled() {
            return None;
        }
        let guess =
            session.is_usage_missing() && self.policy.usage.on_missing == OnMissing::Heuristic;
        let estimator: &dyn Estimator = if guess { &Heuristic } else { &*self.estimator };
        let (units, tools) = match guess {
            true => (guess_units(session), guess_tools(session)),
            false => count_new(session, estimator),
        };
        let counted: Vec<(&Entry, Units)> = session
            .live()
            .map(|(entry, _)| entry)
            .zip(units.iter().copied())
            .collect();
        let tools = estimator.to_tokens(tools);
        let live = LiveContext {
            estimate: estimator.to_tokens(units.iter().copied().sum()) + tools,
            tools,
            estimator,
            entries: &counted,
        };
        // Entries may carry reports of requests that did not go through this session.
        let tokens = live.next_request(session.reading(), counted.len(), self.policy.usage.formula);
        if !guess {
            session.counted = units;
        }
        Some(tokens)
    }

    /// The session's view as it stands.
    pub(crate) fn hand_out(
        &self,
        session: &mut SessionState,
        decision: TriggerDecision,
    ) -> Preflight {
        session.sent = session.source.entries.len();
        Preflight {
            decision,
            view: session.view(),
            receipt: None,
        }
    }

    /// Compacts a snapshot of the session and adopts the outcome.
    pub(crate) async fn compact_session(
        &self,
        session: &mut SessionState,
        snapshot: SessionSnapshot,
    ) -> Result<Preflight, Error> {
        let Some(held) = self.claim_session(&session.id, self.wait_limit()).await? else {
            // Somebody else compacts it and takes long: until then, the view that there is.
            let decision = snapshot.decision;
            return Ok(self.hand_out(session, decision));
        };
        let Some(snapshot) = self.refresh_snapshot(session, snapshot).await? else {
            let decision = self.decide_pressure(session);
            return Ok(self.hand_out(session, decision));
        };
        let decision = snapshot.decision.clone();
        let lease = held.lease().cloned();
        let gate = CommitGate::default();
        let work = self.compact_snapshot(snapshot, &gate, lease.as_ref());
        let result = held.run_leased(work).await;
        match result {
            Ok(Some(finished)) => Ok(self.adopt_finished(session, finished, decision).await),
            Ok(None) => {
                self.check_trigger_cleared(session, &decision).await;
                Ok(self.hand_out(session, decision))
            }
            Err(error) => {
                session.note_failure(decision.tokens);
                if let Error::Compact(
                    refusal @ (CompactError::InsufficientBudget { .. }
                    | CompactError::InstructionsTooLarge { .. }),
                ) = &error
                {
                    session.refused = Some(refusal.clone());
                }
                session.is_hindered = matches!(error, Error::Archive(_) | Error::Catalog(_));
                Err(error)
            }
        }
    }

    /// The snapshot again, if others compacted the session since it was taken; `None` when nothing
    /// is left to do because they did.
    async fn refresh_snapshot(
        &self,
        session: &mut SessionState,
        snapshot: SessionSnapshot,
    ) -> Result<Option<SessionSnapshot>, Error> {
        if !self.catch_up(session).await? {
            return Ok(Some(snapshot));
        }
        let (note, wanted) = (snapshot.note, snapshot.wanted);
        let was_asked = note.is_some() || wanted.is_some();
        let pressure = self.decide_pressure(session);
        let decision = match was_asked {
            // What their view costs, not what it stands for: a budget follows from it.
            true => TriggerDecision {
                tokens: pressure.tokens,
                ..snapshot.decision
            },
            false => pressure,
        };
        if !was_asked && !decision.verdict.is_now() {
            return Ok(None);
        }
        let mut again = session.snapshot(&decision, &*self.estimator);
        let is_small = |wanted| again.account.history <= wanted;
        if note.is_none() && wanted.is_some_and(is_small) {
            // What a provider refused was not this view: it is as small as the next one would be.
            return Ok(None);
        }
        (again.note, again.wanted) = (note, wanted);
        Ok(Some(again))
    }

    /// Shows a finished view from now on, or throws it away when it is stale.
    pub(crate) async fn adopt_finished(
        &self,
        session: &mut SessionState,
        finished: Box<FinishedCompaction>,
        decision: TriggerDecision,
    ) -> Preflight {
        let counted = session.usage.last().is_some();
        let scope = self.session_scope(session, &decision);
        let receipt = match session.adopt(*finished) {
            Ok(receipt) => receipt,
            Err(stale) => {
                self.discard(&scope, &stale).await;
                return self.hand_out(session, decision);
            }
        };
        if counted {
            self.emit_of_receipt(&scope, &receipt, EventKind::UsageReset);
        }
        self.check_trigger_cleared(session, &decision).await;
        Preflight {
            receipt: Some(receipt),
            ..self.hand_out(session, decision)
        }
    }

    /// A compaction that leaves the trigger reached has failed, whatever it made: the next one waits.
    async fn check_trigger_cleared(&self, session: &mut SessionState, before: &TriggerDecision) {
        let after = self.decide_pressure(session);
        if !(before.verdict.is_now() && after.verdict.is_now()) {
            return;
        }
        session.note_failure(after.tokens);
        let attempt = Attempt {
            at: self.clock.timestamp(),
            turn: session.current_turn(),
            outcome: "insufficient".to_owned(),
            tokens: after.tokens.0,
        };
        let _ = self.catalog.save_attempt(&session.id, &attempt).await;
    }

    /// A view that nobody will ever see is no part of the session's chain.
    pub(crate) async fn discard(&self, scope: &EventScope, stale: &StaleCompaction) {
        let id = &stale.receipt.receipt_id;
        let _ = self.catalog.remove_receipt(&scope.session_id, id).await;
        let discarded = EventKind::Discarded {
            reason: stale.reason.to_owned(),
            waited_seconds: None,
        };
        self.emit_of_receipt(scope, &stale.receipt, discarded);
    }

    /// Compacts a snapshot: `None` when it is within its budget, or when it was given up before it
    /// went on record.
    pub(crate) async fn compact_snapshot(
        &self,
        snapshot: SessionSnapshot,
        gate: &CommitGate,
        lease: Option<&Lease>,
    ) -> Result<Option<Box<FinishedCompaction>>, Error> {
        let request = snapshot.request();
        let mut job = self.measure_snapshot(&request, &snapshot).await?;
        let JobOutcome::Done(committed) = job.run(gate, lease).await? else {
            return Ok(None);
        };
        let made = committed.compaction;
        let prior = job.into_prior(&made.receipt, made.view_identity);
        let finished = snapshot.basis.finish(made.view, prior, made.receipt);
        Ok(Some(Box::new(finished)))
    }

    pub(crate) fn snapshot_scope(&self, snapshot: &SessionSnapshot) -> EventScope {
        let model = snapshot.conversation.model.as_deref();
        EventScope {
            call: snapshot.call.clone(),
            ..EventScope::new(&snapshot.id, model, &snapshot.decision, &self.policy)
        }
    }
}

/// Counts what the live context has more than was counted before: what each entry costs, and the tools.
fn count_new(session: &mut SessionState, estimator: &dyn Estimator) -> (Vec<Units>, Units) {
    let mut cache = std::mem::take(&mut session.cache);
    let mut units = std::mem::take(&mut session.counted);
    let known = units.len();
    if session.live_count() - known > count::WORTH_A_THREAD {
        count::fill_cache(&mut cache, session.live_from(known), estimator);
    }
    let new = session.live_from(known);
    units.extend(new.map(|(entry, hash)| cache.count_entry(*hash, entry, estimator)));
    let tools = session.source.tools.as_deref();
    let tools = tools.map_or(Units(0), |tools| cache.count_tools(tools, estimator));
    session.cache = cache;
    (units, tools)
}

fn guess_units(session: &SessionState) -> Vec<Units> {
    let live = session.live();
    live.map(|(entry, _)| Heuristic.count_entry(entry))
        .collect()
}

fn guess_tools(session: &SessionState) -> Units {
    let tools = session.source.tools.as_deref();
    tools.map_or(Units(0), |tools| Heuristic.count_units(tools))
}
