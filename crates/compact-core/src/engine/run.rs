//! One compaction, from top to bottom: measure, plan, summarize, assemble, conform, verify, validate, and
//! the receipt.
//!
//! Two steps look back. A summary that makes the view too large is rendered again with less, and one that
//! leaves much unused is rendered again beside a plan that keeps more turns. A model's words are worth
//! their tokens only while the view shows about as many anchors with them as without: they are offered a
//! share of the summary, then less, then left out. So a summary by a model is no worse than our own,
//! however poor the model.

use crate::assemble::{self, PlacedSummary};
use crate::conform;
use crate::error::CompactError;
use crate::halves;
use crate::plan::{self, Plan, PlanInput};
use crate::policy::KeepRecent;
use crate::prompt::{ModelProse, SummaryContent};
use crate::summarize::{
    self, NameRanking, RenderRequest, SummaryBody, SummaryNeighbours, VisibleTexts, prose,
};
use crate::token::{EstimatorExt, Units};
use crate::validate;
use crate::verify::{self, Anchor, Retention};

use super::attempt::{SummaryAttempt, minimal_body};
use super::cost::view_cost;
use super::draft::{RenderedBody, VerifiedDraft, ViewDraft, is_summary, redact_body};
use super::measured::MeasuredHistory;
use super::report::write_compaction;
use super::retention::count_retention;
use super::visible::{planned_texts, view_text, whole_ordinals};
use super::{CompactionInput, CompactionOutcome, Preparation};

/// Share of the summary's allowance held back for what verification finds missing: one in so many.
const REPAIR_SHARE: u64 = 200;

/// A view that leaves more than one part in so many of its budget is planned again: its summary has
/// no more to say, and turns may take what it leaves.
const UNUSED_SHARE: u64 = 16;

/// Shares of the summary that a model's words are offered, one in so many.
const PROSE_SHARES: [u64; 3] = [3, 6, 12];

/// Anchors that may give way to prose: one in so many, and at least one. Prose says what no list
/// of names can.
const PROSE_PRICE: u64 = 50;

/// A summary is rendered so often before the view goes without one: redaction and an estimator that
/// counts more in the whole than in the parts are made good in one or two.
const RENDERINGS: usize = 6;

/// Compacts, or says why not. The conversation is never changed.
pub fn compact(input: &CompactionInput<'_>) -> Result<CompactionOutcome, CompactError> {
    if input.account.history <= input.budget {
        return Ok(CompactionOutcome::Unchanged);
    }
    let (planned, ranking) = plan_and_rank(input);
    let (measured, plan) = planned?;
    let run = CompactionRun::new(&measured, ranking);
    let verified = run.summarize(&plan)?;
    let (plan, verified) = run.fill_unused(plan, verified)?;
    run.validate(&plan, &verified.draft)?;
    let compaction = write_compaction(&measured, &plan, verified);
    Ok(CompactionOutcome::Compacted(Box::new(compaction)))
}

pub(super) fn plan_history<'i, 'a>(
    input: &'i CompactionInput<'a>,
) -> Result<(MeasuredHistory<'i, 'a>, Plan), CompactError> {
    let measured = MeasuredHistory::new(input)?;
    let plan = measured.make_plan()?;
    Ok((measured, plan))
}

/// Plans, and weighs the ledger's names, for which nothing need be planned.
fn plan_and_rank<'i, 'a>(
    input: &'i CompactionInput<'a>,
) -> (
    Result<(MeasuredHistory<'i, 'a>, Plan), CompactError>,
    NameRanking<'a>,
) {
    let own = Preparation::default();
    let prepared = input.prepared.unwrap_or(&own);
    match prepared.knows_names() {
        true => (plan_history(input), prepared.rank_names(input)),
        false => halves::do_beside(|| plan_history(input), || prepared.rank_names(input)),
    }
}

/// A measured history on its way to a view.
struct CompactionRun<'m, 'i, 'a> {
    measured: &'m MeasuredHistory<'i, 'a>,
    input: &'i CompactionInput<'a>,
    scene: PlanInput<'m>,
    /// The names of the ledger by their worth.
    ranking: NameRanking<'a>,
}

impl<'m, 'i, 'a> CompactionRun<'m, 'i, 'a> {
    fn new(measured: &'m MeasuredHistory<'i, 'a>, ranking: NameRanking<'a>) -> Self {
        let input = measured.input;
        CompactionRun {
            measured,
            input,
            scene: measured.plan_input(),
            ranking,
        }
    }

    /// Plan, once more: where the summary leaves much unused, a plan that gives it to earlier turns,
    /// unless its view then shows less.
    fn fill_unused(
        &self,
        plan: Plan,
        made: VerifiedDraft,
    ) -> Result<(Plan, VerifiedDraft), CompactError> {
        let taken = made.draft.body.cost;
        if plan.summary - taken <= Units(self.measured.budget.0 / UNUSED_SHARE) {
            return Ok((plan, made));
        }
        let scene = PlanInput {
            summary_limit: taken + Units(taken.0 / UNUSED_SHARE),
            ..self.measured.plan_input()
        };
        let fuller = plan::plan_view(&scene, self.measured.budget)?;
        if fuller.fates == plan.fates || fuller.rung > plan.rung {
            return Ok((plan, made));
        }
        let filled = self.summarize(&fuller)?;
        let missing = |retention: &Retention| retention.anchors - retention.kept;
        match missing(&filled.retention) <= missing(&made.retention) {
            true => Ok((fuller, filled)),
            false => Ok((plan, made)),
        }
    }

    /// Summarize: the view of a plan with the words that the input asks for, verified and repaired.
    fn summarize(&self, plan: &Plan) -> Result<VerifiedDraft, CompactError> {
        let visible = planned_texts(&self.scene, plan);
        let fit = |attempt| self.fit_attempt(plan, &visible, attempt);
        match self.input.content {
            SummaryContent::Ledger => fit(SummaryAttempt::Ledger),
            SummaryContent::Minimal => fit(SummaryAttempt::Minimal),
            SummaryContent::Nothing => fit(SummaryAttempt::Nothing),
            SummaryContent::Prose(prose) => fit_prose(prose, fit),
        }
    }

    /// Renders and verifies until the whole view fits; what a redaction adds, or what an estimator
    /// finds in the whole that it did not find in the parts, is taken from the summary.
    fn fit_attempt(
        &self,
        plan: &Plan,
        visible: &VisibleTexts<'_>,
        attempt: SummaryAttempt<'_>,
    ) -> Result<VerifiedDraft, CompactError> {
        let limit = attempt.limit(plan, self.input.estimator);
        let mut allowance = limit - Units(limit.0 / REPAIR_SHARE);
        for _ in 0..RENDERINGS {
            let body = self.render_body(visible, attempt, allowance);
            let draft = self.assemble(plan, body);
            let room = match attempt.is_repaired() {
                true => (self.measured.budget - draft.cost).min(limit - draft.body.cost),
                false => Units(0),
            };
            let VerifiedDraft { draft, retention } = self.verify(draft, room);
            let draft = draft.count_whole(self.input);
            let over = draft.cost - self.measured.budget;
            if over == Units(0) {
                return Ok(VerifiedDraft { draft, retention });
            }
            allowance = allowance - over - Units(allowance.0 / 50 + 4);
        }
        self.without_summary(plan)
    }

    /// The view with an empty summary. Fails where even that is larger than the budget.
    fn without_summary(&self, plan: &Plan) -> Result<VerifiedDraft, CompactError> {
        let bare = self.assemble(plan, SummaryBody::default().into());
        let bare = bare.count_whole(self.input);
        if bare.cost <= self.measured.budget {
            return Ok(self.verify(bare, Units(0)));
        }
        let pinned = plan::count_claims(&self.scene).pinned - self.scene.frame;
        Err(CompactError::InsufficientBudget {
            pinned_tokens: self.input.estimator.to_tokens(pinned),
            needed: self.input.estimator.to_tokens(bare.cost),
            budget: self.input.budget,
        })
    }

    /// A body of at most this allowance.
    fn render_body(
        &self,
        visible: &VisibleTexts<'_>,
        attempt: SummaryAttempt<'_>,
        allowance: Units,
    ) -> RenderedBody {
        let estimator = self.input.estimator;
        match attempt {
            SummaryAttempt::Ledger => self.render_ledger(visible, "", allowance).into(),
            SummaryAttempt::Nothing => SummaryBody::default().into(),
            SummaryAttempt::Minimal => minimal_body(allowance, estimator).into(),
            SummaryAttempt::Prose(prose, share) => {
                let limit = Units(allowance.0 / share);
                let quoted = prose::quote_prose(&prose.author, &prose.parts, limit, estimator);
                let Some(section) = quoted else {
                    return self.render_ledger(visible, "", allowance).into();
                };
                let cost = estimator.count_units(&section);
                // A fence of its own, where the ledger needs none, costs something too.
                let rest = allowance - cost - Units(estimator.units_per_token() * 16);
                let ledger = self.render_ledger(visible, &section, rest);
                RenderedBody {
                    body: prose::join_prose(&ledger.text, &section, estimator),
                    prose: cost,
                }
            }
        }
    }

    /// The ledger's lines beside a model's words.
    fn render_ledger(&self, visible: &VisibleTexts<'_>, prose: &str, budget: Units) -> SummaryBody {
        let keep_recent = self.input.policy.keep_recent;
        let company = match (self.input.summary_limit, keep_recent) {
            (Some(_), KeepRecent::Recent | KeepRecent::LastUserMessage) => SummaryNeighbours::Turns,
            _ => SummaryNeighbours::Alone,
        };
        summarize::render_body(&RenderRequest {
            ledger: self.input.ledger,
            ranking: &self.ranking,
            style: self.input.policy.strategy,
            budget,
            estimator: self.input.estimator,
            company,
            visible,
            prose,
        })
    }

    /// Assemble and conform: the view with this body, redacted. Its cost is that of its parts: the
    /// summary was counted when it was written.
    fn assemble(&self, plan: &Plan, rendered: RenderedBody) -> ViewDraft {
        let (input, measured) = (self.input, self.measured);
        let (body, redactions) = redact_body(input, rendered.body);
        let view = assemble::assemble(&self.scene, plan, &self.placed(&body), input.rules);
        let view = conform::conform(view, input.conversation, &measured.outline, input.rules);
        let rest = view_cost(input, &view, |item| !is_summary(item));
        ViewDraft {
            cost: rest + measured.frame_cost + body.cost,
            view,
            body,
            redactions,
            prose: rendered.prose,
        }
    }

    /// The same view with other words in its summary.
    fn reword(&self, draft: &ViewDraft, body: SummaryBody) -> ViewDraft {
        let (body, redactions) = redact_body(self.input, body);
        let mut view = draft.view.clone();
        assemble::reword(&mut view, &self.placed(&body), self.input.rules);
        ViewDraft {
            cost: draft.cost - draft.body.cost + body.cost,
            view,
            body,
            redactions,
            prose: draft.prose,
        }
    }

    fn placed<'b>(&'b self, body: &'b SummaryBody) -> PlacedSummary<'b> {
        PlacedSummary {
            frame: &self.measured.frame,
            body: &body.text,
            placement: self.input.policy.placement,
        }
    }

    /// Verify: looks for the anchors of what was dropped, and puts back what is missing and fits the room.
    fn verify(&self, draft: ViewDraft, room: Units) -> VerifiedDraft {
        let input = self.input;
        let whole = whole_ordinals(&draft.view, &self.measured.ordinals);
        let is_dropped = |ordinal| !whole.contains(&ordinal);
        let anchors = verify::anchors(input.ledger, &self.ranking, &is_dropped);
        let shown = |draft: &ViewDraft| {
            verify::shown_anchors(&anchors, &view_text(&draft.view, input.conversation))
        };
        let before = shown(&draft);
        let missing: Vec<&Anchor> = anchors
            .iter()
            .zip(&before)
            .filter(|(_, shown)| !**shown)
            .map(|(anchor, _)| anchor)
            .collect();
        let repaired = verify::repair(input.ledger, &draft.body, &missing, room, input.estimator)
            .map(|body| self.reword(&draft, body))
            .filter(|repaired| repaired.cost <= self.measured.budget);
        let (draft, after) = match repaired {
            Some(repaired) => {
                let after = shown(&repaired);
                (repaired, after)
            }
            None => (draft, before.clone()),
        };
        VerifiedDraft {
            draft,
            retention: count_retention(input, &anchors, &before, &after),
        }
    }

    /// Validate: no view leaves that its provider would refuse or that is larger than its budget.
    fn validate(&self, plan: &Plan, draft: &ViewDraft) -> Result<(), CompactError> {
        let (input, outline) = (self.input, &self.measured.outline);
        validate::validate(&draft.view, input.conversation, outline, plan, input.rules)
            .map_err(CompactError::InvalidView)?;
        if draft.cost > self.measured.budget {
            return Err(CompactError::InvalidView(format!(
                "{} tokens in a budget of {}",
                input.estimator.to_tokens(draft.cost),
                input.budget
            )));
        }
        Ok(())
    }
}

/// The first attempt at a model's words that costs few anchors, else the ledger alone.
fn fit_prose<'p>(
    prose: &'p ModelProse,
    fit: impl Fn(SummaryAttempt<'p>) -> Result<VerifiedDraft, CompactError>,
) -> Result<VerifiedDraft, CompactError> {
    let own = fit(SummaryAttempt::Ledger)?;
    let price = own.retention.kept.div_ceil(PROSE_PRICE);
    for share in PROSE_SHARES {
        let made = fit(SummaryAttempt::Prose(prose, share))?;
        if made.draft.prose > Units(0) && made.retention.kept + price >= own.retention.kept {
            return Ok(made);
        }
    }
    Ok(own)
}
