//! What a window is made of: tokens by who spoke, by tool and by file, each adding up to all of it, and the entries that
//! cost most.

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
    /// Whether it is what no other part has, and its name our own word.
    pub(crate) is_rest: bool,
}

/// What the parts are called that are not named.
struct RestNames {
    /// Of the smaller ones together.
    others: &'static str,
    /// Of what belongs to none.
    none: &'static str,
}

/// An entry that costs much.
pub(crate) struct LargeEntry {
    pub(crate) at: usize,
    pub(crate) tokens: u64,
    pub(crate) subject: EntrySubject,
}

impl Composition {
    /// Counts what a compaction was given, and what was sent with it: instructions and tools, together so many tokens.
    pub(crate) fn of_input(reading: &CompactionReading, fixed: u64) -> Composition {
        let subjects = reading.subjects();
        let costs = (0..subjects.len()).map(|at| reading.entry_tokens(at).0);
        let costs: Vec<u64> = costs.collect();
        let instructions = (0..costs.len()).filter(|at| reading.is_instruction(*at));
        let instructions: u64 = instructions.map(|at| reading.entry_tokens(at).0).sum();
        let total = costs.iter().sum::<u64>() + fixed.saturating_sub(instructions);
        let rest = |others, none| RestNames { others, none };
        let spoken = subjects.iter().zip(&costs);
        let spoken = spoken.map(|(subject, cost)| (speaker(subject).to_owned(), *cost));
        // One message may have the results of several calls: each is its own tool's.
        let calls = || subjects.iter().flat_map(|subject| &subject.calls);
        let tools = calls().map(|call| (call.tool.clone(), call.tokens.0));
        let files = calls().filter_map(|call| Some((call.path.clone()?, call.tokens.0)));
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
            roles: divide(spoken, total, &rest("others", "descriptions of tools")),
            tools: divide(tools, total, &rest("other tools", "no tool")),
            files: divide(files, total, &rest("other files", "no file")),
            total,
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

/// Returns the largest parts of a whole, and behind them what they leave of it.
fn divide(
    costs: impl Iterator<Item = (String, u64)>,
    total: u64,
    names: &RestNames,
) -> Vec<WindowPart> {
    let mut parts = sum_parts(costs);
    let named: u64 = parts.iter().map(|part| part.tokens).sum();
    let cut = parts.split_off(parts.len().min(PARTS));
    if parts.is_empty() {
        return parts;
    }
    let others = cut.iter().map(|part| part.tokens).sum();
    for (name, tokens) in [
        (names.others, others),
        (names.none, total.saturating_sub(named)),
    ] {
        if tokens > 0 {
            parts.push(WindowPart {
                name: name.to_owned(),
                tokens,
                entries: 0,
                is_rest: true,
            });
        }
    }
    parts
}

/// Sums costs under their names, the largest first, as many as are named.
pub(crate) fn largest_parts(costs: impl Iterator<Item = (String, u64)>) -> Vec<WindowPart> {
    let mut parts = sum_parts(costs);
    parts.truncate(PARTS);
    parts
}

fn sum_parts(costs: impl Iterator<Item = (String, u64)>) -> Vec<WindowPart> {
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
            is_rest: false,
        })
        .collect();
    parts.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.name.cmp(&b.name)));
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

    #[test]
    fn parts_and_what_they_leave_are_the_whole() {
        let costs = (0..11).map(|n| (format!("tool {n}"), 10 + n));
        let names = RestNames {
            others: "other tools",
            none: "no tool",
        };
        let parts = divide(costs, 1_000, &names);
        assert_eq!(parts.iter().map(|part| part.tokens).sum::<u64>(), 1_000);
        let rest = parts.iter().filter(|part| part.is_rest);
        let rest: Vec<_> = rest.map(|part| (part.name.as_str(), part.tokens)).collect();
        assert_eq!(rest, [("other tools", 33), ("no tool", 835)]);
    }
}
