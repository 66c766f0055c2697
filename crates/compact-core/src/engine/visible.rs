//! What a view shows: beside its summary, in all its words, and of which entries.

use std::collections::HashSet;

use crate::message::{Block, Conversation, Entry};
use crate::outline::UnitKind;
use crate::plan::{Plan, PlanInput, UnitFate};
use crate::summarize::VisibleTexts;
use crate::view::{BlockEdit, View, ViewItem};

/// The texts that a plan leaves in the view, beside the summary.
pub(super) fn planned_texts<'s>(scene: &PlanInput<'s>, plan: &Plan) -> VisibleTexts<'s> {
    let mut visible = VisibleTexts::default();
    for (unit, fate) in scene.outline.units.iter().zip(&plan.fates) {
        for at in unit.entries.clone().filter(|_| fate.stays()) {
            add_texts(scene, at, *fate, &mut visible);
        }
    }
    visible.early = early_messages(scene, plan);
    visible
}

/// The ordinals of messages that a plan keeps behind something that goes, and before something else that does.
fn early_messages(scene: &PlanInput<'_>, plan: &Plan) -> Vec<u64> {
    let goes = |fate: &UnitFate| !fate.stays();
    let first = plan.fates.iter().position(goes).unwrap_or(usize::MAX);
    let first = first.max(scene.outline.first_user().map_or(0, |first| first + 1));
    let last = plan.fates.iter().rposition(goes).unwrap_or(0);
    let units = scene.outline.units.iter().enumerate();
    let between = units.filter(|(nth, unit)| {
        let is_message = matches!(unit.kind, UnitKind::User | UnitKind::Message);
        (first..last).contains(nth) && is_message && !plan.fates.get(*nth).is_none_or(goes)
    });
    between
        .filter_map(|(_, unit)| scene.ordinals.get(unit.entries.start).copied())
        .collect()
}

/// Adds the texts of an entry as its fate leaves them.
fn add_texts<'s>(scene: &PlanInput<'s>, at: usize, fate: UnitFate, visible: &mut VisibleTexts<'s>) {
    let Some(entry) = scene.conversation.entries.get(at) else {
        return;
    };
    let cut = match fate {
        UnitFate::Clipped(level) => Some(scene.cut_entry(at, entry, level)),
        _ => None,
    };
    let edits = cut.as_ref().map_or(&[][..], |cut| &cut.edits);
    if edits.is_empty() {
        visible.entries.extend(scene.ordinals.get(at));
    }
    for (block, nth) in entry.blocks.iter().zip(0..) {
        match edits.iter().find(|(edited, _)| *edited == nth) {
            Some((_, BlockEdit::SetText(left))) => {
                visible.cut.push(left.clone());
                visible.cut_from.extend(block.text_parts());
            }
            Some((_, BlockEdit::Drop)) => {}
            None => visible.whole.extend(block.text_parts()),
        }
    }
}

/// The ordinals of the entries that stand in a view as they came.
pub(super) fn whole_ordinals(view: &View, ordinals: &[u64]) -> HashSet<u64> {
    view.items
        .iter()
        .filter_map(|item| match item {
            ViewItem::Kept { entry } => ordinals.get(*entry).copied(),
            _ => None,
        })
        .collect()
}

/// All words of a view's history, in order.
pub(super) fn view_text(view: &View, conversation: &Conversation) -> String {
    let leading = conversation.leading_instructions();
    let mut text = String::new();
    for item in &view.items {
        if item.entry_index().is_some_and(|entry| entry < leading) {
            continue;
        }
        let Some(entry) = item.shown_entry(conversation) else {
            continue;
        };
        push_texts(&entry, &mut text);
    }
    text
}

/// All words of a history as it went in.
pub(super) fn history_text(conversation: &Conversation) -> String {
    let mut text = String::new();
    let leading = conversation.leading_instructions();
    for entry in conversation.entries.iter().skip(leading) {
        push_texts(entry, &mut text);
    }
    text
}

fn push_texts(entry: &Entry, text: &mut String) {
    for part in entry.blocks.iter().flat_map(Block::text_parts) {
        text.push_str(part);
        text.push('\n');
    }
}
