//! The live sessions of an engine: the most recent ones, each used by one thread at a time.
//!
//! A session that was left out is taken up again from the history that its client passes, so a bound
//! costs time and nothing else. A session that nobody named is found by what a history begins with: the
//! whole of what it was told, or of what it was handed out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

use compact_core::identity::Chain;
use compact_core::wire::WireRules;
use compact_runtime::{LiveSession, Manager};
use pyo3::PyErr;

use crate::failure::{Class, told};

/// Sessions by name.
pub(crate) struct Sessions {
    most: usize,
    clock: AtomicU64,
    shelf: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    slots: HashMap<String, Arc<Slot>>,
    /// The sessions without a name of their client's, by the histories that go on from them.
    unnamed: HashMap<Chain, String>,
}

/// One session.
pub(crate) struct Slot {
    live: Mutex<Option<LiveSession>>,
    holder: Mutex<Option<ThreadId>>,
    used: AtomicU64,
}

/// A session that this thread holds.
pub(crate) struct Held<'a> {
    slot: &'a Slot,
    live: MutexGuard<'a, Option<LiveSession>>,
}

impl Sessions {
    pub(crate) fn new(most: usize) -> Sessions {
        Sessions {
            most: most.max(1),
            clock: AtomicU64::new(0),
            shelf: Mutex::default(),
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The unnamed session that the longest of these beginnings of a history is all of.
    pub(crate) fn continued_by(&self, beginnings: &[Chain]) -> Option<String> {
        let shelf = self.shelf();
        let found = beginnings
            .iter()
            .rev()
            .find_map(|chain| shelf.unnamed.get(chain));
        found.cloned()
    }

    /// Notes what a history must begin with to go on from an unnamed session.
    pub(crate) fn note(&self, name: &str, lines: Vec<Chain>) {
        let mut shelf = self.shelf();
        shelf.unnamed.retain(|_, known| known != name);
        if shelf.slots.contains_key(name) {
            let named = lines.into_iter().map(|chain| (chain, name.to_owned()));
            shelf.unnamed.extend(named);
        }
    }

    /// The session of this name, and the name of one that had to make room.
    pub(crate) fn slot(&self, name: &str) -> (Arc<Slot>, Option<String>) {
        let mut shelf = self.shelf();
        let slots = &mut shelf.slots;
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let slot = slots.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(Slot {
                live: Mutex::new(None),
                holder: Mutex::new(None),
                used: AtomicU64::new(now),
            })
        });
        slot.used.store(now, Ordering::Relaxed);
        let slot = Arc::clone(slot);
        let full = slots.len() > self.most;
        let oldest = full.then(|| oldest(slots, name)).flatten();
        if let Some(oldest) = &oldest {
            shelf.remove(oldest);
        }
        (slot, oldest)
    }

    /// Lets go of a session.
    pub(crate) fn remove(&self, name: &str) {
        self.shelf().remove(name);
    }

    pub(crate) fn len(&self) -> usize {
        self.shelf().slots.len()
    }
}

impl Shelf {
    fn remove(&mut self, name: &str) {
        self.slots.remove(name);
        self.unnamed.retain(|_, known| known != name);
    }
}

/// The session that was used least recently and that nobody holds now.
fn oldest(slots: &HashMap<String, Arc<Slot>>, but: &str) -> Option<String> {
    let is_free = |slot: &Slot| !matches!(slot.live.try_lock(), Err(TryLockError::WouldBlock));
    let mut free: Vec<_> = slots
        .iter()
        .filter(|(name, slot)| name.as_str() != but && is_free(slot))
        .collect();
    free.sort_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed));
    free.first().map(|(name, _)| (*name).clone())
}

impl Slot {
    /// Waits for the session. Its own callbacks cannot have it: they would wait for themselves.
    pub(crate) fn hold(&self) -> Result<Held<'_>, PyErr> {
        let me = thread::current().id();
        let holder = *self.holder();
        if holder == Some(me) {
            return Err(told(
                Class::SessionBusy,
                "this session is being handled by the call that this callback belongs to; \
                 use another session id",
            ));
        }
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        *self.holder() = Some(me);
        Ok(Held { slot: self, live })
    }

    fn holder(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held<'_> {
    /// The session, a new one under these rules if there is none.
    pub(crate) fn live(
        &mut self,
        manager: &Arc<Manager>,
        name: &str,
        rules: &WireRules,
    ) -> &mut LiveSession {
        self.live
            .get_or_insert_with(|| LiveSession::new(Arc::clone(manager), name, rules))
    }

    /// True when a history that has these beginnings goes on from the session.
    pub(crate) fn goes_on(&self, beginnings: &[Chain]) -> bool {
        let lines = |live: &LiveSession| live.session().lines();
        let lines = self.live.as_ref().map(lines).unwrap_or_default();
        lines.is_empty() || lines.iter().any(|chain| beginnings.contains(chain))
    }

    /// The session, if there is one.
    pub(crate) fn existing(&mut self) -> Option<&mut LiveSession> {
        self.live.as_mut()
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *self.slot.holder() = None;
    }
}
