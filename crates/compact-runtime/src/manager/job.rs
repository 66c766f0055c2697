//! One compaction as a job: measure, decide, plan, summarize, verify, archive, record.
//!
//! A file, a live session, the compaction of another process and a receipt that is proved again all run
//! it. They differ in where their history comes from, and so in how it is measured, and in how many of the
//! steps they take: a proof makes the view and stops before the archive. What the steps are made
//! of is elsewhere: models in `model_summary`, planning and proving in the engine, the archive and the
//! record in `commit`.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use compact_core::engine::{
    self, Compaction, CompactionInput, CompactionOutcome, Originals, Plan, Preparation, Prior,
    ViewBounds,
};
use compact_core::error::CompactError;
use compact_core::event::{
    CallOutcome, CategoryTokens, EventKind, EventScope, ReceiptBrief, TraceContext,
};
use compact_core::identity::{Chain, EntryHash};
use compact_core::ledger::Ledger;
use compact_core::message::Conversation;
use compact_core::policy::Policy;
use compact_core::receipt::Receipt;
use compact_core::redact::{self, RedactionCounts};
use compact_core::token::{EstimatorExt, TokenAccount, Tokens};
use compact_core::trigger::{self, TriggerDecision};
use compact_core::usage::gauge::LiveContext;
use serde_json::json;
use tokio::time::Instant;

use super::commit::{CommittedCompaction, StoredCompaction};
use super::count::EntryCounter;
use super::emit::CallStart;
use super::gate::CommitGate;
use super::lease::HeldLease;
use super::lineage::ResolvedHistory;
use super::model_summary::{AdviceVerdict, ModelAdvice};
use super::request::FailureRecord;
use super::session_state::SessionSnapshot;
use super::{
    ArchiveMode, CompactionRequest, DOES_NOT_FIT, FAILED_EVENT, Manager, RequestOutcome,
    STORE_FAILED, digest, turn_name,
};
use crate::error::Error;
use crate::port::catalog::{Attempt, CatalogError, CompactionRecord, Lease};
use crate::port::event::call_within;

/// A compaction on its way; what it has found so far is in [`MeasuredRequest`].
pub struct CompactionJob<'a> {
    pub(super) manager: &'a Manager,
    /// What is known of the request.
    pub measured: MeasuredRequest<'a>,
    pub(super) scope: EventScope,
    pub(super) started: Instant,
}

/// A request with everything measured: what the engine needs to know.
pub struct MeasuredRequest<'a> {
    pub(super) request: &'a CompactionRequest<'a>,
    /// The conversation, with every summary in it classified.
    pub(super) conversation: Cow<'a, Conversation>,
    /// Names the history that it is a compaction of.
    pub(super) source_chain: Chain,
    /// The session's name.
    pub session_id: String,
    pub(super) hashes: Vec<EntryHash>,
    /// The count.
    pub account: TokenAccount,
    pub(super) prior: Option<Prior>,
    /// The session's last compaction, which may be of the same transcript when it was shorter.
    pub(super) latest: Option<CompactionRecord>,
    pub(super) ledger: Arc<Ledger>,
    /// What its plans and its view have in common.
    pub(super) prepared: Preparation,
    /// The policy, with what the session protects.
    pub(super) policy: Policy,
    /// What the view may cost.
    pub budget: Tokens,
    /// What its summary may cost.
    pub summary_limit: Option<Tokens>,
    pub(super) original: String,
    /// What models said about it.
    pub advice: ModelAdvice,
    /// The verdict on its pressure.
    pub decision: TriggerDecision,
    /// A person's wish, redacted: it is archived with the receipt.
    pub(super) note: Option<String>,
}

/// What a job came to.
pub(super) enum JobOutcome {
    /// The history is within its budget.
    Unchanged,
    /// The summarizer failed, and the policy leaves the conversation to its host.
    Declined(String),
    /// Its gate was closed before it went on record.
    GivenUp,
    /// There is a view, and it is on record.
    Done(Box<CommittedCompaction>),
}

/// A history with what was counted and decided of it.
struct CountedHistory<'a> {
    line: ResolvedHistory<'a>,
    source_chain: Chain,
    account: TokenAccount,
    ledger: Ledger,
    decision: TriggerDecision,
    call: Option<TraceContext>,
}

/// Names the history that a compaction is of. A view to which nothing was added is the history that it was made of.
fn name_history(line: &ResolvedHistory<'_>) -> Chain {
    let entries = line.conversation.entries.iter();
    let own = || Chain::from_history(entries.zip(&line.hashes));
    let known = line.prior.as_ref().filter(|prior| {
        let history = line.hashes.len() - line.conversation.leading_instructions();
        engine::common_prefix(&line.conversation, &line.hashes, prior) == history
    });
    let before = line
        .latest
        .as_ref()
        .filter(|latest| known.is_some_and(|prior| prior.receipt_id == latest.receipt_id));
    before
        .and_then(|latest| latest.source_chain)
        .unwrap_or_else(own)
}

/// Measure and decide: each kind of history in its own way, and then all alike.
impl Manager {
    /// Begins the job of a request: counts its history and finds the compaction that it continues.
    pub async fn measure<'a>(
        &'a self,
        request: &'a CompactionRequest<'a>,
    ) -> Result<CompactionJob<'a>, Error> {
        let started = Instant::now();
        let line = self.resolve_history(request).await?;
        self.begin_job(request, started, self.count_history(request, line), None)
            .await
    }

    /// Begins the job that a record is the outcome of, after the compaction that it went on from.
    pub(super) async fn measure_record<'a>(
        &'a self,
        request: &'a CompactionRequest<'a>,
        record: &CompactionRecord,
        prior: Option<Prior>,
    ) -> Result<CompactionJob<'a>, Error> {
        let started = Instant::now();
        let latest = self.catalog.latest_record(&record.session_id).await?;
        let (session, conversation) = (&record.session_id, request.conversation);
        let hashes = EntryHash::from_entries(&conversation.entries);
        let line = ResolvedHistory::after(prior, session, latest, conversation, hashes);
        self.begin_job(request, started, self.count_history(request, line), None)
            .await
    }

    /// Begins the job of a live session, which has counted and decided already.
    pub(super) async fn measure_snapshot<'a>(
        &'a self,
        request: &'a CompactionRequest<'a>,
        snapshot: &SessionSnapshot,
    ) -> Result<CompactionJob<'a>, Error> {
        let started = Instant::now();
        let latest = self.catalog.latest_record(&snapshot.id).await?;
        let (prior, hashes) = (snapshot.prior.clone(), snapshot.hashes.clone());
        let conversation = request.conversation;
        let line = ResolvedHistory::after(prior, &snapshot.id, latest, conversation, hashes);
        let counted = CountedHistory {
            source_chain: snapshot.source_chain(),
            ledger: self.draw_ledger(&line),
            account: snapshot.account.clone(),
            decision: snapshot.decision.clone(),
            call: snapshot.call.clone(),
            line,
        };
        self.begin_job(request, started, counted, snapshot.wanted)
            .await
    }

    /// Counts a history that nobody has counted yet, and decides on it.
    fn count_history<'a>(
        &self,
        request: &CompactionRequest<'_>,
        line: ResolvedHistory<'a>,
    ) -> CountedHistory<'a> {
        let (account, ledger) = self.account_and_ledger(&line);
        let tokens = self.estimate_next_request(&line, &account);
        CountedHistory {
            source_chain: name_history(&line),
            decision: trigger::decide(tokens, self.window, &self.policy),
            call: Some(call_within(request.parent)),
            account,
            ledger,
            line,
        }
    }

    async fn begin_job<'a>(
        &'a self,
        request: &'a CompactionRequest<'a>,
        started: Instant,
        counted: CountedHistory<'a>,
        wanted: Option<Tokens>,
    ) -> Result<CompactionJob<'a>, Error> {
        let CountedHistory { line, decision, .. } = counted;
        let policy = self.policy_of(&line.session_id).await?;
        let model = line.conversation.model.as_deref();
        let scope = EventScope {
            call: counted.call,
            ..EventScope::new(&line.session_id, model, &decision, &self.policy)
        };
        let mut job = CompactionJob {
            manager: self,
            scope,
            started,
            measured: MeasuredRequest {
                conversation: line.conversation,
                source_chain: counted.source_chain,
                session_id: line.session_id,
                hashes: line.hashes,
                account: counted.account,
                prior: line.prior,
                latest: line.latest,
                ledger: Arc::new(counted.ledger),
                prepared: Preparation::default(),
                policy,
                budget: Tokens(0),
                summary_limit: None,
                original: digest(&request.original),
                advice: ModelAdvice::default(),
                decision,
                note: self.redacted_note(request.note),
                request,
            },
        };
        job.decide_budget(wanted)?;
        Ok(job)
    }

    /// Counts and draws the ledger side by side: each is one pass over all texts, and the thread
    /// that is done with the ledger helps to count.
    fn account_and_ledger(&self, line: &ResolvedHistory<'_>) -> (TokenAccount, Ledger) {
        let counter = EntryCounter::new(&line.conversation.entries, &*self.estimator);
        let (ledger, units) = counter.count_beside(|| self.draw_ledger(line));
        let account = TokenAccount::from_units(&line.conversation, units, &*self.estimator);
        (account, ledger)
    }

    fn draw_ledger(&self, line: &ResolvedHistory<'_>) -> Ledger {
        let prior = line.prior.as_ref();
        engine::session_ledger(&line.conversation, &line.hashes, prior, &self.redactor)
    }

    /// What the next request would cost, the provider's own reports taken into account.
    fn estimate_next_request(&self, line: &ResolvedHistory<'_>, account: &TokenAccount) -> Tokens {
        let conversation = &*line.conversation;
        let common = |prior| engine::common_prefix(conversation, &line.hashes, prior);
        let known = line.prior.as_ref().map_or(0, common);
        let entries = conversation.entries.iter();
        let live = LiveContext {
            entries: &entries
                .zip(account.entries.iter().copied())
                .collect::<Vec<_>>(),
            tools: account.tools,
            estimate: account.total(),
            estimator: &*self.estimator,
        };
        let since = conversation.leading_instructions() + known;
        live.next_request(None, since, self.policy.usage.formula)
    }

    fn redacted_note(&self, note: Option<&str>) -> Option<String> {
        let mut counts = RedactionCounts::new();
        note.map(|note| self.redactor.redact(note, &mut counts).into_owned())
    }
}

/// The whole job, for whoever asks for a compaction by itself.
impl<'a> CompactionJob<'a> {
    /// Compacts whatever the pressure, archives the original and records the receipt. Waits while
    /// another process compacts the same session.
    pub async fn compact(self) -> Result<RequestOutcome, Error> {
        let (mut job, held) = self.claim().await?;
        job.scope.cause = Some(job.measured.request.cause);
        let (gate, lease) = (CommitGate::default(), held.lease().cloned());
        let outcome = held.run_leased(job.run(&gate, lease.as_ref())).await;
        let ended = match &outcome {
            Ok(JobOutcome::Done(_)) => CallOutcome::Compacted,
            Ok(_) => CallOutcome::Unchanged,
            Err(_) => CallOutcome::Failed,
        };
        let began = CallStart::since("compact", job.started);
        job.manager.emit_call_ended(&job.scope, &began, ended);
        outcome.map(|outcome| job.request_outcome(outcome))
    }

    /// Goes on over the stores of another manager, which know no more than those it was measured over.
    pub fn over(self, manager: &'a Manager) -> CompactionJob<'a> {
        CompactionJob { manager, ..self }
    }

    /// Claims the session. What others put on record meanwhile may be what the history goes on from, or
    /// make it a session of its own: then it is measured again.
    async fn claim(mut self) -> Result<(CompactionJob<'a>, HeldLease), Error> {
        let (manager, request) = (self.manager, self.measured.request);
        loop {
            let session = &self.measured.session_id;
            let held = manager.claim_session(session, manager.wait_limit());
            let Some(held) = held.await? else {
                return Err(Error::Compacting(self.measured.session_id));
            };
            let latest = manager.catalog.latest_record(session).await?;
            let id = |record: &CompactionRecord| record.receipt_id.clone();
            if latest.as_ref().map(id) == self.measured.latest.as_ref().map(id) {
                return Ok((self, held));
            }
            let again = CompactionJob {
                started: self.started,
                ..manager.measure(request).await?
            };
            if again.measured.session_id == self.measured.session_id {
                return Ok((again, held));
            }
            self = again;
        }
    }

    /// Ends the job before anything is done: its history stays as it is.
    pub fn into_unchanged(self) -> RequestOutcome {
        self.request_outcome(JobOutcome::Unchanged)
    }

    fn request_outcome(self, outcome: JobOutcome) -> RequestOutcome {
        let (session_id, tokens) = (self.measured.session_id, self.measured.account.history);
        let budget = self.measured.budget;
        match outcome {
            JobOutcome::Done(committed) => RequestOutcome::Done(committed),
            JobOutcome::Unchanged | JobOutcome::GivenUp => RequestOutcome::Unchanged {
                session_id,
                tokens,
                budget,
            },
            JobOutcome::Declined(reason) => RequestOutcome::Declined {
                session_id,
                tokens,
                budget,
                reason,
            },
        }
    }
}

/// Its steps.
impl CompactionJob<'_> {
    /// Takes the steps from the summary on, and says how far it came. Until it enters the gate it may be
    /// given up and leaves no trace but a pack that nothing names; under a lease that was lost, nothing
    /// goes on record.
    pub(super) async fn run(
        &mut self,
        gate: &CommitGate,
        lease: Option<&Lease>,
    ) -> Result<JobOutcome, Error> {
        let planned = self.planned_counts();
        let (account, decision) = (&self.measured.account, &self.measured.decision);
        let tokens = CategoryTokens::from_account(account);
        self.manager
            .emit_decision(&self.scope, Some(tokens), decision, planned);
        let archived = tokio::select! {
            biased;
            () = gate.wait_closed() => return Ok(JobOutcome::GivenUp),
            archived = self.make_and_archive() => archived?,
        };
        match archived {
            ControlFlow::Break(outcome) => Ok(outcome),
            ControlFlow::Continue(_) if !gate.enter() => Ok(JobOutcome::GivenUp),
            ControlFlow::Continue(stored) => self.record(stored, lease).await,
        }
    }

    async fn make_and_archive(
        &mut self,
    ) -> Result<ControlFlow<JobOutcome, StoredCompaction>, Error> {
        if let AdviceVerdict::LeaveToHost(reason) = self.summarize().await? {
            return Ok(ControlFlow::Break(JobOutcome::Declined(reason)));
        }
        match self.make_view() {
            Ok(CompactionOutcome::Unchanged) => Ok(ControlFlow::Break(JobOutcome::Unchanged)),
            Ok(CompactionOutcome::Compacted(made)) => {
                self.archive(*made).await.map(ControlFlow::Continue)
            }
            Err(error) => {
                self.note_engine_error(&error).await;
                Err(error.into())
            }
        }
    }

    /// Decide: gives the view its budget, the one that is named, else what the policy, the window, what
    /// must stay and what somebody wants come to.
    fn decide_budget(&mut self, wanted: Option<Tokens>) -> Result<(), Error> {
        let request = self.measured.request;
        if let Some(budget) = request.budget {
            (self.measured.budget, self.measured.summary_limit) = (budget, request.summary_limit);
            return Ok(());
        }
        let claims = engine::room_claims(&self.engine_input())?;
        let (account, tokens) = (&self.measured.account, self.measured.decision.tokens);
        let bounds = ViewBounds {
            wanted,
            ..self.manager.bounds(account, tokens)
        };
        let tokens = |units| self.manager.estimator.to_tokens(units);
        self.measured.budget = bounds.budget_for(tokens(claims.total()), tokens(claims.summary));
        self.measured.summary_limit = Some(bounds.summary_limit(self.measured.budget));
        Ok(())
    }

    /// True when there is nothing to do: the history fits its budget as it is.
    pub fn is_within_budget(&self) -> bool {
        self.measured.account.history <= self.measured.budget
    }

    /// Plan: the shape of the view without its summary, or why there can be none.
    pub fn plan(&mut self) -> Result<Plan, CompactError> {
        self.run_engine(engine::preview)
    }

    /// What is going to be kept and left out; nothing where no view is needed or none can be.
    fn planned_counts(&mut self) -> ReceiptBrief {
        if self.is_within_budget() {
            return ReceiptBrief::default();
        }
        self.run_engine(engine::planned_counts).unwrap_or_default()
    }

    /// Summarize: takes what models say, or what they said when another process compacted the very same
    /// input: nobody is asked twice, and the view is the same.
    async fn summarize(&mut self) -> Result<AdviceVerdict, Error> {
        if let Some(same) = self.record_of_same_input() {
            self.measured.advice = self.manager.advice_of(same).await?;
            return Ok(AdviceVerdict::Go);
        }
        self.manager
            .ask_models(&mut self.measured, &self.scope)
            .await
    }

    fn record_of_same_input(&self) -> Option<&CompactionRecord> {
        let latest = self.measured.latest.as_ref()?;
        let is_same = latest.entry_hashes == self.measured.hashes
            && self.manager.is_same_redaction(latest)
            && latest.receipt.budget() == Some(self.measured.budget)
            && latest.input_pack.is_some()
            && latest.advice_pack().is_some();
        is_same.then_some(latest)
    }

    /// Verify: makes the view and proves what it kept.
    pub fn make_view(&mut self) -> Result<CompactionOutcome, CompactError> {
        self.run_engine(engine::compact)
    }

    /// Runs the engine. Where a budget that nobody named does not hold what must stay, the view gets all
    /// that the window allows.
    fn run_engine<T>(
        &mut self,
        engine: impl Fn(&CompactionInput<'_>) -> Result<T, CompactError>,
    ) -> Result<T, CompactError> {
        let first = engine(&self.engine_input());
        let is_short = matches!(first, Err(CompactError::InsufficientBudget { .. }));
        if !is_short || self.measured.request.budget.is_some() {
            return first;
        }
        self.measured.budget = self.manager.largest_budget(&self.measured.account);
        match engine(&self.engine_input()) {
            Err(CompactError::InsufficientBudget { needed, .. }) if self.is_crowded_out(needed) => {
                Err(self.instructions_error(needed))
            }
            outcome => outcome,
        }
    }

    /// True where what the host sends beside the view, and not the view, is what does not fit.
    fn is_crowded_out(&self, needed: Tokens) -> bool {
        let account = &self.measured.account;
        let window = self.manager.largest_budget(&TokenAccount::default());
        needed <= window && needed <= account.system + account.tools
    }

    fn instructions_error(&self, needed: Tokens) -> CompactError {
        let account = &self.measured.account;
        CompactError::InstructionsTooLarge {
            system: account.system,
            tools: account.tools,
            needed,
            available: self.manager.largest_budget(&TokenAccount::default()),
        }
    }

    /// Archive: the original, the view and what models said.
    async fn archive(&self, made: Compaction) -> Result<StoredCompaction, Error> {
        let (measured, scope) = (&self.measured, &self.scope);
        let stored = self
            .manager
            .store(measured, made, scope, self.started)
            .await;
        if let Err(error) = &stored {
            self.note_failure(STORE_FAILED, &error.to_string()).await;
        }
        stored
    }

    /// Record: from here on it counts.
    async fn record(
        &self,
        stored: StoredCompaction,
        lease: Option<&Lease>,
    ) -> Result<JobOutcome, Error> {
        let committed = self.manager.commit_stored(&self.scope, stored, lease).await;
        if let Err(error) = &committed {
            self.note_commit_error(error).await;
        }
        let committed = committed?;
        let receipt = &committed.compaction.receipt;
        let (session, ledger) = (&self.measured.session_id, &self.measured.ledger);
        self.manager.keep_ledger(session, receipt, ledger).await;
        Ok(JobOutcome::Done(Box::new(committed)))
    }

    /// What the next compaction of the session needs of this one, whose view has these entries.
    pub(super) fn into_prior(self, receipt: &Receipt, view: Vec<(EntryHash, u64)>) -> Prior {
        Prior {
            receipt_id: receipt.receipt_id.clone(),
            summary_version: receipt.summary_version,
            view,
            ledger: self.measured.ledger,
            trimmed: 0,
        }
    }

    fn engine_input(&self) -> CompactionInput<'_> {
        self.manager.engine_input(&self.measured)
    }

    /// A compaction that another process was faster with did not fail: the other one counts.
    async fn note_commit_error(&self, error: &Error) {
        let is_overtaken = matches!(
            error,
            Error::Overtaken(_) | Error::Catalog(CatalogError::Fenced { .. })
        );
        if !is_overtaken {
            self.note_failure(STORE_FAILED, &error.to_string()).await;
        }
    }

    async fn note_engine_error(&self, error: &CompactError) {
        let outcome = match error {
            CompactError::InsufficientBudget { .. } | CompactError::InstructionsTooLarge { .. } => {
                DOES_NOT_FIT
            }
            _ => "failed",
        };
        self.note_failure(outcome, &error.to_string()).await;
    }

    async fn note_failure(&self, outcome: &str, error: &str) {
        self.manager
            .note_failed_attempt(&self.scope, &self.measured, outcome, error)
            .await;
    }
}

impl Manager {
    pub(super) fn engine_input<'a>(
        &'a self,
        measured: &'a MeasuredRequest<'a>,
    ) -> CompactionInput<'a> {
        CompactionInput::new(
            &measured.conversation,
            &measured.hashes,
            &measured.account,
            &measured.ledger,
            &*self.estimator,
            measured.budget,
        )
        .session_id(&measured.session_id)
        .prior(measured.prior.as_ref())
        .policy(&measured.policy)
        .summary_limit(measured.summary_limit)
        .original(&measured.original)
        .rules(measured.request.rules)
        .redactor(&self.redactor)
        .originals(self.beyond_view())
        .note(measured.note.as_deref())
        .meaning(measured.advice.meaning.as_deref())
        .content(&measured.advice.words)
        .prepared(&measured.prepared)
    }

    /// Where the originals of what a view leaves out are.
    fn beyond_view(&self) -> Originals<'_> {
        match (&self.archive, &self.archive_mode) {
            (Some(_), ArchiveMode::Exact) => Originals::Archived,
            (Some(_), ArchiveMode::Redacted(redactor)) => Originals::Redacted(redactor),
            (None, _) => Originals::Gone,
        }
    }

    /// True when a record was made under the redaction rules in force here.
    pub(super) fn is_same_redaction(&self, record: &CompactionRecord) -> bool {
        let ours = redact::fingerprint(&self.redactor, self.beyond_view().redactor());
        record.redaction_fingerprint() == Some(&ours)
    }

    /// Tells and remembers a failure; a catalog that fails too must not hide the first error.
    pub(super) async fn note_failed_attempt(
        &self,
        scope: &EventScope,
        measured: &MeasuredRequest<'_>,
        outcome: &str,
        error: &str,
    ) {
        let failed = EventKind::Failed {
            error: error.to_owned(),
        };
        self.emit(scope, failed);
        if measured.request.on_failure == FailureRecord::None {
            return;
        }
        let at = self.clock.timestamp();
        let event = json!({ "event": FAILED_EVENT, "error": error, "ts": at });
        let attempt = Attempt {
            at,
            turn: turn_name(&measured.conversation, &measured.hashes),
            outcome: outcome.to_owned(),
            tokens: measured.decision.tokens.0,
        };
        let _ = self
            .catalog
            .save_attempt(&measured.session_id, &attempt)
            .await;
        let _ = self.catalog.save_event(&measured.session_id, &event).await;
    }
}
