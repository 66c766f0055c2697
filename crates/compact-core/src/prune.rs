//! Which units stay verbatim: one small rule per pruning policy.
//!
//! A rule sees the outline and two counts, and answers with the units it would keep. It does not
//! know the budget; the plan lowers the counts and asks again. A new policy is one more rule.

pub(crate) mod meaning;

use std::collections::HashSet;

use crate::message::Conversation;
use crate::outline::{Outline, Unit, UnitKind};
use crate::policy::Prune;
use meaning::MeaningVector;

/// How much of the recent part to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeepCounts {
    /// Turns whose messages stay.
    pub turns: u32,
    /// Tool exchanges that stay.
    pub pairs: u32,
}

/// What a rule may look at.
#[derive(Clone, Copy)]
pub(crate) struct PruneInput<'a> {
    /// The conversation.
    pub conversation: &'a Conversation,
    /// Its units.
    pub outline: &'a Outline,
    /// What each unit is about; only `semantic` asks for it.
    pub meaning: &'a [MeaningVector],
}

/// The units that `policy` keeps, ascending.
pub(crate) fn kept_units(policy: Prune, sight: PruneInput<'_>, counts: KeepCounts) -> Vec<usize> {
    let outline = sight.outline;
    let last_turn = outline.units.last().map_or(0, |u| u.turn);
    let recent = |u: &Unit| u.turn + counts.turns as usize > last_turn;
    let mut kept: Vec<usize> = match policy {
        Prune::Fifo => positions(outline, |u| recent(u) && u.is_sendable()).collect(),
        Prune::Recency => messages(outline, &recent)
            .chain(newest_exchanges(outline, counts.pairs))
            .collect(),
        Prune::StageAware => messages(outline, &recent)
            .chain(newest_by_tool(sight.conversation, outline, counts.pairs))
            .collect(),
        Prune::Semantic => messages(outline, &recent)
            .chain(newest_by_meaning(sight, counts.pairs))
            .collect(),
    };
    kept.sort_unstable();
    kept.dedup();
    kept
}

fn positions<'o>(
    outline: &'o Outline,
    wanted: impl Fn(&Unit) -> bool + 'o,
) -> impl DoubleEndedIterator<Item = usize> + 'o {
    outline
        .units
        .iter()
        .enumerate()
        .filter(move |(_, unit)| wanted(unit))
        .map(|(i, _)| i)
}

fn messages<'o>(
    outline: &'o Outline,
    recent: &'o impl Fn(&Unit) -> bool,
) -> impl Iterator<Item = usize> + 'o {
    positions(outline, move |u| {
        recent(u) && matches!(u.kind, UnitKind::User | UnitKind::Message)
    })
}

fn exchanges(outline: &Outline) -> impl DoubleEndedIterator<Item = usize> + '_ {
    positions(outline, |u| u.kind == UnitKind::Exchange && u.is_sendable())
}

fn newest_exchanges(outline: &Outline, pairs: u32) -> impl Iterator<Item = usize> + '_ {
    exchanges(outline).rev().take(pairs as usize)
}

/// The last exchange of each tool, newest first, then the last of all until the count is reached.
fn newest_by_tool(conversation: &Conversation, outline: &Outline, pairs: u32) -> Vec<usize> {
    let mut seen: HashSet<&str> = HashSet::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for i in exchanges(outline).rev() {
        match tool(conversation, outline, i) {
            Some(name) if seen.insert(name) => first.push(i),
            _ => rest.push(i),
        }
    }
    first.extend(rest);
    first.truncate(pairs as usize);
    first
}

/// The last exchange of each cluster that says the same, newest first.
fn newest_by_meaning(sight: PruneInput<'_>, pairs: u32) -> Vec<usize> {
    meaning::representatives(
        sight.meaning,
        exchanges(sight.outline).rev(),
        pairs as usize,
    )
}

fn tool<'c>(conversation: &'c Conversation, outline: &Outline, unit: usize) -> Option<&'c str> {
    let range = outline.units.get(unit)?.entries.clone();
    conversation.entries.get(range)?.iter().find_map(|entry| {
        entry.blocks.iter().find_map(|block| match block {
            crate::message::Block::ToolCall { name, .. } => Some(name.as_str()),
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests;
