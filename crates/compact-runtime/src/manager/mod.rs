//! The manager: runs the engine and commits what it made.
//!
//! Order of a commit: archive the original → record the receipt → emit events → hand out the view.
//! A failure before the record leaves everything as it was; sinks are told and never asked.

mod catch_up;
mod clearing;
mod commit;
mod count;
pub(crate) mod emit;
pub(crate) mod gate;
pub(crate) mod lease;
mod lineage;
mod model_summary;
pub(crate) mod outcome;
mod protect;
mod remember;
pub(crate) mod restore;
pub(crate) mod session_driver;
pub(crate) mod session_state;
#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use compact_core::budget::ViewBounds;
use compact_core::engine::{self, CompactionInput, CompactionOutcome, Originals, Prior};
use compact_core::error::CompactError;
use compact_core::event::{EventKind, EventScope, TraceContext};
use compact_core::identity::{Chain, EntryHash};
use compact_core::ledger::Ledger;
use compact_core::message::Conversation;
use compact_core::plan::Plan;
use compact_core::policy::Policy;
use compact_core::redact::{self, RedactionCounts, Redactor};
use compact_core::token::{Estimator, EstimatorExt, TokenAccount, Tokens};
use compact_core::trigger::{self, CompactionCause, TriggerDecision};
use compact_core::usage::gauge::LiveContext;
use compact_core::wire::WireRules;

use crate::error::Error;

use crate::port::archive::ArchiveStore;
use crate::port::catalog::{Attempt, CatalogError, CompactionRecord, Lease, SessionCatalog};
use crate::port::embedder::Embedder;
use crate::port::event::EventSink;
use crate::port::summarizer::Summarizer;

pub use commit::{ArchiveMode, CommittedCompaction};
pub use lineage::new_session_name;
pub use model_summary::ModelAdvice;
pub use outcome::{read_record, write_record};
pub use remember::MemoryLayers;
pub use restore::{FieldMismatch, RerunObstacle, RestoredOriginal, VerificationReport, VerifiedBy};
pub use session_state::{ENTRIES_FORMAT, Preflight, SessionState, serialize_entries};

use count::EntryCounter;
use emit::CallStart;
use lease::HeldLease;
use lineage::ResolvedHistory;
use model_summary::AdviceVerdict;

/// An estimate of at least this share of what a provider counts is good enough.
const AGREEMENT: f64 = 0.9;

/// The outcome of an attempt at what does not fit whatever is done: the next process must find that out
/// for itself, or it would send it.
pub(super) const DOES_NOT_FIT: &str = "does_not_fit";

/// Runs compactions for any number of sessions. Its calls need a Tokio runtime with timers, as
/// `enable_all` gives: a lease is renewed while work goes on.
#[derive(Clone)]
pub struct Manager {
    /// Where originals go; without one, what a view does not show is lost, and an event says so.
    pub archive: Option<Arc<dyn ArchiveStore>>,
    /// Where receipts go.
    pub catalog: Arc<dyn SessionCatalog>,
    /// Who is told.
    pub sink: Arc<dyn EventSink>,
    /// How tokens are counted.
    pub estimator: Arc<dyn Estimator>,
    /// The user's decisions.
    pub policy: Policy,
    /// What the model takes.
    pub window: Tokens,
    /// Applied to every summary.
    pub redactor: Arc<Redactor>,
    /// What the archive keeps.
    pub storing: ArchiveMode,
    /// Who is asked for prose; without one, the summary is the ledger's alone.
    pub summarizer: Option<Arc<dyn Summarizer>>,
    /// Who tells what units are about, for semantic pruning; without one, their words do.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// One conversation to compact.
pub struct CompactionRequest<'a> {
    /// The live context.
    pub conversation: &'a Conversation,
    /// What the wire accepts.
    pub rules: &'a WireRules,
    /// The name of its format, for the record.
    pub format: &'a str,
    /// The exact bytes it was read from.
    pub original: Bytes,
    /// The session, when the caller names one.
    pub session_id: Option<&'a str>,
    /// What the view may cost; `None` for the policy's share of the trigger point, and more where what
    /// was said last needs it.
    pub budget: Option<Tokens>,
    /// What the summary may take of a given budget; `None` for all that the recent part leaves.
    pub summary_limit: Option<Tokens>,
    /// A person's wish for this compaction.
    pub note: Option<&'a str>,
    /// What a model is given to summarize, when its host tells it better than the entries do.
    pub told: Option<&'a [String]>,
    /// The caller's span, within which this call's is drawn.
    pub parent: Option<&'a TraceContext>,
}

/// A request with everything measured: ready for the engine.
pub struct MeasuredRequest<'a> {
    request: &'a CompactionRequest<'a>,
    /// The conversation, every summary in it told for what it is.
    conversation: Cow<'a, Conversation>,
    /// Names the history that it is a compaction of.
    source_chain: Chain,
    /// The session's name.
    pub session_id: String,
    hashes: Vec<EntryHash>,
    /// The count.
    pub account: TokenAccount,
    prior: Option<Prior>,
    /// The session's last compaction, which may be of the same transcript when it was shorter.
    latest: Option<CompactionRecord>,
    ledger: Ledger,
    /// The policy, with what the session protects.
    policy: Policy,
    /// What the view may cost.
    pub budget: Tokens,
    /// What its summary may cost.
    pub summary_limit: Option<Tokens>,
    original: String,
    /// What models said about it.
    pub advice: ModelAdvice,
    /// The verdict on its pressure.
    pub decision: TriggerDecision,
    /// A person's wish, redacted: it is archived with the receipt.
    note: Option<String>,
    /// The call that it is part of.
    call: Option<TraceContext>,
}

/// What came of a request.
#[derive(Debug)]
pub enum RequestOutcome {
    /// The history was within the budget already; nothing was written.
    Unchanged {
        /// The session's name.
        session_id: String,
        /// History tokens.
        tokens: Tokens,
        /// What it was allowed.
        budget: Tokens,
    },
    /// The summarizer failed, and the policy leaves the conversation to its host; nothing was written.
    Declined {
        /// The session's name.
        session_id: String,
        /// History tokens.
        tokens: Tokens,
        /// What it was to be brought to.
        budget: Tokens,
        /// Why.
        reason: String,
    },
    /// There is a view, and it is on record.
    Done(Box<CommittedCompaction>),
}

impl Manager {
    /// Measures a request and finds the compaction that it continues.
    pub async fn measure<'a>(
        &self,
        request: &'a CompactionRequest<'a>,
    ) -> Result<MeasuredRequest<'a>, Error> {
        let hashes = EntryHash::from_entries(&request.conversation.entries);
        let line = self.resolve_history(request, &hashes).await?;
        self.measure_resolved(request, hashes, line).await
    }

    /// Measures the request that a record is the answer to, after the compaction that it names.
    async fn measure_again<'a>(
        &self,
        request: &'a CompactionRequest<'a>,
        record: &CompactionRecord,
    ) -> Result<MeasuredRequest<'a>, Error> {
        let hashes = EntryHash::from_entries(&request.conversation.entries);
        let prior = self.prior_of(record).await?;
        let line = ResolvedHistory {
            latest: self.catalog.latest_record(&record.session_id).await?,
            session_id: record.session_id.clone(),
            conversation: lineage::settle_summaries(request.conversation, &hashes, prior.as_ref()),
            prior,
        };
        self.measure_resolved(request, hashes, line).await
    }

    async fn measure_resolved<'a>(
        &self,
        request: &'a CompactionRequest<'a>,
        hashes: Vec<EntryHash>,
        line: ResolvedHistory<'a>,
    ) -> Result<MeasuredRequest<'a>, Error> {
        let ResolvedHistory {
            session_id,
            latest,
            prior,
            conversation,
        } = line;
        let (account, ledger) = self.account_and_ledger(&conversation, &hashes, prior.as_ref());
        let tokens = self.estimate_next_request(&conversation, &hashes, &account, prior.as_ref());
        let decision = trigger::decide(tokens, self.window, &self.policy);
        let mut measured = MeasuredRequest {
            latest,
            policy: self.policy_of(&session_id).await?,
            source_chain: Chain::from_history(conversation.entries.iter().zip(&hashes)),
            session_id,
            conversation,
            ledger,
            budget: Tokens(0),
            summary_limit: None,
            original: digest(&request.original),
            advice: ModelAdvice::default(),
            note: self.redacted_note(request.note),
            call: Some(emit::call_within(request.parent)),
            request,
            hashes,
            account,
            prior,
            decision,
        };
        self.set_budget(&mut measured, None)?;
        Ok(measured)
    }

    /// Gives a request its budget: the one it names, else what the policy, the window, what must stay
    /// and what somebody wants come to.
    fn set_budget(
        &self,
        measured: &mut MeasuredRequest<'_>,
        wanted: Option<Tokens>,
    ) -> Result<(), Error> {
        let request = measured.request;
        if let Some(budget) = request.budget {
            (measured.budget, measured.summary_limit) = (budget, request.summary_limit);
            return Ok(());
        }
        let claims = engine::room_claims(&self.engine_input(measured))?;
        let bounds = ViewBounds {
            wanted,
            ..self.bounds(&measured.account, measured.decision.tokens)
        };
        measured.budget = bounds.budget_for(self.estimator.to_tokens(claims.total()));
        measured.summary_limit = Some(bounds.summary_limit(measured.budget));
        Ok(())
    }

    /// What bounds a view; in a window that is as much smaller as the provider counts more than the
    /// estimator.
    pub(crate) fn bounds(&self, account: &TokenAccount, reported: Tokens) -> ViewBounds<'_> {
        let share = account.total().0 as f64 / reported.0.max(1) as f64;
        let window = match share > AGREEMENT {
            true => self.window,
            false => Tokens((self.window.0 as f64 * share) as u64),
        };
        ViewBounds::from_account(window, &self.policy, account)
    }

    /// Counts and draws the ledger side by side: each is one pass over all texts, and the thread
    /// that is done with the ledger helps to count.
    fn account_and_ledger(
        &self,
        conversation: &Conversation,
        hashes: &[EntryHash],
        prior: Option<&Prior>,
    ) -> (TokenAccount, Ledger) {
        let tally = EntryCounter::new(&conversation.entries, &*self.estimator);
        let draw = || engine::session_ledger(conversation, hashes, prior, &self.redactor);
        let (ledger, units) = tally.count_beside(draw);
        let account = TokenAccount::from_units(conversation, units, &*self.estimator);
        (account, ledger)
    }

    /// What the next request would cost, the provider's own reports taken into account.
    fn estimate_next_request(
        &self,
        conversation: &Conversation,
        hashes: &[EntryHash],
        account: &TokenAccount,
        prior: Option<&Prior>,
    ) -> Tokens {
        let known = prior.map_or(0, |p| engine::common_prefix(conversation, hashes, p));
        let entries = conversation
            .entries
            .iter()
            .zip(account.entries.iter().copied());
        let live = LiveContext {
            entries: &entries.collect::<Vec<_>>(),
            tools: account.tools,
            estimate: account.total(),
            estimator: &*self.estimator,
        };
        let since = conversation.leading_instructions() + known;
        live.next_request(None, since, self.policy.usage.formula)
    }

    /// What a compaction would do; changes nothing.
    pub fn dry_run(&self, measured: &MeasuredRequest<'_>) -> Result<CompactionOutcome, Error> {
        Ok(engine::compact(&self.engine_input(measured))?)
    }

    /// The shape of a compaction without its summary; changes nothing.
    pub fn preview_plan(&self, measured: &MeasuredRequest<'_>) -> Result<Plan, Error> {
        Ok(engine::preview(&self.engine_input(measured))?)
    }

    /// Compacts whatever the pressure, archives the original and records the receipt. Waits while
    /// another process compacts the same session.
    pub async fn compact(&self, request: &CompactionRequest<'_>) -> Result<RequestOutcome, Error> {
        let began = CallStart::now("compact");
        let (mut measured, held) = self.measure_and_claim(request).await?;
        let lease = held.lease().cloned();
        let mut scope = self.request_scope(&measured);
        // Whatever the pressure: somebody wanted it.
        scope.cause = scope.cause.or(Some(CompactionCause::Asked));
        self.emit_estimate(&scope, &measured.account, &measured.decision);
        let work = self.compact_measured(&mut measured, &scope, began.at, lease.as_ref());
        let compacted = held.run_leased(work).await;
        let outcome = match &compacted {
            Ok(RequestOutcome::Done(_)) => "compacted",
            Ok(_) => "unchanged",
            Err(_) => "failed",
        };
        self.emit_call_ended(&scope, &began, outcome);
        compacted
    }

    /// Measures a request and claims its session. What others put on record meanwhile may be what it
    /// goes on from, or make it a session of its own: then it is measured again.
    async fn measure_and_claim<'a>(
        &self,
        request: &'a CompactionRequest<'a>,
    ) -> Result<(MeasuredRequest<'a>, HeldLease), Error> {
        let mut measured = self.measure(request).await?;
        loop {
            let held = self
                .claim_session(&measured.session_id, self.wait_limit())
                .await?;
            let Some(held) = held else {
                return Err(Error::Compacting(measured.session_id));
            };
            let latest = self.catalog.latest_record(&measured.session_id).await?;
            let id =
                |record: &Option<CompactionRecord>| record.as_ref().map(|r| r.receipt_id.clone());
            if id(&latest) == id(&measured.latest) {
                return Ok((measured, held));
            }
            let again = self.measure(request).await?;
            if again.session_id == measured.session_id {
                return Ok((again, held));
            }
            measured = again;
        }
    }

    async fn compact_measured(
        &self,
        measured: &mut MeasuredRequest<'_>,
        scope: &EventScope,
        started: Instant,
        lease: Option<&Lease>,
    ) -> Result<RequestOutcome, Error> {
        let left = |measured: &MeasuredRequest<'_>| {
            let (session_id, tokens) = (measured.session_id.clone(), measured.account.history);
            (session_id, tokens, measured.budget)
        };
        if let Some(same) = self.advice_of_same_input(measured).await? {
            measured.advice = same;
        } else if let AdviceVerdict::LeaveToHost(reason) = self.ask_models(measured, scope).await? {
            let (session_id, tokens, budget) = left(measured);
            return Ok(RequestOutcome::Declined {
                session_id,
                tokens,
                budget,
                reason,
            });
        }
        let made = match self.run_engine(measured) {
            Ok(CompactionOutcome::Compacted(made)) => *made,
            Ok(CompactionOutcome::Unchanged) => {
                let (session_id, tokens, budget) = left(measured);
                return Ok(RequestOutcome::Unchanged {
                    session_id,
                    tokens,
                    budget,
                });
            }
            Err(error) => {
                self.note_engine_error(scope, measured, &error).await;
                return Err(error.into());
            }
        };
        let commit = match self.store(measured, made, scope, started).await {
            Ok(stored) => self.commit_stored(scope, stored, lease).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &commit {
            self.note_commit_error(scope, measured, error).await;
        }
        Ok(RequestOutcome::Done(Box::new(commit?)))
    }

    fn redacted_note(&self, note: Option<&str>) -> Option<String> {
        let redacted = |note| {
            self.redactor
                .redact(note, &mut RedactionCounts::new())
                .into_owned()
        };
        note.map(redacted)
    }

    /// What models said when another process compacted the very same input: nobody is asked twice,
    /// and the view is the same.
    async fn advice_of_same_input(
        &self,
        measured: &MeasuredRequest<'_>,
    ) -> Result<Option<ModelAdvice>, Error> {
        let Some(latest) = measured
            .latest
            .as_ref()
            .filter(|r| r.advice_pack().is_some())
        else {
            return Ok(None);
        };
        let is_same = latest.entry_hashes == measured.hashes
            && self.is_same_redaction(latest)
            && latest.receipt.budget() == Some(measured.budget)
            && latest.input_pack.is_some();
        match is_same {
            true => Ok(Some(self.advice_of(latest).await?)),
            false => Ok(None),
        }
    }

    /// The view of a request; where its default budget does not hold what must stay, in all that the
    /// window allows.
    fn run_engine(
        &self,
        measured: &mut MeasuredRequest<'_>,
    ) -> Result<CompactionOutcome, CompactError> {
        let first = engine::compact(&self.engine_input(measured));
        let is_short = matches!(first, Err(CompactError::InsufficientBudget { .. }));
        if !is_short || measured.request.budget.is_some() {
            return first;
        }
        measured.budget = self.largest_budget(&measured.account);
        engine::compact(&self.engine_input(measured))
    }

    /// The most that a view may cost.
    pub fn largest_budget(&self, account: &TokenAccount) -> Tokens {
        ViewBounds::from_account(self.window, &self.policy, account).largest()
    }

    fn engine_input<'a>(&'a self, measured: &'a MeasuredRequest<'a>) -> CompactionInput<'a> {
        CompactionInput {
            conversation: &measured.conversation,
            session_id: &measured.session_id,
            hashes: &measured.hashes,
            account: &measured.account,
            prior: measured.prior.as_ref(),
            ledger: &measured.ledger,
            policy: &measured.policy,
            budget: measured.budget,
            summary_limit: measured.summary_limit,
            original: &measured.original,
            estimator: &*self.estimator,
            rules: measured.request.rules,
            redactor: &self.redactor,
            beyond: self.beyond_view(),
            note: measured.note.as_deref(),
            meaning: measured.advice.meaning.as_deref(),
            words: &measured.advice.words,
        }
    }

    fn beyond_view(&self) -> Originals<'_> {
        match (&self.archive, &self.storing) {
            (Some(_), ArchiveMode::Exact) => Originals::Archived,
            (Some(_), ArchiveMode::Redacted(redactor)) => Originals::Redacted(redactor),
            (None, _) => Originals::Gone,
        }
    }

    /// True when a record was made under the redaction rules in force here.
    fn is_same_redaction(&self, record: &CompactionRecord) -> bool {
        let ours = redact::fingerprint(&self.redactor, self.beyond_view().redactor());
        record.redaction_fingerprint() == Some(&ours)
    }

    /// A compaction that another process was faster with did not fail: the other one counts.
    async fn note_commit_error(
        &self,
        scope: &EventScope,
        measured: &MeasuredRequest<'_>,
        error: &Error,
    ) {
        let is_overtaken = matches!(
            error,
            Error::Overtaken(_) | Error::Catalog(CatalogError::Fenced { .. })
        );
        if !is_overtaken {
            self.note_failed(scope, measured, &error.to_string()).await;
        }
    }

    /// Tells and remembers a failure; a catalog that fails too must not hide the first error.
    async fn note_failed(&self, scope: &EventScope, measured: &MeasuredRequest<'_>, error: &str) {
        self.record_failed_attempt(scope, measured, "failed", error)
            .await;
    }

    /// The same for an engine that made no view.
    async fn note_engine_error(
        &self,
        scope: &EventScope,
        measured: &MeasuredRequest<'_>,
        error: &CompactError,
    ) {
        let outcome = match error {
            CompactError::InsufficientBudget { .. } => DOES_NOT_FIT,
            _ => "failed",
        };
        let error = error.to_string();
        self.record_failed_attempt(scope, measured, outcome, &error)
            .await;
    }

    async fn record_failed_attempt(
        &self,
        scope: &EventScope,
        measured: &MeasuredRequest<'_>,
        outcome: &str,
        error: &str,
    ) {
        self.emit(scope.event(EventKind::Failed, &now()).with("error", error));
        let attempt = Attempt {
            at: now(),
            turn: turn_name(&measured.conversation, &measured.hashes),
            outcome: outcome.to_owned(),
            tokens: measured.decision.tokens.0,
        };
        let _ = self
            .catalog
            .save_attempt(&measured.session_id, &attempt)
            .await;
    }
}

/// The time, as every record and event spells it.
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    format!("{now:.3}")
}

fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// A name for the turn that a conversation is in: its latest user message.
fn turn_name(conversation: &Conversation, hashes: &[EntryHash]) -> String {
    conversation
        .entries
        .iter()
        .zip(hashes)
        .rev()
        .find(|(e, _)| e.is_user_message())
        .map_or_else(String::new, |(_, hash)| hash.to_string())
}
