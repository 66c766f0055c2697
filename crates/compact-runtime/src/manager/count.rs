//! Counting shared by threads: each takes the next few entries until none is left.

use std::borrow::Borrow;
use std::sync::atomic::{AtomicUsize, Ordering};

use compact_core::halves::do_beside;
use compact_core::identity::EntryHash;
use compact_core::message::Entry;
use compact_core::token::{Estimator, EstimatorExt, TokenCache, Units};

/// Entries taken at a time: few enough to end together, many enough not to meet often.
const BATCH: usize = 16;

/// Fewer entries are counted before a second thread has begun.
pub(super) const WORTH_A_THREAD: usize = 4 * BATCH;

/// The entries that are still to be counted.
pub(super) struct EntryCounter<'a, E> {
    entries: &'a [E],
    estimator: &'a dyn Estimator,
    next: AtomicUsize,
}

impl<'a, E: Borrow<Entry> + Sync> EntryCounter<'a, E> {
    pub(super) fn new(entries: &'a [E], estimator: &'a dyn Estimator) -> Self {
        EntryCounter {
            entries,
            estimator,
            next: AtomicUsize::new(0),
        }
    }

    /// Counts until nothing is left: handfuls with the place of their first entry.
    pub(super) fn count(&self) -> Vec<(usize, Vec<Units>)> {
        let mut counted = Vec::new();
        loop {
            let at = self.next.fetch_add(BATCH, Ordering::Relaxed);
            let end = (at + BATCH).min(self.entries.len());
            let Some(entries) = self.entries.get(at..end).filter(|e| !e.is_empty()) else {
                return counted;
            };
            let count = |entry: &E| self.estimator.count_entry(entry.borrow());
            counted.push((at, entries.iter().map(count).collect()));
        }
    }

    /// Does something else and counts with what is left of the time, while a second thread counts: what that gave, and all
    /// units in order.
    pub(super) fn count_beside<T>(&self, first: impl FnOnce() -> T) -> (T, Vec<Units>) {
        let ((other, mine), theirs) = do_beside(|| (first(), self.count()), || self.count());
        let mut counted = [mine, theirs].concat();
        counted.sort_unstable_by_key(|(at, _)| *at);
        (
            other,
            counted.into_iter().flat_map(|(_, units)| units).collect(),
        )
    }
}

/// Counts what the cache does not know yet, on two threads.
pub(super) fn fill_cache<'a>(
    cache: &mut TokenCache,
    live: impl Iterator<Item = (&'a Entry, &'a EntryHash)>,
    estimator: &dyn Estimator,
) {
    let new: Vec<_> = live
        .filter(|(entry, hash)| !cache.knows(**hash, entry))
        .collect();
    // Many entries that are known already are found, not counted.
    if new.len() <= WORTH_A_THREAD {
        return;
    }
    let entries: Vec<&Entry> = new.iter().map(|(entry, _)| *entry).collect();
    let ((), units) = EntryCounter::new(&entries, estimator).count_beside(|| ());
    for ((entry, hash), units) in new.into_iter().zip(units) {
        cache.remember(*hash, entry, units);
    }
}
