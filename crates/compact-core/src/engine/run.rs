//! One run of the pipeline: plan, render within the budget, verify, validate.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

use crate::assemble::{self, Placed};
use crate::clip;
use crate::conform;
use crate::error::CompactError;
use crate::identity::{Chain, EntryHash};
use crate::memory::{Pin, Pins};
use crate::message::{Block, Entry, EntryKind};
use crate::outline::Outline;
use crate::plan::{self, Claims, Fate, Plan, Scene};
use crate::policy::Prune;
use crate::prompt::Words;
use crate::prune::meaning::{self, Vector};
use crate::receipt::{ENGINE, Identity, spans};
use crate::redact::{Counts, placeholders};
use crate::summarize::frame::Frame;
use crate::summarize::{Ranking, Summary, Visible};
use crate::token::{Estimator, EstimatorExt, Tokens, Units};
use crate::verify::Retention;
use crate::view::{Edit, View, ViewItem};
use crate::wire::Placement;

use super::tell::Told;
use super::{Compaction, Input, ordinals};

/// Share of the summary's allowance held back for what verification finds missing: one in so many.
const REPAIR_SHARE: u64 = 200;

/// A view that leaves more than one part in so many of its budget is planned again: its summary has
/// no more to tell, and turns may take what it leaves.
const UNUSED_SHARE: u64 = 16;

pub(super) struct Run<'i, 'a> {
    pub(super) input: &'i Input<'a>,
    pub(super) outline: Outline,
    pub(super) pins: Vec<Pin>,
    costs: Vec<Units>,
    pub(super) ordinals: Vec<u64>,
    pub(super) frame: Frame,
    pub(super) budget: Units,
    ranking: OnceCell<Ranking<'i>>,
    meaning: Cow<'a, [Vector]>,
}

/// A view that is being made, with its price.
pub(super) struct Draft {
    pub(super) body: Summary,
    pub(super) view: View,
    pub(super) cost: Units,
    pub(super) redactions: Counts,
    /// What a model's words take of the body.
    pub(super) prose: Units,
}

impl<'i, 'a> Run<'i, 'a> {
    pub(super) fn new(input: &'i Input<'a>) -> Result<Self, CompactError> {
        let outline = Outline::of(input.conversation);
        let pins = Pins::new(input.policy)?.of_units(input.conversation, &outline, input.hashes);
        Ok(Run {
            costs: costs_after_conform(input, &outline),
            ordinals: ordinals(input.conversation, input.hashes, input.prior),
            frame: Frame {
                version: input.prior.map_or(0, |p| p.summary_version) + 1,
                receipt: Some(receipt_id(input)),
            },
            budget: input.estimator.capacity(input.budget),
            ranking: OnceCell::new(),
            meaning: meaning(input, &outline),
            input,
            outline,
            pins,
        })
    }

    pub(super) fn plan(&self) -> Result<Plan, CompactError> {
        plan::plan(&self.scene(), self.budget)
    }

    pub(super) fn claims(&self) -> Claims {
        plan::claims(&self.scene())
    }

    /// The names of the ledger by their worth, weighed when somebody asks.
    pub(super) fn ranking(&self) -> &Ranking<'i> {
        let input = self.input;
        let weigh = || Ranking::of(input.ledger, input.policy.strategy, input.note);
        self.ranking.get_or_init(weigh)
    }

    /// The plan and its view; where the summary leaves much unused, those of a plan that gives it to
    /// earlier turns, unless that tells less.
    fn filled(&self) -> Result<(Plan, Draft, Retention), CompactError> {
        let plan = self.plan()?;
        let (draft, retention) = self.told(&plan)?;
        let unused = plan.summary - draft.body.cost;
        if unused <= Units(self.budget.0 / UNUSED_SHARE) {
            return Ok((plan, draft, retention));
        }
        let scene = Scene {
            summary_limit: draft.body.cost + Units(draft.body.cost.0 / UNUSED_SHARE),
            ..self.scene()
        };
        let fuller = plan::plan(&scene, self.budget)?;
        if fuller.fates == plan.fates || fuller.rung > plan.rung {
            return Ok((plan, draft, retention));
        }
        let (more, kept) = self.told(&fuller)?;
        match kept.anchors - kept.kept <= retention.anchors - retention.kept {
            true => Ok((fuller, more, kept)),
            false => Ok((plan, draft, retention)),
        }
    }

    pub(super) fn finish(self) -> Result<Compaction, CompactError> {
        let (plan, draft, retention) = self.filled()?;
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
                self.input.estimator.tokens(draft.cost),
                self.input.budget
            )));
        }
        let view_identity = self.identify(&draft.view);
        let mut receipt = self.write_receipt(&plan, &draft, retention);
        receipt.view_spans = spans(view_identity.iter().map(|(_, ordinal)| *ordinal));
        Ok(Compaction {
            view: draft.view,
            view_identity,
            receipt,
        })
    }

    pub(super) fn receipt(&self) -> &str {
        self.frame.receipt.as_deref().unwrap_or_default()
    }

    pub(super) fn placement(&self) -> Placement {
        self.input.rules.placement(self.input.policy.placement)
    }

    pub(super) fn scene(&self) -> Scene<'_> {
        let empty = assemble::summary_text(&self.frame, "", self.placement());
        let estimator = self.input.estimator;
        Scene {
            conversation: self.input.conversation,
            outline: &self.outline,
            hashes: self.input.hashes,
            costs: &self.costs,
            pins: &self.pins,
            ordinals: &self.ordinals,
            meaning: &self.meaning,
            policy: self.input.policy,
            estimator,
            receipt: self.receipt(),
            frame: estimator.message(&empty) + conform::reserve(self.input.rules, estimator).once,
            summary_limit: self.summary_limit(),
        }
    }

    /// Renders and verifies until the whole view fits; what a redaction adds, or what an estimator
    /// finds in the whole that it did not find in the parts, is taken from the summary.
    pub(super) fn proved(
        &self,
        plan: &Plan,
        words: Told<'_>,
    ) -> Result<(Draft, Retention), CompactError> {
        let room = limit(plan, words, self.input.estimator);
        let mut allowance = room - Units(room.0 / REPAIR_SHARE);
        for _ in 0..6 {
            let (draft, retention) =
                self.verified(plan, words, self.render(plan, words, allowance));
            let draft = self.counted(draft);
            let over = draft.cost - self.budget;
            if over == Units(0) {
                return Ok((draft, retention));
            }
            allowance = allowance - over - Units(allowance.0 / 50 + 4);
        }
        let bare = self.counted(self.draft(plan, Summary::default()));
        if bare.cost <= self.budget {
            return Ok(self.verified(plan, Told::Nothing, bare));
        }
        Err(CompactError::InsufficientBudget {
            pinned_tokens: Tokens(0),
            needed: self.input.estimator.tokens(bare.cost),
            budget: self.input.budget,
        })
    }

    /// What the summary's body may take before earlier turns are kept beside it.
    fn summary_limit(&self) -> Units {
        let limit = self.input.summary_limit;
        limit.map_or(Units(u64::MAX), |tokens| {
            self.input.estimator.capacity(tokens)
        })
    }

    /// What the view shows beside its summary.
    pub(super) fn visible(&self, plan: &Plan) -> Visible<'_> {
        let scene = self.scene();
        let mut visible = Visible::default();
        for (unit, fate) in self.outline.units.iter().zip(&plan.fates) {
            for at in unit.entries.clone().filter(|_| fate.stays()) {
                self.see(&scene, at, *fate, &mut visible);
            }
        }
        visible
    }

    /// Adds the texts of an entry as its fate leaves them.
    fn see<'s>(&'s self, scene: &Scene<'_>, at: usize, fate: Fate, visible: &mut Visible<'s>) {
        let Some(entry) = self.input.conversation.entries.get(at) else {
            return;
        };
        let edits = match fate {
            Fate::Clipped(level) => clip::entry(entry, level, scene.estimator, scene.pointer(at)),
            _ => Vec::new(),
        };
        for (block, nth) in entry.blocks.iter().zip(0..) {
            match edits.iter().find(|(edited, _)| *edited == nth) {
                Some((_, Edit::SetText(left))) => visible.cut.push(left.clone()),
                Some((_, Edit::Drop)) => {}
                None => visible.whole.extend(block.text_parts()),
            }
        }
    }

    /// The view with this body, redacted. Its cost is that of its parts: the summary was counted
    /// when it was written.
    pub(super) fn draft(&self, plan: &Plan, body: Summary) -> Draft {
        let (body, redactions) = self.redacted(body);
        let placed = self.placed(&body);
        let view = assemble::assemble(&self.scene(), plan, &placed, self.input.rules);
        let view = conform::conform(
            view,
            self.input.conversation,
            &self.outline,
            self.input.rules,
        );
        let frame = assemble::summary_text(&self.frame, "", self.placement());
        let rest = self.measure(&view, |item| !is_summary(item));
        Draft {
            cost: rest + self.input.estimator.message(&frame) + body.cost,
            view,
            body,
            redactions,
            prose: Units(0),
        }
    }

    /// The same view with other words in its summary.
    pub(super) fn reworded(&self, draft: &Draft, body: Summary) -> Draft {
        let (body, redactions) = self.redacted(body);
        let mut view = draft.view.clone();
        assemble::reword(&mut view, &self.placed(&body), self.input.rules);
        Draft {
            cost: draft.cost - draft.body.cost + body.cost,
            view,
            body,
            redactions,
            prose: draft.prose,
        }
    }

    /// The body without secrets, and what stands in it for which. Most were taken out of what the
    /// ledger was drawn from.
    fn redacted(&self, body: Summary) -> (Summary, Counts) {
        let redacted = self.input.redactor.redact(&body.text, &mut Counts::new());
        let body = match redacted {
            Cow::Owned(text) if text != body.text => Summary {
                cost: self.input.estimator.units(&text),
                text,
            },
            _ => body,
        };
        let redactions = placeholders(&body.text);
        (body, redactions)
    }

    fn placed<'b>(&'b self, body: &'b Summary) -> Placed<'b> {
        Placed {
            frame: &self.frame,
            body: &body.text,
            placement: self.input.policy.placement,
        }
    }

    /// The draft with what it costs as a whole.
    fn counted(&self, draft: Draft) -> Draft {
        Draft {
            cost: self.measure(&draft.view, |_| true),
            ..draft
        }
    }

    /// What some items of a view's history cost: of everything but the leading instructions.
    fn measure(&self, view: &View, counts: impl Fn(&ViewItem) -> bool) -> Units {
        let leading = self.input.conversation.leading_instructions();
        view.items
            .iter()
            .filter(|item| item.entry().is_none_or(|entry| entry >= leading))
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
                    .shown(self.input.conversation)
                    .map_or(Units(0), |e| self.input.estimator.entry(&e)),
            })
            .sum()
    }

    /// Identity and ordinal of the view's history: what leads the view is the host's to re-send.
    fn identify(&self, view: &View) -> Vec<(EntryHash, u64)> {
        view.items
            .iter()
            .filter_map(|item| Some((item, item.shown(self.input.conversation)?)))
            .skip_while(|(_, shown)| shown.leads())
            .map(|(item, shown)| {
                let ordinal = item.entry().and_then(|e| self.ordinals.get(e)).copied();
                (
                    EntryHash::of(&shown),
                    ordinal.unwrap_or(self.input.ledger.next),
                )
            })
            .collect()
    }
}

/// What a summary of these words may cost at most.
pub(super) fn limit(plan: &Plan, words: Told<'_>, estimator: &dyn Estimator) -> Units {
    (plan.summary + estimator.capacity(words.extra())).min(plan.free)
}

fn is_summary(item: &ViewItem) -> bool {
    matches!(item, ViewItem::New(e) if matches!(e.meta.kind, EntryKind::Summary { .. }))
}

/// What each entry costs in an edited view: reasoning that will be stripped is not paid for, a
/// bridge that may be needed is.
fn costs_after_conform(input: &Input<'_>, outline: &Outline) -> Vec<Units> {
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
        .map(|b| estimator.block(b))
        .sum();
    if !entry.blocks.is_empty() && entry.blocks.iter().all(|b| reasoning(&b)) {
        return cost + estimator.framing();
    }
    cost
}

/// What each unit is about, if the policy asks: the caller's embeddings, else their words.
fn meaning<'a>(input: &Input<'a>, outline: &Outline) -> Cow<'a, [Vector]> {
    match (input.policy.prune, input.meaning) {
        (Prune::Semantic, Some(given)) => Cow::Borrowed(given),
        (Prune::Semantic, None) => meaning::vectors(input.conversation, outline).into(),
        _ => Cow::Borrowed(&[]),
    }
}

fn receipt_id(input: &Input<'_>) -> String {
    Identity {
        engine: ENGINE,
        source: Chain::over(input.hashes),
        shape: shape(input),
        previous: input.prior.map(|p| p.receipt_id.as_str()),
        policy: input.policy,
        budget: input.budget,
        summary_limit: input.summary_limit,
        original: input.original,
        estimator: input.estimator.name(),
        wire: input.rules.name,
        note: input.note,
        words: (*input.words != Words::Ledger).then_some(input.words),
    }
    .receipt_id()
}

/// A digest of what identity leaves out and the plan looks at: call ids, flags, groups, kinds, and
/// embeddings if there are any.
fn shape(input: &Input<'_>) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for number in input.meaning.into_iter().flatten().flatten() {
        hasher.update(&number.to_le_bytes());
    }
    // A reader may name groups by where they stand in a file: who is together counts, not the name.
    let mut groups: HashMap<&str, usize> = HashMap::new();
    for (at, entry) in input.conversation.entries.iter().enumerate() {
        let group = entry.meta.group.as_deref();
        let first = group.map(|group| *groups.entry(group).or_insert(at));
        let (kind, flags) = (&entry.meta.kind, &entry.meta.flags);
        hasher.update(format!("{kind:?}{flags:?}{first:?}").as_bytes());
        for id in entry.calls().chain(entry.results()) {
            hasher.update(id.as_bytes());
            hasher.update(b"\0");
        }
    }
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    u64::from_le_bytes(first)
}
