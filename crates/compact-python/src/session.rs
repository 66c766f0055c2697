//! The live sessions of an engine: the most recent ones, each used by one thread at a time.
//!
//! A session that was evicted is continued from the history that its client passes, so the bound costs time
//! and nothing else. An unnamed session is found by the beginning of a history: all that the session was passed
//! before, or all that it returned.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

use compact::message::Chain;
use compact::{Compact, Session};
use pyo3::PyErr;

use crate::failure::{ErrorClass, error_with_message};

/// The most recent sessions of an engine, by name.
pub(crate) struct EngineSessions {
    most: usize,
    clock: AtomicU64,
    table: Mutex<SessionTable>,
}

#[derive(Default)]
struct SessionTable {
    slots: HashMap<String, Arc<SessionSlot>>,
    /// The sessions that no client named, by the chains that a continuing history begins with.
    unnamed: HashMap<Chain, String>,
}

/// A session, and who holds it.
pub(crate) struct SessionSlot {
    live: Mutex<Option<Session>>,
    holder: Mutex<Option<ThreadId>>,
    used: AtomicU64,
}

/// A session that this thread holds.
pub(crate) struct HeldSession<'a> {
    slot: &'a SessionSlot,
    live: MutexGuard<'a, Option<Session>>,
}

impl EngineSessions {
    pub(crate) fn new(most: usize) -> EngineSessions {
        EngineSessions {
            most: most.max(1),
            clock: AtomicU64::new(0),
            table: Mutex::default(),
        }
    }

    fn lock_table(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the unnamed session that the history with these beginnings continues; the longest match wins.
    pub(crate) fn find_continued(&self, beginnings: &[Chain]) -> Option<String> {
        let table = self.lock_table();
        let found = beginnings
            .iter()
            .rev()
            .find_map(|chain| table.unnamed.get(chain));
        found.cloned()
    }

    /// Records the chains that a history must begin with to continue an unnamed session.
    pub(crate) fn note_chains(&self, name: &str, chains: Vec<Chain>) {
        let mut table = self.lock_table();
        table.unnamed.retain(|_, known| known != name);
        if table.slots.contains_key(name) {
            let named = chains.into_iter().map(|chain| (chain, name.to_owned()));
            table.unnamed.extend(named);
        }
    }

    /// Returns the session of this name, adding it if needed, and the name of one that was evicted for it.
    pub(crate) fn find_or_add(&self, name: &str) -> (Arc<SessionSlot>, Option<String>) {
        let mut table = self.lock_table();
        let slots = &mut table.slots;
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let slot = slots.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(SessionSlot {
                live: Mutex::new(None),
                holder: Mutex::new(None),
                used: AtomicU64::new(now),
            })
        });
        slot.used.store(now, Ordering::Relaxed);
        let slot = Arc::clone(slot);
        let full = slots.len() > self.most;
        let oldest = full.then(|| least_recent(slots, name)).flatten();
        if let Some(oldest) = &oldest {
            table.remove(oldest);
        }
        (slot, oldest)
    }

    /// Removes a session.
    pub(crate) fn remove(&self, name: &str) {
        self.lock_table().remove(name);
    }

    pub(crate) fn len(&self) -> usize {
        self.lock_table().slots.len()
    }
}

impl SessionTable {
    fn remove(&mut self, name: &str) {
        self.slots.remove(name);
        self.unnamed.retain(|_, known| known != name);
    }
}

/// Finds the session that was used least recently and that nobody holds now.
fn least_recent(slots: &HashMap<String, Arc<SessionSlot>>, but: &str) -> Option<String> {
    let is_free =
        |slot: &SessionSlot| !matches!(slot.live.try_lock(), Err(TryLockError::WouldBlock));
    let mut free: Vec<_> = slots
        .iter()
        .filter(|(name, slot)| name.as_str() != but && is_free(slot))
        .collect();
    free.sort_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed));
    free.first().map(|(name, _)| (*name).clone())
}

impl SessionSlot {
    /// Waits for the session and holds it. Fails in a callback of the same session, which would deadlock.
    pub(crate) fn hold(&self) -> Result<HeldSession<'_>, PyErr> {
        let me = thread::current().id();
        let holder = *self.lock_holder();
        if holder == Some(me) {
            return Err(error_with_message(
                ErrorClass::SessionBusy,
                "the call that this callback belongs to is using this session; \
                 use another session id",
            ));
        }
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        *self.lock_holder() = Some(me);
        Ok(HeldSession { slot: self, live })
    }

    fn lock_holder(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldSession<'_> {
    /// Returns the session, creating it if needed.
    pub(crate) fn get_or_create(&mut self, compact: &Compact, name: &str) -> &mut Session {
        self.live.get_or_insert_with(|| compact.session(name))
    }

    /// Returns whether a history with these beginnings continues the session.
    pub(crate) fn is_continued_by(&self, beginnings: &[Chain]) -> bool {
        let state = self.live.as_ref().and_then(Session::state);
        let chains = state.map(|state| state.continuation_chains());
        let chains = chains.unwrap_or_default();
        chains.is_empty() || chains.iter().any(|chain| beginnings.contains(chain))
    }

    /// Returns the session, if it was created.
    pub(crate) fn existing_session(&mut self) -> Option<&mut Session> {
        self.live.as_mut()
    }
}

impl Drop for HeldSession<'_> {
    fn drop(&mut self) {
        *self.slot.lock_holder() = None;
    }
}
