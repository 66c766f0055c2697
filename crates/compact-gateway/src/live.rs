//! The sessions that pass through, in memory within bounds: found by name, or by how a history goes on.
//!
//! A session that was put out is taken up from the history that its agent sends, and from the record of its
//! compactions. Within one named session an agent may send histories that begin differently: sub-agents that
//! it does not name. Each is a line of its own, so that none loses the other's view.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use compact::event::CacheMiss;
use compact::format::usage::ReportedUsage;
use compact::manager::{find_folder, new_session_name};
use compact::message::{Chain, Conversation, Entry, EntryHash, Role, frame};
use compact::policy::TriggerDecision;
use compact::{Compact, Error, Session, SessionTable, TableLimits};
use lru::LruCache;

use crate::cache_watch::{CacheWatch, SentPrompt};
use crate::identity::SessionKey;
use crate::settings::GatewaySettings;
use crate::weight;

/// Reading a request that is smaller costs no more than finding out what of it is known.
pub(crate) const LARGE_BODY: usize = 64 << 10;

/// The most answers that are remembered.
const MOST_ANSWERED: usize = 4096;

/// The most sessions that nobody names of which the last request is compared with the next one.
const MOST_RECENT: usize = 64;

/// All sessions of a gateway.
pub(crate) struct LiveSessions {
    compact: Compact,
    table: SessionTable<LiveSession>,
    /// The latest sessions whose requests are large, by name, with their scopes.
    recent: Mutex<LruCache<String, (String, Weak<LiveSession>)>>,
    /// The sessions whose agents were given a summary, by its receipt, with their scopes.
    answered: Mutex<LruCache<String, (String, String)>>,
}

/// A session that requests of one history share.
pub(crate) struct LiveSession {
    pub(crate) name: String,
    /// One request at a time decides what to send.
    pub(crate) session: tokio::sync::Mutex<Session>,
    notes: Mutex<SessionNotes>,
}

/// A summary that an agent was given before.
pub(crate) struct GivenSummary {
    pub(crate) session: String,
    pub(crate) receipt: String,
    /// As the agent has it, with what stands around it there.
    pub(crate) text: String,
}

/// What is known of a session without waiting for it.
#[derive(Default)]
struct SessionNotes {
    /// The first entry of its history, instructions aside.
    first: Option<EntryHash>,
    /// What an upstream reported of the last request, until the session takes it.
    report: Option<Option<ReportedUsage>>,
    /// The body of the last request.
    told: Option<Bytes>,
    /// The body of the last request with tools.
    body: Option<Bytes>,
    /// What the provider's cache should hold.
    cache: CacheWatch,
    /// Whether the folder that its agent works in was looked for.
    is_project_noted: bool,
    /// Whether it grows towards its first compaction.
    nears_compaction: bool,
}

/// The part of its window from which on a history that was never compacted may be compacted soon, by whichever gateway has
/// its next request.
const NEAR_COMPACTION: u64 = 4;

impl LiveSessions {
    pub(crate) fn new(compact: Compact, settings: &GatewaySettings) -> LiveSessions {
        LiveSessions {
            compact,
            table: SessionTable::new(TableLimits {
                sessions: settings.max_sessions,
                weight: settings.max_session_bytes,
            }),
            answered: Mutex::new(LruCache::unbounded()),
            recent: Mutex::new(LruCache::unbounded()),
        }
    }

    /// Returns the engine.
    pub(crate) fn compact(&self) -> &Compact {
        &self.compact
    }

    /// Counts the sessions in memory.
    pub(crate) fn count(&self) -> usize {
        self.table.len()
    }

    /// Returns the session whose last request has the most bytes in common with this one, from the start on: the one
    /// that it names, or one of the latest of its tenant. It need not be the one that the history belongs to.
    pub(crate) fn find_likely(&self, key: &SessionKey, body: &[u8]) -> Option<Arc<LiveSession>> {
        if let Some(name) = &key.name {
            return self.table.find(name);
        }
        let recent = self.lock_recent();
        let own = recent.iter().filter(|(_, (scope, _))| *scope == key.scope);
        let live: Vec<_> = own.filter_map(|(_, (_, live))| live.upgrade()).collect();
        drop(recent);
        most_alike(live, body)
    }

    fn lock_recent(&self) -> MutexGuard<'_, LruCache<String, (String, Weak<LiveSession>)>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the session that a history belongs to, or makes it; the history's entries are hashed if they are not yet.
    pub(crate) async fn find(
        &self,
        key: &SessionKey,
        conversation: &Conversation,
        hashes: Option<&[EntryHash]>,
    ) -> Result<Arc<LiveSession>, Error> {
        let live = self.find_session(key, conversation, hashes).await?;
        let is_noted = std::mem::replace(&mut live.lock_notes().is_project_noted, true);
        if let (false, Some(folder)) = (is_noted, find_folder(conversation)) {
            self.compact.note_project(&live.name, folder);
        }
        Ok(live)
    }

    async fn find_session(
        &self,
        key: &SessionKey,
        conversation: &Conversation,
        hashes: Option<&[EntryHash]>,
    ) -> Result<Arc<LiveSession>, Error> {
        if let Some(name) = self.find_answered(&key.scope, conversation) {
            let live = self.find_or_add(&name);
            live.lock_notes().first = first_entry(conversation);
            return Ok(live);
        }
        match &key.name {
            Some(name) => Ok(self.find_named(name, conversation)),
            None => self.find_unnamed(&key.scope, conversation, hashes).await,
        }
    }

    /// Returns a session in memory that a request names, with the last request of its agent's work.
    pub(crate) fn find_last_request(&self, key: &SessionKey) -> Option<(Arc<LiveSession>, Bytes)> {
        let live = self.table.find(key.name.as_deref()?)?;
        let body = live.lock_notes().body.clone()?;
        Some((live, body))
    }

    /// Notes that an agent goes on from a summary of its session.
    pub(crate) fn note_answer(&self, key: &SessionKey, live: &LiveSession, receipt: &str) {
        let mut answered = self.lock_answered();
        let session = (key.scope.clone(), live.name.clone());
        answered.put(receipt.to_owned(), session);
        if answered.len() > MOST_ANSWERED {
            answered.pop_lru();
        }
    }

    /// Returns the session whose agent goes on from a summary that it was given.
    fn find_answered(&self, scope: &str, conversation: &Conversation) -> Option<String> {
        let said = conversation
            .entries
            .iter()
            .filter(|entry| !entry.is_leading());
        let mut answered = self.lock_answered();
        if answered.is_empty() {
            return None;
        }
        let receipts = said.enumerate().flat_map(|(at, entry)| {
            let framed = frame::find_frame(&entry.blocks).and_then(|frame| frame.receipt);
            // What was added to a model's summary has no frame; the summary stands first.
            let named = (at == 0).then(|| named_receipt(entry)).flatten();
            framed.or(named)
        });
        let found = receipts
            .filter_map(|receipt| answered.get(&receipt).cloned())
            .next();
        let (of, name) = found?;
        (of == scope).then_some(name)
    }

    /// Returns the session, the receipt and the text of a summary that was given, where the model of a
    /// history said it last.
    pub(crate) fn find_given_summary(
        &self,
        scope: &str,
        conversation: &Conversation,
    ) -> Option<GivenSummary> {
        let last = conversation.entries.last()?;
        if last.role != Role::Assistant {
            return None;
        }
        let receipt = frame::find_frame(&last.blocks)?.receipt?;
        let (of, session) = self.lock_answered().get(&receipt).cloned()?;
        (of == scope).then(|| GivenSummary {
            session,
            receipt,
            text: last.plain_text(),
        })
    }

    fn lock_answered(&self) -> MutexGuard<'_, LruCache<String, (String, String)>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_named(&self, name: &str, conversation: &Conversation) -> Arc<LiveSession> {
        let first = first_entry(conversation);
        let is_same_line = |live: &LiveSession| {
            let notes = live.lock_notes();
            notes.first.is_none() || notes.first == first
        };
        let main = self.find_or_add(name);
        let live = match (is_same_line(&main), first) {
            (true, _) | (_, None) => main,
            (false, Some(first)) => self.find_or_add(&format!("{name}/{first}")),
        };
        live.lock_notes().first = first;
        live
    }

    async fn find_unnamed(
        &self,
        scope: &str,
        conversation: &Conversation,
        hashes: Option<&[EntryHash]>,
    ) -> Result<Arc<LiveSession>, Error> {
        let entries = &conversation.entries;
        let hashes = hashes.map_or_else(|| EntryHash::from_entries(entries), <[_]>::to_vec);
        let beginnings = Chain::prefix_chains(entries.iter().zip(&hashes));
        let mut name = self.table.find_continued(scope, &beginnings);
        let known = name.as_deref().and_then(|name| self.table.find(name));
        if known.is_none_or(|live| live.may_be_compacted_elsewhere()) {
            let manager = self.compact.manager()?;
            name = manager.find_session(conversation, scope).await?.or(name);
        }
        if let Some(name) = name {
            let live = self.find_or_add(&name);
            // Somebody else may have gone on from it meanwhile: then this is a new session.
            if live.is_continued_by(&beginnings).await {
                return Ok(live);
            }
        }
        let name = format!("{scope}{}", new_session_name(&beginnings));
        Ok(self.find_or_add(&name))
    }

    fn find_or_add(&self, name: &str) -> Arc<LiveSession> {
        let make = || LiveSession {
            name: name.to_owned(),
            session: tokio::sync::Mutex::new(self.compact.session(name)),
            notes: Mutex::default(),
        };
        self.table.find_or_add(name, make).0
    }

    /// Notes what a session has come to, so that what goes on from it is found and memory stays bounded.
    pub(crate) fn note_progress(
        &self,
        key: &SessionKey,
        live: &Arc<LiveSession>,
        session: &Session,
        body: &Bytes,
    ) {
        live.lock_notes().told = Some(body.clone());
        if key.name.is_none() && body.len() >= LARGE_BODY {
            let mut recent = self.lock_recent();
            let seen = (key.scope.clone(), Arc::downgrade(live));
            recent.put(live.name.clone(), seen);
            if recent.len() > MOST_RECENT {
                recent.pop_lru();
            }
        }
        if let (None, Some(state)) = (&key.name, session.state()) {
            let chains = state.continuation_chains();
            self.table.note_chains(&key.scope, &live.name, chains);
        }
        let entries = session.state().map_or(0, |s| s.history().entries.len());
        let weight = weight::session_weight(body.len(), entries);
        self.table.note_weight(&live.name, weight);
    }

    /// Forgets what a session holds whose call failed, since that may be half done, and returns it empty.
    pub(crate) fn begin_anew(&self, live: &LiveSession) -> Arc<LiveSession> {
        self.table.remove(&live.name);
        let first = live.lock_notes().first;
        let empty = self.find_or_add(&live.name);
        empty.lock_notes().first = first;
        empty
    }
}

impl LiveSession {
    fn lock_notes(&self) -> MutexGuard<'_, SessionNotes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn is_continued_by(&self, beginnings: &[Chain]) -> bool {
        let session = self.session.lock().await;
        let chains = session.state().map(|state| state.continuation_chains());
        let chains = chains.unwrap_or_default();
        chains.is_empty() || chains.iter().any(|chain| beginnings.contains(chain))
    }

    /// Notes how full its window is.
    pub(crate) fn note_pressure(&self, session: &Session, decision: &TriggerDecision) {
        let is_near = decision.tokens.0.saturating_mul(NEAR_COMPACTION) >= decision.window.0;
        let state = session.state();
        let is_first = state.is_none_or(|state| state.previous_receipt().is_none());
        self.lock_notes().nears_compaction = is_near && is_first;
    }

    /// Returns whether another gateway may have compacted its history meanwhile, under a name of its own: nobody named it,
    /// and each takes the first request that it sees for the beginning.
    fn may_be_compacted_elsewhere(&self) -> bool {
        self.lock_notes().nears_compaction
    }

    /// Notes the body of a request with tools.
    pub(crate) fn note_request(&self, body: Bytes) {
        self.lock_notes().body = Some(body);
    }

    /// Notes a request that was answered, and returns what it should have found in the provider's cache.
    pub(crate) fn note_sent(&self, sent: SentPrompt, cache_seconds: u64) -> Option<CacheMiss> {
        self.lock_notes().cache.note(sent, cache_seconds)
    }

    /// Notes what an upstream reported; nothing where it reported nothing.
    pub(crate) fn note_report(&self, report: Option<ReportedUsage>) {
        self.lock_notes().report = Some(report);
    }

    /// Hands a session what was reported since.
    pub(crate) fn deliver_report(&self, session: &mut Session) {
        let report = self.lock_notes().report.take();
        if let Some(report) = report {
            session.observe_report(report);
        }
    }
}

/// Returns the session whose last request has the most in common with a body, of those that come first: so many bytes are
/// compared as two such bodies have, however many begin alike.
fn most_alike(latest_first: Vec<Arc<LiveSession>>, body: &[u8]) -> Option<Arc<LiveSession>> {
    let mut left = body.len().saturating_mul(2);
    let mut best = None;
    for live in latest_first {
        let told = live.lock_notes().told.clone().unwrap_or_default();
        let common = common_length(&told, body);
        if best.as_ref().is_none_or(|(most, _)| common > *most) {
            best = Some((common, live));
        }
        left = left.saturating_sub(common);
        if left == 0 {
            break;
        }
    }
    best.map(|(_, live)| live)
}

/// Returns how many bytes two bodies have in common from the start on, in whole steps.
fn common_length(one: &[u8], other: &[u8]) -> usize {
    const STEP: usize = 1024;
    let steps = one.chunks_exact(STEP).zip(other.chunks_exact(STEP));
    STEP * steps.take_while(|(a, b)| a == b).count()
}

/// Returns the receipt that an addition to a model's summary names.
fn named_receipt(entry: &Entry) -> Option<String> {
    let text = entry.plain_text();
    let (_, after) = text.rsplit_once("`compactctl restore ")?;
    let (receipt, _) = after.split_once('`')?;
    Some(receipt.to_owned())
}

/// Returns the first entry of a history that is no instruction.
fn first_entry(conversation: &Conversation) -> Option<EntryHash> {
    let mut said = conversation
        .entries
        .iter()
        .filter(|entry| !entry.is_leading());
    said.next().map(EntryHash::from_entry)
}
