//! A bounded queue and a thread in front of whatever may be slow, hang or panic.
//!
//! When the queue is full the newest event is dropped and counted: a compaction never waits for
//! its reporters.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use compact_core::event::Event;
use compact_runtime::port::event::EventSink;

use super::ExportedEvent;

/// How many events wait at most.
const CAPACITY: usize = 1024;

/// How many events are taken from the queue at a time.
const BURST: usize = 256;

/// Takes events in bursts, on a thread where it may take its time.
pub trait BatchExporter: Send {
    /// What it takes as an event.
    type Item: Send + 'static;

    /// Passes a burst on and answers how many of its events were lost. `dropped` is how many were
    /// lost before, for whoever reports it.
    fn export_batch(&mut self, burst: Vec<Self::Item>, dropped: u64) -> u64;

    /// Returns when to call [`BatchExporter::flush`] if no event comes before.
    fn time_to_flush(&self) -> Option<Duration> {
        None
    }

    /// Passes on whatever it holds back.
    fn flush(&mut self, _dropped: u64) {}
}

/// A sink as it is: each event by itself, so that one that panics loses that one.
struct SingleEventExporter<S>(S);

impl<S: EventSink> BatchExporter for SingleEventExporter<S> {
    type Item = Event;

    fn export_batch(&mut self, burst: Vec<Event>, _dropped: u64) -> u64 {
        let emit = |event| catch_unwind(AssertUnwindSafe(|| self.0.emit(event)));
        burst.iter().filter(|event| emit(event).is_err()).count() as u64
    }
}

/// How long one that is dropped waits for what it has not passed on.
const DROP_TIMEOUT: Duration = Duration::from_millis(1500);

/// Passes events on from a thread of its own. What still waits when it is dropped is waited for, a little;
/// where a program ends without dropping it, call [`BackgroundSink::flush`] before.
#[derive(Debug)]
pub struct BackgroundSink<Item = Event> {
    queue: SyncSender<QueueItem<Item>>,
    progress: Arc<DeliveryProgress>,
}

#[derive(Debug)]
enum QueueItem<Item> {
    Event(Item),
    Flush,
}

#[derive(Debug, Default)]
struct DeliveryProgress {
    counts: Mutex<DeliveryCounts>,
    moved: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct DeliveryCounts {
    waiting: u64,
    dropped: u64,
    flushes: u64,
}

impl DeliveryProgress {
    fn lock_counts(&self) -> MutexGuard<'_, DeliveryCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_delivery(&self, events: u64, lost: u64) {
        let mut counts = self.lock_counts();
        counts.waiting = counts.waiting.saturating_sub(events);
        counts.dropped += lost;
        self.moved.notify_all();
    }

    fn record_flush(&self) {
        let mut counts = self.lock_counts();
        counts.flushes = counts.flushes.saturating_sub(1);
        self.moved.notify_all();
    }
}

impl BackgroundSink {
    /// Returns a sink behind a queue.
    pub fn new(sink: impl EventSink + 'static) -> BackgroundSink {
        BackgroundSink::with_exporter(SingleEventExporter(sink))
    }
}

impl<Item: Send + 'static> BackgroundSink<Item> {
    /// Starts the thread. If the system has none to give, every event counts as dropped.
    pub fn with_exporter(courier: impl BatchExporter<Item = Item> + 'static) -> Self {
        let (queue, items) = sync_channel(CAPACITY);
        let progress = Arc::new(DeliveryProgress::default());
        let worker = ExportWorker {
            courier,
            items,
            progress: Arc::clone(&progress),
        };
        let _ = thread::Builder::new()
            .name("compact-events".to_owned())
            .spawn(move || worker.run());
        BackgroundSink { queue, progress }
    }

    /// Passes an event on, or drops it where the queue is full; never waits.
    pub fn push(&self, event: Item) {
        self.progress.lock_counts().waiting += 1;
        if self.queue.try_send(QueueItem::Event(event)).is_err() {
            self.progress.record_delivery(1, 1);
        }
    }

    /// Returns how many events could not be passed on so far.
    pub fn dropped(&self) -> u64 {
        self.progress.lock_counts().dropped
    }

    /// Waits until everything is passed on, at most for `timeout`; returns how many events still
    /// wait.
    pub fn flush(&self, timeout: Duration) -> u64 {
        self.wait_for_delivery(timeout)
    }
}

impl<Item> BackgroundSink<Item> {
    fn wait_for_delivery(&self, timeout: Duration) -> u64 {
        let mut counts = self.progress.lock_counts();
        if self.queue.try_send(QueueItem::Flush).is_ok() {
            counts.flushes += 1;
        }
        let is_behind = |counts: &mut DeliveryCounts| counts.waiting > 0 || counts.flushes > 0;
        let moved = &self.progress.moved;
        let waited = moved.wait_timeout_while(counts, timeout, is_behind);
        let (counts, _) = waited.unwrap_or_else(PoisonError::into_inner);
        counts.waiting
    }
}

impl<Item> Drop for BackgroundSink<Item> {
    fn drop(&mut self) {
        self.wait_for_delivery(DROP_TIMEOUT);
    }
}

impl EventSink for BackgroundSink<Event> {
    fn emit(&self, event: &Event) {
        self.push(event.clone());
    }
}

impl EventSink for BackgroundSink<ExportedEvent> {
    fn emit(&self, event: &Event) {
        self.push(event.into());
    }
}

struct ExportWorker<C: BatchExporter> {
    courier: C,
    items: Receiver<QueueItem<C::Item>>,
    progress: Arc<DeliveryProgress>,
}

impl<C: BatchExporter> ExportWorker<C> {
    fn run(mut self) {
        loop {
            let first = match self.courier.time_to_flush() {
                Some(wait) => self.items.recv_timeout(wait),
                None => self.items.recv().map_err(RecvTimeoutError::from),
            };
            match first {
                Ok(first) => self.export_burst(first),
                Err(RecvTimeoutError::Timeout) => self.flush(),
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
        }
    }

    /// Everything that waits, as far as a burst goes; a flush within it comes after its events.
    fn export_burst(&mut self, first: QueueItem<C::Item>) {
        let mut events = Vec::new();
        let mut flushes = 0;
        for item in std::iter::once(first).chain(self.items.try_iter().take(BURST - 1)) {
            match item {
                QueueItem::Event(event) => events.push(event),
                QueueItem::Flush => flushes += 1,
            }
        }
        let (count, dropped) = (events.len() as u64, self.progress.lock_counts().dropped);
        if count > 0 {
            let carry = AssertUnwindSafe(|| self.courier.export_batch(events, dropped));
            let lost = catch_unwind(carry).unwrap_or(count);
            self.progress.record_delivery(count, lost);
        }
        for _ in 0..flushes {
            self.flush();
            self.progress.record_flush();
        }
    }

    fn flush(&mut self) {
        let dropped = self.progress.lock_counts().dropped;
        let _ = catch_unwind(AssertUnwindSafe(|| self.courier.flush(dropped)));
    }
}
