//! The receipt of a run, and what a person should know about it.

use std::collections::BTreeSet;

use crate::assemble;
use crate::frame;
use crate::identity::Chain;
use crate::message::{Block, Entry, EntryKind};
use crate::outline::{UnitHealth, UnitKind};
use crate::pin::PinState;
use crate::plan::{Plan, UnitFate};
use crate::receipt::{
    CutRequest, ENGINE, KeptCounts, OutcomeKind, Receipt, ReceiptNote, ordinal_spans,
};
use crate::summarize::SummaryBody;
use crate::token::{EstimatorExt, Tokens};
use crate::verify::Retention;
use crate::view::{BlockEdit, View, ViewItem};

use super::run::{CompactionRun, ViewDraft};

impl CompactionRun<'_, '_> {
    /// Writes down what happened.
    pub(super) fn write_receipt(
        &self,
        plan: &Plan,
        draft: &ViewDraft,
        retention: Retention,
    ) -> Receipt {
        let (input, view) = (self.input, &draft.view);
        let leading = input.conversation.leading_instructions();
        let stays: Vec<usize> = view
            .items
            .iter()
            .filter_map(ViewItem::entry_index)
            .collect();
        let ordinal = |entry: &usize| self.ordinals.get(*entry).copied();
        let gone = (leading..input.conversation.entries.len())
            .filter(|entry| stays.binary_search(entry).is_err())
            .collect::<Vec<_>>();
        Receipt {
            outcome: OutcomeKind::Compacted,
            receipt_id: self.receipt_id().to_owned(),
            session_id: input.session_id.to_owned(),
            source_hash: Chain::from_hashes(input.hashes),
            previous: input.prior.map(|p| p.receipt_id.clone()),
            engine: ENGINE.to_owned(),
            tokens_before: input.account.history,
            tokens_after: input.estimator.to_tokens(draft.cost),
            budget: input.budget,
            summary_limit: input.summary_limit,
            tokens_fixed: input.account.system + input.account.tools,
            summary_tokens: self.summary_tokens(&draft.body),
            estimator: input.estimator.name().to_owned(),
            wire: input.rules.name.to_owned(),
            model: input.conversation.model.clone(),
            summary_version: self.frame.version,
            summarizer: self.summarizer(draft),
            style: input.policy.strategy,
            placement: self.summary_placement(),
            policy: input.policy.clone(),
            rung: rung_name(plan),
            kept: self.kept(plan, view),
            kept_spans: ordinal_spans(stays.iter().filter_map(ordinal)),
            view_spans: Vec::new(),
            summarized_spans: ordinal_spans(gone.iter().filter_map(ordinal)),
            pruned_count: gone.len() as u64,
            retention,
            redactions: draft.redactions.clone(),
            redaction_fingerprint: Some(input.redaction_fingerprint()),
            carried: self.carried(),
            notes: self.notes(draft),
            note: input.note.map(str::to_owned),
            prose: self.prose_use(draft),
        }
    }

    /// Summaries that say they are ours and that nothing here proves.
    fn carried(&self) -> u64 {
        let is_carried = |entry: &&Entry| {
            entry.meta.kind == EntryKind::ForeignSummary
                && frame::find_frame(&entry.blocks).is_some()
        };
        self.input
            .conversation
            .entries
            .iter()
            .filter(is_carried)
            .count() as u64
    }

    /// The frame and the body, counted apart: at most a token more than together.
    fn summary_tokens(&self, body: &SummaryBody) -> Tokens {
        let frame = assemble::summary_text(&self.frame, "", self.summary_placement());
        let estimator = self.input.estimator;
        estimator.to_tokens(estimator.count_message(&frame) + body.cost)
    }

    fn kept(&self, plan: &Plan, view: &View) -> KeptCounts {
        let mut kept = KeptCounts::default();
        let mut turns = BTreeSet::new();
        for (unit, fate) in self.outline.units.iter().zip(&plan.fates) {
            match (fate, unit.kind) {
                (UnitFate::Demoted, _) => continue,
                (UnitFate::Pinned, _) => kept.pinned += unit.entries.len() as u64,
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
        kept.newest_cut = self.newest_cut(view);
        kept
    }

    /// How many of the newest entries do not stand in the view as they came.
    fn newest_cut(&self, view: &View) -> u64 {
        let whole = |entry: usize| {
            let mut items = view.items.iter();
            items.any(|item| item.entry_index() == Some(entry) && self.shows_all_words(item))
        };
        let after = self.input.conversation.newest_start();
        let units = self.plan_input().newest_units();
        let units = units.iter().filter_map(|i| self.outline.units.get(*i));
        let entries = units.flat_map(|unit| unit.entries.clone());
        entries.filter(|e| *e >= after && !whole(*e)).count() as u64
    }

    /// Whether an item shows its entry whole, but for reasoning that its provider would refuse.
    fn shows_all_words(&self, item: &ViewItem) -> bool {
        let ViewItem::Edited { entry, edits } = item else {
            return true;
        };
        let entry = self.input.conversation.entries.get(*entry);
        let is_reasoning = |at: &usize| {
            let block = entry.and_then(|entry| entry.blocks.get(*at));
            matches!(block, Some(Block::Reasoning { .. }))
        };
        edits
            .iter()
            .all(|(at, edit)| matches!(edit, BlockEdit::Drop) && is_reasoning(at))
    }

    fn notes(&self, draft: &ViewDraft) -> Vec<ReceiptNote> {
        let mut notes = self.notes_on_words(draft);
        if self.carried() > 0 {
            notes.push(ReceiptNote::UnprovenSummary);
        }
        if self.newest_cut(&draft.view) > 0 {
            notes.push(ReceiptNote::NewestCut);
        }
        notes.extend(self.cut_requests(&draft.view).map(ReceiptNote::RequestCut));
        let units = self.outline.units.iter();
        let broken = units.filter(|u| u.health == UnitHealth::Broken).count();
        if broken > 0 {
            notes.push(ReceiptNote::MalformedToolMessages { count: broken });
        }
        let pins = self.pins.iter();
        let repeated = pins.filter(|p| **p == PinState::Repeated).count();
        if repeated > 0 {
            notes.push(ReceiptNote::RepeatedProtected { count: repeated });
        }
        notes
    }

    /// The user's requests before the newest that do not stand whole in the view.
    fn cut_requests(&self, view: &View) -> impl Iterator<Item = CutRequest> {
        let newest = self.input.conversation.newest_start();
        let requests = [
            (CutRequest::First, self.outline.first_user()),
            (CutRequest::Latest, self.outline.last_user()),
        ];
        requests.into_iter().filter_map(move |(request, unit)| {
            let at = self.outline.units.get(unit?)?.entries.start;
            (at < newest && is_cut(view, at)).then_some(request)
        })
    }
}

fn is_cut(view: &View, entry: usize) -> bool {
    let mut items = view.items.iter();
    items.any(|item| matches!(item, ViewItem::Edited { entry: at, .. } if *at == entry))
}

fn rung_name(plan: &Plan) -> String {
    serde_json::to_value(plan.rung)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}
