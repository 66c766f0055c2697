//! A live session: the history as its client tells it, and the frozen view over its prefix.
//!
//! Most clients pass their whole, uncompacted history with every call, so the handle remembers which
//! prefix was compacted into which view. The same prefix gives the same items until the next
//! compaction; only what came after is counted. A prefix that changed drops the frozen view and the
//! ledger behind it, which knows what this history no longer says; only results that the client cleared
//! in place leave both as they are. A compaction works on a [`SessionSnapshot`] and is adopted whole or not at
//! all. A client that tells its history as a document has it archived in its own bytes, else entry by
//! entry.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use compact_core::engine::{self, Prior};
use compact_core::error::CompactError;
use compact_core::event::TraceContext;
use compact_core::identity::{Chain, EntryHash};
use compact_core::ledger::Ledger;
use compact_core::message::{Conversation, Entry};
use compact_core::outline::Outline;
use compact_core::receipt::Receipt;
use compact_core::token::{Estimator, TokenAccount, TokenCache, Tokens, Units};
use compact_core::trigger::TriggerDecision;
use compact_core::trigger::economy::CacheWarmth;
use compact_core::usage::gauge::UsageReading;
use compact_core::usage::{ContextUsage, Formula, Semantics, Usage};
use compact_core::view::{View, ViewItem};
use compact_core::wire::WireRules;
use compact_formats::Document;
use jiff::Timestamp;

use super::lifetime::MeasuredLifetime;
use super::{CompactionRequest, clearing};
use crate::port::catalog::CompactionRecord;

/// Growth of the context that re-arms compaction after a failure.
const REARM_GROWTH: f64 = 1.05;

/// One conversation, kept between calls; a [`Session`](crate::Session) changes it.
pub struct SessionState {
    pub(super) id: String,
    rules: WireRules,
    pub(super) source: Conversation,
    /// The bytes behind the source, when its client told it as a document.
    document: Option<Document>,
    pub(crate) hashes: Vec<EntryHash>,
    pub(super) cache: TokenCache,
    /// What the first entries of the live context cost: those that were counted and are as they were.
    pub(super) counted: Vec<Units>,
    frozen: Option<FrozenView>,
    /// The compaction whose view the source itself opens with.
    base: Option<Prior>,
    /// Whether somebody looked for it.
    search: PriorSearch,
    pub(super) attempts: AttemptState,
    /// Why the last attempt made no view, where nothing that could be sent fits.
    pub(super) refused: Option<CompactError>,
    /// Whether the last attempt failed in a store.
    pub(super) is_hindered: bool,
    pub(super) usage: ContextUsage,
    /// The entries of the source that the last report measured.
    measured: Option<usize>,
    /// The entries of the source when a view was last handed out.
    pub(super) sent: usize,
    reports: UsageReports,
    /// What was seen of the provider's cache.
    pub(super) cache_history: CacheHistory,
    /// How long it will go on, once that was looked up.
    pub(super) lifetime: Option<MeasuredLifetime>,
    /// The caller's span, within whose trace calls are.
    pub(super) parent: Option<TraceContext>,
    /// The call that is being answered.
    pub(crate) call: Option<TraceContext>,
}

/// What was seen of a provider's prompt cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheHistory {
    /// Requests that were reported.
    pub(super) requests: u64,
    /// When the last of them was.
    pub(super) last_at: Option<Timestamp>,
    /// What it read from the cache.
    pub(super) last_read: u64,
    /// What its prompt was.
    last_prompt: u64,
    /// By how much prompts grew, from each to the next that was larger.
    grown: u64,
}

impl CacheHistory {
    /// Notes a request.
    pub(super) fn note_request(&mut self, usage: Usage, at: Timestamp) {
        let prompt = usage.prompt_tokens().0;
        if self.requests > 0 {
            self.grown += prompt.saturating_sub(self.last_prompt);
        }
        self.last_prompt = prompt;
        self.requests += 1;
        self.last_at = Some(at);
        self.last_read = usage.cache_read_tokens;
    }

    /// Tokens by which a request was larger than the one before, on average.
    pub(super) fn growth(&self) -> f64 {
        self.grown as f64 / self.requests.saturating_sub(1).max(1) as f64
    }

    /// The state of the cache; `None` before the first report. A second request that read nothing within
    /// the time says that nothing is cached.
    pub(super) fn warmth(&self, now: Timestamp, cache_seconds: u64) -> Option<CacheWarmth> {
        let idle = now.duration_since(self.last_at?).as_secs();
        let is_cold = u64::try_from(idle).is_ok_and(|idle| idle > cache_seconds);
        Some(match (is_cold, self.requests > 1 && self.last_read == 0) {
            (true, _) => CacheWarmth::Cold,
            (false, true) => CacheWarmth::Unused,
            (false, false) => CacheWarmth::Warm,
        })
    }
}

/// Whether the provider of a session reports usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsageReports {
    Expected,
    Missing,
}

/// How a history stands to the one that was told before.
struct HistoryChange {
    /// Instructions at the head before, and now.
    was: usize,
    is: usize,
    /// The entries behind them that both have.
    common: usize,
    kind: HistoryChangeKind,
    is_same_head: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HistoryChangeKind {
    /// It goes on from the one before.
    Grown,
    /// It is the one before with less in some results.
    Cleared,
    /// It leaves the one before.
    Left,
}

/// Whether the catalog was asked what the source goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PriorSearch {
    Due,
    Done,
}

/// A view over the first `covered` entries of the source, and the compaction that made it.
#[derive(Clone)]
struct FrozenView {
    covered: usize,
    view: View,
    shown: Vec<Entry>,
    hashes: Vec<EntryHash>,
    prior: Prior,
}

/// What is known of attempts that came to nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum AttemptState {
    /// Whether one failed before this process began is not known yet.
    #[default]
    Unread,
    /// None since the last success.
    Clear,
    /// So many in this turn.
    Failed {
        turn: String,
        tokens: Tokens,
        count: u32,
    },
}

/// What to send.
#[derive(Debug)]
pub struct Preflight {
    /// The verdict on what the client passed, its earlier view applied.
    pub decision: TriggerDecision,
    /// What to send, as a view of the source.
    pub view: View,
    /// The receipt, when this call compacted or took over what was compacted beside it.
    pub receipt: Option<Receipt>,
}

/// Everything that a compaction needs of a session, so that it can run beside it.
pub(crate) struct SessionSnapshot {
    pub(crate) id: String,
    pub(super) rules: WireRules,
    pub(super) conversation: Conversation,
    pub(super) hashes: Vec<EntryHash>,
    pub(crate) account: TokenAccount,
    pub(super) original: Bytes,
    pub(super) format: &'static str,
    pub(super) prior: Option<Prior>,
    pub(super) decision: TriggerDecision,
    pub(super) note: Option<String>,
    /// What somebody wants it to cost, if what must stay allows it.
    pub(crate) wanted: Option<Tokens>,
    pub(crate) call: Option<TraceContext>,
    pub(super) basis: ViewBasis,
}

/// What of the source a view stands for.
pub(super) struct ViewBasis {
    /// What was shown before it.
    shown: View,
    covered: usize,
    chain: Chain,
    /// The same without the instructions at its head.
    history: Chain,
    previous: Option<String>,
}

/// A compaction that is on record and that no session shows yet.
pub(crate) struct FinishedCompaction {
    made: View,
    basis: ViewBasis,
    prior: Prior,
    pub(crate) receipt: Receipt,
}

/// The source is no longer what a view was made of.
#[derive(Debug)]
pub(crate) struct StaleCompaction {
    pub(crate) receipt: Box<Receipt>,
    pub(crate) reason: &'static str,
}

impl SessionState {
    /// How many tool messages of the newest step cannot be sent as they are.
    pub(super) fn malformed_in_newest_step(&self) -> u64 {
        let outline = Outline::from_conversation(&self.source);
        outline.broken_in_newest_step(&self.source.entries) as u64
    }

    /// A session that has not said anything yet.
    pub(crate) fn new(id: impl Into<String>, rules: &WireRules) -> SessionState {
        SessionState {
            id: id.into(),
            rules: rules.clone(),
            source: Conversation::default(),
            document: None,
            hashes: Vec::new(),
            cache: TokenCache::default(),
            counted: Vec::new(),
            frozen: None,
            base: None,
            search: PriorSearch::Due,
            attempts: AttemptState::Unread,
            refused: None,
            is_hindered: false,
            usage: ContextUsage::default(),
            measured: None,
            sent: 0,
            reports: UsageReports::Expected,
            cache_history: CacheHistory::default(),
            lifetime: None,
            parent: None,
            call: None,
        }
    }

    /// The same history and view, and what is known of their cost; nothing that was reported.
    pub(crate) fn fork(&self) -> SessionState {
        SessionState {
            source: self.source.clone(),
            document: self.document.clone(),
            hashes: self.hashes.clone(),
            cache: self.cache.clone(),
            counted: self.counted.clone(),
            frozen: self.frozen.clone(),
            base: self.base.clone(),
            search: self.search,
            ..SessionState::new(self.id.clone(), &self.rules)
        }
    }

    /// Makes the calls that follow part of the caller's trace; [`TraceContext::parse`] reads its header.
    pub(crate) fn trace_within(&mut self, parent: Option<TraceContext>) {
        self.parent = parent;
    }

    /// The history as the client tells it.
    pub fn history(&self) -> &Conversation {
        &self.source
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The bytes behind the history, when it was told as a document.
    pub fn document(&self) -> Option<&Document> {
        self.document.as_ref()
    }

    /// What its wire accepts.
    pub fn rules(&self) -> &WireRules {
        &self.rules
    }

    /// Names the history as it stands.
    pub(crate) fn history_chain(&self) -> Chain {
        Chain::from_hashes(&self.hashes)
    }

    /// Names what a later history of this session begins with: what its client told, or what it was
    /// handed out. Instructions at the head are left out; nothing said yet has no name.
    pub fn continuation_chains(&self) -> Vec<Chain> {
        let said = self.source.entries.iter().zip(&self.hashes);
        let told = Chain::from_history(said);
        let shown = self
            .frozen
            .as_ref()
            .map(|_| Chain::from_history(self.live()));
        let known = [Some(told), shown].into_iter().flatten();
        known.filter(|chain| *chain != Chain::EMPTY).collect()
    }

    /// Names entries; those that the history has in the same places, which most have, are not hashed again.
    pub fn hash_entries(&self, entries: &[Entry]) -> Vec<EntryHash> {
        self.hashes_of(entries).0
    }

    /// What providers reported of the current context.
    pub fn usage(&self) -> &ContextUsage {
        &self.usage
    }

    /// Adds what was said since.
    pub(crate) fn append(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.document = None;
        let mut claims = false;
        for entry in entries {
            claims |= engine::claims_summary(&entry);
            self.hashes.push(EntryHash::from_entry(&entry));
            self.source.entries.push(entry);
        }
        // What each entry before is does not depend on entries that claim nothing.
        if claims {
            engine::classify_summaries(&mut self.source, &self.hashes, self.base.as_ref());
        }
    }

    /// Takes messages in that follow those of the document; `None` where the longer document must be read as a
    /// whole. Returns the number of entries that they add.
    pub(crate) fn grow_document(&mut self, added: &[&str]) -> Option<usize> {
        let entries = self.document.as_mut()?.grow(&self.source, added)?;
        let new = entries.len();
        let claims = entries.iter().any(engine::claims_summary);
        self.hashes
            .extend(entries.iter().map(EntryHash::from_entry));
        self.source.entries.extend(entries);
        if claims {
            engine::classify_summaries(&mut self.source, &self.hashes, self.base.as_ref());
        }
        Some(new)
    }

    /// Takes the whole history again; what is common with before keeps its view. Instructions at its
    /// head may have changed: they are the host's to re-send, and no part of what was said.
    pub(crate) fn replace(&mut self, conversation: Conversation) {
        let (hashes, unchanged) = self.hashes_of(&conversation.entries);
        let change = self.compare_history(&conversation, &hashes);
        let had_view = self.frozen.is_some();
        self.source = conversation;
        self.document = None;
        self.hashes = hashes;
        // A report about a prompt that was rewritten measured another one.
        let same = change.was + change.common;
        let is_measured = |measured: &usize| change.was == change.is && *measured <= same;
        self.measured = self.measured.filter(is_measured);
        match change.kind {
            HistoryChangeKind::Cleared => self.follow_clearing(&change),
            HistoryChangeKind::Left => self.leave_branch(&change),
            HistoryChangeKind::Grown => {}
        }
        let frozen = self.frozen.take();
        self.frozen = frozen.map(|frozen| frozen.apply_change(&change, &self.source));
        self.keep_counts(&change, had_view, unchanged);
        engine::classify_summaries(&mut self.source, &self.hashes, self.base.as_ref());
    }

    /// How a history stands to the one before.
    fn compare_history(&self, conversation: &Conversation, hashes: &[EntryHash]) -> HistoryChange {
        let was = self.source.leading_instructions();
        let first = self.base.as_ref().and_then(|base| base.view.first());
        let leads = |(entry, hash): &(&Entry, &EntryHash)| {
            entry.is_leading() && first.is_none_or(|(first, _)| first != *hash)
        };
        let is = conversation
            .entries
            .iter()
            .zip(hashes)
            .take_while(leads)
            .count();
        let before = self.hashes.get(was..).unwrap_or_default();
        let now = hashes.get(is..).unwrap_or_default();
        let common = common_length(now, before);
        let is_cleared = || {
            let old = self.source.entries.iter().skip(was).zip(before);
            let new = conversation.entries.iter().skip(is).zip(now);
            clearing::is_history_cleared(old, new)
        };
        HistoryChange {
            was,
            is,
            common,
            kind: match common == before.len() {
                true => HistoryChangeKind::Grown,
                false if is_cleared() => HistoryChangeKind::Cleared,
                false => HistoryChangeKind::Left,
            },
            is_same_head: self.hashes.get(..was) == hashes.get(..is),
        }
    }

    /// Keeps what is known of entries whose results were cleared: identities follow them.
    fn follow_clearing(&mut self, change: &HistoryChange) {
        if let Some(base) = &mut self.base {
            // Of the base's view only the hashes are known; its entries open the source.
            let now = self.hashes.iter().skip(change.is);
            for ((known, _), now) in base.view.iter_mut().zip(now) {
                *known = *now;
            }
        }
    }

    /// Drops what a history that parts from the one before cannot know. What it was told as a view
    /// of ours stays known.
    fn leave_branch(&mut self, change: &HistoryChange) {
        let covered = change.was + change.common;
        let left = self.frozen.take_if(|frozen| frozen.covered > covered);
        let known = left.map(|frozen| frozen.prior);
        let opens = |prior: &Prior| self.opens_with(prior);
        let found = known.into_iter().chain(self.base.clone()).find(opens);
        self.base = found;
        self.search = PriorSearch::Due;
    }

    /// True when the source opens with all of a compaction's view.
    fn opens_with(&self, prior: &Prior) -> bool {
        let Some((first, _)) = prior.view.first() else {
            return false;
        };
        let mut head = self.source.entries.iter().zip(&self.hashes);
        let leading = head.position(|(entry, hash)| hash == first || !entry.is_leading());
        let history = self.hashes.iter().skip(leading.unwrap_or(0));
        let view = prior.view.iter().map(|(hash, _)| hash);
        history.take(prior.view.len()).eq(view)
    }

    /// The hashes of a history, and how many entries at its head say what those before did. Most of a history
    /// is what it was: to see that costs less than to hash it.
    fn hashes_of(&self, entries: &[Entry]) -> (Vec<EntryHash>, usize) {
        let mut before = self.source.entries.iter().zip(&self.hashes);
        let mut unchanged = 0;
        let hash = |(at, entry): (usize, &Entry)| match before.next() {
            Some((known, hash)) if known.role == entry.role && known.blocks == entry.blocks => {
                unchanged += usize::from(unchanged == at);
                *hash
            }
            _ => EntryHash::from_entry(entry),
        };
        let hashes = entries.iter().enumerate().map(hash).collect();
        (hashes, unchanged)
    }

    /// Forgets what entries cost that are not where they were; so many at the head of the source say what they
    /// did.
    fn keep_counts(&mut self, change: &HistoryChange, had_view: bool, unchanged: usize) {
        let is_same_view = change.kind != HistoryChangeKind::Cleared && change.is_same_head;
        let counted = match &self.frozen {
            None if !had_view => unchanged,
            Some(frozen) if is_same_view => {
                frozen.shown.len() + unchanged.saturating_sub(frozen.covered)
            }
            _ => 0,
        };
        self.counted.truncate(counted);
    }

    /// Shows another view from now on.
    fn set_frozen(&mut self, frozen: Option<FrozenView>) {
        self.frozen = frozen;
        self.counted.clear();
    }

    /// Takes the whole history again as a document: what is archived of it are its own bytes.
    /// Its wire may have become another one: it is the same conversation, and its view stays.
    pub(crate) fn replace_document(&mut self, document: Document, conversation: Conversation) {
        self.replace(conversation);
        self.set_rules(document.rules());
        self.document = Some(document);
    }

    /// Goes on under the rules of another wire.
    fn set_rules(&mut self, rules: &WireRules) {
        if self.rules == *rules {
            return;
        }
        self.rules = rules.clone();
        let Some(frozen) = self.frozen.take() else {
            return;
        };
        self.counted.clear();
        let outline = Outline::from_conversation(&self.source);
        let view = engine::move_summary_for(frozen.view, rules);
        let view = engine::conform(view, &self.source, &outline, rules);
        if engine::loop_is_whole(&view, &self.source, &outline, rules) {
            let frozen = FrozenView { view, ..frozen };
            self.set_frozen(Some(frozen.refresh_shown(&self.source)));
        }
    }

    /// Gives up a view that lacks what is protected now, or cuts it: the next one shows it whole.
    pub(crate) fn drop_view_lacking(&mut self, names: &BTreeSet<EntryHash>) {
        let covered = self.hashes.get(..self.covered()).unwrap_or_default();
        let is_shown = |name: &EntryHash| {
            let shown = self.frozen.iter().flat_map(|f| &f.hashes);
            shown.into_iter().any(|hash| hash == name)
        };
        let mut said = covered.iter().filter(|hash| names.contains(hash));
        if said.any(|hash| !is_shown(hash)) {
            self.set_frozen(None);
        }
    }

    /// True when a compaction on record left out what is protected now.
    pub(super) fn is_protected_left_out(
        &self,
        record: &CompactionRecord,
        names: &BTreeSet<EntryHash>,
    ) -> bool {
        let history = record.entry_hashes.iter();
        let mut said = history.skip(self.source.leading_instructions());
        said.any(|hash| names.contains(hash) && !record.view_hashes.contains(hash))
    }

    /// Allows another attempt in this turn (a person asked).
    pub(super) fn allow_retry(&mut self) {
        self.attempts = AttemptState::Clear;
    }

    fn covered(&self) -> usize {
        self.frozen.as_ref().map_or(0, |f| f.covered)
    }

    /// What the next request would carry: frozen entries, then what came after.
    pub(super) fn live(&self) -> impl Iterator<Item = (&Entry, &EntryHash)> {
        self.live_from(0)
    }

    /// The same without its first `known` entries.
    pub(super) fn live_from(&self, known: usize) -> impl Iterator<Item = (&Entry, &EntryHash)> {
        let frozen = self.frozen.as_ref();
        let shown = frozen.map_or(0, |f| f.shown.len());
        let frozen = frozen.into_iter().flat_map(move |f| {
            let shown = f.shown.iter().zip(&f.hashes);
            shown.skip(known)
        });
        let rest = self.source.entries.iter().zip(&self.hashes);
        frozen.chain(rest.skip(self.covered() + known.saturating_sub(shown)))
    }

    /// How many entries the live context has.
    pub(super) fn live_count(&self) -> usize {
        let shown = self.frozen.as_ref().map_or(0, |f| f.shown.len());
        shown + self.source.entries.len() - self.covered()
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
    pub(crate) fn view(&self) -> View {
        let items = self
            .frozen
            .as_ref()
            .map_or_else(Vec::new, |f| f.view.items.clone());
        self.extend_items(items, self.covered())
    }

    /// Items and, behind them, the entries from `covered` on.
    fn extend_items(&self, mut items: Vec<ViewItem>, covered: usize) -> View {
        let rest = covered..self.source.entries.len();
        items.extend(rest.map(|entry| ViewItem::Kept { entry }));
        View { items }
    }

    /// What a compaction needs, as of now.
    pub(crate) fn snapshot(
        &mut self,
        decision: &TriggerDecision,
        estimator: &dyn Estimator,
    ) -> SessionSnapshot {
        let (conversation, hashes) = self.live_conversation();
        let (original, format) = self.original_bytes(&conversation);
        SessionSnapshot {
            id: self.id.clone(),
            rules: self.rules.clone(),
            account: self.count_account(&conversation, &hashes, estimator),
            original,
            format,
            prior: self.prior().cloned(),
            decision: decision.clone(),
            note: None,
            wanted: None,
            call: self.call.clone(),
            basis: self.basis_up_to(self.hashes.len(), self.view()),
            conversation,
            hashes,
        }
    }

    /// The account of the live context, of which most calls have counted every entry.
    fn count_account(
        &mut self,
        live: &Conversation,
        hashes: &[EntryHash],
        estimator: &dyn Estimator,
    ) -> TokenAccount {
        match self.counted.len() == hashes.len() {
            true => TokenAccount::from_units(live, self.counted.clone(), estimator),
            false => TokenAccount::count_conversation(live, hashes, estimator, &mut self.cache),
        }
    }

    /// The live context as bytes, and their format.
    fn original_bytes(&self, live: &Conversation) -> (Bytes, &'static str) {
        let document = self.document.as_ref();
        let emitted = document.and_then(|document| {
            let bytes = document.emit_shared(&self.source, &self.view()).ok()?;
            Some((bytes, document.format().name()))
        });
        emitted.unwrap_or_else(|| (serialize_entries(&live.entries), ENTRIES_FORMAT))
    }

    /// Takes what the catalog knows of the compaction that the source goes on from.
    pub(super) fn continue_from(&mut self, prior: Option<Prior>) {
        self.search = PriorSearch::Done;
        if self.base.is_none() {
            self.base = prior;
            engine::classify_summaries(&mut self.source, &self.hashes, self.base.as_ref());
        }
    }

    /// True when nothing is known of an earlier compaction and nobody looked for one.
    pub(super) fn is_unknown(&self) -> bool {
        self.search == PriorSearch::Due && self.prior().is_none()
    }

    /// The last compaction of what the session shows.
    pub(super) fn prior(&self) -> Option<&Prior> {
        let frozen = self.frozen.as_ref().map(|frozen| &frozen.prior);
        frozen.or(self.base.as_ref())
    }

    /// Returns the facts up to the last compaction of what the session shows; `None` before the first.
    pub fn known_ledger(&self) -> Option<&Arc<Ledger>> {
        self.prior().map(|prior| &prior.ledger)
    }

    /// What a view of the first `covered` entries of the source stands for.
    fn basis_up_to(&self, covered: usize, shown: View) -> ViewBasis {
        let hashes = self.hashes.get(..covered).unwrap_or_default();
        ViewBasis {
            shown,
            covered,
            chain: Chain::from_hashes(hashes),
            history: Chain::from_history(self.source.entries.iter().zip(hashes)),
            previous: self.previous_receipt(),
        }
    }

    /// What the view of a compaction on record stands for, if the live context begins with what it was
    /// made of.
    pub(super) fn basis_of_record(&self, record: &CompactionRecord) -> Option<ViewBasis> {
        let length = record.entry_hashes.len();
        if !self
            .live()
            .map(|(_, hash)| hash)
            .take(length)
            .eq(&record.entry_hashes)
        {
            return None;
        }
        let mut items = self.view().items;
        let beyond = items.split_off(length.min(items.len()));
        let covered = self.source.entries.len().checked_sub(beyond.len())?;
        // What comes after must stand in the source as it stands in the view.
        let is_kept = |(at, item): (usize, &ViewItem)| matches!(item, ViewItem::Kept { entry } if *entry == covered + at);
        let follows = beyond.iter().enumerate().all(is_kept);
        follows.then(|| self.basis_up_to(covered, View { items }))
    }

    /// Returns the receipt of the last compaction of what the session shows; `None` before the first.
    pub fn previous_receipt(&self) -> Option<String> {
        self.prior().map(|prior| prior.receipt_id.clone())
    }

    /// A name for the turn that the session is in.
    pub(super) fn current_turn(&self) -> String {
        super::turn_name(&self.source, &self.hashes)
    }

    /// Takes over a compaction, with what was said since behind it. Refuses what was made of a
    /// history that is no longer this one, or what cannot be joined to what came after.
    pub(crate) fn adopt(
        &mut self,
        finished: FinishedCompaction,
    ) -> Result<Receipt, StaleCompaction> {
        let FinishedCompaction {
            made,
            basis,
            prior,
            receipt,
        } = finished;
        let covered = self.hashes.get(..basis.covered);
        if covered.map(Chain::from_hashes) != Some(basis.chain) {
            let reason = "the history before it was edited";
            return Err(StaleCompaction::new(receipt, reason));
        }
        if basis.previous != self.previous_receipt() {
            let reason = "another compaction came first";
            return Err(StaleCompaction::new(receipt, reason));
        }
        let items = basis.shown.compose_with(&made, &self.source).items;
        let Some(view) = self.rebased(items, basis.covered) else {
            let reason = "a tool loop began with reasoning that it would lose";
            return Err(StaleCompaction::new(receipt, reason));
        };
        self.freeze(view, prior);
        Ok(receipt)
    }

    /// A view with what came since behind it, as legal as before.
    fn rebased(&self, items: Vec<ViewItem>, covered: usize) -> Option<View> {
        let view = self.extend_items(items, covered);
        if covered == self.source.entries.len() {
            return Some(view);
        }
        let outline = Outline::from_conversation(&self.source);
        let view = engine::conform(view, &self.source, &outline, &self.rules);
        engine::loop_is_whole(&view, &self.source, &outline, &self.rules).then_some(view)
    }

    fn freeze(&mut self, view: View, prior: Prior) {
        let shown = view.shown_entries(&self.source);
        self.set_frozen(Some(FrozenView {
            covered: self.source.entries.len(),
            hashes: EntryHash::from_entries(&shown),
            view,
            shown,
            prior,
        }));
        self.attempts = AttemptState::Clear;
        self.refused = None;
        self.is_hindered = false;
        // What was reported measured a prompt that is no more.
        self.usage.reset();
        self.measured = None;
    }

    /// Takes a report about what was handed out last.
    pub(super) fn note_usage(&mut self, usage: Usage, semantics: Semantics, formula: Formula) {
        if self.usage.last().is_none() {
            let is_tracked = self.usage.is_tracking_enabled();
            self.usage = ContextUsage::new(semantics, formula);
            if !is_tracked {
                self.usage.disable_tracking();
            }
        }
        self.usage.record(usage, semantics);
        self.measured = Some(self.sent);
        self.reports = UsageReports::Expected;
    }

    /// Notes that nothing was reported about what was handed out last.
    pub(super) fn note_missing_usage(&mut self) {
        self.measured = None;
        self.reports = UsageReports::Missing;
    }

    /// True when the last answer came without a report.
    pub(super) fn is_usage_missing(&self) -> bool {
        self.reports == UsageReports::Missing
    }

    /// The last report, by how much of the live context it measured.
    pub(super) fn reading(&self) -> Option<UsageReading> {
        let beyond = self.measured?.checked_sub(self.covered())?;
        let shown = self.frozen.as_ref().map_or(0, |f| f.shown.len());
        Some(UsageReading {
            usage: self.usage.clone(),
            prompt: shown + beyond,
        })
    }

    /// Whether the outcome of earlier attempts allows another one.
    pub(super) fn may_attempt(&self, tokens: Tokens, per_turn: u32) -> bool {
        match &self.attempts {
            AttemptState::Unread | AttemptState::Clear => true,
            AttemptState::Failed {
                turn,
                tokens: then,
                count,
            } => {
                *turn != self.current_turn()
                    || *count < per_turn
                    || tokens.0 as f64 >= then.0 as f64 * REARM_GROWTH
            }
        }
    }

    /// Why nothing may be sent: what must stay did not fit, and no attempt was due since.
    pub(super) fn refusal(&self, decision: &TriggerDecision) -> Option<&CompactError> {
        self.refused.as_ref().filter(|_| decision.verdict.is_now())
    }

    /// Remembers that an attempt came to nothing.
    pub(crate) fn note_failure(&mut self, tokens: Tokens) {
        self.refused = None;
        self.is_hindered = false;
        let turn = self.current_turn();
        let count = match &self.attempts {
            AttemptState::Failed {
                turn: then, count, ..
            } if *then == turn => count + 1,
            _ => 1,
        };
        self.attempts = AttemptState::Failed {
            turn,
            tokens,
            count,
        };
    }
}

impl FrozenView {
    /// The same view over a history with another head, or with less in its results.
    fn apply_change(self, change: &HistoryChange, source: &Conversation) -> FrozenView {
        if change.kind != HistoryChangeKind::Cleared && change.is_same_head {
            return self;
        }
        let head = (0..change.is).map(|entry| ViewItem::Kept { entry });
        let history = self.view.items.iter();
        let history =
            history.filter(|item| item.entry_index().is_none_or(|entry| entry >= change.was));
        let moved = history.map(|item| item.clone().reindex_entry(change.was, change.is));
        let items = head.chain(moved).collect();
        FrozenView {
            view: View { items },
            covered: self.covered - change.was + change.is,
            ..self
        }
        .refresh_shown(source)
    }

    /// The same view of entries that changed in what they show: identities follow them.
    fn refresh_shown(self, source: &Conversation) -> FrozenView {
        let shown = self.view.shown_entries(source);
        let hashes = EntryHash::from_entries(&shown);
        let leading = |shown: &[Entry]| shown.iter().take_while(|e| e.is_leading()).count();
        let before = self.hashes.iter().skip(leading(&self.shown));
        let now = hashes.iter().skip(leading(&shown));
        let mut prior = self.prior;
        for ((known, _), (was, is)) in prior.view.iter_mut().zip(before.zip(now)) {
            if known == was {
                *known = *is;
            }
        }
        FrozenView {
            prior,
            shown,
            hashes,
            ..self
        }
    }
}

impl StaleCompaction {
    fn new(receipt: Receipt, reason: &'static str) -> StaleCompaction {
        let receipt = Box::new(receipt);
        StaleCompaction { receipt, reason }
    }
}

impl FinishedCompaction {
    /// The entries of the source that it stands for.
    pub(crate) fn covered(&self) -> usize {
        self.basis.covered
    }
}

impl SessionSnapshot {
    /// True when a record is the compaction of what this snapshot begins with.
    pub(super) fn is_continued_by(&self, record: &CompactionRecord) -> bool {
        let known = self.prior.as_ref().map(|prior| &prior.receipt_id);
        known != Some(&record.receipt_id)
            && record.previous.as_ref() == known
            && self.hashes.starts_with(&record.entry_hashes)
    }

    /// Names the history that its client told.
    pub(super) fn source_chain(&self) -> Chain {
        self.basis.history
    }

    /// The request that this snapshot makes.
    pub(super) fn request(&self) -> CompactionRequest<'_> {
        let (conversation, original) = (&self.conversation, self.original.clone());
        CompactionRequest::new(conversation, &self.rules, self.format, original)
            .with_session(self.id.as_str())
            .with_note(self.note.as_deref())
    }
}

impl ViewBasis {
    /// Joins a view that was made of this to it.
    pub(super) fn finish(self, made: View, prior: Prior, receipt: Receipt) -> FinishedCompaction {
        FinishedCompaction {
            made,
            basis: self,
            prior,
            receipt,
        }
    }
}

/// How many entries two histories have in common from the start on.
fn common_length(one: &[EntryHash], other: &[EntryHash]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(a, b)| a == b).count()
}

/// The format of a session that never was a file: one serialized entry per line.
pub const ENTRIES_FORMAT: &str = "entries";

/// Entries in that format.
pub fn serialize_entries(entries: &[Entry]) -> Bytes {
    let mut lines = Vec::new();
    for entry in entries {
        if serde_json::to_writer(&mut lines, entry).is_ok() {
            lines.push(b'\n');
        }
    }
    Bytes::from(lines)
}
