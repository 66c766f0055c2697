//! Entries that were cut, kept while a compaction is made: its plan prices them, its summary looks at what is left of
//! them and its view shows it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::FixedState;

use super::{ClipPointer, clip_entry};
use crate::message::Entry;
use crate::token::{Estimator, EstimatorExt, Units};
use crate::view::{self, BlockEdit};

/// What cutting an entry comes to.
#[derive(Clone)]
pub(crate) struct CutEntry {
    /// The cuts.
    pub edits: Arc<[(usize, BlockEdit)]>,
    /// By how much they lower its cost.
    pub saved: Units,
}

/// The entries of one conversation that were cut, by their places and levels.
#[derive(Default)]
pub(crate) struct CutEntries(Mutex<CutsOfReceipt>);

/// The cuts that point to one receipt.
#[derive(Default)]
struct CutsOfReceipt {
    receipt: String,
    cuts: HashMap<(usize, u64), CutEntry, FixedState>,
}

impl CutEntries {
    /// Cuts the entry at a place as [`clip_entry`] does, once for each level.
    pub(crate) fn cut_entry(
        &self,
        (at, entry): (usize, &Entry),
        level: Units,
        estimator: &dyn Estimator,
        pointer: ClipPointer<'_>,
    ) -> CutEntry {
        if let Some(known) =
            self.of_receipt(pointer.receipt, |cuts| cuts.get(&(at, level.0)).cloned())
        {
            return known;
        }
        // An estimator may be somebody else's code: it is asked without the lock.
        let edits = clip_entry(entry, level, estimator, pointer);
        let saved = match edits.is_empty() {
            true => Units(0),
            false => {
                let cut = view::apply_edits(entry, &edits);
                estimator.count_entry(entry) - estimator.count_entry(&cut)
            }
        };
        let cut = CutEntry {
            edits: edits.into(),
            saved,
        };
        self.of_receipt(pointer.receipt, |cuts| {
            cuts.insert((at, level.0), cut.clone())
        });
        cut
    }

    /// Looks at the cuts that point to a receipt; those that point to another one are of no use any more.
    fn of_receipt<T>(
        &self,
        receipt: &str,
        look: impl FnOnce(&mut HashMap<(usize, u64), CutEntry, FixedState>) -> T,
    ) -> T {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.receipt != receipt {
            receipt.clone_into(&mut kept.receipt);
            kept.cuts.clear();
        }
        look(&mut kept.cuts)
    }
}

impl fmt::Debug for CutEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CutEntries").finish_non_exhaustive()
    }
}
