//! What a window is made of: tokens by who spoke, by tool and by file, and the entries that cost most.

use std::collections::HashMap;

use compact::message::Role;
use compact::overview::{CompactionReading, EntrySubject};

/// How many parts of each kind are named.
const PARTS: usize = 8;
/// How many of the largest entries are named.
const LARGEST: usize = 12;

/// A window in parts.
pub(crate) struct Composition {
    /// All of it.
    pub(crate) total: u64,
    /// By who spoke.
    pub(crate) roles: Vec<WindowPart>,
    /// By tool: its calls and their answers.
    pub(crate) tools: Vec<WindowPart>,
    /// By file that calls named.
    pub(crate) files: Vec<WindowPart>,
    /// The entries that cost most, by their places.
    pub(crate) largest: Vec<LargeEntry>,
}

/// One part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WindowPart {
    pub(crate) name: String,
    pub(crate) tokens: u64,
    pub(crate) entries: u64,
}

/// An entry that costs much.
pub(crate) struct LargeEntry {
    pub(crate) at: usize,
    pub(crate) tokens: u64,
    pub(crate) subject: EntrySubject,
}

impl Composition {
    /// Counts what a compaction was given.
    pub(crate) fn of_input(reading: &CompactionReading) -> Composition {
        let subjects = reading.subjects();
        let costs = (0..subjects.len()).map(|at| reading.entry_tokens(at).0);
        let costs: Vec<u64> = costs.collect();
        let sum = |name: &dyn Fn(&EntrySubject) -> Option<String>| {
            largest_parts(
                subjects
                    .iter()
                    .zip(&costs)
                    .filter_map(|(subject, cost)| Some((name(subject)?, *cost))),
            )
        };
        let mut largest: Vec<LargeEntry> = subjects
            .iter()
            .zip(&costs)
            .enumerate()
            .map(|(at, (subject, cost))| LargeEntry {
                at,
                tokens: *cost,
                subject: subject.clone(),
            })
            .collect();
        largest.sort_by_key(|entry| (std::cmp::Reverse(entry.tokens), entry.at));
        largest.truncate(LARGEST);
        Composition {
            total: costs.iter().sum(),
            roles: sum(&|subject| Some(speaker(subject).to_owned())),
            tools: sum(&|subject| subject.tool.clone()),
            files: sum(&|subject| subject.path.clone()),
            largest,
        }
    }
}

/// Returns who speaks, in words.
pub(crate) fn speaker(subject: &EntrySubject) -> &'static str {
    match subject.role {
        _ if subject.is_summary => "summary",
        Role::System | Role::Developer => "instructions",
        Role::User => "you",
        Role::Assistant => "model",
        Role::Tool => "tool results",
    }
}

/// Sums costs under their names, the largest first.
pub(crate) fn largest_parts(costs: impl Iterator<Item = (String, u64)>) -> Vec<WindowPart> {
    let mut sums: HashMap<String, (u64, u64)> = HashMap::new();
    for (name, cost) in costs {
        let sum = sums.entry(name).or_default();
        sum.0 += cost;
        sum.1 += 1;
    }
    let parts = sums.into_iter();
    let mut parts: Vec<WindowPart> = parts
        .map(|(name, (tokens, entries))| WindowPart {
            name,
            tokens,
            entries,
        })
        .collect();
    parts.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.name.cmp(&b.name)));
    parts.truncate(PARTS);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_summed_and_the_largest_stands_first() {
        let costs = [("b", 2), ("a", 3), ("b", 4), ("c", 3)];
        let parts = largest_parts(
            costs
                .into_iter()
                .map(|(name, cost)| (name.to_owned(), cost)),
        );
        let found: Vec<_> = parts
            .iter()
            .map(|part| (part.name.as_str(), part.tokens, part.entries))
            .collect();
        assert_eq!(found, [("b", 6, 2), ("a", 3, 1), ("c", 3, 1)]);
    }
}
