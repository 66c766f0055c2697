//! Reasoning after an edit: what goes, what must stay, and what cannot be had.

use std::ops::Range;

use crate::message::{Block, Conversation, Entry, Role};
use crate::outline::Outline;
use crate::view::{BlockEdit, View, ViewItem};
use crate::wire::{ReasoningRule, WireRules};

/// Strips reasoning that the wire would not accept any more.
pub(super) fn strip_reasoning(
    view: View,
    conversation: &Conversation,
    outline: &Outline,
    rules: &WireRules,
) -> View {
    if rules.reasoning == ReasoningRule::Keep {
        return view;
    }
    let untouched = view
        .items
        .iter()
        .enumerate()
        .take_while(|(i, item)| **item == ViewItem::Kept { entry: *i })
        .count();
    let exempt = match rules.reasoning {
        ReasoningRule::StripOutsideLoop => shown_loop(&view, conversation, outline),
        _ => view.items.len()..view.items.len(),
    };
    let items = view
        .items
        .into_iter()
        .enumerate()
        .filter_map(|(i, item)| match item.entry_index() {
            Some(entry) if i >= untouched && !exempt.contains(&i) => {
                without_reasoning(item, conversation.entries.get(entry)?)
            }
            _ => Some(item),
        })
        .collect();
    View { items }
}

/// True when reasoning that stays is stripped once the prefix is edited. In a running loop that
/// must keep its own, any exchange may turn out to be part of it, so none can be counted out.
pub(crate) fn loses_reasoning(rules: &WireRules, outline: &Outline) -> bool {
    match rules.reasoning {
        ReasoningRule::Keep => false,
        ReasoningRule::StripAfterEdit => true,
        ReasoningRule::StripOutsideLoop => !outline.ends_in_loop,
    }
}

/// False when the wire wants the model's running tool loop to begin with the reasoning that it
/// began with, and the view no longer shows it.
pub fn loop_is_whole(
    view: &View,
    conversation: &Conversation,
    outline: &Outline,
    rules: &WireRules,
) -> bool {
    if rules.reasoning != ReasoningRule::StripOutsideLoop || !outline.ends_in_loop {
        return true;
    }
    let source = View::identity(conversation);
    let began = begins_with_reasoning(&source, conversation, outline);
    began != Some(true) || begins_with_reasoning(view, conversation, outline) != Some(false)
}

/// Whether the first thing that the model says in the loop is reasoning, if there is a loop.
fn begins_with_reasoning(
    view: &View,
    conversation: &Conversation,
    outline: &Outline,
) -> Option<bool> {
    let items = view.items.get(shown_loop(view, conversation, outline))?;
    let first = items
        .iter()
        .filter_map(|item| item.shown_entry(conversation))
        .find(|e| e.role == Role::Assistant)?;
    Some(matches!(
        first.blocks.first(),
        Some(Block::Reasoning { .. })
    ))
}

/// The items of the running loop: all after the last words that a person said by themselves.
fn shown_loop(view: &View, conversation: &Conversation, outline: &Outline) -> Range<usize> {
    let end = view.items.len();
    if !outline.ends_in_loop {
        return end..end;
    }
    let alone = |i: usize| {
        let before = i.checked_sub(1).and_then(|i| view.items.get(i));
        let item = view.items.get(i);
        item.is_some_and(|item| speaks_alone(item, before, conversation))
    };
    (0..end).rev().find(|i| alone(*i)).map_or(0, |at| at + 1)..end
}

/// True for words of a person that do not stand in one message with the results before them.
fn speaks_alone(item: &ViewItem, before: Option<&ViewItem>, conversation: &Conversation) -> bool {
    let Some(shown) = item.shown_entry(conversation) else {
        return false;
    };
    let previous = item.entry_index().and_then(|entry| entry.checked_sub(1));
    let is_joined = shown.meta.continues
        && previous.is_some()
        && before.and_then(ViewItem::entry_index) == previous;
    shown.role == Role::User && !shown.has_results() && !is_joined
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
    edits.extend(reasoning.into_iter().map(|at| (at, BlockEdit::Drop)));
    edits.sort_by_key(|(at, _)| *at);
    Some(ViewItem::Edited { entry, edits })
}
