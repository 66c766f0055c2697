//! Who speaks in the summary: the ledger, a model with the ledger behind it, or next to nobody.

use crate::plan::Plan;
use crate::prompt::ModelProse;
use crate::summarize::SummaryBody;
use crate::token::{Estimator, EstimatorExt, Tokens, Units};

/// The one sentence of a minimal summary.
const MINIMAL: &str = include_str!("../../templates/minimal.txt");

/// What one attempt at a summary is made of.
#[derive(Clone, Copy)]
pub(super) enum SummaryAttempt<'p> {
    Ledger,
    /// A model's words in this share of the body, then the ledger.
    Prose(&'p ModelProse, u64),
    Minimal,
    Nothing,
}

impl SummaryAttempt<'_> {
    /// What a summary of this kind may cost at most.
    pub(super) fn limit(self, plan: &Plan, estimator: &dyn Estimator) -> Units {
        let extra = match self {
            SummaryAttempt::Prose(prose, _) => prose.extra,
            SummaryAttempt::Ledger | SummaryAttempt::Minimal | SummaryAttempt::Nothing => Tokens(0),
        };
        (plan.summary + estimator.to_units(extra)).min(plan.free)
    }

    /// True where anchors that the summary lacks are put back.
    pub(super) fn is_repaired(self) -> bool {
        matches!(self, SummaryAttempt::Ledger | SummaryAttempt::Prose(..))
    }
}

/// The one sentence that says to go on, if it fits.
pub(super) fn minimal_body(allowance: Units, estimator: &dyn Estimator) -> SummaryBody {
    let text = MINIMAL.trim_end().to_owned();
    let cost = estimator.count_units(&text);
    match cost <= allowance {
        true => SummaryBody { text, cost },
        false => SummaryBody::default(),
    }
}
