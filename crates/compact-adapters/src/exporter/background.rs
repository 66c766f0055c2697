//! A bounded queue and a thread in front of a sink that may be slow, hang or panic.
//!
//! When the queue is full the newest event is dropped and counted: a compaction never waits for
//! its reporters.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use compact_runtime::port::event::EventSink;
use serde_json::Value;

/// How many events wait at most.
const CAPACITY: usize = 1024;

/// Passes events to a sink on a thread of its own. Call [`Background::flush`] before the program
/// ends, or what still waits is lost.
#[derive(Debug)]
pub struct Background {
    queue: SyncSender<Value>,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    counts: Mutex<Counts>,
    moved: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    waiting: u64,
    dropped: u64,
}

/// What became of one event.
enum Fate {
    Delivered,
    Dropped,
}

impl Progress {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, fate: &Fate) {
        let mut counts = self.counts();
        counts.waiting = counts.waiting.saturating_sub(1);
        if matches!(fate, Fate::Dropped) {
            counts.dropped += 1;
        }
        self.moved.notify_all();
    }
}

impl Background {
    /// Starts the thread. If the system has none to give, every event counts as dropped.
    pub fn new(sink: impl EventSink + 'static) -> Background {
        let (queue, events) = sync_channel(CAPACITY);
        let progress = Arc::new(Progress::default());
        let worker = Arc::clone(&progress);
        let name = "compact-events".to_owned();
        let _ = thread::Builder::new()
            .name(name)
            .spawn(move || deliver(&sink, &events, &worker));
        Background { queue, progress }
    }

    /// How many events could not be passed on so far.
    pub fn dropped(&self) -> u64 {
        self.progress.counts().dropped
    }

    /// Waits until everything is passed on, at most for `timeout`; returns how many events still
    /// wait.
    pub fn flush(&self, timeout: Duration) -> u64 {
        let counts = self.progress.counts();
        let waited = self
            .progress
            .moved
            .wait_timeout_while(counts, timeout, |counts| counts.waiting > 0);
        let (counts, _) = waited.unwrap_or_else(PoisonError::into_inner);
        counts.waiting
    }
}

impl EventSink for Background {
    fn emit(&self, event: &Value) {
        self.progress.counts().waiting += 1;
        if self.queue.try_send(event.clone()).is_err() {
            self.progress.settle(&Fate::Dropped);
        }
    }
}

fn deliver(sink: &dyn EventSink, events: &Receiver<Value>, progress: &Progress) {
    for event in events {
        let fate = match catch_unwind(AssertUnwindSafe(|| sink.emit(&event))) {
            Ok(()) => Fate::Delivered,
            Err(_) => Fate::Dropped,
        };
        progress.settle(&fate);
    }
}
