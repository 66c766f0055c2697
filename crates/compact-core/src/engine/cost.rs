//! What entries and views cost once the wire's rules were applied.

use crate::conform;
use crate::message::{Block, Entry};
use crate::outline::Outline;
use crate::token::{Estimator, EstimatorExt, Units};
use crate::view::{View, ViewItem};

use super::CompactionInput;

/// What each entry costs in an edited view: reasoning that will be stripped is not paid for, a
/// bridge that may be needed is.
pub(super) fn costs_after_conform(input: &CompactionInput<'_>, outline: &Outline) -> Vec<Units> {
    let mut costs = input.account.entries.clone();
    let reserve = conform::reserve(input.rules, input.estimator);
    let loses = conform::loses_reasoning(input.rules, outline);
    for unit in &outline.units {
        for at in unit.entries.clone() {
            let (Some(entry), Some(cost)) = (input.conversation.entries.get(at), costs.get_mut(at))
            else {
                continue;
            };
            if loses {
                *cost = *cost - reasoning_cost(entry, input.estimator);
            }
            if at == unit.entries.start {
                *cost += reserve.each;
            }
            if entry.role.is_instruction() {
                *cost += reserve.instruction;
            }
        }
    }
    costs
}

fn reasoning_cost(entry: &Entry, estimator: &dyn Estimator) -> Units {
    let reasoning = |b: &&Block| matches!(b, Block::Reasoning { .. });
    let cost: Units = entry
        .blocks
        .iter()
        .filter(reasoning)
        .map(|b| estimator.count_block(b))
        .sum();
    if !entry.blocks.is_empty() && entry.blocks.iter().all(|b| reasoning(&b)) {
        return cost + estimator.framing_units();
    }
    cost
}

/// What some items of a view's history cost: of everything but the leading instructions.
pub(super) fn view_cost(
    input: &CompactionInput<'_>,
    view: &View,
    counts: impl Fn(&ViewItem) -> bool,
) -> Units {
    let leading = input.conversation.leading_instructions();
    view.items
        .iter()
        .filter(|item| item.entry_index().is_none_or(|entry| entry >= leading))
        .filter(|item| counts(item))
        .map(|item| item_cost(input, item))
        .sum()
}

fn item_cost(input: &CompactionInput<'_>, item: &ViewItem) -> Units {
    match item {
        ViewItem::Kept { entry } => {
            let cost = input.account.entries.get(*entry);
            cost.copied().unwrap_or_default()
        }
        other => other
            .shown_entry(input.conversation)
            .map_or(Units(0), |e| input.estimator.count_entry(&e)),
    }
}
