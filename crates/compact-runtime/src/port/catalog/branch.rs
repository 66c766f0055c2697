//! Where a session parts: its compactions are a list, and the histories that they are of may be a tree.
//!
//! A chat that is rewound or forked under one name has an end for each way that it took, with a view that may still be
//! in use. A compaction is no end once a later one goes on from its view, or was given all that it was given. What
//! has nothing in common with what is on record began anew: it takes the session over, and is no branch of it.

use compact_core::identity::{Chain, EntryHash};

use super::{CompactionRecord, InputRelation};

/// The most instructions at the head of an input that may differ from one compaction to the next.
const MOST_INSTRUCTIONS: usize = 4;

/// Returns the compactions of a session that no later one goes on from, the oldest first.
pub fn branch_ends(chain: &[CompactionRecord]) -> Vec<&CompactionRecord> {
    let is_end = |(at, record): &(usize, &CompactionRecord)| {
        let mut later = chain.iter().enumerate().skip(at + 1);
        !later.any(|(nth, later)| goes_on_from(later, record, nth == at + 1))
    };
    let ends = chain.iter().enumerate().filter(is_end);
    ends.map(|(_, record)| record).collect()
}

/// Returns the ends of all branches that begin as the last one does: what began before the session began anew is left.
pub fn live_ends(chain: &[CompactionRecord]) -> Vec<&CompactionRecord> {
    let mut ends = branch_ends(chain);
    let beginning = |end: &CompactionRecord| {
        let root = find_root(chain, end);
        let mut said = root.entry_hashes.iter().skip(count_instructions(root));
        said.next().copied()
    };
    let last = ends.last().and_then(|end| beginning(end));
    ends.retain(|end| beginning(end) == last);
    ends
}

/// Returns the live ends that hold what no other one does: a history that was rewound is part of what it was.
pub fn widest_ends(chain: &[CompactionRecord]) -> Vec<&CompactionRecord> {
    let ends = live_ends(chain);
    let is_part = |record: &CompactionRecord| {
        let mut others = ends.iter().filter(|end| **end != record);
        others.any(|other| holds_history(other, record))
    };
    ends.iter().copied().filter(|end| !is_part(end)).collect()
}

/// All that a session held up to the end of a branch.
pub(crate) struct BranchHistory<'a> {
    /// The compaction that it ends with.
    pub(crate) end: &'a CompactionRecord,
    /// What was said, without the instructions at its head.
    said: Vec<EntryHash>,
}

impl<'a> BranchHistory<'a> {
    /// Joins the inputs that lead to an end: the first, which held all by itself, and what each later one added.
    pub(crate) fn from_line(
        end: &'a CompactionRecord,
        line: &[CompactionRecord],
    ) -> BranchHistory<'a> {
        let mut said = Vec::new();
        for (nth, record) in line.iter().enumerate() {
            let known = match nth {
                0 => count_instructions(record),
                _ => record.new_from as usize,
            };
            said.extend(record.entry_hashes.iter().skip(known).copied());
        }
        BranchHistory { end, said }
    }
}

/// Returns the histories that are not the beginning of another one; of two that say the same, the later.
pub(crate) fn distinct_histories<'a>(histories: &[BranchHistory<'a>]) -> Vec<&'a CompactionRecord> {
    let is_beginning = |(nth, history): (usize, &BranchHistory<'_>)| {
        histories.iter().enumerate().any(|(other, longer)| {
            let is_longer = longer.said.len() > history.said.len() || other > nth;
            nth != other && is_longer && longer.said.starts_with(&history.said)
        })
    };
    let each = histories.iter().enumerate();
    let distinct = each.filter(|history| !is_beginning(*history));
    distinct.map(|(_, history)| history.end).collect()
}

/// Whether a compaction went on from an earlier one, or was given all that it was given. Of the one right before, a
/// compaction knows whether its file holds that whole; a copy that a hook left was compared with nothing.
fn goes_on_from(later: &CompactionRecord, earlier: &CompactionRecord, is_next: bool) -> bool {
    let is_compared = is_next && later.receipt.origin().is_none();
    later.previous.as_ref() == Some(&earlier.receipt_id)
        || (later.input_pack.is_some() && later.input_pack == earlier.input_pack)
        || (is_compared && later.continues == InputRelation::Transcript)
        || holds_history(later, earlier)
}

/// Whether the input of one compaction opens with all entries that another was given. Instructions at the head may
/// differ: what is behind them is told by the chain of the history.
fn holds_history(record: &CompactionRecord, part: &CompactionRecord) -> bool {
    let (all, some) = (&record.entry_hashes, &part.entry_hashes);
    if all.starts_with(some) {
        return true;
    }
    (1..=MOST_INSTRUCTIONS).any(|skipped| {
        let said = some.get(skipped..).unwrap_or_default();
        let opens = |at| {
            let all: &[EntryHash] = all.get(at..).unwrap_or_default();
            all.starts_with(said)
        };
        !said.is_empty()
            && (0..=MOST_INSTRUCTIONS).any(opens)
            && part.source_chain == Some(Chain::from_hashes(said))
    })
}

/// The first compaction on the way to this one.
fn find_root<'a>(chain: &'a [CompactionRecord], end: &'a CompactionRecord) -> &'a CompactionRecord {
    let mut root = end;
    let mut open = chain.iter().position(|record| record == end).unwrap_or(0);
    while let Some((at, earlier)) = chain
        .iter()
        .enumerate()
        .take(open)
        .rfind(|(at, earlier)| goes_on_from(root, earlier, at + 1 == open))
    {
        (root, open) = (earlier, at);
    }
    root
}

/// How many entries at the head of an input are no part of its history.
fn count_instructions(record: &CompactionRecord) -> usize {
    let is_history = |skipped: &usize| {
        let said = record.entry_hashes.get(*skipped..).unwrap_or_default();
        record.source_chain == Some(Chain::from_hashes(said))
    };
    (0..=MOST_INSTRUCTIONS).find(is_history).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use compact_core::message::{Entry, Role};

    use super::super::conformance::sample_record;
    use super::*;

    /// A compaction of a history in which each letter is an entry, and a digit an instruction.
    fn compaction(receipt: &str, said: &str, previous: Option<&str>) -> CompactionRecord {
        let entry = |text: char| EntryHash::from_entry(&Entry::from_text("", Role::User, text));
        let hashes: Vec<EntryHash> = said.chars().map(entry).collect();
        let instructions = said.chars().take_while(|c| c.is_ascii_digit()).count();
        let pack = Some(crate::port::archive::PackId::of_record("s", receipt));
        CompactionRecord {
            previous: previous.map(str::to_owned),
            source_chain: Some(Chain::from_hashes(&hashes[instructions..])),
            entry_hashes: hashes,
            continues: InputRelation::Fresh,
            input_pack: pack,
            ..sample_record("s", receipt)
        }
    }

    fn receipts<'a>(ends: &[&'a CompactionRecord]) -> Vec<&'a str> {
        ends.iter().map(|end| &*end.receipt_id).collect()
    }

    #[test]
    fn a_history_that_grows_has_one_end() {
        let chain = [
            compaction("r1", "abc", None),
            compaction("r2", "abcdef", None),
            compaction("r3", "Vgh", Some("r2")),
        ];
        assert_eq!(receipts(&branch_ends(&chain)), ["r3"]);
    }

    #[test]
    fn histories_that_share_a_beginning_are_two_branches() {
        let chain = [
            compaction("r1", "abc", None),
            compaction("r2", "abcde", None),
            compaction("r3", "abxyz", None),
            compaction("r4", "abxyzw", None),
        ];
        for ends in [branch_ends, live_ends, widest_ends] {
            assert_eq!(receipts(&ends(&chain)), ["r2", "r4"]);
        }
    }

    #[test]
    fn a_view_that_two_went_on_from_has_two_ends() {
        let chain = [
            compaction("r1", "abc", None),
            compaction("r2", "Vde", Some("r1")),
            compaction("r3", "Vxy", Some("r1")),
        ];
        for ends in [branch_ends, live_ends, widest_ends] {
            assert_eq!(receipts(&ends(&chain)), ["r2", "r3"]);
        }
    }

    /// What each said is known from all compactions that led to it, not from the last one's input alone.
    #[test]
    fn a_history_that_another_begins_with_is_the_same() {
        let added = |receipt, said, previous, known| CompactionRecord {
            continues: InputRelation::View,
            new_from: known,
            ..compaction(receipt, said, Some(previous))
        };
        let first = [compaction("r1", "1abc", None), added("r2", "1Vde", "r1", 2)];
        let same = [
            compaction("r3", "2ab", None),
            added("r4", "2Wcd", "r3", 2),
            added("r5", "2Xefg", "r4", 2),
        ];
        let other = [compaction("r6", "1ab", None), added("r7", "1Wx", "r6", 2)];
        let distinct = |lines: &[&[CompactionRecord]]| -> Vec<String> {
            let history = |line: &&'_ [CompactionRecord]| line.last().unwrap().clone();
            let ends: Vec<CompactionRecord> = lines.iter().map(history).collect();
            let histories = ends.iter().zip(lines);
            let histories = histories.map(|(end, line)| BranchHistory::from_line(end, line));
            let histories: Vec<_> = histories.collect();
            let ends = distinct_histories(&histories);
            ends.iter().map(|end| end.receipt_id.clone()).collect()
        };
        assert_eq!(distinct(&[&first, &same]), ["r5"]);
        assert_eq!(distinct(&[&same, &first]), ["r5"]);
        assert_eq!(distinct(&[&first, &same, &other]), ["r5", "r7"]);
        assert_eq!(distinct(&[&other, &first, &first]), ["r7", "r2"]);
    }

    #[test]
    fn what_has_nothing_in_common_began_anew() {
        let chain = [
            compaction("r1", "1abc", None),
            compaction("r2", "1abx", None),
            compaction("r3", "1pqr", None),
        ];
        assert_eq!(receipts(&branch_ends(&chain)), ["r1", "r2", "r3"]);
        assert_eq!(receipts(&live_ends(&chain)), ["r3"]);
        assert_eq!(receipts(&widest_ends(&chain)), ["r3"]);
    }

    #[test]
    fn other_instructions_are_no_other_history() {
        let chain = [
            compaction("r1", "1abc", None),
            compaction("r2", "2abcd", None),
            compaction("r3", "abcde", None),
        ];
        assert_eq!(receipts(&branch_ends(&chain)), ["r3"]);
        let other_beginning = [chain[0].clone(), compaction("r2", "1xabcd", None)];
        assert_eq!(receipts(&branch_ends(&other_beginning)), ["r2"]);
        let left_out = [compaction("r1", "xabc", None), chain[1].clone()];
        assert_eq!(receipts(&branch_ends(&left_out)), ["r1", "r2"]);
    }

    /// Its view is in use, and all that it holds is elsewhere.
    #[test]
    fn a_history_that_was_rewound_is_an_end_and_part_of_another() {
        let chain = [
            compaction("r1", "abcdef", None),
            compaction("r2", "abc", None),
        ];
        assert_eq!(receipts(&live_ends(&chain)), ["r1", "r2"]);
        assert_eq!(receipts(&widest_ends(&chain)), ["r1"]);
    }

    #[test]
    fn a_file_that_opens_with_the_one_before_holds_it() {
        let transcript = CompactionRecord {
            continues: InputRelation::Transcript,
            ..compaction("r2", "Sxy", None)
        };
        let mut copy = transcript.clone();
        copy.receipt = serde_json::json!({ "origin": "hook" }).into();
        let first = compaction("r1", "abc", None);
        let ends = [first.clone(), transcript];
        assert_eq!(receipts(&branch_ends(&ends)), ["r2"]);
        assert_eq!(receipts(&branch_ends(&[first, copy])), ["r1", "r2"]);
    }
}
