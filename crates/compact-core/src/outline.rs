//! The shape of a conversation: turns, and units that are kept or dropped whole.
//!
//! A unit is the smallest thing a plan may move: one message, or one exchange — a batch of tool
//! calls with all its results and the reasoning bound to them. Membership is by index, never by
//! value, so equal messages stay two messages. Every cut between two units is legal on every wire.

use std::collections::HashMap;
use std::ops::Range;

use crate::message::{Block, Conversation, Entry, EntryKind, Role};

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitKind {
    /// A leading system or developer entry; the host re-sends it.
    Leading,
    /// A person's message: opens a turn.
    User,
    /// Any other message.
    Message,
    /// A summary of an earlier compaction, ours or a host's.
    Summary,
    /// Tool calls with their results.
    Exchange,
}

/// Whether a unit can be sent as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitHealth {
    /// Every call is answered and every result asked for.
    Whole,
    /// The last calls of the conversation still wait for their results.
    Open,
    /// A call that nothing answers, a result that nothing asked for, or a tool message that cannot be
    /// read.
    Broken,
}

/// Entries that stay together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The entries, contiguous.
    pub entries: Range<usize>,
    /// What it is.
    pub kind: UnitKind,
    /// Whether it may be sent as it is.
    pub health: UnitHealth,
    /// The turn it belongs to; entries before the first user message are turn 0.
    pub turn: usize,
}

impl Unit {
    /// True when it may stand in a view beside a summary.
    pub(crate) fn is_sendable(&self) -> bool {
        self.health != UnitHealth::Broken
            && !matches!(self.kind, UnitKind::Leading | UnitKind::Summary)
    }
}

/// Units in order, covering every entry exactly once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// The units.
    pub units: Vec<Unit>,
    /// Whether it ends in a tool loop, so that the model speaks next. What a person or a client says in the message of
    /// the results, such as a wish or a note of an interruption, does not end the loop for a provider.
    pub ends_in_loop: bool,
}

impl Outline {
    /// Groups a conversation into units.
    pub fn from_conversation(conversation: &Conversation) -> Outline {
        let entries = &conversation.entries;
        let links = EntryLinks::from_entries(entries);
        let leading = conversation.leading_instructions();
        let mut units: Vec<Unit> = Vec::new();
        let mut turn = 0;
        let mut start = 0;
        while start < entries.len() {
            let end = if start < leading {
                start + 1
            } else {
                links.unit_end(start)
            };
            let unit = links.unit(entries, start..end, start < leading, &mut turn);
            units.push(unit);
            start = end;
        }
        let says_more = |unit: &&Unit| {
            let first = entries.get(unit.entries.start);
            unit.kind != UnitKind::Exchange
                && first.is_some_and(|entry| entry.meta.continues && entry.role == Role::User)
        };
        let mut newest = units.iter().rev().skip_while(says_more);
        let last = newest.next();
        Outline {
            ends_in_loop: last.is_some_and(|unit| unit.kind == UnitKind::Exchange),
            units,
        }
    }

    /// How many turns the conversation has.
    pub fn turns(&self) -> usize {
        self.units
            .iter()
            .filter(|u| u.kind == UnitKind::User)
            .count()
    }

    /// How many tool exchanges it has.
    pub fn exchanges(&self) -> usize {
        self.units
            .iter()
            .filter(|u| u.kind == UnitKind::Exchange)
            .count()
    }

    /// How many broken units the newest step has: the model's last answer and what came after it. The
    /// client may still mend those; what is older stays broken.
    pub fn broken_in_newest_step(&self, entries: &[Entry]) -> usize {
        let answer = entries.iter().rposition(|e| e.role == Role::Assistant);
        let start = answer.unwrap_or(0);
        let units = self.units.iter().filter(|u| u.entries.end > start);
        units.filter(|u| u.health == UnitHealth::Broken).count()
    }

    /// The index of the first message of a person.
    pub fn first_user(&self) -> Option<usize> {
        self.units.iter().position(|u| u.kind == UnitKind::User)
    }

    /// The index of the latest message of a person.
    pub fn last_user(&self) -> Option<usize> {
        self.units.iter().rposition(|u| u.kind == UnitKind::User)
    }
}

/// Which entries belong together: `reach[i]` is the last entry that entry `i` must stay with.
struct EntryLinks {
    reach: Vec<usize>,
    orphan: Vec<bool>,
    unanswered: Vec<bool>,
}

impl EntryLinks {
    fn from_entries(entries: &[Entry]) -> EntryLinks {
        let mut links = EntryLinks {
            reach: (0..entries.len()).collect(),
            orphan: vec![false; entries.len()],
            unanswered: vec![false; entries.len()],
        };
        links.join_calls(entries);
        links.join_groups(entries);
        links.join_reasoning(entries);
        links
    }

    /// A call reaches its result; the nearest open call of that id is the one answered.
    fn join_calls(&mut self, entries: &[Entry]) {
        let mut open: HashMap<&str, Vec<usize>, foldhash::fast::FixedState> = HashMap::default();
        for (i, entry) in entries.iter().enumerate() {
            if entry.meta.malformed {
                set(&mut self.orphan, i);
            }
            for result in entry.result_ids() {
                match open.get_mut(result).and_then(Vec::pop) {
                    Some(call) => self.join(call, i),
                    None => set(&mut self.orphan, i),
                }
            }
            for call in entry.call_ids() {
                open.entry(call).or_default().push(i);
            }
        }
        for call in open.into_values().flatten() {
            if !answers_itself(entries.get(call)) {
                set(&mut self.unanswered, call);
            }
        }
    }

    /// Lines of one provider message stay together.
    fn join_groups(&mut self, entries: &[Entry]) {
        let mut last: HashMap<&str, usize, foldhash::fast::FixedState> = HashMap::default();
        for (i, entry) in entries.iter().enumerate() {
            if let Some(group) = entry.meta.group.as_deref()
                && let Some(previous) = last.insert(group, i)
            {
                self.join(previous, i);
            }
        }
    }

    /// Reasoning stays with what it led to.
    fn join_reasoning(&mut self, entries: &[Entry]) {
        for (i, pair) in entries.windows(2).enumerate() {
            if let [entry, next] = pair
                && next.role == Role::Assistant
                && !entry.blocks.is_empty()
                && entry
                    .blocks
                    .iter()
                    .all(|b| matches!(b, Block::Reasoning { .. }))
            {
                self.join(i, i + 1);
            }
        }
    }

    fn join(&mut self, from: usize, to: usize) {
        if let Some(reach) = self.reach.get_mut(from) {
            *reach = (*reach).max(to);
        }
    }

    /// One past the last entry of the unit that starts at `start`.
    fn unit_end(&self, start: usize) -> usize {
        let mut last = start;
        let mut i = start;
        while i <= last {
            last = last.max(self.reach.get(i).copied().unwrap_or(i));
            i += 1;
        }
        last + 1
    }

    fn unit(
        &self,
        entries: &[Entry],
        range: Range<usize>,
        leading: bool,
        turn: &mut usize,
    ) -> Unit {
        let inside = entries.get(range.clone()).unwrap_or_default();
        let kind = if leading {
            UnitKind::Leading
        } else {
            kind_of(inside)
        };
        if kind == UnitKind::User {
            *turn += 1;
        }
        let any = |flags: &[bool]| flags.get(range.clone()).is_some_and(|f| f.contains(&true));
        let health = match (any(&self.orphan), any(&self.unanswered)) {
            (false, false) => UnitHealth::Whole,
            (false, true) if no_reply_after(entries, range.end) => UnitHealth::Open,
            _ => UnitHealth::Broken,
        };
        Unit {
            entries: range,
            kind,
            health,
            turn: *turn,
        }
    }
}

fn set(flags: &mut [bool], at: usize) {
    if let Some(flag) = flags.get_mut(at) {
        *flag = true;
    }
}

/// A hosted tool's call carries no id: nothing will answer it.
fn answers_itself(entry: Option<&Entry>) -> bool {
    entry.is_none_or(|e| e.call_ids().all(str::is_empty))
}

/// Nothing after `end` shows that the conversation went on without the results.
fn no_reply_after(entries: &[Entry], end: usize) -> bool {
    entries
        .get(end..)
        .unwrap_or_default()
        .iter()
        .all(|e| e.role != Role::Assistant && !e.is_user_message())
}

fn kind_of(entries: &[Entry]) -> UnitKind {
    let tools = entries
        .iter()
        .any(|e| e.meta.malformed || e.has_results() || e.call_ids().next().is_some());
    if tools {
        return UnitKind::Exchange;
    }
    match entries.first() {
        Some(e)
            if matches!(
                e.meta.kind,
                EntryKind::Summary { .. } | EntryKind::ForeignSummary
            ) =>
        {
            UnitKind::Summary
        }
        Some(e) if e.is_user_message() => UnitKind::User,
        _ => UnitKind::Message,
    }
}

#[cfg(test)]
mod tests;
