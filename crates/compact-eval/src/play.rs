//! A recorded session played forward: at each call of the model the runtime is asked what to send,
//! as a live agent would ask it, over stores in memory.
//!
//! The transcript says what was said, so the model is not needed; what changes with a policy is what
//! it would have been shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use compact_core::message::{Conversation, Entry, Role};
use compact_core::policy::Policy;
use compact_core::receipt::Receipt;
use compact_core::redact::{Boundary, RedactionRules};
use compact_core::token::{Estimator, EstimatorExt, Tokens, Units};
use compact_core::view::{View, ViewItem};
use compact_core::wire::WireRules;
use compact_runtime::Manager;
use compact_runtime::manager::{Session, Storing};
use compact_runtime::port::archive::MemoryArchive;
use compact_runtime::port::catalog::MemoryCatalog;
use compact_runtime::port::event::Silent;
use compact_runtime::port::index::MemoryIndex;
use compact_runtime::recall::{Pointer, Query, Recall};

use crate::compaction::EngineError;

/// Under what a session is played.
#[derive(Clone)]
pub struct Terms {
    /// The user's decisions.
    pub policy: Policy,
    /// What the model takes.
    pub window: Tokens,
    /// How tokens are counted.
    pub estimator: Arc<dyn Estimator>,
}

/// One call of the model.
#[derive(Clone, Debug)]
pub struct Call {
    /// How many entries had been said.
    pub entries: usize,
    /// Tokens of the context before any compaction at this call, as a share of the window.
    pub pressure: f64,
    /// Tokens sent.
    pub sent: Tokens,
    /// Of those, tokens at the start that the request before had sent too.
    pub cached: Tokens,
    /// Tokens of the recorded answer.
    pub answered: Tokens,
    /// The receipt, when this call compacted.
    pub receipt: Option<Receipt>,
    /// Why it could not, when it had to.
    pub failure: Option<String>,
}

/// What a watcher sees at a call.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The call.
    pub call: &'a Call,
    /// Everything said so far.
    pub said: &'a Conversation,
    /// What is sent.
    pub view: &'a View,
    /// The recorded answer.
    pub answer: &'a [Entry],
}

/// Plays a conversation; the watcher is told each call.
pub fn play(
    conversation: &Conversation,
    rules: &WireRules,
    terms: &Terms,
    mut watch: impl FnMut(&Moment<'_>),
) -> Result<Played, EngineError> {
    let runtime = driver()?;
    let mut player = Player::new(conversation, rules, terms)?;
    let mut calls = Vec::new();
    for turn in turns(&conversation.entries) {
        player.session.append(turn.before.iter().cloned());
        let (call, view) = runtime.block_on(player.call(&turn));
        watch(&Moment {
            call: &call,
            said: player.session.source(),
            view: &view,
            answer: turn.answer,
        });
        player.session.append(turn.answer.iter().cloned());
        calls.push(call);
    }
    Ok(Played {
        calls,
        stores: player.stores,
    })
}

/// What is sent when a whole conversation is handed over at once.
pub fn at_once(
    conversation: &Conversation,
    rules: &WireRules,
    terms: &Terms,
) -> Result<View, EngineError> {
    let mut player = Player::new(conversation, rules, terms)?;
    player.session.append(conversation.entries.iter().cloned());
    let ready = player.manager.preflight(&mut player.session);
    Ok(driver()?.block_on(ready)?.view)
}

/// A session that was played to its end.
pub struct Played {
    /// Each call.
    pub calls: Vec<Call>,
    stores: Stores,
}

impl Played {
    /// What recall finds for some questions, so many entries each, in what the session's compactions
    /// archived, in the order in which it was said.
    pub fn recall(&self, questions: &[String], limit: usize) -> Result<Vec<Entry>, EngineError> {
        let recall = Recall {
            archive: Arc::clone(&self.stores.archive) as Arc<_>,
            catalog: Arc::clone(&self.stores.catalog) as Arc<_>,
            index: Arc::new(MemoryIndex::default()),
            redactor: Arc::default(),
        };
        driver()?.block_on(async {
            recall.follow().await?;
            let mut hits = BTreeMap::new();
            for text in questions {
                let query = Query {
                    text,
                    session_id: None,
                    limit,
                };
                let found = recall.search(&query).await?.into_iter();
                hits.extend(found.map(|hit| ((hit.ordinal, hit.entry_id.0.clone()), hit)));
            }
            let mut found = Vec::new();
            for hit in hits.into_values() {
                let pointer = Pointer::parse(&hit.pointer)?;
                found.push(recall.expand(&pointer).await?.entry);
            }
            Ok(found)
        })
    }
}

fn driver() -> Result<tokio::runtime::Runtime, std::io::Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Where a played session is kept.
#[derive(Default)]
struct Stores {
    archive: Arc<MemoryArchive>,
    catalog: Arc<MemoryCatalog>,
}

/// What was said since the last answer, and the answer.
struct Turn<'c> {
    before: &'c [Entry],
    answer: &'c [Entry],
}

/// A call is where the model begins to speak.
fn turns(entries: &[Entry]) -> Vec<Turn<'_>> {
    let is_model = |e: &Entry| e.role == Role::Assistant;
    let mut turns = Vec::new();
    let mut rest = entries;
    while let Some(start) = rest.iter().position(is_model) {
        let (before, from) = rest.split_at_checked(start).unwrap_or((rest, &[]));
        let length = from.iter().take_while(|e| is_model(e)).count();
        let (answer, next) = from.split_at_checked(length).unwrap_or((from, &[]));
        turns.push(Turn { before, answer });
        rest = next;
    }
    turns
}

struct Player<'t> {
    manager: Manager,
    stores: Stores,
    session: Session,
    estimator: &'t dyn Estimator,
    tools: Units,
    /// What the last request carried.
    last: Option<View>,
    /// Units of each entry said.
    units: Vec<Units>,
}

impl<'t> Player<'t> {
    fn new(
        conversation: &Conversation,
        rules: &WireRules,
        terms: &'t Terms,
    ) -> Result<Self, EngineError> {
        let mut session = Session::new("replay", rules);
        session.replace(Conversation {
            entries: Vec::new(),
            ..conversation.clone()
        });
        let estimator = &*terms.estimator;
        let tools = conversation.tools.as_deref();
        let stores = Stores::default();
        Ok(Player {
            manager: manager(terms, &stores)?,
            stores,
            session,
            tools: tools.map_or(Units(0), |tools| estimator.units(tools)),
            estimator,
            last: None,
            units: Vec::new(),
        })
    }

    async fn call(&mut self, turn: &Turn<'_>) -> (Call, View) {
        let entries = &self.session.source().entries;
        let new = entries.iter().skip(self.units.len());
        self.units.extend(new.map(|e| self.estimator.entry(e)));
        let entries = entries.len();
        let answered = turn.answer.iter().map(|e| self.estimator.entry(e)).sum();
        let (view, pressure, receipt, failure) =
            match self.manager.preflight(&mut self.session).await {
                Ok(ready) => (ready.view, ready.decision.pressure, ready.receipt, None),
                Err(error) => (self.unchanged(), 0.0, None, Some(error.to_string())),
            };
        let sent = self.tokens(&view.items);
        let known = self
            .last
            .as_ref()
            .map(|last| common(&last.items, &view.items));
        let window = self.manager.window.0.max(1) as f64;
        let call = Call {
            entries,
            pressure: pressure.max(sent.0 as f64 / window),
            sent,
            cached: known.map_or(Tokens(0), |known| self.tokens(known)),
            answered: self.estimator.tokens(answered),
            receipt,
            failure,
        };
        self.last = Some(view.clone());
        (call, view)
    }

    /// What is sent when a compaction failed: the last request and what came since.
    fn unchanged(&self) -> View {
        let mut items = self.last.clone().unwrap_or_default().items;
        let shown = items.iter().filter_map(ViewItem::entry).max();
        let from = shown.map_or(0, |entry| entry + 1);
        let all = self.session.source().entries.len();
        items.extend((from..all).map(|entry| ViewItem::Kept { entry }));
        View { items }
    }

    fn tokens(&self, items: &[ViewItem]) -> Tokens {
        let units = items.iter().map(|item| match item {
            ViewItem::Kept { entry } => self.units.get(*entry).copied().unwrap_or_default(),
            other => other
                .shown(self.session.source())
                .map_or(Units(0), |e| self.estimator.entry(&e)),
        });
        self.estimator.tokens(units.sum::<Units>() + self.tools)
    }
}

/// The items that both begin with.
fn common<'v>(last: &[ViewItem], now: &'v [ViewItem]) -> &'v [ViewItem] {
    let length = last.iter().zip(now).take_while(|(a, b)| a == b).count();
    now.get(..length).unwrap_or_default()
}

fn manager(terms: &Terms, stores: &Stores) -> Result<Manager, EngineError> {
    Ok(Manager {
        archive: Some(Arc::clone(&stores.archive) as Arc<_>),
        catalog: Arc::clone(&stores.catalog) as Arc<_>,
        sink: Arc::new(Silent),
        estimator: Arc::clone(&terms.estimator),
        policy: terms.policy.clone(),
        window: terms.window,
        redactor: Arc::new(RedactionRules::default().redactor(Boundary::Summary)?),
        storing: Storing::Exact,
        summarizer: None,
        embedder: None,
    })
}
