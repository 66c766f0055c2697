//! A live session of an engine: used by one thread at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use compact::message::Chain;
use compact::{Compact, Session};
use pyo3::PyErr;

use crate::exchange::PassedHistory;
use crate::failure::{ErrorClass, error_with_message};

/// A session, and who holds it.
#[derive(Default)]
pub(crate) struct SessionSlot {
    live: Mutex<SlotContent>,
    holder: Mutex<Option<ThreadId>>,
}

#[derive(Default)]
struct SlotContent {
    session: Option<Session>,
    /// The history that it was passed last; `None` where a call failed since.
    passed: Option<PassedHistory>,
}

/// A session that this thread holds.
pub(crate) struct HeldSession<'a> {
    slot: &'a SessionSlot,
    live: MutexGuard<'a, SlotContent>,
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
        self.live
            .session
            .get_or_insert_with(|| compact.session(name))
    }

    /// Takes what is known of the history that was passed last.
    pub(crate) fn take_passed(&mut self) -> Option<PassedHistory> {
        self.live.passed.take()
    }

    /// Notes the history that was passed last.
    pub(crate) fn note_passed(&mut self, passed: PassedHistory) {
        self.live.passed = Some(passed);
    }

    /// Returns whether a history with these beginnings continues the session.
    pub(crate) fn is_continued_by(&self, beginnings: &[Chain]) -> bool {
        let state = self.live.session.as_ref().and_then(Session::state);
        let chains = state.map(|state| state.continuation_chains());
        let chains = chains.unwrap_or_default();
        chains.is_empty() || chains.iter().any(|chain| beginnings.contains(chain))
    }

    /// Returns the session, if it was created.
    pub(crate) fn existing_session(&mut self) -> Option<&mut Session> {
        self.live.session.as_mut()
    }
}

impl Drop for HeldSession<'_> {
    fn drop(&mut self) {
        *self.slot.lock_holder() = None;
    }
}
