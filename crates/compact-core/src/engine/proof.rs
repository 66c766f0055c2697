//! The proof: which anchors of the dropped span the view shows, and what is put back.

use std::collections::HashSet;

use crate::message::Block;
use crate::plan::Plan;
use crate::redact::RedactionCounts;
use crate::token::Units;
use crate::verify::{self, Anchor, Retention};
use crate::view::{View, ViewItem};

use super::Originals;
use super::attempt::SummaryAttempt;
use super::run::{CompactionRun, ViewDraft, limit};

/// Stands between anchors that are redacted in one go; no rule's pattern reaches across it.
const BETWEEN: &str = "\n\u{0}\n";

impl CompactionRun<'_, '_> {
    /// Looks for the anchors of what was dropped, and puts back what is missing and fits.
    pub(super) fn verified(
        &self,
        plan: &Plan,
        told: SummaryAttempt<'_>,
        draft: ViewDraft,
    ) -> (ViewDraft, Retention) {
        let visible = self.visible_ordinals(&draft.view);
        let anchors = verify::anchors(self.input.ledger, self.ranking(), &|ordinal| {
            !visible.contains(&ordinal)
        });
        let before = verify::shown_anchors(&anchors, &self.view_text(&draft.view));
        let missing: Vec<&Anchor> = anchors
            .iter()
            .zip(&before)
            .filter(|(_, shown)| !**shown)
            .map(|(anchor, _)| anchor)
            .collect();
        let room = match told {
            SummaryAttempt::Ledger | SummaryAttempt::Prose(..) => {
                let limit = limit(plan, told, self.input.estimator);
                (self.budget - draft.cost).min(limit - draft.body.cost)
            }
            SummaryAttempt::Minimal | SummaryAttempt::Nothing => Units(0),
        };
        let estimator = self.input.estimator;
        let repaired = verify::repair(self.input.ledger, &draft.body, &missing, room, estimator)
            .map(|body| self.reworded(&draft, body))
            .filter(|repaired| repaired.cost <= self.budget);
        let (draft, after) = match repaired {
            Some(repaired) => {
                let after = verify::shown_anchors(&anchors, &self.view_text(&repaired.view));
                (repaired, after)
            }
            None => (draft, before.clone()),
        };
        let retention = self.retention(&anchors, &before, &after);
        (draft, retention)
    }

    fn visible_ordinals(&self, view: &View) -> HashSet<u64> {
        view.items
            .iter()
            .filter_map(|item| match item {
                ViewItem::Kept { entry } => self.ordinals.get(*entry).copied(),
                _ => None,
            })
            .collect()
    }

    /// All words of a view's history, in order.
    fn view_text(&self, view: &View) -> String {
        let leading = self.input.conversation.leading_instructions();
        let mut text = String::new();
        for item in &view.items {
            if item.entry_index().is_some_and(|entry| entry < leading) {
                continue;
            }
            let Some(entry) = item.shown_entry(self.input.conversation) else {
                continue;
            };
            for part in entry.blocks.iter().flat_map(Block::text_parts) {
                text.push_str(part);
                text.push('\n');
            }
        }
        text
    }

    fn retention(&self, anchors: &[Anchor], before: &[bool], after: &[bool]) -> Retention {
        let mut retention = Retention {
            anchors: anchors.len() as u64,
            kept: after.iter().filter(|shown| **shown).count() as u64,
            repaired: before
                .iter()
                .zip(after)
                .filter(|(b, a)| !**b && **a)
                .count() as u64,
            ..Retention::default()
        };
        let missing = anchors
            .iter()
            .zip(after)
            .filter(|(_, shown)| !**shown)
            .map(|(a, _)| a);
        retention.redacted = self.count_redacted(missing);
        let gone = retention.anchors - retention.kept - retention.redacted;
        match self.input.beyond {
            Originals::Archived | Originals::Redacted(_) => retention.recoverable = gone,
            Originals::Gone => retention.lost = gone,
        }
        retention.score = match retention.anchors {
            0 => 1.0,
            all => retention.kept as f64 / all as f64,
        };
        retention
    }

    /// How many of these anchors a redaction rule would replace.
    fn count_redacted<'t>(&self, anchors: impl Iterator<Item = &'t Anchor>) -> u64 {
        let texts: Vec<&str> = anchors.map(|a| a.text.as_str()).collect();
        let redacted = self
            .input
            .redactor
            .redact(&texts.join(BETWEEN), &mut RedactionCounts::new())
            .into_owned();
        let changed = texts
            .iter()
            .zip(redacted.split(BETWEEN))
            .filter(|(a, b)| *a != b);
        changed.count() as u64
    }
}
