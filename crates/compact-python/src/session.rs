//! The live sessions of an engine: the most recent ones, each used by one thread at a time.
//!
//! A session that was left out is taken up again from the history that its client passes, so a bound
//! costs time and nothing else.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

use compact_core::wire::WireRules;
use compact_runtime::{LiveSession, Manager};
use pyo3::PyErr;

use crate::failure::{Class, told};

/// Sessions by name.
pub(crate) struct Sessions {
    most: usize,
    clock: AtomicU64,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
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
            slots: Mutex::new(HashMap::new()),
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of this name, and the name of one that had to make room.
    pub(crate) fn slot(&self, name: &str) -> (Arc<Slot>, Option<String>) {
        let mut slots = self.slots();
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
        let oldest = full.then(|| oldest(&slots, name)).flatten();
        if let Some(oldest) = &oldest {
            slots.remove(oldest);
        }
        (slot, oldest)
    }

    /// Lets go of a session.
    pub(crate) fn remove(&self, name: &str) {
        self.slots().remove(name);
    }

    pub(crate) fn len(&self) -> usize {
        self.slots().len()
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
    /// The session under these rules, a new one if there is none.
    pub(crate) fn live(
        &mut self,
        manager: &Arc<Manager>,
        name: &str,
        rules: &WireRules,
    ) -> &mut LiveSession {
        let is_other = |live: &LiveSession| live.session().rules().name != rules.name;
        if self.live.as_ref().is_some_and(is_other) {
            *self.live = None;
        }
        self.live
            .get_or_insert_with(|| LiveSession::new(Arc::clone(manager), name, rules))
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
