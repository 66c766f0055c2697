//! The pipeline: measured entries in, a frozen and verified view out.
//!
//! [`compact`] is one compaction, on values alone; `run.rs` reads from top to bottom as it happens:
//! `measure → plan → summarize → assemble → conform → verify → validate → receipt`. The other files have
//! one job each and never call back. The caller counts and decides before, archives and records after.
//! The same input gives the same bytes.

mod attempt;
mod claim;
mod cost;
mod draft;
mod input;
mod left_out;
mod measured;
mod prepared;
mod preview;
mod prior;
mod receipt_id;
mod report;
mod retention;
mod run;
mod visible;

use crate::identity::EntryHash;
use crate::receipt::Receipt;
use crate::view::View;

pub use crate::assemble::move_summary_for;
pub use crate::budget::ViewBounds;
pub use crate::conform::{BRIDGE, conform, loop_is_whole};
pub use crate::plan::{LadderRung, Plan, RoomClaims, UnitFate};
pub use crate::prune::meaning::MeaningVector;
pub use claim::{claims_summary, classify_summaries};
pub use input::{CompactionInput, Originals};
pub use left_out::{LeftOutName, NameLoss, find_left_out};
pub use prepared::Preparation;
pub use preview::{planned_counts, preview, room_claims, summary_source};
pub(crate) use prior::entry_ordinals;
pub use prior::{Prior, TakenBack, common_prefix, ledger_without, session_ledger};
pub use run::compact;

/// A finished compaction, not yet committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Compaction {
    /// What the model is to see.
    pub view: View,
    /// What happened.
    pub receipt: Receipt,
    /// Identity and ordinal of each history entry of the view: the next prior.
    pub view_identity: Vec<(EntryHash, u64)>,
}

/// What came of a request to compact.
#[derive(Clone, Debug, PartialEq)]
pub enum CompactionOutcome {
    /// The history is within the budget.
    Unchanged,
    /// There is a new view.
    Compacted(Box<Compaction>),
}
