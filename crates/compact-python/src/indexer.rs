//! The recall index of an engine, brought up to date after compactions on a thread of its own.
//!
//! The thread never calls Python and yields to everything else on the machine. It may end with the process at any
//! moment: what is missing is added by the next thread, or by whoever searches.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use compact::Compact;
use compact::store::yield_to_others;
use tokio::runtime::Builder;

/// Starts the thread when there is something to add, and at most one at a time.
#[derive(Clone)]
pub(crate) struct Indexer {
    compact: Compact,
    state: Arc<(Mutex<IndexerState>, Condvar)>,
}

#[derive(Default)]
struct IndexerState {
    is_running: bool,
    /// Whether something was archived since the thread last looked.
    is_behind: bool,
}

impl Indexer {
    pub(crate) fn new(compact: Compact) -> Indexer {
        Indexer {
            compact,
            state: Arc::default(),
        }
    }

    /// Has what was archived added to the index; returns at once.
    pub(crate) fn start(&self) {
        let is_running = self.change_state(|state| {
            state.is_behind = true;
            std::mem::replace(&mut state.is_running, true)
        });
        if is_running {
            return;
        }
        let indexer = self.clone();
        let thread = thread::Builder::new().name("compact-index".to_owned());
        if thread.spawn(move || indexer.run()).is_err() {
            self.change_state(|state| state.is_running = false);
        }
    }

    /// Waits until the thread has ended, for at most `limit`: what it works on may then be removed.
    pub(crate) fn wait(&self, limit: Duration) {
        let (state, ended) = &*self.state;
        let held = state.lock().unwrap_or_else(PoisonError::into_inner);
        // What could not be waited for is no error: the thread leaves everything whole.
        let _ = ended.wait_timeout_while(held, limit, |state| state.is_running);
    }

    fn run(&self) {
        yield_to_others();
        // Threads that this runtime starts are started by this one, and as patient.
        let runtime = Builder::new_current_thread().enable_all().build();
        while self.change_state(IndexerState::take_work) {
            if let Ok(runtime) = &runtime {
                let _ = runtime.block_on(self.compact.index_archive());
            }
        }
        self.state.1.notify_all();
    }

    fn change_state<T>(&self, change: impl FnOnce(&mut IndexerState) -> T) -> T {
        let mut state = self.state.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state)
    }
}

impl IndexerState {
    /// Returns whether there is work, and takes it; without any, the thread ends.
    fn take_work(&mut self) -> bool {
        self.is_running = std::mem::take(&mut self.is_behind);
        self.is_running
    }
}
