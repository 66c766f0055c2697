//! The receipt of a compaction, and what a person should know about it.

use std::collections::BTreeSet;

use crate::frame;
use crate::identity::EntryHash;
use crate::message::{Block, Entry, EntryKind};
use crate::outline::{Outline, UnitHealth, UnitKind};
use crate::pin::PinState;
use crate::plan::{self, Plan, UnitFate};
use crate::prompt::SummaryContent;
use crate::receipt::{
    CutRequest, ENGINE, KeptCounts, OutcomeKind, ProseUse, Receipt, ReceiptNote, ordinal_spans,
};
use crate::token::{EstimatorExt, Units};
use crate::verify::Retention;
use crate::view::{BlockEdit, View, ViewItem};

use super::draft::{VerifiedDraft, ViewDraft};
use super::measured::MeasuredHistory;
use super::{Compaction, CompactionInput};

/// Writes down what happened, beside the view that came of it.
pub(super) fn write_compaction(
    measured: &MeasuredHistory<'_, '_>,
    plan: &Plan,
    verified: VerifiedDraft,
) -> Compaction {
    let VerifiedDraft { draft, retention } = verified;
    let report = CompactionReport {
        input: measured.input,
        measured,
        plan,
        draft: &draft,
    };
    let view_identity = report.identify_view();
    let view_spans = ordinal_spans(view_identity.iter().map(|(_, ordinal)| *ordinal));
    Compaction {
        receipt: Receipt {
            view_spans,
            ..report.write_receipt(retention)
        },
        view_identity,
        view: draft.view,
    }
}

/// What a receipt is written from.
struct CompactionReport<'r, 'a> {
    input: &'r CompactionInput<'a>,
    measured: &'r MeasuredHistory<'r, 'a>,
    plan: &'r Plan,
    draft: &'r ViewDraft,
}

impl CompactionReport<'_, '_> {
    fn write_receipt(&self, retention: Retention) -> Receipt {
        let (input, measured, draft) = (self.input, self.measured, self.draft);
        let leading = input.conversation.leading_instructions();
        let items = draft.view.items.iter();
        let stays: Vec<usize> = items.filter_map(ViewItem::entry_index).collect();
        let ordinal = |entry: &usize| measured.ordinals.get(*entry).copied();
        let gone = (leading..input.conversation.entries.len())
            .filter(|entry| stays.binary_search(entry).is_err())
            .collect::<Vec<_>>();
        let summary_cost = measured.frame_cost + draft.body.cost;
        Receipt {
            outcome: OutcomeKind::Compacted,
            receipt_id: measured.receipt_id().to_owned(),
            session_id: input.session_id.to_owned(),
            source_hash: measured.prepared().source(input),
            previous: input.prior.map(|p| p.receipt_id.clone()),
            engine: ENGINE.to_owned(),
            tokens_before: input.account.history,
            tokens_after: input.estimator.to_tokens(draft.cost),
            budget: input.budget,
            summary_limit: input.summary_limit,
            tokens_fixed: input.account.system + input.account.tools,
            // The frame and the body, counted apart: at most a token more than together.
            summary_tokens: input.estimator.to_tokens(summary_cost),
            estimator: input.estimator.name().to_owned(),
            wire: input.rules.name.to_owned(),
            model: input.conversation.model.clone(),
            summary_version: measured.frame.version,
            summarizer: self.summarizer(),
            style: input.policy.strategy,
            placement: input.summary_placement(),
            policy: input.policy.clone(),
            rung: rung_name(self.plan),
            kept: self.count_kept(),
            kept_spans: ordinal_spans(stays.iter().filter_map(ordinal)),
            view_spans: Vec::new(),
            summarized_spans: ordinal_spans(gone.iter().filter_map(ordinal)),
            pruned_count: gone.len() as u64,
            retention,
            redactions: draft.redactions.clone(),
            redaction_fingerprint: Some(input.redaction_fingerprint()),
            carried: self.count_carried(),
            notes: self.notes(),
            note: input.note.map(str::to_owned),
            prose: self.prose_use(),
        }
    }

    /// Identity and ordinal of the view's history: what leads the view is the host's to re-send.
    fn identify_view(&self) -> Vec<(EntryHash, u64)> {
        let items = self.draft.view.items.iter();
        items
            .filter_map(|item| Some((item, item.shown_entry(self.input.conversation)?)))
            .skip_while(|(_, shown)| shown.is_leading())
            .map(|(item, shown)| {
                let entry = item.entry_index();
                let ordinal = entry.and_then(|e| self.measured.ordinals.get(e)).copied();
                (
                    EntryHash::from_entry(&shown),
                    ordinal.unwrap_or(self.input.ledger.next),
                )
            })
            .collect()
    }

    /// Who wrote the summary.
    fn summarizer(&self) -> String {
        match self.input.content {
            SummaryContent::Prose(prose) if self.draft.prose > Units(0) => prose.author.clone(),
            SummaryContent::Prose(_) | SummaryContent::Ledger => "extractive".to_owned(),
            SummaryContent::Minimal => "minimal".to_owned(),
            SummaryContent::Nothing => "none".to_owned(),
        }
    }

    /// A model's part in the summary.
    fn prose_use(&self) -> Option<ProseUse> {
        let SummaryContent::Prose(prose) = self.input.content else {
            return None;
        };
        Some(ProseUse {
            template: prose.template.clone(),
            coverage: prose.coverage,
            prose_tokens: self.input.estimator.to_tokens(self.draft.prose),
        })
    }

    /// Counts the summaries that say they are ours and that nothing here proves.
    fn count_carried(&self) -> u64 {
        let is_carried = |entry: &&Entry| {
            entry.meta.kind == EntryKind::ForeignSummary
                && frame::find_frame(&entry.blocks).is_some()
        };
        let entries = self.input.conversation.entries.iter();
        entries.filter(is_carried).count() as u64
    }

    fn count_kept(&self) -> KeptCounts {
        let is_edited = |item: &&ViewItem| matches!(item, ViewItem::Edited { .. });
        KeptCounts {
            clipped: self.draft.view.items.iter().filter(is_edited).count() as u64,
            newest_cut: self.count_newest_cut(),
            ..count_fates(&self.measured.outline, &self.plan.fates)
        }
    }

    /// Counts the newest entries that do not stand in the view as they came.
    fn count_newest_cut(&self) -> u64 {
        let whole = |entry: usize| {
            let mut items = self.draft.view.items.iter();
            items.any(|item| item.entry_index() == Some(entry) && self.shows_all_words(item))
        };
        let after = self.input.conversation.newest_start();
        let units = self.measured.plan_input().newest_units();
        let outline = &self.measured.outline;
        let units = units.iter().filter_map(|i| outline.units.get(*i));
        let entries = units.flat_map(|unit| unit.entries.clone());
        entries.filter(|e| *e >= after && !whole(*e)).count() as u64
    }

    /// True for an item that shows its entry whole, but for reasoning that its provider would refuse.
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

    /// What a person should know about it.
    fn notes(&self) -> Vec<ReceiptNote> {
        let mut notes = self.notes_on_prose();
        if self.count_carried() > 0 {
            notes.push(ReceiptNote::UnprovenSummary);
        }
        let count = self.input.prior.map_or(0, |prior| prior.trimmed);
        if count > 0 {
            notes.push(ReceiptNote::ViewTrimmed { count });
        }
        if self.count_newest_cut() > 0 {
            notes.push(
                match plan::newest_fits(&self.measured.plan_input(), self.measured.budget) {
                    true => ReceiptNote::AnswersCut,
                    false => ReceiptNote::NewestCut,
                },
            );
        }
        notes.extend(self.cut_requests().map(ReceiptNote::RequestCut));
        let units = self.measured.outline.units.iter();
        let broken = units.filter(|u| u.health == UnitHealth::Broken).count();
        if broken > 0 {
            notes.push(ReceiptNote::MalformedToolMessages { count: broken });
        }
        let pins = self.measured.pins.iter();
        let repeated = pins.filter(|p| **p == PinState::Repeated).count();
        if repeated > 0 {
            notes.push(ReceiptNote::RepeatedProtected { count: repeated });
        }
        let count = self.input.ledger.facts.rules_left_out;
        if count > 0 {
            notes.push(ReceiptNote::RulesLeftOut { count });
        }
        let count = self.input.ledger.facts.unheard_requests;
        if count > 0 {
            notes.push(ReceiptNote::UnheardRequests { count });
        }
        notes
    }

    /// What became of a model's words.
    fn notes_on_prose(&self) -> Vec<ReceiptNote> {
        let SummaryContent::Prose(prose) = self.input.content else {
            return Vec::new();
        };
        let mut notes = Vec::new();
        if self.draft.prose == Units(0) {
            notes.push(ReceiptNote::ProseLeftOut {
                author: prose.author.clone(),
            });
        }
        let coverage = prose.coverage;
        if coverage.chunks < coverage.of_chunks {
            notes.push(ReceiptNote::ProseOfPart {
                author: prose.author.clone(),
                shown: coverage.tokens,
                of: coverage.of_tokens,
            });
        }
        notes
    }

    /// The user's requests before the newest that do not stand whole in the view.
    fn cut_requests(&self) -> impl Iterator<Item = CutRequest> {
        let newest = self.input.conversation.newest_start();
        let outline = &self.measured.outline;
        let requests = [
            (CutRequest::First, outline.first_user()),
            (CutRequest::Latest, outline.last_user()),
        ];
        requests.into_iter().filter_map(move |(request, unit)| {
            let at = outline.units.get(unit?)?.entries.start;
            (at < newest && is_cut(&self.draft.view, at)).then_some(request)
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

/// Counts what a plan keeps; what becomes of its texts is not decided yet.
pub(super) fn count_fates(outline: &Outline, fates: &[UnitFate]) -> KeptCounts {
    let mut kept = KeptCounts::default();
    let mut turns = BTreeSet::new();
    for (unit, fate) in outline.units.iter().zip(fates) {
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
    kept
}
