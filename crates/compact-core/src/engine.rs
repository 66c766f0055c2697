//! The pipeline: measured entries in, a frozen and verified view out.
//!
//! `plan → summarize → assemble → conform → verify → validate`, on values alone. The caller measures
//! and decides before, archives and records after. The same input gives the same bytes.

use serde::{Deserialize, Serialize};

use crate::assemble::{self, Placed};
use crate::conform;
use crate::error::CompactError;
use crate::identity::{Chain, EntryHash};
use crate::ledger::Ledger;
use crate::memory::{Pin, Pins};
use crate::message::{Conversation, Entry, EntryKind};
use crate::outline::{Health, Outline, UnitKind};
use crate::plan::{self, Fate, Plan, Scene};
use crate::policy::Policy;
use crate::receipt::{ENGINE, Identity, Kept, OutcomeKind, Receipt, spans};
use crate::redact::{Counts, Redactor};
use crate::summarize::frame::Frame;
use crate::summarize::{self, Request};
use crate::token::{Account, Estimator, EstimatorExt, Tokens, Units};
use crate::verify::{self, Anchor, Retention};
use crate::view::{View, ViewItem};
use crate::wire::WireRules;

/// Share of the summary's allowance held back for what verification finds missing.
const REPAIR_SHARE: u64 = 20;

/// The compaction before this one, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    /// Its receipt.
    pub receipt_id: String,
    /// N of its summary.
    pub summary_version: u32,
    /// Identity and ordinal of each history entry of its view, in order.
    pub view: Vec<(EntryHash, u64)>,
    /// The session's facts up to that view.
    pub ledger: Ledger,
}

/// Everything a compaction is a function of.
pub struct Input<'a> {
    /// The live context.
    pub conversation: &'a Conversation,
    /// The session's name, for the receipt.
    pub session_id: &'a str,
    /// The identity of each entry.
    pub hashes: &'a [EntryHash],
    /// The count of each entry.
    pub account: &'a Account,
    /// The compaction before.
    pub prior: Option<&'a Prior>,
    /// The session's facts up to the last entry; see [`session_ledger`].
    pub ledger: &'a Ledger,
    /// The user's decisions.
    pub policy: &'a Policy,
    /// What the history of the view may cost.
    pub budget: Tokens,
    /// How texts are counted.
    pub estimator: &'a dyn Estimator,
    /// What the wire accepts.
    pub rules: &'a WireRules,
    /// Applied to every summary.
    pub redactor: &'a Redactor,
    /// What becomes of what the view does not show.
    pub beyond: Beyond,
    /// A person's wish for this compaction.
    pub note: Option<&'a str>,
}

/// Where the originals are after the compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// In an archive: recoverable.
    Archived,
    /// Nowhere: what the view does not show is lost.
    Gone,
}

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
pub enum Outcome {
    /// The history is within the budget.
    Unchanged,
    /// There is a new view.
    Compacted(Box<Compaction>),
}

/// How many history entries of `conversation` are those of the prior view, from the start on.
pub fn common_prefix(conversation: &Conversation, hashes: &[EntryHash], prior: &Prior) -> usize {
    hashes
        .iter()
        .skip(conversation.leading_instructions())
        .zip(&prior.view)
        .take_while(|(now, (then, _))| *now == then)
        .count()
}

/// The ordinal of each entry in its session: known ones keep theirs, new ones count on.
pub fn ordinals(
    conversation: &Conversation,
    hashes: &[EntryHash],
    prior: Option<&Prior>,
) -> Vec<u64> {
    let leading = conversation.leading_instructions();
    let Some(prior) = prior else {
        return (0..conversation.entries.len() as u64).collect();
    };
    let common = common_prefix(conversation, hashes, prior);
    let known = prior.view.iter().take(common).map(|(_, ordinal)| *ordinal);
    let new = (0..).map(|i| prior.ledger.next + i);
    (0..leading as u64)
        .chain(known)
        .chain(new)
        .take(conversation.entries.len())
        .collect()
}

/// The session's facts up to the last entry: those of the prior, and those of what is new.
pub fn session_ledger(
    conversation: &Conversation,
    hashes: &[EntryHash],
    prior: Option<&Prior>,
) -> Ledger {
    let leading = conversation.leading_instructions();
    let (mut ledger, start) = match prior {
        Some(prior) => (
            prior.ledger.clone(),
            leading + common_prefix(conversation, hashes, prior),
        ),
        None => (Ledger::of(&[], leading as u64), leading),
    };
    let known = |e: &Entry| {
        prior.is_some_and(|p| {
            matches!(&e.meta.kind, EntryKind::Summary { receipt: Some(r), .. } if *r == p.receipt_id)
        })
    };
    // The prior's own summary says nothing that its ledger does not say better.
    for run in conversation
        .entries
        .get(start..)
        .unwrap_or_default()
        .split_inclusive(known)
    {
        let words = run
            .split_last()
            .filter(|(last, _)| known(last))
            .map_or(run, |(_, rest)| rest);
        ledger.merge(Ledger::of(words, ledger.next));
        ledger.next += (run.len() - words.len()) as u64;
    }
    ledger
}

/// Compacts, or says why not. The conversation is never changed.
pub fn compact(input: &Input<'_>) -> Result<Outcome, CompactError> {
    if input.account.history <= input.budget {
        return Ok(Outcome::Unchanged);
    }
    Run::new(input)?
        .finish()
        .map(|c| Outcome::Compacted(Box::new(c)))
}

/// The verdict and shape of a compaction without its summary: what `plan` shows.
pub fn preview(input: &Input<'_>) -> Result<Plan, CompactError> {
    let run = Run::new(input)?;
    plan::plan(&run.scene(), run.budget)
}

struct Run<'i, 'a> {
    input: &'i Input<'a>,
    outline: Outline,
    pins: Vec<Pin>,
    costs: Vec<Units>,
    ordinals: Vec<u64>,
    frame: Frame,
    budget: Units,
}

impl<'i, 'a> Run<'i, 'a> {
    fn new(input: &'i Input<'a>) -> Result<Self, CompactError> {
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
            input,
            outline,
            pins,
        })
    }

    fn scene(&self) -> Scene<'_> {
        let empty = assemble::summary_text(&self.frame, "", self.placement());
        Scene {
            conversation: self.input.conversation,
            outline: &self.outline,
            hashes: self.input.hashes,
            costs: &self.costs,
            pins: &self.pins,
            ordinals: &self.ordinals,
            policy: self.input.policy,
            estimator: self.input.estimator,
            receipt: self.receipt(),
            frame: self.input.estimator.message(&empty),
        }
    }

    fn receipt(&self) -> &str {
        self.frame.receipt.as_deref().unwrap_or_default()
    }

    fn placement(&self) -> crate::wire::Placement {
        self.input.rules.placement(self.input.policy.placement)
    }

    fn finish(self) -> Result<Compaction, CompactError> {
        let plan = plan::plan(&self.scene(), self.budget)?;
        let mut redactions = Counts::new();
        let (body, view) = self.within_budget(&plan, &mut redactions)?;
        let (view, body, retention) = self.verified(&plan, body, view, &mut redactions);
        crate::validate::validate(&view, self.input.conversation, &self.outline, &plan)
            .map_err(CompactError::InvalidView)?;
        let tokens_after = self.input.estimator.tokens(self.measure(&view));
        if tokens_after > self.input.budget {
            return Err(CompactError::InvalidView(format!(
                "{tokens_after} tokens in a budget of {}",
                self.input.budget
            )));
        }
        let receipt = self.write_receipt(&plan, &view, &body, retention, redactions);
        Ok(Compaction {
            view_identity: self.identify(&view),
            view,
            receipt,
        })
    }

    /// Renders until the whole view fits; what a redaction adds is taken from the summary.
    fn within_budget(
        &self,
        plan: &Plan,
        redactions: &mut Counts,
    ) -> Result<(String, View), CompactError> {
        let mut allowance = plan.summary - Units(plan.summary.0 / REPAIR_SHARE);
        for _ in 0..6 {
            redactions.clear();
            let body = self.render(plan, allowance, redactions);
            let view = self.view(plan, &body);
            let over = self.measure(&view) - self.budget;
            if over == Units(0) {
                return Ok((body, view));
            }
            allowance = allowance - over - Units(allowance.0 / 50 + 4);
        }
        let view = self.view(plan, "");
        let needed = self.measure(&view);
        if needed <= self.budget {
            return Ok((String::new(), view));
        }
        Err(CompactError::InsufficientBudget {
            pinned_tokens: Tokens(0),
            needed: self.input.estimator.tokens(needed),
            budget: self.input.budget,
        })
    }

    fn render(&self, plan: &Plan, allowance: Units, redactions: &mut Counts) -> String {
        let visible = self.visible(plan);
        let summary = summarize::render(&Request {
            ledger: self.input.ledger,
            style: self.input.policy.strategy,
            budget: allowance,
            estimator: self.input.estimator,
            visible: &visible,
            note: self.input.note,
        });
        self.input
            .redactor
            .redact(&summary.text, redactions)
            .into_owned()
    }

    /// Every text that stands verbatim in the view.
    fn visible(&self, plan: &Plan) -> Vec<&str> {
        self.outline
            .units
            .iter()
            .zip(&plan.fates)
            .filter(|(_, fate)| matches!(fate, Fate::Pinned | Fate::Verbatim))
            .flat_map(|(unit, _)| self.input.conversation.entries.get(unit.entries.clone()))
            .flatten()
            .flat_map(|entry| &entry.blocks)
            .flat_map(|block| block.text_parts())
            .filter(|text| !text.is_empty())
            .collect()
    }

    fn view(&self, plan: &Plan, body: &str) -> View {
        let placed = Placed {
            frame: &self.frame,
            body,
            placement: self.input.policy.placement,
        };
        let view = assemble::assemble(&self.scene(), plan, &placed, self.input.rules);
        conform::conform(
            view,
            self.input.conversation,
            &self.outline,
            self.input.rules,
        )
    }

    /// What the history of a view costs: everything but the leading instructions.
    fn measure(&self, view: &View) -> Units {
        let leading = self.input.conversation.leading_instructions();
        view.items
            .iter()
            .filter(|item| item.entry().is_none_or(|entry| entry >= leading))
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

    /// Looks for the anchors of what was dropped, and puts back what is missing and fits.
    fn verified(
        &self,
        plan: &Plan,
        body: String,
        view: View,
        redactions: &mut Counts,
    ) -> (View, String, Retention) {
        let visible: std::collections::HashSet<u64> = view
            .items
            .iter()
            .filter_map(|item| match item {
                ViewItem::Kept { entry } => self.ordinals.get(*entry).copied(),
                _ => None,
            })
            .collect();
        let anchors = verify::anchors(self.input.ledger, &|ordinal| !visible.contains(&ordinal));
        let before = verify::shown(&anchors, &self.text(&view));
        let missing: Vec<&Anchor> = anchors
            .iter()
            .zip(&before)
            .filter(|(_, shown)| !**shown)
            .map(|(anchor, _)| anchor)
            .collect();
        let room = self.budget - self.measure(&view);
        let repaired = verify::repair(&body, &missing, room, self.input.estimator);
        let mut counts = Counts::new();
        let repaired = self
            .input
            .redactor
            .redact(&repaired, &mut counts)
            .into_owned();
        let repaired_view = self.view(plan, &repaired);
        let (view, body) = if self.measure(&repaired_view) <= self.budget {
            *redactions = merge_counts(redactions, &counts);
            (repaired_view, repaired)
        } else {
            (view, body)
        };
        let after = verify::shown(&anchors, &self.text(&view));
        let retention = self.retention(&anchors, &before, &after);
        (view, body, retention)
    }

    /// All words of a view's history, in order.
    fn text(&self, view: &View) -> String {
        let leading = self.input.conversation.leading_instructions();
        let mut text = String::new();
        for item in &view.items {
            if item.entry().is_some_and(|entry| entry < leading) {
                continue;
            }
            let Some(entry) = item.shown(self.input.conversation) else {
                continue;
            };
            for part in entry
                .blocks
                .iter()
                .flat_map(crate::message::Block::text_parts)
            {
                text.push_str(part);
                text.push('\n');
            }
        }
        text
    }

    fn retention(&self, anchors: &[Anchor], before: &[bool], after: &[bool]) -> Retention {
        let mut retention = Retention {
            anchors: anchors.len() as u64,
            ..Retention::default()
        };
        for ((anchor, before), after) in anchors.iter().zip(before).zip(after) {
            if *after {
                retention.kept += 1;
                retention.repaired += u64::from(!*before);
            } else if self.is_secret(anchor) {
                retention.redacted += 1;
            } else if self.input.beyond == Beyond::Archived {
                retention.recoverable += 1;
            } else {
                retention.lost += 1;
            }
        }
        retention.score = match retention.anchors {
            0 => 1.0,
            all => retention.kept as f64 / all as f64,
        };
        retention
    }

    fn is_secret(&self, anchor: &Anchor) -> bool {
        let mut counts = Counts::new();
        self.input.redactor.redact(&anchor.text, &mut counts);
        !counts.is_empty()
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

    fn write_receipt(
        &self,
        plan: &Plan,
        view: &View,
        body: &str,
        retention: Retention,
        redactions: Counts,
    ) -> Receipt {
        let input = self.input;
        let leading = input.conversation.leading_instructions();
        let stays: Vec<usize> = view.items.iter().filter_map(ViewItem::entry).collect();
        let ordinal = |entry: &usize| self.ordinals.get(*entry).copied();
        let gone = (leading..input.conversation.entries.len())
            .filter(|entry| stays.binary_search(entry).is_err())
            .collect::<Vec<_>>();
        Receipt {
            outcome: OutcomeKind::Compacted,
            receipt_id: self.receipt().to_owned(),
            session_id: input.session_id.to_owned(),
            source_hash: Chain::over(input.hashes),
            previous: input.prior.map(|p| p.receipt_id.clone()),
            engine: ENGINE.to_owned(),
            tokens_before: input.account.history,
            tokens_after: input.estimator.tokens(self.measure(view)),
            budget: input.budget,
            tokens_fixed: input.account.system + input.account.tools,
            summary_tokens: self.summary_tokens(body),
            estimator: input.estimator.name().to_owned(),
            model: input.conversation.model.clone(),
            summary_version: self.frame.version,
            summarizer: "extractive".to_owned(),
            style: input.policy.strategy,
            placement: self.placement(),
            policy: input.policy.clone(),
            rung: rung_name(plan),
            kept: self.kept(plan, view),
            kept_spans: spans(stays.iter().filter_map(ordinal)),
            summarized_spans: spans(gone.iter().filter_map(ordinal)),
            pruned_count: gone.len() as u64,
            retention,
            redactions,
            notes: self.notes(plan),
            note: input.note.map(str::to_owned),
        }
    }

    fn summary_tokens(&self, body: &str) -> Tokens {
        let text = assemble::summary_text(&self.frame, body, self.placement());
        self.input
            .estimator
            .tokens(self.input.estimator.message(&text))
    }

    fn kept(&self, plan: &Plan, view: &View) -> Kept {
        let mut kept = Kept::default();
        let mut turns = std::collections::BTreeSet::new();
        for (unit, fate) in self.outline.units.iter().zip(&plan.fates) {
            match (fate, unit.kind) {
                (Fate::Demoted, _) => continue,
                (Fate::Pinned, _) => kept.pinned += unit.entries.len() as u64,
                (_, UnitKind::Exchange) => kept.tool_pairs += 1,
                _ => {
                    turns.insert(unit.turn);
                }
            }
        }
        kept.recent_turns = turns.len() as u64;
        kept.clipped = view
            .items
            .iter()
            .filter(|item| matches!(item, ViewItem::Edited { .. }))
            .count() as u64;
        kept
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        let mut notes = Vec::new();
        for (name, unit) in [
            ("first request", self.outline.first_user()),
            ("latest message", self.outline.last_user()),
        ] {
            let clipped = unit.and_then(|i| plan.fates.get(i)).is_some_and(
                |fate| matches!(fate, Fate::Clipped(level) if *level < Units(u64::MAX)),
            );
            if clipped {
                notes.push(format!(
                    "the user's {name} alone is larger than a quarter of the budget and was cut; the whole is archived"
                ));
            }
        }
        let broken = self
            .outline
            .units
            .iter()
            .filter(|u| u.health == Health::Broken)
            .count();
        if broken > 0 {
            notes.push(format!(
                "{broken} malformed tool messages (a call without result, or a result without call) were left out of the view"
            ));
        }
        let repeated = self.pins.iter().filter(|p| **p == Pin::Repeated).count();
        if repeated > 0 {
            notes.push(format!(
                "{repeated} repeated protected entries stand once, the newest"
            ));
        }
        notes
    }
}

fn rung_name(plan: &Plan) -> String {
    serde_json::to_value(plan.rung)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn merge_counts(a: &Counts, b: &Counts) -> Counts {
    let mut all = a.clone();
    for (rule, count) in b {
        *all.entry(rule.clone()).or_default() += count;
    }
    all
}

/// What each entry costs in an edited view: reasoning that will be stripped is not paid for.
fn costs_after_conform(input: &Input<'_>, outline: &Outline) -> Vec<Units> {
    let mut costs = input.account.entries.clone();
    for unit in &outline.units {
        if !conform::loses_reasoning(input.rules, unit.health) {
            continue;
        }
        for i in unit.entries.clone() {
            if let (Some(entry), Some(cost)) = (input.conversation.entries.get(i), costs.get_mut(i))
            {
                *cost = *cost - reasoning_cost(entry, input.estimator);
            }
        }
    }
    costs
}

fn reasoning_cost(entry: &Entry, estimator: &dyn Estimator) -> Units {
    use crate::message::Block;
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

fn receipt_id(input: &Input<'_>) -> String {
    Identity {
        engine: ENGINE,
        source: Chain::over(input.hashes),
        shape: shape(&input.conversation.entries),
        previous: input.prior.map(|p| p.receipt_id.as_str()),
        policy: input.policy,
        budget: input.budget,
        estimator: input.estimator.name(),
        wire: input.rules.name,
        note: input.note,
    }
    .receipt_id()
}

/// A digest of what identity leaves out and the plan looks at: call ids, flags, groups, kinds.
fn shape(entries: &[Entry]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for entry in entries {
        hasher.update(
            format!(
                "{:?}{:?}{:?}",
                entry.meta.kind, entry.meta.flags, entry.meta.group
            )
            .as_bytes(),
        );
        for id in entry.calls().chain(entry.results()) {
            hasher.update(id.as_bytes());
            hasher.update(b"\0");
        }
    }
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    u64::from_le_bytes(first)
}
