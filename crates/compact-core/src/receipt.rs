//! The receipt: what happened in a compaction, as JSON that `verify` can recompute.
//!
//! `receipt_id` is a hash of the inputs, never of time, path or output, so that the summary can
//! name the receipt that describes it.

mod note;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::identity::Chain;
use crate::policy::Policy;
use crate::prompt::{ProseCoverage, SummaryContent};
use crate::summarize::Style;
use crate::token::Tokens;
use crate::verify::Retention;
use crate::wire::Placement;

pub use note::{CutRequest, ReceiptNote};

/// The version of the engine's decisions; part of every receipt's identity. The number behind the
/// package's counts the changes of views within one version of it.
pub const ENGINE: &str = concat!("compact ", env!("CARGO_PKG_VERSION"), "+12");

/// What came of a request to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// There is a new view.
    Compacted,
    /// The history was already within the budget; nothing was written.
    Unchanged,
}

/// Counts of what stayed and what went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptCounts {
    /// Pinned entries, leading instructions included.
    pub pinned: u64,
    /// Turns of which a message stayed.
    pub recent_turns: u64,
    /// Tool exchanges that stayed.
    pub tool_pairs: u64,
    /// Entries that stayed with their texts cut.
    pub clipped: u64,
    /// Of what was said last and nobody has answered, entries that were cut or left out.
    #[serde(default)]
    pub newest_cut: u64,
}

/// A run of entries by ordinal, both ends included.
pub type OrdinalSpan = (u64, u64);

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// What came of it.
    pub outcome: OutcomeKind,
    /// The hash of the inputs.
    pub receipt_id: String,
    /// The session.
    pub session_id: String,
    /// The chain over every input entry.
    pub source_hash: Chain,
    /// The receipt of the compaction before, when this one continues it.
    pub previous: Option<String>,
    /// Version of engine and templates.
    pub engine: String,
    /// History tokens before.
    pub tokens_before: Tokens,
    /// History tokens after.
    pub tokens_after: Tokens,
    /// What the view was allowed.
    pub budget: Tokens,
    /// What its summary was promised; `None` for all that the recent part leaves.
    pub summary_limit: Option<Tokens>,
    /// System and tools, which the host re-sends and a budget does not bound.
    pub tokens_fixed: Tokens,
    /// Tokens of the summary.
    pub summary_tokens: Tokens,
    /// How they were counted.
    pub estimator: String,
    /// The wire whose rules the view obeys.
    pub wire: String,
    /// The model, when known.
    pub model: Option<String>,
    /// N of the rolling summary.
    pub summary_version: u32,
    /// Who wrote the summary.
    pub summarizer: String,
    /// How it is told.
    pub style: Style,
    /// Where it stands.
    pub placement: Placement,
    /// The policy in force.
    pub policy: Policy,
    /// How far down the ladder the plan went.
    pub rung: String,
    /// What stayed.
    pub kept: KeptCounts,
    /// Ordinals of entries in the view.
    pub kept_spans: Vec<OrdinalSpan>,
    /// Ordinals of the view's history in its order; the summary has the one that comes next.
    pub view_spans: Vec<OrdinalSpan>,
    /// Ordinals of input entries that the summary stands for.
    pub summarized_spans: Vec<OrdinalSpan>,
    /// How many input entries left the view.
    pub pruned_count: u64,
    /// The proof of what was kept.
    pub retention: Retention,
    /// How many placeholders of each redaction rule stand in the summary.
    pub redactions: BTreeMap<String, u64>,
    /// Names the redaction rules of summary and archive; `None` before receipts had it.
    #[serde(default)]
    pub redaction_fingerprint: Option<String>,
    /// How many summaries that say they are ours, and that nothing here proves, were read as a model's
    /// words.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub carried: u64,
    /// What a person should know: clipped requests, repaired pairs.
    pub notes: Vec<ReceiptNote>,
    /// The person's wish for this compaction.
    pub note: Option<String>,
    /// What a model was asked and shown, when the summary has words of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prose: Option<ProseUse>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A model's part in a summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProseUse {
    /// What it was asked, and which version of that.
    pub template: String,
    /// What it was shown.
    #[serde(flatten)]
    pub coverage: ProseCoverage,
    /// What its words take of the summary.
    pub prose_tokens: Tokens,
}

/// Everything that a receipt's identity rests on: whatever can change the view, or what the archive
/// keeps of its original. Two compactions that differ in any of it are two receipts, each with its record.
///
/// Inputs without a field of their own are covered so:
/// - the window and a provider's counts decide the budget, and nothing after it;
/// - prices of pictures and documents follow from the format and the model that `original` names;
/// - protected names, patterns, flags and roles, and the style of the summary, are in `policy`;
/// - a summarizer, what it was asked and what it was shown change only `words`, an embedder only `shape`;
/// - our own templates and the prices of formats change with `engine`, and so do the maintained rules,
///   which `redaction` covers as well because views are shown by other versions of the engine;
/// - the ledger is drawn from the entries and from what `previous` names, under `redaction`.
///
/// Functions of a program's own, an estimator or a redactor, count by their names.
#[derive(Serialize)]
pub(crate) struct ReceiptIdentity<'a> {
    /// The engine's version.
    pub engine: &'a str,
    /// The chain over the entries.
    pub source: Chain,
    /// Call ids, kinds and flags in order: not part of a conversation's identity, but of its bytes.
    pub shape: u64,
    /// The prior receipt.
    pub previous: Option<&'a str>,
    /// The policy.
    pub policy: &'a Policy,
    /// The budget.
    pub budget: Tokens,
    /// The most that the summary may cost.
    pub summary_limit: Option<Tokens>,
    /// A digest of the bytes that the entries were read from.
    pub original: &'a str,
    /// The estimator.
    pub estimator: &'a str,
    /// The wire.
    pub wire: &'a str,
    /// The redaction of the summary and of the archive; see [`crate::redact::fingerprint`].
    pub redaction: String,
    /// Whether the original is kept: what the view leaves out is recoverable, or lost.
    pub is_archived: bool,
    /// The person's wish.
    pub note: Option<&'a str>,
    /// What the summary is made of, unless it is the ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<&'a SummaryContent>,
}

impl ReceiptIdentity<'_> {
    /// The receipt's id.
    pub(crate) fn receipt_id(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        blake3::hash(&json).to_hex().chars().take(32).collect()
    }
}

/// The ordinals of inclusive runs.
pub fn span_ordinals(spans: &[OrdinalSpan]) -> impl Iterator<Item = u64> {
    spans.iter().flat_map(|(first, last)| *first..=*last)
}

/// Ordinals as inclusive runs, in their order.
pub(crate) fn ordinal_spans(ordinals: impl IntoIterator<Item = u64>) -> Vec<OrdinalSpan> {
    let mut runs: Vec<OrdinalSpan> = Vec::new();
    for ordinal in ordinals {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == ordinal => *last = ordinal,
            _ => runs.push((ordinal, ordinal)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_become_runs() {
        assert_eq!(
            ordinal_spans([1, 2, 3, 7, 9, 10]),
            [(1, 3), (7, 7), (9, 10)]
        );
        assert_eq!(ordinal_spans([]), []);
        let view = [0, 9, 4, 5, 6];
        assert_eq!(
            span_ordinals(&ordinal_spans(view)).collect::<Vec<_>>(),
            view
        );
    }
}
