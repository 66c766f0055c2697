//! Validate: the rules that every finished view must keep, whatever the provider.
//!
//! A view that breaks one is rejected and the conversation stays untouched. What a provider says of
//! its JSON is checked by the formats.

use std::collections::HashMap;

use crate::conform;
use crate::message::{Block, Conversation, Entry, EntryKind};
use crate::outline::{Outline, UnitHealth};
use crate::plan::{Plan, UnitFate};
use crate::view::{BlockEdit, View, ViewItem};
use crate::wire::{ReasoningRule, WireRules};

/// Checks a finished view; `Err` says which rule broke and where.
pub(crate) fn validate(
    view: &View,
    conversation: &Conversation,
    outline: &Outline,
    plan: &Plan,
    rules: &WireRules,
) -> Result<(), String> {
    in_order(view)?;
    pinned_whole(view, conversation, outline, plan, rules)?;
    one_summary(view, conversation)?;
    paired(
        &view.shown_entries(conversation),
        has_broken_pin(outline, plan),
    )?;
    running_loop(view, conversation, outline, rules)
}

/// A loop that waits for its results cannot be closed, so it must begin as the model began it.
fn running_loop(
    view: &View,
    conversation: &Conversation,
    outline: &Outline,
    rules: &WireRules,
) -> Result<(), String> {
    let waits = outline.units.iter().any(|u| u.health == UnitHealth::Open);
    if waits && !conform::loop_is_whole(view, conversation, outline, rules) {
        return Err(format!(
            "{} wants the reasoning that began the running tool loop, and it does not fit; \
             compact again once the calls are answered",
            rules.name
        ));
    }
    Ok(())
}

fn in_order(view: &View) -> Result<(), String> {
    let mut last = None;
    for entry in view.items.iter().filter_map(ViewItem::entry_index) {
        if last.is_some_and(|l| l >= entry) {
            return Err(format!("entry {entry} stands out of order"));
        }
        last = Some(entry);
    }
    Ok(())
}

fn pinned_whole(
    view: &View,
    conversation: &Conversation,
    outline: &Outline,
    plan: &Plan,
    rules: &WireRules,
) -> Result<(), String> {
    let says = |entry: &usize| {
        let entry = conversation.entries.get(*entry);
        rules.reasoning == ReasoningRule::Keep || entry.is_none_or(holds_more_than_reasoning)
    };
    let pinned = outline
        .units
        .iter()
        .zip(&plan.fates)
        .filter(|(_, fate)| **fate == UnitFate::Pinned)
        .flat_map(|(unit, _)| unit.entries.clone())
        .filter(says);
    let mut kept = view.items.iter().filter_map(|item| match item {
        ViewItem::Kept { entry } => Some(*entry),
        ViewItem::Edited { entry, edits } => {
            says_the_same(conversation.entries.get(*entry)?, edits).then_some(*entry)
        }
        ViewItem::New(_) => None,
    });
    // Both ascend, so one pass over the view finds every pinned entry or shows that one is missing.
    for entry in pinned {
        if !kept.any(|k| k == entry) {
            return Err(format!("pinned entry {entry} was changed or dropped"));
        }
    }
    Ok(())
}

/// False for reasoning that is an entry by itself, as where each block of a message has a line of its own: an edit before
/// it voids it, and then it goes from a pinned exchange as it does from within an entry.
fn holds_more_than_reasoning(entry: &Entry) -> bool {
    let is_reasoning = |block: &Block| matches!(block, Block::Reasoning { .. });
    entry.blocks.is_empty() || !entry.blocks.iter().all(is_reasoning)
}

/// Reasoning that an edit before it has voided is no part of what an entry says.
fn says_the_same(entry: &Entry, edits: &[(usize, BlockEdit)]) -> bool {
    edits.iter().all(|(at, edit)| {
        *edit == BlockEdit::Drop && matches!(entry.blocks.get(*at), Some(Block::Reasoning { .. }))
    })
}

fn one_summary(view: &View, conversation: &Conversation) -> Result<(), String> {
    let ours = |e: &Entry| matches!(e.meta.kind, EntryKind::Summary { .. });
    let count = view
        .items
        .iter()
        .filter(|item| match item {
            ViewItem::New(entry) => ours(entry),
            other => other
                .entry_index()
                .and_then(|i| conversation.entries.get(i))
                .is_some_and(ours),
        })
        .count();
    match count {
        1 => Ok(()),
        n => Err(format!("{n} summaries instead of one")),
    }
}

/// A pinned unit that was broken before stays broken: pinned means pinned.
fn has_broken_pin(outline: &Outline, plan: &Plan) -> bool {
    outline
        .units
        .iter()
        .zip(&plan.fates)
        .any(|(unit, fate)| *fate == UnitFate::Pinned && unit.health == UnitHealth::Broken)
}

fn paired(entries: &[Entry], tolerate: bool) -> Result<(), String> {
    if tolerate {
        return Ok(());
    }
    let mut open: HashMap<&str, usize, foldhash::fast::FixedState> = HashMap::default();
    for (i, entry) in entries.iter().enumerate() {
        for result in entry.result_ids() {
            match open.get_mut(result).filter(|n| **n > 0) {
                Some(n) => *n -= 1,
                None => {
                    return Err(format!(
                        "item {i} answers call '{result}' that is not there"
                    ));
                }
            }
        }
        let is_summary = matches!(entry.meta.kind, EntryKind::Summary { .. });
        if (entry.is_user_message() || is_summary) && open.values().any(|n| *n > 0) {
            return Err(format!(
                "item {i} comes before the results of an earlier call"
            ));
        }
        for call in entry.call_ids().filter(|id| !id.is_empty()) {
            *open.entry(call).or_default() += 1;
        }
    }
    Ok(())
}
