//! A recorded session played forward: at each call of the model the runtime is asked what to send,
//! as a live agent would ask it, over stores in memory.
//!
//! The transcript says what was said, so the model is not needed; what changes with a policy is what
//! it would have been shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use compact_core::message::{Conversation, Entry, Role};
use compact_core::policy::{EconomyMode, Policy};
use compact_core::receipt::Receipt;
use compact_core::redact::Redactor;
use compact_core::token::{Estimator, EstimatorExt, Tokens, Units};
use compact_core::usage::{Semantics, Usage};
use compact_core::view::{View, ViewItem};
use compact_core::wire::WireRules;
use compact_formats::usage::ReportedUsage;

use crate::error::Error;
use crate::manager::Manager;
use crate::port::archive::MemoryArchive;
use crate::port::catalog::MemoryCatalog;
use crate::port::clock::ManualClock;
use crate::port::index::MemoryIndex;
use crate::recall::{EntryPointer, Recall, RecallQuery};
use crate::session::Session;

/// The policy, window and estimator of a played session.
#[derive(Clone)]
pub struct PlaySettings {
    /// The policy that is played.
    pub policy: Policy,
    /// What the model takes.
    pub window: Tokens,
    /// How tokens are counted.
    pub estimator: Arc<dyn Estimator>,
    /// What is taken out of summaries.
    pub redactor: Arc<Redactor>,
}

/// One call of the model.
#[derive(Clone, Debug)]
pub struct PlayedCall {
    /// How many entries had been said.
    pub entries: usize,
    /// Tokens of the context before any compaction at this call, as a share of the window.
    pub pressure: f64,
    /// The tokens of the request.
    pub sent: Tokens,
    /// Of those, tokens at the start that the request before had sent too.
    pub cached: Tokens,
    /// Tokens of the recorded answer.
    pub answered: Tokens,
    /// The receipt, when this call compacted.
    pub receipt: Option<Receipt>,
    /// Why it could not, when it had to.
    pub failure: Option<String>,
    /// The reason of the decision before it.
    pub reason: String,
}

/// The state of a played session at a call.
#[derive(Clone, Copy, Debug)]
pub struct CallSnapshot<'a> {
    /// The numbers of the call.
    pub call: &'a PlayedCall,
    /// Everything said so far.
    pub said: &'a Conversation,
    /// The view that is sent.
    pub view: &'a View,
    /// The entries that the model answered in the recording.
    pub answer: &'a [Entry],
}

/// Plays a conversation; the watcher is told each call.
pub async fn play_conversation(
    conversation: &Conversation,
    rules: &WireRules,
    terms: &PlaySettings,
    mut watch: impl FnMut(&CallSnapshot<'_>),
) -> Result<PlayedSession, Error> {
    let mut player = Player::new(conversation, rules, terms)?;
    let mut calls = Vec::new();
    for turn in split_turns(&conversation.entries) {
        player.session.append(turn.before.iter().cloned())?;
        let (call, view) = player.play_call(&turn).await;
        watch(&CallSnapshot {
            call: &call,
            said: player.session.state().history(),
            view: &view,
            answer: turn.answer,
        });
        player.session.append(turn.answer.iter().cloned())?;
        calls.push(call);
    }
    Ok(PlayedSession {
        calls,
        stores: player.stores,
    })
}

/// Returns what is sent when a whole conversation is handed over at once.
pub async fn view_at_once(
    conversation: &Conversation,
    rules: &WireRules,
    terms: &PlaySettings,
) -> Result<View, Error> {
    let mut player = Player::new(conversation, rules, terms)?;
    player
        .session
        .append(conversation.entries.iter().cloned())?;
    Ok(player.session.preflight().await?.view)
}

/// A session that was played to its end.
pub struct PlayedSession {
    /// The calls in order.
    pub calls: Vec<PlayedCall>,
    stores: PlayStores,
}

impl PlayedSession {
    /// Returns what recall finds for some questions, so many entries each, in what the session's compactions
    /// archived, in the order in which it was said.
    pub async fn recall(&self, questions: &[String], limit: usize) -> Result<Vec<Entry>, Error> {
        let recall = Recall {
            archive: Arc::clone(&self.stores.archive) as Arc<_>,
            catalog: Arc::clone(&self.stores.catalog) as Arc<_>,
            index: Arc::new(MemoryIndex::default()),
            redactor: Arc::default(),
        };
        recall.update_index().await?;
        let mut hits = BTreeMap::new();
        for text in questions {
            let query = RecallQuery {
                text,
                limit,
                ..RecallQuery::default()
            };
            let found = recall.search(&query).await?.hits.into_iter();
            hits.extend(found.map(|hit| ((hit.ordinal, hit.entry_id.0.clone()), hit)));
        }
        let mut found = Vec::new();
        for hit in hits.into_values() {
            let pointer = EntryPointer::parse(&hit.pointer)?;
            found.push(recall.expand(&pointer).await?.entry);
        }
        Ok(found)
    }
}

/// Where a played session is kept.
#[derive(Default)]
struct PlayStores {
    archive: Arc<MemoryArchive>,
    catalog: Arc<MemoryCatalog>,
}

/// The entries since the last answer, and the answer.
struct RecordedTurn<'c> {
    before: &'c [Entry],
    answer: &'c [Entry],
}

/// Splits entries into turns, each of which begins where the model begins to speak.
fn split_turns(entries: &[Entry]) -> Vec<RecordedTurn<'_>> {
    let is_model = |e: &Entry| e.role == Role::Assistant;
    let mut turns = Vec::new();
    let mut rest = entries;
    while let Some(start) = rest.iter().position(is_model) {
        let (before, from) = rest.split_at_checked(start).unwrap_or((rest, &[]));
        let length = from.iter().take_while(|e| is_model(e)).count();
        let (answer, next) = from.split_at_checked(length).unwrap_or((from, &[]));
        turns.push(RecordedTurn { before, answer });
        rest = next;
    }
    turns
}

struct Player<'t> {
    window: Tokens,
    economy: EconomyMode,
    stores: PlayStores,
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
        terms: &'t PlaySettings,
    ) -> Result<Self, Error> {
        let stores = PlayStores::default();
        let manager = Arc::new(build_manager(terms, &stores));
        // What runs beside a session may end at any call: a replay must come out the same each time.
        let mut session = Session::new(manager, "replay", rules).without_background();
        session.replace(Conversation {
            entries: Vec::new(),
            ..conversation.clone()
        })?;
        let estimator = &*terms.estimator;
        let tools = conversation.tools.as_deref();
        Ok(Player {
            window: terms.window,
            economy: terms.policy.economy.mode(),
            stores,
            session,
            tools: tools.map_or(Units(0), |tools| estimator.count_units(tools)),
            estimator,
            last: None,
            units: Vec::new(),
        })
    }

    async fn play_call(&mut self, turn: &RecordedTurn<'_>) -> (PlayedCall, View) {
        let entries = &self.session.state().history().entries;
        let new = entries.iter().skip(self.units.len());
        self.units
            .extend(new.map(|e| self.estimator.count_entry(e)));
        let entries = entries.len();
        let answered = turn
            .answer
            .iter()
            .map(|e| self.estimator.count_entry(e))
            .sum();
        let (view, decision, receipt, failure) = match self.session.preflight().await {
            Ok(ready) => (ready.view, Some(ready.decision), ready.receipt, None),
            Err(error) => (self.fallback_view(), None, None, Some(error.to_string())),
        };
        let pressure = decision.as_ref().map_or(0.0, |decision| decision.pressure);
        let sent = self.tokens(&view.items);
        let known = self
            .last
            .as_ref()
            .map(|last| common_prefix(&last.items, &view.items));
        let window = self.window.0.max(1) as f64;
        let call = PlayedCall {
            entries,
            pressure: pressure.max(sent.0 as f64 / window),
            sent,
            cached: known.map_or(Tokens(0), |known| self.tokens(known)),
            answered: self.estimator.to_tokens(answered),
            receipt,
            failure,
            reason: decision.map_or_else(String::new, |decision| decision.reason),
        };
        self.last = Some(view.clone());
        self.report_usage(&call);
        (call, view)
    }

    /// Reports a call as its provider would, where the price of cached prompts is part of the policy.
    fn report_usage(&mut self, call: &PlayedCall) {
        if self.economy == EconomyMode::Off {
            return;
        }
        let usage = Usage {
            input_tokens: 0,
            output_tokens: call.answered.0,
            cache_read_tokens: call.cached.0,
            cache_creation_tokens: (call.sent - call.cached).0,
        };
        self.session.observe(Some(ReportedUsage {
            usage,
            semantics: Semantics::LastRequest,
        }));
    }

    /// Returns what is sent when a compaction failed: the last request and what came since.
    fn fallback_view(&self) -> View {
        let mut items = self.last.clone().unwrap_or_default().items;
        let shown = items.iter().filter_map(ViewItem::entry_index).max();
        let from = shown.map_or(0, |entry| entry + 1);
        let all = self.session.state().history().entries.len();
        items.extend((from..all).map(|entry| ViewItem::Kept { entry }));
        View { items }
    }

    fn tokens(&self, items: &[ViewItem]) -> Tokens {
        let units = items.iter().map(|item| match item {
            ViewItem::Kept { entry } => self.units.get(*entry).copied().unwrap_or_default(),
            other => other
                .shown_entry(self.session.state().history())
                .map_or(Units(0), |e| self.estimator.count_entry(&e)),
        });
        self.estimator.to_tokens(units.sum::<Units>() + self.tools)
    }
}

/// Returns the items that both begin with.
fn common_prefix<'v>(last: &[ViewItem], now: &'v [ViewItem]) -> &'v [ViewItem] {
    let length = last.iter().zip(now).take_while(|(a, b)| a == b).count();
    now.get(..length).unwrap_or_default()
}

fn build_manager(terms: &PlaySettings, stores: &PlayStores) -> Manager {
    let catalog = Arc::clone(&stores.catalog) as Arc<_>;
    let (estimator, redactor) = (Arc::clone(&terms.estimator), Arc::clone(&terms.redactor));
    Manager::new(catalog, estimator, redactor, terms.window)
        .with_archive(Some(Arc::clone(&stores.archive) as Arc<_>))
        .with_policy(terms.policy.clone())
        // Played twice, a session leaves the same records.
        .with_clock(Arc::new(ManualClock::default()))
}
