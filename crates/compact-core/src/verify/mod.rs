//! Retention: which anchors of the dropped span the finished view still shows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ledger::Ledger;

/// The proof of a compaction: anchors = kept + recoverable + lost + redacted; repaired ⊂ kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Retention {
    /// kept ÷ anchors; 1 when there was nothing to keep.
    pub score: f64,
    /// What was worth keeping in the dropped span.
    pub anchors: u64,
    /// Shown by the view.
    pub kept: u64,
    /// Of those, put back by repair.
    pub repaired: u64,
    /// Not shown, but in the archive.
    pub recoverable: u64,
    /// Neither shown nor archived.
    pub lost: u64,
    /// Withheld by redaction.
    pub redacted: u64,
}

/// One thing worth keeping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The text to look for.
    pub text: String,
    /// A whole line that carries it, to put back if it is missing.
    pub line: String,
}

/// The anchors of the entries with ordinals in `dropped`, the most needed first.
pub fn anchors(_ledger: &Ledger, _dropped: &dyn Fn(u64) -> bool) -> Vec<Anchor> {
    Vec::new()
}

/// Which anchors `text` shows.
pub fn shown(anchors: &[Anchor], _text: &str) -> Vec<bool> {
    vec![false; anchors.len()]
}

/// A summary with the lines of missing anchors added, as far as `room` allows.
pub fn repair(
    body: &str,
    _missing: &[&Anchor],
    _room: crate::token::Units,
    _estimator: &dyn crate::token::Estimator,
) -> String {
    body.to_owned()
}
