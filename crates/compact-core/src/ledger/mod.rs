//! The ledger: what a session has established, drawn from its entries, each fact with its source.
//!
//! Deterministic, incremental and mergeable: `ledger(a + b) == merge(ledger(a), ledger(b))` at
//! exchange boundaries. Links between facts (error → fix, superseded constraint) resolve at render.

use serde::{Deserialize, Serialize};

use crate::message::Entry;

/// Everything known about a session so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The ordinal that the next entry will get.
    pub next: u64,
}

impl Ledger {
    /// Draws the facts of `entries`, whose first one has ordinal `first` in its session.
    pub fn of(entries: &[Entry], first: u64) -> Ledger {
        Ledger {
            next: first + entries.len() as u64,
        }
    }

    /// Adds a later ledger to this one.
    pub fn merge(&mut self, later: Ledger) {
        self.next = later.next;
    }
}
