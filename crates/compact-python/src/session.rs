//! The live sessions of an engine: the most recent ones, each used by one thread at a time.
//!
//! A session that was left out is taken up again from the history that its client passes, so a bound
//! costs time and nothing else. A session that nobody named is found by what a history begins with: the
//! whole of what it was told, or of what it was handed out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

use compact::message::Chain;
use compact::{Compact, Session};
use pyo3::PyErr;

use crate::failure::{ErrorClass, error_with_message};

/// Sessions by name.
pub(crate) struct EngineSessions {
    most: usize,
    clock: AtomicU64,
    shelf: Mutex<SessionTable>,
}

#[derive(Default)]
struct SessionTable {
    slots: HashMap<String, Arc<SessionSlot>>,
    /// The sessions without a name of their client's, by the histories that go on from them.
    unnamed: HashMap<Chain, String>,
}

/// One session.
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
            shelf: Mutex::default(),
        }
    }

    fn lock_table(&self) -> MutexGuard<'_, SessionTable> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The unnamed session that the longest of these beginnings of a history is all of.
    pub(crate) fn find_continued(&self, beginnings: &[Chain]) -> Option<String> {
        let shelf = self.lock_table();
        let found = beginnings
            .iter()
            .rev()
            .find_map(|chain| shelf.unnamed.get(chain));
        found.cloned()
    }

    /// Notes what a history must begin with to go on from an unnamed session.
    pub(crate) fn note_chains(&self, name: &str, lines: Vec<Chain>) {
        let mut shelf = self.lock_table();
        shelf.unnamed.retain(|_, known| known != name);
        if shelf.slots.contains_key(name) {
            let named = lines.into_iter().map(|chain| (chain, name.to_owned()));
            shelf.unnamed.extend(named);
        }
    }

    /// The session of this name, and the name of one that had to make room.
    pub(crate) fn find_or_add(&self, name: &str) -> (Arc<SessionSlot>, Option<String>) {
        let mut shelf = self.lock_table();
        let slots = &mut shelf.slots;
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
            shelf.remove(oldest);
        }
        (slot, oldest)
    }

    /// Lets go of a session.
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

/// The session that was used least recently and that nobody holds now.
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
    /// Waits for the session. Its own callbacks cannot have it: they would wait for themselves.
    pub(crate) fn hold(&self) -> Result<HeldSession<'_>, PyErr> {
        let me = thread::current().id();
        let holder = *self.lock_holder();
        if holder == Some(me) {
            return Err(error_with_message(
                ErrorClass::SessionBusy,
                "this session is being handled by the call that this callback belongs to; \
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
    /// The session, a new one if there is none.
    pub(crate) fn get_or_create(&mut self, compact: &Compact, name: &str) -> &mut Session {
        self.live.get_or_insert_with(|| compact.session(name))
    }

    /// True when a history that has these beginnings goes on from the session.
    pub(crate) fn is_continued_by(&self, beginnings: &[Chain]) -> bool {
        let state = self.live.as_ref().and_then(Session::state);
        let lines = state.map(|state| state.continuation_chains());
        let lines = lines.unwrap_or_default();
        lines.is_empty() || lines.iter().any(|chain| beginnings.contains(chain))
    }

    /// The session, if there is one.
    pub(crate) fn existing_session(&mut self) -> Option<&mut Session> {
        self.live.as_mut()
    }
}

impl Drop for HeldSession<'_> {
    fn drop(&mut self) {
        *self.slot.lock_holder() = None;
    }
}
