//! The manager: runs the engine and commits what it made.
//!
//! Order of a commit: archive the original → record the receipt → emit events → hand out the view.
//! A failure before the record leaves everything as it was; sinks are told and never asked.

mod advise;
mod catch_up;
mod clearing;
mod commit;
pub(crate) mod drive;
pub(crate) mod gate;
pub(crate) mod history;
pub(crate) mod lease;
mod line;
pub(crate) mod outcome;
mod protect;
mod remember;
pub(crate) mod say;
pub(crate) mod session;
mod tally;
#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use compact_core::budget::Bounds;
use compact_core::engine::{self, Beyond, Input, Outcome, Prior};
use compact_core::error::CompactError;
use compact_core::event::{Call, EventKind, Scope};
use compact_core::identity::{Chain, EntryHash};
use compact_core::ledger::Ledger;
use compact_core::message::Conversation;
use compact_core::plan::Plan;
use compact_core::policy::Policy;
use compact_core::redact::{Counts, Redactor};
use compact_core::token::{Account, Estimator, EstimatorExt, Tokens};
use compact_core::trigger::{self, Cause, Decision};
use compact_core::usage::gauge::Live;
use compact_core::wire::WireRules;

use crate::error::Error;

use crate::port::archive::ArchiveStore;
use crate::port::catalog::{Attempt, CatalogError, CompactionRecord, Lease, SessionCatalog};
use crate::port::embedder::Embedder;
use crate::port::event::EventSink;
use crate::port::summarizer::Summarizer;

pub use advise::Advice;
pub use commit::{Commit, Storing};
pub use history::{Mismatch, Original, Verified, VerifiedBy};
pub use line::unused_name;
pub use outcome::{keep_record, kept_record};
pub use remember::Memory;
pub use session::{ENTRIES, Preflight, Session, serialized};

use advise::Advised;
use lease::Held;
use line::Line;
use say::Began;
use tally::Tally;

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
    pub storing: Storing,
    /// Who is asked for prose; without one, the summary is the ledger's alone.
    pub summarizer: Option<Arc<dyn Summarizer>>,
    /// Who tells what units are about, for semantic pruning; without one, their words do.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// One conversation to compact.
pub struct Request<'a> {
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
    pub parent: Option<&'a Call>,
}

/// A request with everything measured: ready for the engine.
pub struct Measured<'a> {
    request: &'a Request<'a>,
    /// The conversation, every summary in it told for what it is.
    conversation: Cow<'a, Conversation>,
    /// Names the history that it is a compaction of.
    source_chain: Chain,
    /// The session's name.
    pub session_id: String,
    hashes: Vec<EntryHash>,
    /// The count.
    pub account: Account,
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
    pub advice: Advice,
    /// The verdict on its pressure.
    pub decision: Decision,
    /// A person's wish, redacted: it is archived with the receipt.
    note: Option<String>,
    /// The call that it is part of.
    call: Option<Call>,
}

/// What came of a request.
#[derive(Debug)]
pub enum Compacted {
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
    Done(Box<Commit>),
}

impl Manager {
    /// Measures a request and finds the compaction that it continues.
    pub async fn measure<'a>(&self, request: &'a Request<'a>) -> Result<Measured<'a>, Error> {
        let hashes = EntryHash::all(&request.conversation.entries);
        let line = self.line(request, &hashes).await?;
        self.measure_line(request, hashes, line).await
    }

    /// Measures the request that a record is the answer to, after the compaction that it names.
    async fn measure_again<'a>(
        &self,
        request: &'a Request<'a>,
        record: &CompactionRecord,
    ) -> Result<Measured<'a>, Error> {
        let hashes = EntryHash::all(&request.conversation.entries);
        let prior = self.prior_of(record).await?;
        let line = Line {
            latest: self.catalog.latest(&record.session_id).await?,
            session_id: record.session_id.clone(),
            conversation: line::settled(request.conversation, &hashes, prior.as_ref()),
            prior,
        };
        self.measure_line(request, hashes, line).await
    }

    async fn measure_line<'a>(
        &self,
        request: &'a Request<'a>,
        hashes: Vec<EntryHash>,
        line: Line<'a>,
    ) -> Result<Measured<'a>, Error> {
        let Line {
            session_id,
            latest,
            prior,
            conversation,
        } = line;
        let (account, ledger) = self.read(&conversation, &hashes, prior.as_ref());
        let tokens = self.pressure(&conversation, &hashes, &account, prior.as_ref());
        let decision = trigger::decide(tokens, self.window, &self.policy);
        let mut measured = Measured {
            latest,
            policy: self.policy_of(&session_id).await?,
            source_chain: Chain::of_history(conversation.entries.iter().zip(&hashes)),
            session_id,
            conversation,
            ledger,
            budget: Tokens(0),
            summary_limit: None,
            original: digest(&request.original),
            advice: Advice::default(),
            note: self.redacted_note(request.note),
            call: Some(say::call_within(request.parent)),
            request,
            hashes,
            account,
            prior,
            decision,
        };
        self.allow(&mut measured, None)?;
        Ok(measured)
    }

    /// Gives a request its budget: the one it names, else what the policy, the window, what must stay
    /// and what somebody wants come to.
    fn allow(&self, measured: &mut Measured<'_>, wanted: Option<Tokens>) -> Result<(), Error> {
        let request = measured.request;
        if let Some(budget) = request.budget {
            (measured.budget, measured.summary_limit) = (budget, request.summary_limit);
            return Ok(());
        }
        let claims = engine::claims(&self.input(measured))?;
        let bounds = Bounds {
            wanted,
            ..self.bounds(&measured.account, measured.decision.tokens)
        };
        measured.budget = bounds.around(self.estimator.tokens(claims.total()));
        measured.summary_limit = Some(bounds.summary(measured.budget));
        Ok(())
    }

    /// What bounds a view; in a window that is as much smaller as the provider counts more than the
    /// estimator.
    pub(crate) fn bounds(&self, account: &Account, reported: Tokens) -> Bounds<'_> {
        let share = account.total().0 as f64 / reported.0.max(1) as f64;
        let window = match share > AGREEMENT {
            true => self.window,
            false => Tokens((self.window.0 as f64 * share) as u64),
        };
        Bounds::of(window, &self.policy, account)
    }

    /// Counts and draws the ledger side by side: each is one pass over all texts, and the thread
    /// that is done with the ledger helps to count.
    fn read(
        &self,
        conversation: &Conversation,
        hashes: &[EntryHash],
        prior: Option<&Prior>,
    ) -> (Account, Ledger) {
        let tally = Tally::new(&conversation.entries, &*self.estimator);
        let draw = || engine::session_ledger(conversation, hashes, prior, &self.redactor);
        let (ledger, units) = tally.beside(draw);
        let account = Account::from_units(conversation, units, &*self.estimator);
        (account, ledger)
    }

    /// What the next request would cost, the provider's own reports taken into account.
    fn pressure(
        &self,
        conversation: &Conversation,
        hashes: &[EntryHash],
        account: &Account,
        prior: Option<&Prior>,
    ) -> Tokens {
        let known = prior.map_or(0, |p| engine::common_prefix(conversation, hashes, p));
        let entries = conversation
            .entries
            .iter()
            .zip(account.entries.iter().copied());
        let live = Live {
            entries: &entries.collect::<Vec<_>>(),
            tools: account.tools,
            estimate: account.total(),
            estimator: &*self.estimator,
        };
        let since = conversation.leading_instructions() + known;
        live.next_request(None, since, self.policy.usage.formula)
    }

    /// What a compaction would do; changes nothing.
    pub fn plan(&self, measured: &Measured<'_>) -> Result<Outcome, Error> {
        Ok(engine::compact(&self.input(measured))?)
    }

    /// The shape of a compaction without its summary; changes nothing.
    pub fn preview(&self, measured: &Measured<'_>) -> Result<Plan, Error> {
        Ok(engine::preview(&self.input(measured))?)
    }

    /// Compacts whatever the pressure, archives the original and records the receipt. Waits while
    /// another process compacts the same session.
    pub async fn compact(&self, request: &Request<'_>) -> Result<Compacted, Error> {
        let began = Began::now("compact");
        let (mut measured, held) = self.measure_and_claim(request).await?;
        let lease = held.lease().cloned();
        let mut scope = self.scope_of(&measured);
        // Whatever the pressure: somebody wanted it.
        scope.cause = scope.cause.or(Some(Cause::Asked));
        self.announce(&scope, &measured.account, &measured.decision);
        let work = self.compact_measured(&mut measured, &scope, began.at, lease.as_ref());
        let compacted = held.during(work).await;
        let outcome = match &compacted {
            Ok(Compacted::Done(_)) => "compacted",
            Ok(_) => "unchanged",
            Err(_) => "failed",
        };
        self.ended(&scope, &began, outcome);
        compacted
    }

    /// Measures a request and claims its session. What others put on record meanwhile may be what it
    /// goes on from, or make it a session of its own: then it is measured again.
    async fn measure_and_claim<'a>(
        &self,
        request: &'a Request<'a>,
    ) -> Result<(Measured<'a>, Held), Error> {
        let mut measured = self.measure(request).await?;
        loop {
            let held = self.claim(&measured.session_id, self.patience()).await?;
            let Some(held) = held else {
                return Err(Error::Compacting(measured.session_id));
            };
            let latest = self.catalog.latest(&measured.session_id).await?;
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
        measured: &mut Measured<'_>,
        scope: &Scope,
        started: Instant,
        lease: Option<&Lease>,
    ) -> Result<Compacted, Error> {
        let left = |measured: &Measured<'_>| {
            let (session_id, tokens) = (measured.session_id.clone(), measured.account.history);
            (session_id, tokens, measured.budget)
        };
        if let Some(same) = self.same_as_latest(measured).await? {
            measured.advice = same;
        } else if let Advised::Leave(reason) = self.advise(measured, scope).await? {
            let (session_id, tokens, budget) = left(measured);
            return Ok(Compacted::Declined {
                session_id,
                tokens,
                budget,
                reason,
            });
        }
        let made = match self.make(measured) {
            Ok(Outcome::Compacted(made)) => *made,
            Ok(Outcome::Unchanged) => {
                let (session_id, tokens, budget) = left(measured);
                return Ok(Compacted::Unchanged {
                    session_id,
                    tokens,
                    budget,
                });
            }
            Err(error) => {
                self.refused(scope, measured, &error).await;
                return Err(error.into());
            }
        };
        let commit = match self.store(measured, made, scope, started).await {
            Ok(stored) => self.conclude(scope, stored, lease).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &commit {
            self.not_committed(scope, measured, error).await;
        }
        Ok(Compacted::Done(Box::new(commit?)))
    }

    fn redacted_note(&self, note: Option<&str>) -> Option<String> {
        let redacted = |note| self.redactor.redact(note, &mut Counts::new()).into_owned();
        note.map(redacted)
    }

    /// What models said when another process compacted the very same input: nobody is asked twice,
    /// and the view is the same.
    async fn same_as_latest(&self, measured: &Measured<'_>) -> Result<Option<Advice>, Error> {
        let Some(latest) = measured
            .latest
            .as_ref()
            .filter(|r| r.advice_pack().is_some())
        else {
            return Ok(None);
        };
        let budget = latest
            .receipt
            .get("budget")
            .and_then(serde_json::Value::as_u64);
        let is_same = latest.entry_hashes == measured.hashes
            && budget == Some(measured.budget.0)
            && latest.input_pack.is_some();
        match is_same {
            true => Ok(Some(self.advice_of(latest).await?)),
            false => Ok(None),
        }
    }

    /// The view of a request; where its default budget does not hold what must stay, in all that the
    /// window allows.
    fn make(&self, measured: &mut Measured<'_>) -> Result<Outcome, CompactError> {
        let first = engine::compact(&self.input(measured));
        let is_short = matches!(first, Err(CompactError::InsufficientBudget { .. }));
        if !is_short || measured.request.budget.is_some() {
            return first;
        }
        measured.budget = self.largest_budget(&measured.account);
        engine::compact(&self.input(measured))
    }

    /// The most that a view may cost.
    pub fn largest_budget(&self, account: &Account) -> Tokens {
        Bounds::of(self.window, &self.policy, account).largest()
    }

    fn input<'a>(&'a self, measured: &'a Measured<'a>) -> Input<'a> {
        Input {
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
            beyond: self.beyond(),
            note: measured.note.as_deref(),
            meaning: measured.advice.meaning.as_deref(),
            words: &measured.advice.words,
        }
    }

    fn beyond(&self) -> Beyond {
        match self.archive {
            Some(_) => Beyond::Archived,
            None => Beyond::Gone,
        }
    }

    /// A compaction that another process was faster with did not fail: the other one counts.
    async fn not_committed(&self, scope: &Scope, measured: &Measured<'_>, error: &Error) {
        let is_overtaken = matches!(
            error,
            Error::Overtaken(_) | Error::Catalog(CatalogError::Fenced { .. })
        );
        if !is_overtaken {
            self.failed(scope, measured, &error.to_string()).await;
        }
    }

    /// Tells and remembers a failure; a catalog that fails too must not hide the first error.
    async fn failed(&self, scope: &Scope, measured: &Measured<'_>, error: &str) {
        self.note_failure(scope, measured, "failed", error).await;
    }

    /// The same for an engine that made no view.
    async fn refused(&self, scope: &Scope, measured: &Measured<'_>, error: &CompactError) {
        let outcome = match error {
            CompactError::InsufficientBudget { .. } => DOES_NOT_FIT,
            _ => "failed",
        };
        let error = error.to_string();
        self.note_failure(scope, measured, outcome, &error).await;
    }

    async fn note_failure(
        &self,
        scope: &Scope,
        measured: &Measured<'_>,
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
            .record_attempt(&measured.session_id, &attempt)
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
