//! Counting shared by threads: each takes the next few entries until none is left.

use std::sync::atomic::{AtomicUsize, Ordering};

use compact_core::message::Entry;
use compact_core::token::{Estimator, EstimatorExt, Units};

/// Entries taken at a time: few enough to end together, many enough not to meet often.
const HANDFUL: usize = 16;

/// The entries that are still to be counted.
pub(super) struct Tally<'a> {
    entries: &'a [Entry],
    estimator: &'a dyn Estimator,
    next: AtomicUsize,
}

impl<'a> Tally<'a> {
    pub(super) fn new(entries: &'a [Entry], estimator: &'a dyn Estimator) -> Self {
        Tally {
            entries,
            estimator,
            next: AtomicUsize::new(0),
        }
    }

    /// Counts until nothing is left: handfuls with the place of their first entry.
    pub(super) fn count(&self) -> Vec<(usize, Vec<Units>)> {
        let mut counted = Vec::new();
        loop {
            let at = self.next.fetch_add(HANDFUL, Ordering::Relaxed);
            let end = (at + HANDFUL).min(self.entries.len());
            let Some(entries) = self.entries.get(at..end).filter(|e| !e.is_empty()) else {
                return counted;
            };
            let units = entries.iter().map(|e| self.estimator.entry(e)).collect();
            counted.push((at, units));
        }
    }
}
