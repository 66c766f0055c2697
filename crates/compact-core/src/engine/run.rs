//! One run of the pipeline: plan, render within the budget, verify, validate.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

use crate::assemble::{self, PlacedSummary};
use crate::clip;
use crate::conform;
use crate::error::CompactError;
use crate::frame::Frame;
use crate::identity::{Chain, EntryHash};
use crate::message::{Block, Entry, EntryKind};
use crate::outline::Outline;
use crate::pin::{PinRules, PinState};
use crate::plan::{self, Plan, PlanInput, RoomClaims, UnitFate};
use crate::policy::Prune;
use crate::prompt::SummaryContent;
use crate::prune::meaning::{self, MeaningVector};
use crate::receipt::{ENGINE, ReceiptIdentity, ordinal_spans};
use crate::redact::{RedactionCounts, count_placeholders};
use crate::summarize::{NameRanking, SummaryBody, VisibleTexts};
use crate::token::{Estimator, EstimatorExt, Units};
use crate::verify::Retention;
use crate::view::{BlockEdit, View, ViewItem};
use crate::wire::Placement;

use super::attempt::SummaryAttempt;
use super::{Compaction, CompactionInput, Originals, entry_ordinals};

/// Share of the summary's allowance held back for what verification finds missing: one in so many.
const REPAIR_SHARE: u64 = 200;

/// A view that leaves more than one part in so many of its budget is planned again: its summary has
/// no more to tell, and turns may take what it leaves.
const UNUSED_SHARE: u64 = 16;

pub(super) struct CompactionRun<'i, 'a> {
    pub(super) input: &'i CompactionInput<'a>,
    pub(super) outline: Outline,
    pub(super) pins: Vec<PinState>,
    costs: Vec<Units>,
    pub(super) ordinals: Vec<u64>,
    pub(super) frame: Frame,
    pub(super) budget: Units,
    ranking: OnceCell<NameRanking<'i>>,
    meaning: Cow<'a, [MeaningVector]>,
}

/// A view that is being made, with its price.
pub(super) struct ViewDraft {
    pub(super) body: SummaryBody,
    pub(super) view: View,
    pub(super) cost: Units,
    pub(super) redactions: RedactionCounts,
    /// What a model's words take of the body.
    pub(super) prose: Units,
}

impl<'i, 'a> CompactionRun<'i, 'a> {
    pub(super) fn new(input: &'i CompactionInput<'a>) -> Result<Self, CompactError> {
        let outline = Outline::from_conversation(input.conversation);
        let pins =
            PinRules::new(input.policy)?.of_units(input.conversation, &outline, input.hashes);
        Ok(CompactionRun {
            costs: costs_after_conform(input, &outline),
            ordinals: entry_ordinals(input.conversation, input.hashes, input.prior),
            frame: Frame {
                version: input.prior.map_or(0, |p| p.summary_version) + 1,
                receipt: Some(receipt_identity(input).receipt_id()),
            },
            budget: input.estimator.to_units(input.budget),
            ranking: OnceCell::new(),
            meaning: meaning_vectors(input, &outline),
            input,
            outline,
            pins,
        })
    }

    pub(super) fn make_plan(&self) -> Result<Plan, CompactError> {
        plan::plan_view(&self.plan_input(), self.budget)
    }

    pub(super) fn room_claims(&self) -> RoomClaims {
        plan::count_claims(&self.plan_input())
    }

    /// The names of the ledger by their worth, weighed when somebody asks.
    pub(super) fn ranking(&self) -> &NameRanking<'i> {
        let input = self.input;
        let weigh = || NameRanking::from_ledger(input.ledger, input.policy.strategy, input.note);
        self.ranking.get_or_init(weigh)
    }

    /// The plan and its view; where the summary leaves much unused, those of a plan that gives it to
    /// earlier turns, unless that tells less.
    fn plan_and_fill(&self) -> Result<(Plan, ViewDraft, Retention), CompactError> {
        let plan = self.make_plan()?;
        let (draft, retention) = self.summarize_plan(&plan)?;
        let unused = plan.summary - draft.body.cost;
        if unused <= Units(self.budget.0 / UNUSED_SHARE) {
            return Ok((plan, draft, retention));
        }
        let scene = PlanInput {
            summary_limit: draft.body.cost + Units(draft.body.cost.0 / UNUSED_SHARE),
            ..self.plan_input()
        };
        let fuller = plan::plan_view(&scene, self.budget)?;
        if fuller.fates == plan.fates || fuller.rung > plan.rung {
            return Ok((plan, draft, retention));
        }
        let (more, kept) = self.summarize_plan(&fuller)?;
        match kept.anchors - kept.kept <= retention.anchors - retention.kept {
            true => Ok((fuller, more, kept)),
            false => Ok((plan, draft, retention)),
        }
    }

    pub(super) fn finish(self) -> Result<Compaction, CompactError> {
        let (plan, draft, retention) = self.plan_and_fill()?;
        crate::validate::validate(
            &draft.view,
            self.input.conversation,
            &self.outline,
            &plan,
            self.input.rules,
        )
        .map_err(CompactError::InvalidView)?;
        if draft.cost > self.budget {
            return Err(CompactError::InvalidView(format!(
                "{} tokens in a budget of {}",
                self.input.estimator.to_tokens(draft.cost),
                self.input.budget
            )));
        }
        let view_identity = self.identify(&draft.view);
        let mut receipt = self.write_receipt(&plan, &draft, retention);
        receipt.view_spans = ordinal_spans(view_identity.iter().map(|(_, ordinal)| *ordinal));
        Ok(Compaction {
            view: draft.view,
            view_identity,
            receipt,
        })
    }

    pub(super) fn receipt_id(&self) -> &str {
        self.frame.receipt.as_deref().unwrap_or_default()
    }

    pub(super) fn summary_placement(&self) -> Placement {
        self.input
            .rules
            .allowed_placement(self.input.policy.placement)
    }

    pub(super) fn plan_input(&self) -> PlanInput<'_> {
        let empty = assemble::summary_text(&self.frame, "", self.summary_placement());
        let estimator = self.input.estimator;
        PlanInput {
            conversation: self.input.conversation,
            outline: &self.outline,
            hashes: self.input.hashes,
            costs: &self.costs,
            pins: &self.pins,
            ordinals: &self.ordinals,
            meaning: &self.meaning,
            policy: self.input.policy,
            estimator,
            receipt: self.receipt_id(),
            frame: estimator.count_message(&empty)
                + conform::reserve(self.input.rules, estimator).once,
            summary_limit: self.summary_limit(),
        }
    }

    /// Renders and verifies until the whole view fits; what a redaction adds, or what an estimator
    /// finds in the whole that it did not find in the parts, is taken from the summary.
    pub(super) fn render_and_verify(
        &self,
        plan: &Plan,
        words: SummaryAttempt<'_>,
    ) -> Result<(ViewDraft, Retention), CompactError> {
        let room = limit(plan, words, self.input.estimator);
        let mut allowance = room - Units(room.0 / REPAIR_SHARE);
        for _ in 0..6 {
            let (draft, retention) =
                self.verified(plan, words, self.render_attempt(plan, words, allowance));
            let draft = self.counted(draft);
            let over = draft.cost - self.budget;
            if over == Units(0) {
                return Ok((draft, retention));
            }
            allowance = allowance - over - Units(allowance.0 / 50 + 4);
        }
        let bare = self.counted(self.draft(plan, SummaryBody::default()));
        if bare.cost <= self.budget {
            return Ok(self.verified(plan, SummaryAttempt::Nothing, bare));
        }
        let input = self.plan_input();
        let pinned = plan::count_claims(&input).pinned - input.frame;
        Err(CompactError::InsufficientBudget {
            pinned_tokens: self.input.estimator.to_tokens(pinned),
            needed: self.input.estimator.to_tokens(bare.cost),
            budget: self.input.budget,
        })
    }

    /// What the summary's body may take before earlier turns are kept beside it.
    fn summary_limit(&self) -> Units {
        let limit = self.input.summary_limit;
        limit.map_or(Units(u64::MAX), |tokens| {
            self.input.estimator.to_units(tokens)
        })
    }

    /// What the view shows beside its summary.
    pub(super) fn visible(&self, plan: &Plan) -> VisibleTexts<'_> {
        let scene = self.plan_input();
        let mut visible = VisibleTexts::default();
        for (unit, fate) in self.outline.units.iter().zip(&plan.fates) {
            for at in unit.entries.clone().filter(|_| fate.stays()) {
                self.add_visible(&scene, at, *fate, &mut visible);
            }
        }
        visible
    }

    /// Adds the texts of an entry as its fate leaves them.
    fn add_visible<'s>(
        &'s self,
        scene: &PlanInput<'_>,
        at: usize,
        fate: UnitFate,
        visible: &mut VisibleTexts<'s>,
    ) {
        let Some(entry) = self.input.conversation.entries.get(at) else {
            return;
        };
        let edits = match fate {
            UnitFate::Clipped(level) => {
                clip::clip_entry(entry, level, scene.estimator, scene.pointer(at))
            }
            _ => Vec::new(),
        };
        for (block, nth) in entry.blocks.iter().zip(0..) {
            match edits.iter().find(|(edited, _)| *edited == nth) {
                Some((_, BlockEdit::SetText(left))) => visible.cut.push(left.clone()),
                Some((_, BlockEdit::Drop)) => {}
                None => visible.whole.extend(block.text_parts()),
            }
        }
    }

    /// The view with this body, redacted. Its cost is that of its parts: the summary was counted
    /// when it was written.
    pub(super) fn draft(&self, plan: &Plan, body: SummaryBody) -> ViewDraft {
        let (body, redactions) = self.redact_body(body);
        let placed = self.placed(&body);
        let view = assemble::assemble(&self.plan_input(), plan, &placed, self.input.rules);
        let view = conform::conform(
            view,
            self.input.conversation,
            &self.outline,
            self.input.rules,
        );
        let frame = assemble::summary_text(&self.frame, "", self.summary_placement());
        let rest = self.measure(&view, |item| !is_summary(item));
        ViewDraft {
            cost: rest + self.input.estimator.count_message(&frame) + body.cost,
            view,
            body,
            redactions,
            prose: Units(0),
        }
    }

    /// The same view with other words in its summary.
    pub(super) fn reworded(&self, draft: &ViewDraft, body: SummaryBody) -> ViewDraft {
        let (body, redactions) = self.redact_body(body);
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

    /// The body without secrets, and what stands in it for which. Most were taken out of what the
    /// ledger was drawn from.
    fn redact_body(&self, body: SummaryBody) -> (SummaryBody, RedactionCounts) {
        let redacted = self
            .input
            .redactor
            .redact(&body.text, &mut RedactionCounts::new());
        let body = match redacted {
            Cow::Owned(text) if text != body.text => SummaryBody {
                cost: self.input.estimator.count_units(&text),
                text,
            },
            _ => body,
        };
        let redactions = count_placeholders(&body.text);
        (body, redactions)
    }

    fn placed<'b>(&'b self, body: &'b SummaryBody) -> PlacedSummary<'b> {
        PlacedSummary {
            frame: &self.frame,
            body: &body.text,
            placement: self.input.policy.placement,
        }
    }

    /// The draft with what it costs as a whole.
    fn counted(&self, draft: ViewDraft) -> ViewDraft {
        ViewDraft {
            cost: self.measure(&draft.view, |_| true),
            ..draft
        }
    }

    /// What some items of a view's history cost: of everything but the leading instructions.
    fn measure(&self, view: &View, counts: impl Fn(&ViewItem) -> bool) -> Units {
        let leading = self.input.conversation.leading_instructions();
        view.items
            .iter()
            .filter(|item| item.entry_index().is_none_or(|entry| entry >= leading))
            .filter(|item| counts(item))
            .map(|item| match item {
                ViewItem::Kept { entry } => self
                    .input
                    .account
                    .entries
                    .get(*entry)
                    .copied()
                    .unwrap_or_default(),
                other => other
                    .shown_entry(self.input.conversation)
                    .map_or(Units(0), |e| self.input.estimator.count_entry(&e)),
            })
            .sum()
    }

    /// Identity and ordinal of the view's history: what leads the view is the host's to re-send.
    fn identify(&self, view: &View) -> Vec<(EntryHash, u64)> {
        view.items
            .iter()
            .filter_map(|item| Some((item, item.shown_entry(self.input.conversation)?)))
            .skip_while(|(_, shown)| shown.is_leading())
            .map(|(item, shown)| {
                let ordinal = item
                    .entry_index()
                    .and_then(|e| self.ordinals.get(e))
                    .copied();
                (
                    EntryHash::from_entry(&shown),
                    ordinal.unwrap_or(self.input.ledger.next),
                )
            })
            .collect()
    }
}

/// What a summary of these words may cost at most.
pub(super) fn limit(plan: &Plan, words: SummaryAttempt<'_>, estimator: &dyn Estimator) -> Units {
    (plan.summary + estimator.to_units(words.extra())).min(plan.free)
}

fn is_summary(item: &ViewItem) -> bool {
    matches!(item, ViewItem::New(e) if matches!(e.meta.kind, EntryKind::Summary { .. }))
}

/// What each entry costs in an edited view: reasoning that will be stripped is not paid for, a
/// bridge that may be needed is.
fn costs_after_conform(input: &CompactionInput<'_>, outline: &Outline) -> Vec<Units> {
    let mut costs = input.account.entries.clone();
    let reserve = conform::reserve(input.rules, input.estimator);
    let loses = conform::loses_reasoning(input.rules, outline);
    for unit in &outline.units {
        for at in unit.entries.clone() {
            let (Some(entry), Some(cost)) = (input.conversation.entries.get(at), costs.get_mut(at))
            else {
                continue;
            };
            if loses {
                *cost = *cost - reasoning_cost(entry, input.estimator);
            }
            if at == unit.entries.start {
                *cost += reserve.each;
            }
            if entry.role.is_instruction() {
                *cost += reserve.instruction;
            }
        }
    }
    costs
}

fn reasoning_cost(entry: &Entry, estimator: &dyn Estimator) -> Units {
    let reasoning = |b: &&Block| matches!(b, Block::Reasoning { .. });
    let cost: Units = entry
        .blocks
        .iter()
        .filter(reasoning)
        .map(|b| estimator.count_block(b))
        .sum();
    if !entry.blocks.is_empty() && entry.blocks.iter().all(|b| reasoning(&b)) {
        return cost + estimator.framing_units();
    }
    cost
}

/// What each unit is about, if the policy asks: the caller's embeddings, else their words.
fn meaning_vectors<'a>(input: &CompactionInput<'a>, outline: &Outline) -> Cow<'a, [MeaningVector]> {
    match (input.policy.prune, input.meaning) {
        (Prune::Semantic, Some(given)) => Cow::Borrowed(given),
        (Prune::Semantic, None) => meaning::vectors(input.conversation, outline).into(),
        _ => Cow::Borrowed(&[]),
    }
}

/// What the receipt's id is the hash of.
fn receipt_identity<'a>(input: &'a CompactionInput<'_>) -> ReceiptIdentity<'a> {
    ReceiptIdentity {
        engine: ENGINE,
        source: Chain::from_hashes(input.hashes),
        shape: shape(input),
        previous: input.prior.map(|p| p.receipt_id.as_str()),
        policy: input.policy,
        budget: input.budget,
        summary_limit: input.summary_limit,
        original: input.original,
        estimator: input.estimator.name(),
        wire: input.rules.name,
        redaction: input.redaction_fingerprint(),
        is_archived: !matches!(input.beyond, Originals::Gone),
        note: input.note,
        words: (*input.words != SummaryContent::Ledger).then_some(input.words),
    }
}

/// A digest of what identity leaves out and the plan looks at: call ids, flags, groups, kinds, and
/// embeddings if there are any. Its encoding is part of every receipt's id and never changes within
/// a version of the engine.
fn shape(input: &CompactionInput<'_>) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for number in input.meaning.into_iter().flatten().flatten() {
        hasher.update(&number.to_le_bytes());
    }
    // A reader may name groups by where they stand in a file: who is together counts, not the name.
    let mut groups: HashMap<&str, u64> = HashMap::new();
    for (entry, at) in input.conversation.entries.iter().zip(0..) {
        let group = entry.meta.group.as_deref();
        let first = group.map(|group| *groups.entry(group).or_insert(at));
        hash_kind(&mut hasher, &entry.meta.kind);
        hash_list(&mut hasher, entry.meta.flags.iter().map(String::as_str));
        hasher.update(&first.unwrap_or(u64::MAX).to_le_bytes());
        hash_list(&mut hasher, entry.call_ids());
        hash_list(&mut hasher, entry.result_ids());
    }
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    u64::from_le_bytes(first)
}

/// One byte for what an entry is; of a summary its number and its receipt, if it names one.
fn hash_kind(hasher: &mut blake3::Hasher, kind: &EntryKind) {
    let byte = match kind {
        EntryKind::Message => b'M',
        EntryKind::Summary { .. } => b'S',
        EntryKind::ForeignSummary => b'F',
        EntryKind::Injected => b'I',
    };
    hasher.update(&[byte]);
    if let EntryKind::Summary { version, receipt } = kind {
        hasher.update(&version.to_le_bytes());
        hash_list(hasher, receipt.as_deref().into_iter());
    }
}

/// Each text behind its length, and after the last one a length that no text has.
fn hash_list<'t>(hasher: &mut blake3::Hasher, texts: impl Iterator<Item = &'t str>) {
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.update(&u64::MAX.to_le_bytes());
}

#[cfg(test)]
mod tests;
