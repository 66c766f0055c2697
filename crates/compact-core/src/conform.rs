//! Conform: what an edited prefix forces on what stands after it.
//!
//! Reasoning that a provider has signed over the exact bytes before it is worthless, or an error,
//! once those bytes changed. It is stripped after the first edit, except in a tool loop that is
//! still open, which providers want back untouched.

use crate::message::{Block, Conversation, Entry};
use crate::outline::{Health, Outline};
use crate::view::{Edit, View, ViewItem};
use crate::wire::{ReasoningRule, WireRules};

/// Makes a view legal after its edits.
pub fn conform(
    view: View,
    conversation: &Conversation,
    outline: &Outline,
    rules: &WireRules,
) -> View {
    match rules.reasoning {
        ReasoningRule::Keep => view,
        ReasoningRule::StripAfterEdit => strip_reasoning(view, conversation, outline),
    }
}

/// True when an entry of a kept unit loses its reasoning once the prefix is edited.
pub fn loses_reasoning(rules: &WireRules, health: Health) -> bool {
    rules.reasoning == ReasoningRule::StripAfterEdit && health != Health::Open
}

fn strip_reasoning(view: View, conversation: &Conversation, outline: &Outline) -> View {
    let untouched = view
        .items
        .iter()
        .enumerate()
        .take_while(|(i, item)| **item == ViewItem::Kept { entry: *i })
        .count();
    let open: Vec<_> = outline
        .units
        .iter()
        .filter(|u| u.health == Health::Open)
        .map(|u| u.entries.clone())
        .collect();
    let items = view
        .items
        .into_iter()
        .enumerate()
        .filter_map(|(i, item)| match item.entry() {
            Some(entry) if i >= untouched && !open.iter().any(|r| r.contains(&entry)) => {
                without_reasoning(item, conversation.entries.get(entry)?)
            }
            _ => Some(item),
        })
        .collect();
    View { items }
}

fn without_reasoning(item: ViewItem, whole: &Entry) -> Option<ViewItem> {
    let reasoning: Vec<usize> = whole
        .blocks
        .iter()
        .enumerate()
        .filter(|(_, b)| matches!(b, Block::Reasoning { .. }))
        .map(|(i, _)| i)
        .collect();
    if reasoning.is_empty() {
        return Some(item);
    }
    if reasoning.len() == whole.blocks.len() {
        return None;
    }
    let (entry, mut edits) = match item {
        ViewItem::Kept { entry } => (entry, Vec::new()),
        ViewItem::Edited { entry, edits } => (entry, edits),
        new @ ViewItem::New(_) => return Some(new),
    };
    edits.retain(|(at, _)| !reasoning.contains(at));
    edits.extend(reasoning.into_iter().map(|at| (at, Edit::Drop)));
    edits.sort_by_key(|(at, _)| *at);
    Some(ViewItem::Edited { entry, edits })
}
