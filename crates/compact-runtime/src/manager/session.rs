//! A live session: the history as its client tells it, and the frozen view over its prefix.
//!
//! Most clients pass their whole, uncompacted history with every call, so the handle remembers which
//! prefix was compacted into which view. The same prefix gives the same items until the next
//! compaction; only what came after is counted. A prefix that changed drops the frozen view and
//! keeps the ledger.

use bytes::Bytes;
use compact_core::engine::{self, Outcome, Prior};
use compact_core::error::CompactError;
use compact_core::event::Scope;
use compact_core::identity::EntryHash;
use compact_core::message::{Conversation, Entry};
use compact_core::receipt::Receipt;
use compact_core::token::{Account, TokenCache, Tokens, Units};
use compact_core::trigger::{self, Decision};
use compact_core::view::{View, ViewItem};
use compact_core::wire::WireRules;

use super::advise::Advised;
use super::{Manager, Measured, Request, turn_name};
use crate::error::Error;

/// Growth of the context that re-arms compaction after a failure.
const REARM_GROWTH: f64 = 1.05;

/// One conversation, kept between calls.
pub struct Session {
    id: String,
    rules: WireRules,
    source: Conversation,
    hashes: Vec<EntryHash>,
    cache: TokenCache,
    frozen: Option<Frozen>,
    prior: Option<Prior>,
    failed: Option<Failure>,
}

/// A view over the first `covered` entries of the source.
struct Frozen {
    covered: usize,
    view: View,
    shown: Vec<Entry>,
    hashes: Vec<EntryHash>,
}

struct Failure {
    turn: String,
    tokens: Tokens,
}

/// What to send.
#[derive(Debug)]
pub struct Preflight {
    /// The verdict on what the client passed, its earlier view applied.
    pub decision: Decision,
    /// What to send, as a view of the source.
    pub view: View,
    /// The receipt, when this call compacted.
    pub receipt: Option<Receipt>,
}

impl Session {
    /// A session that has not said anything yet.
    pub fn new(id: impl Into<String>, rules: &WireRules) -> Session {
        Session {
            id: id.into(),
            rules: rules.clone(),
            source: Conversation::default(),
            hashes: Vec::new(),
            cache: TokenCache::default(),
            frozen: None,
            prior: None,
            failed: None,
        }
    }

    /// The history as the client tells it.
    pub fn source(&self) -> &Conversation {
        &self.source
    }

    /// Adds what was said since.
    pub fn append(&mut self, entries: impl IntoIterator<Item = Entry>) {
        for entry in entries {
            self.hashes.push(EntryHash::of(&entry));
            self.source.entries.push(entry);
        }
    }

    /// Takes the whole history again; what is common with before keeps its view.
    pub fn replace(&mut self, conversation: Conversation) {
        let hashes = EntryHash::all(&conversation.entries);
        let common = hashes
            .iter()
            .zip(&self.hashes)
            .take_while(|(a, b)| a == b)
            .count();
        if self.frozen.as_ref().is_some_and(|f| f.covered > common) {
            self.frozen = None;
        }
        self.source = conversation;
        self.hashes = hashes;
    }

    /// Allows another attempt in this turn (a person asked).
    pub fn retry(&mut self) {
        self.failed = None;
    }

    fn covered(&self) -> usize {
        self.frozen.as_ref().map_or(0, |f| f.covered)
    }

    /// What the next request would carry: frozen entries, then what came after.
    fn live(&self) -> impl Iterator<Item = (&Entry, &EntryHash)> {
        let frozen = self
            .frozen
            .iter()
            .flat_map(|f| f.shown.iter().zip(&f.hashes));
        let rest = self
            .source
            .entries
            .iter()
            .zip(&self.hashes)
            .skip(self.covered());
        frozen.chain(rest)
    }

    fn live_conversation(&self) -> (Conversation, Vec<EntryHash>) {
        let (entries, hashes) = self.live().map(|(e, h)| (e.clone(), *h)).unzip();
        let conversation = Conversation {
            entries,
            session_id: Some(self.id.clone()),
            model: self.source.model.clone(),
            tools: self.source.tools.clone(),
        };
        (conversation, hashes)
    }

    /// The live context as a view of the source.
    fn view(&self) -> View {
        let mut items = self
            .frozen
            .as_ref()
            .map_or_else(Vec::new, |f| f.view.items.clone());
        items.extend(
            (self.covered()..self.source.entries.len()).map(|entry| ViewItem::Kept { entry }),
        );
        View { items }
    }

    fn freeze(&mut self, view: View, prior: Prior) {
        let shown = view.entries(&self.source);
        self.frozen = Some(Frozen {
            covered: self.source.entries.len(),
            hashes: EntryHash::all(&shown),
            view,
            shown,
        });
        self.prior = Some(prior);
        self.failed = None;
    }

    fn may_attempt(&self, turn: &str, tokens: Tokens) -> bool {
        self.failed.as_ref().is_none_or(|failure| {
            failure.turn != turn || tokens.0 as f64 >= failure.tokens.0 as f64 * REARM_GROWTH
        })
    }
}

impl Manager {
    /// Counts, decides, and compacts when it must (S2-29, S2-93). On an error nothing has changed.
    pub async fn preflight(&self, session: &mut Session) -> Result<Preflight, Error> {
        let tokens = self.count(session);
        let decision = trigger::decide(tokens, self.window, &self.policy);
        let turn = turn_name(&session.source, &session.hashes);
        if !decision.verdict.is_now() || !session.may_attempt(&turn, tokens) {
            return Ok(Preflight {
                decision,
                view: session.view(),
                receipt: None,
            });
        }
        let result = self.compact_session(session, &decision, None).await;
        if result.is_err() {
            session.failed = Some(Failure { turn, tokens });
        }
        result
    }

    /// Compacts whatever the pressure (S2-27, S2-94); the note says who asked, `manual` by default.
    pub async fn manual_compact(
        &self,
        session: &mut Session,
        note: Option<&str>,
    ) -> Result<Preflight, Error> {
        let note = note.unwrap_or("manual");
        session.retry();
        let decision = trigger::manual(self.count(session), self.window, note);
        self.compact_session(session, &decision, Some(note)).await
    }

    /// System, tools and live history of a session.
    fn count(&self, session: &mut Session) -> Tokens {
        use compact_core::token::EstimatorExt;
        let estimator = &*self.estimator;
        let mut cache = std::mem::take(&mut session.cache);
        let units: Units = session
            .live()
            .map(|(e, h)| cache.entry(*h, e, estimator))
            .sum();
        session.cache = cache;
        let tools = session
            .source
            .tools
            .as_deref()
            .map_or(Units(0), |t| estimator.units(t));
        estimator.tokens(units) + estimator.tokens(tools)
    }

    async fn compact_session(
        &self,
        session: &mut Session,
        decision: &Decision,
        note: Option<&str>,
    ) -> Result<Preflight, Error> {
        let (conversation, hashes) = session.live_conversation();
        let account = Account::of(&conversation, &hashes, &*self.estimator, &mut session.cache);
        let (id, rules) = (session.id.clone(), session.rules.clone());
        let request = Request {
            conversation: &conversation,
            rules: &rules,
            format: ENTRIES,
            original: serialized(&conversation),
            session_id: Some(&id),
            budget: None,
            summary_limit: None,
            note,
        };
        let measured = Measured {
            ledger: engine::session_ledger(&conversation, &hashes, session.prior.as_ref()),
            budget: self.default_budget(&account),
            summary_limit: self.summary_limit(&request),
            original: super::digest(&request.original),
            advice: super::Advice::default(),
            latest: self.catalog.latest(&id).await?,
            prior: session.prior.clone(),
            session_id: id.clone(),
            decision: decision.clone(),
            request: &request,
            hashes,
            account,
        };
        self.finish_session(session, measured).await
    }

    async fn finish_session(
        &self,
        session: &mut Session,
        mut measured: Measured<'_>,
    ) -> Result<Preflight, Error> {
        let started = std::time::Instant::now();
        let model = measured.request.conversation.model.as_deref();
        let scope = Scope::new(&session.id, model, &measured.decision, &self.policy);
        self.announce(&scope, &measured.account, &measured.decision);
        if let Advised::Leave(_) = self.advise(&mut measured, &scope).await? {
            return Ok(Preflight {
                decision: measured.decision,
                view: session.view(),
                receipt: None,
            });
        }
        let made = match self.make(&mut measured) {
            Ok(Outcome::Compacted(made)) => made,
            Ok(Outcome::Unchanged) => {
                let view = session.view();
                return Ok(Preflight {
                    decision: measured.decision,
                    view,
                    receipt: None,
                });
            }
            Err(error) => {
                self.failed(&scope, &measured, &error.to_string()).await;
                return Err(error.into());
            }
        };
        let commit = self.commit(&measured, *made, &scope, started).await?;
        let made = commit.compaction;
        let view = session.view().then(&made.view, &session.source);
        let prior = Prior {
            receipt_id: made.receipt.receipt_id.clone(),
            summary_version: made.receipt.summary_version,
            view: made.view_identity,
            ledger: measured.ledger.clone(),
        };
        session.freeze(view.clone(), prior);
        Ok(Preflight {
            decision: measured.decision.clone(),
            view,
            receipt: Some(made.receipt),
        })
    }

    /// Half of the trigger point if what is pinned allows it, else all that the window allows.
    fn make(&self, measured: &mut Measured<'_>) -> Result<Outcome, CompactError> {
        let first = engine::compact(&self.input(measured));
        if !matches!(first, Err(CompactError::InsufficientBudget { .. })) {
            return first;
        }
        measured.budget = self.largest_budget(&measured.account);
        engine::compact(&self.input(measured))
    }
}

/// The format of a session that never was a file: one serialized entry per line.
pub(crate) const ENTRIES: &str = "entries";

pub(crate) fn serialized(conversation: &Conversation) -> Bytes {
    let mut lines = Vec::new();
    for entry in &conversation.entries {
        if serde_json::to_writer(&mut lines, entry).is_ok() {
            lines.push(b'\n');
        }
    }
    Bytes::from(lines)
}
