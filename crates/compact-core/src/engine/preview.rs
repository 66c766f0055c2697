//! What a compaction would do, without doing it: its plan, what it must hold, what it would leave out.

use crate::error::CompactError;
use crate::event::ReceiptBrief;
use crate::frame::WayBack;
use crate::halves;
use crate::message::Entry;
use crate::plan::{self, Plan, RoomClaims, UnitFate};
use crate::prompt::SummarySource;
use crate::receipt::KeptCounts;
use crate::token::EstimatorExt;

use super::measured::MeasuredHistory;
use super::run::plan_history;
use super::{CompactionInput, report};

/// The verdict and shape of a compaction without its summary: what `plan` shows.
pub fn preview(input: &CompactionInput<'_>) -> Result<Plan, CompactError> {
    MeasuredHistory::new(input)?.make_plan()
}

/// What a compaction of this input is going to do, in the numbers of a receipt: what its view keeps and
/// leaves out, and what its summary may cost at most.
pub fn planned_counts(input: &CompactionInput<'_>) -> Result<ReceiptBrief, CompactError> {
    let (measured, plan) = plan_ahead(input)?;
    let units = measured.outline.units.iter().zip(&plan.fates);
    let count = |is_counted: fn(&UnitFate) -> bool| {
        let counted = units.clone().filter(|(_, fate)| is_counted(fate));
        counted.map(|(unit, _)| unit.entries.len() as u64).sum()
    };
    Ok(ReceiptBrief {
        kept: KeptCounts {
            clipped: count(|fate| matches!(fate, UnitFate::Clipped(_))),
            ..report::count_fates(&measured.outline, &plan.fates)
        },
        pruned_count: count(|fate| *fate == UnitFate::Demoted),
        summary_tokens: input.estimator.to_tokens(plan.summary),
        receipt_id: None,
    })
}

/// Plans; beside that weighs the names, where somebody keeps them for the compaction that comes next.
fn plan_ahead<'i, 'a>(
    input: &'i CompactionInput<'a>,
) -> Result<(MeasuredHistory<'i, 'a>, Plan), CompactError> {
    let Some(prepared) = input.prepared.filter(|prepared| !prepared.knows_names()) else {
        return plan_history(input);
    };
    let (planned, _) = halves::do_beside(|| plan_history(input), || prepared.rank_names(input));
    planned
}

/// What a view of this input must hold, whatever its budget: what budgets are made of.
pub fn room_claims(input: &CompactionInput<'_>) -> Result<RoomClaims, CompactError> {
    let measured = MeasuredHistory::with_way_back(input, WayBack::Explained)?;
    Ok(plan::count_claims(&measured.plan_input()))
}

/// What the view of this input leaves out or cuts: what a model may be asked to summarize.
pub fn summary_source<'a>(input: &CompactionInput<'a>) -> Result<SummarySource<'a>, CompactError> {
    let measured = MeasuredHistory::new(input)?;
    let plan = measured.make_plan()?;
    let units = &measured.outline.units;
    let entries: &'a [Entry] = &input.conversation.entries;
    let gone = units
        .iter()
        .zip(&plan.fates)
        .filter(|(_, fate)| matches!(fate, UnitFate::Demoted | UnitFate::Clipped(_)));
    let numbered = gone
        .flat_map(|(unit, _)| unit.entries.clone())
        .filter_map(|at| Some((*measured.ordinals.get(at)?, entries.get(at)?)));
    let first = measured.outline.first_user();
    let goal = first.and_then(|unit| units.get(unit));
    Ok(SummarySource {
        goal: goal.and_then(|unit| entries.get(unit.entries.start)),
        note: input.note,
        ..SummarySource::new(numbered.collect(), input.redactor, input.estimator)
    })
}
