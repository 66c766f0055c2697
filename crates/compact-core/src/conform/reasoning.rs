//! Reasoning after an edit: what goes, what must stay, and what cannot be had.

use std::ops::Range;

use crate::message::{Block, Conversation, Entry, Role};
use crate::outline::{Outline, UnitKind};
use crate::view::{Edit, View, ViewItem};
use crate::wire::{ReasoningRule, WireRules};

/// Strips reasoning that the wire would not accept any more.
pub(super) fn strip(
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
        .filter_map(|(i, item)| match item.entry() {
            Some(entry) if i >= untouched && !exempt.contains(&i) => {
                without_reasoning(item, conversation.entries.get(entry)?)
            }
            _ => Some(item),
        })
        .collect();
    View { items }
}

/// True when a unit that stays loses its reasoning once the prefix is edited.
pub fn loses_reasoning(rules: &WireRules, outline: &Outline, unit: usize) -> bool {
    match rules.reasoning {
        ReasoningRule::Keep => false,
        ReasoningRule::StripAfterEdit => true,
        ReasoningRule::StripOutsideLoop => !loop_units(outline).contains(&unit),
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
    let begins = |entry: Option<&Entry>| {
        entry.is_some_and(|e| matches!(e.blocks.first(), Some(Block::Reasoning { .. })))
    };
    if rules.reasoning != ReasoningRule::StripOutsideLoop {
        return true;
    }
    let source = loop_units(outline);
    let whole = outline
        .units
        .get(source.start)
        .and_then(|unit| conversation.entries.get(unit.entries.start..))
        .and_then(|entries| entries.iter().find(|e| e.role == Role::Assistant));
    if source.is_empty() || !begins(whole) {
        return true;
    }
    let shown = shown_loop(view, conversation, outline);
    let first = view
        .items
        .get(shown.clone())
        .unwrap_or_default()
        .iter()
        .filter_map(|item| item.shown(conversation))
        .find(|e| e.role == Role::Assistant);
    shown.is_empty() || begins(first.as_ref())
}

/// The units of the tool loop that the conversation ends in: all after the last words of a person.
fn loop_units(outline: &Outline) -> Range<usize> {
    let end = outline.units.len();
    match outline.units.last() {
        Some(last) if last.kind == UnitKind::Exchange => {
            outline.last_user().map_or(0, |user| user + 1)..end
        }
        _ => end..end,
    }
}

/// The items of that loop as far as the view shows it.
fn shown_loop(view: &View, conversation: &Conversation, outline: &Outline) -> Range<usize> {
    let end = view.items.len();
    let source = loop_units(outline);
    let first = outline.units.get(source.start).map(|u| u.entries.start);
    let in_loop = |item: &ViewItem| item.entry().zip(first).is_some_and(|(e, f)| e >= f);
    if source.is_empty() || !view.items.last().is_some_and(in_loop) {
        return end..end;
    }
    let words = view.items.iter().rposition(|item| {
        !in_loop(item)
            || item
                .shown(conversation)
                .is_some_and(|e| e.role == Role::User && !e.has_results())
    });
    words.map_or(0, |at| at + 1)..end
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
