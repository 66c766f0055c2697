//! Measure: what is known of a history before anything is planned.
//!
//! Its units, which of them are pinned, what each entry will cost and how it is numbered, and the frame
//! that its summary will have.

use std::borrow::Cow;
use std::cell::LazyCell;

use crate::assemble;
use crate::conform;
use crate::error::CompactError;
use crate::frame::{Frame, WayBack};
use crate::ledger::Ledger;
use crate::outline::Outline;
use crate::pin::{PinRules, PinState};
use crate::plan::{self, Plan, PlanInput};
use crate::policy::Prune;
use crate::prune::meaning::{self, MeaningVector};
use crate::summarize;
use crate::token::{EstimatorExt, Tokens, Units};

use super::cost::costs_after_conform;
use super::receipt_id::receipt_identity;
use super::{CompactionInput, Originals, Preparation, entry_ordinals};

/// A view of fewer tokens has no room for an explanation of the way back.
const SMALL_VIEW: Tokens = Tokens(600);

/// A history with all that a plan looks at.
pub(super) struct MeasuredHistory<'i, 'a> {
    pub(super) input: &'i CompactionInput<'a>,
    pub(super) outline: Outline,
    pub(super) pins: Vec<PinState>,
    pub(super) ordinals: Vec<u64>,
    /// The lines around the summary, which name the receipt.
    pub(super) frame: Frame,
    /// What they cost with nothing between them.
    pub(super) frame_cost: Units,
    /// What the view may cost.
    pub(super) budget: Units,
    costs: Vec<Units>,
    /// What was found for other calls, unless the caller keeps it.
    own: Preparation,
    /// What the body of the smallest summary costs.
    least_summary: Units,
    meaning: Cow<'a, [MeaningVector]>,
    /// Tells messages that later ones replaced; they are looked for when the first is asked about.
    has_fallen: Box<dyn Fn(u64) -> bool + 'a>,
}

impl<'i, 'a> MeasuredHistory<'i, 'a> {
    /// Measures a history. Fails where a pattern of the policy is no regular expression.
    pub(super) fn new(input: &'i CompactionInput<'a>) -> Result<Self, CompactError> {
        let way_back = match input.budget < SMALL_VIEW {
            true => WayBack::Named,
            false => WayBack::Explained,
        };
        Self::with_way_back(input, way_back)
    }

    /// Measures a history whose frame says so much of the way back: a budget that is not known yet must hold the
    /// longer one.
    pub(super) fn with_way_back(
        input: &'i CompactionInput<'a>,
        way_back: WayBack,
    ) -> Result<Self, CompactError> {
        let own = Preparation::default();
        let prepared = input.prepared.unwrap_or(&own);
        let outline = Outline::from_conversation(input.conversation);
        let pins =
            PinRules::new(input.policy)?.of_units(input.conversation, &outline, input.hashes);
        let version = input.prior.map_or(0, |p| p.summary_version) + 1;
        let way_back = match input.originals {
            Originals::Gone => WayBack::Missing,
            Originals::Archived | Originals::Redacted(_) => way_back,
        };
        let receipt = receipt_identity(input, prepared).receipt_id();
        let frame = Frame::new(version, receipt).with_way_back(way_back);
        let empty = assemble::summary_text(&frame, "", input.summary_placement());
        Ok(MeasuredHistory {
            pins,
            ordinals: entry_ordinals(input.conversation, input.hashes, input.prior),
            frame,
            frame_cost: input.estimator.count_message(&empty),
            budget: input.estimator.to_units(input.budget),
            costs: costs_after_conform(input, &outline),
            least_summary: prepared.least_summary(input),
            meaning: meaning_vectors(input, &outline),
            has_fallen: fallen_messages(input.ledger),
            input,
            outline,
            own,
        })
    }

    /// The id of the receipt that is to be written.
    pub(super) fn receipt_id(&self) -> &str {
        self.frame.receipt.as_deref().unwrap_or_default()
    }

    /// What other calls for this compaction found, or may find.
    pub(super) fn prepared(&self) -> &Preparation {
        self.input.prepared.unwrap_or(&self.own)
    }

    /// What a plan looks at.
    pub(super) fn plan_input(&self) -> PlanInput<'_> {
        let input = self.input;
        let limit = input.summary_limit.map(|t| input.estimator.to_units(t));
        PlanInput {
            conversation: input.conversation,
            outline: &self.outline,
            costs: &self.costs,
            pins: &self.pins,
            ordinals: &self.ordinals,
            meaning: &self.meaning,
            policy: input.policy,
            estimator: input.estimator,
            cuts: &self.prepared().cuts,
            receipt: self.receipt_id(),
            frame: self.frame_cost + conform::reserve(input.rules, input.estimator).once,
            least_summary: self.least_summary,
            summary_limit: limit.unwrap_or(Units(u64::MAX)),
            is_named: limit.is_none(),
            has_fallen: &*self.has_fallen,
        }
    }

    /// Decides the fate of each unit. Fails where the budget does not hold what must stay.
    pub(super) fn make_plan(&self) -> Result<Plan, CompactError> {
        plan::plan_view(&self.plan_input(), self.budget)
    }
}

fn fallen_messages<'a>(ledger: &'a Ledger) -> Box<dyn Fn(u64) -> bool + 'a> {
    let fallen = LazyCell::new(|| summarize::fallen_messages(ledger));
    Box::new(move |ordinal| fallen.contains(&ordinal))
}

/// What each unit is about, if the policy asks: the caller's embeddings, else their words.
fn meaning_vectors<'a>(input: &CompactionInput<'a>, outline: &Outline) -> Cow<'a, [MeaningVector]> {
    match (input.policy.prune, input.meaning) {
        (Prune::Semantic, Some(given)) => Cow::Borrowed(given),
        (Prune::Semantic, None) => meaning::vectors(input.conversation, outline).into(),
        _ => Cow::Borrowed(&[]),
    }
}
