//! Validate: the rules that every finished view must keep, whatever the provider.
//!
//! A view that breaks one is a defect of ours; it is rejected and the conversation stays untouched.
//! Provider-specific checks belong to the formats.

use std::collections::HashMap;

use crate::message::{Conversation, Entry, EntryKind};
use crate::outline::{Health, Outline};
use crate::plan::{Fate, Plan};
use crate::view::{View, ViewItem};

/// Checks a finished view; `Err` says which rule broke and where.
pub fn validate(
    view: &View,
    conversation: &Conversation,
    outline: &Outline,
    plan: &Plan,
) -> Result<(), String> {
    in_order(view)?;
    pinned_whole(view, outline, plan)?;
    one_summary(view, conversation)?;
    paired(&view.entries(conversation), has_broken_pin(outline, plan))
}

fn in_order(view: &View) -> Result<(), String> {
    let mut last = None;
    for entry in view.items.iter().filter_map(ViewItem::entry) {
        if last.is_some_and(|l| l >= entry) {
            return Err(format!("entry {entry} stands out of order"));
        }
        last = Some(entry);
    }
    Ok(())
}

fn pinned_whole(view: &View, outline: &Outline, plan: &Plan) -> Result<(), String> {
    let pinned = outline
        .units
        .iter()
        .zip(&plan.fates)
        .filter(|(_, fate)| **fate == Fate::Pinned)
        .flat_map(|(unit, _)| unit.entries.clone());
    let mut kept = view.items.iter().filter_map(|item| match item {
        ViewItem::Kept { entry } => Some(*entry),
        _ => None,
    });
    // Both ascend, so one pass over the view finds every pinned entry or shows that one is missing.
    for entry in pinned {
        if !kept.any(|k| k == entry) {
            return Err(format!("pinned entry {entry} was changed or dropped"));
        }
    }
    Ok(())
}

fn one_summary(view: &View, conversation: &Conversation) -> Result<(), String> {
    let ours = |e: &Entry| matches!(e.meta.kind, EntryKind::Summary { .. });
    let count = view
        .items
        .iter()
        .filter(|item| match item {
            ViewItem::New(entry) => ours(entry),
            other => other
                .entry()
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
        .any(|(unit, fate)| *fate == Fate::Pinned && unit.health == Health::Broken)
}

fn paired(entries: &[Entry], tolerate: bool) -> Result<(), String> {
    if tolerate {
        return Ok(());
    }
    let mut open: HashMap<&str, usize> = HashMap::new();
    for (i, entry) in entries.iter().enumerate() {
        for result in entry.results() {
            match open.get_mut(result).filter(|n| **n > 0) {
                Some(n) => *n -= 1,
                None => {
                    return Err(format!(
                        "item {i} answers call '{result}' that is not there"
                    ));
                }
            }
        }
        if entry.is_user_message() && open.values().any(|n| *n > 0) {
            return Err(format!(
                "item {i} comes before the results of an earlier call"
            ));
        }
        for call in entry.calls().filter(|id| !id.is_empty()) {
            *open.entry(call).or_default() += 1;
        }
    }
    Ok(())
}
