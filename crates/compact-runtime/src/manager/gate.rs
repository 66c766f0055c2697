//! Decides, once and for all, whether a compaction goes on record or is given up.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

const OPEN: u8 = 0;
const ENTERED: u8 = 1;
const CLOSED: u8 = 2;

/// Open until a compaction enters it or somebody closes it, whichever comes first.
#[derive(Debug, Default)]
pub(crate) struct CommitGate {
    state: AtomicU8,
    shut: Notify,
}

impl CommitGate {
    fn try_set(&self, to: u8) -> bool {
        let order = Ordering::AcqRel;
        let turned = self
            .state
            .compare_exchange(OPEN, to, order, Ordering::Acquire);
        turned.is_ok()
    }

    /// Lets a compaction go on record; false when it was given up before.
    pub(super) fn enter(&self) -> bool {
        self.try_set(ENTERED)
    }

    /// Gives the compaction up; false when it is too late for that.
    pub(crate) fn close(&self) -> bool {
        let closed = self.try_set(CLOSED);
        if closed {
            self.shut.notify_one();
        }
        closed
    }

    /// Waits until it is given up.
    pub(super) async fn wait_closed(&self) {
        self.shut.notified().await;
    }
}
