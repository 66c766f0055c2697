//! What went into a compaction beside what came out: the fate of each entry, and sums that add up to the receipt's.

use std::collections::HashMap;

use compact::overview::{CompactionReading, EntrySubject};
use compact::store::CompactionRecord;

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EntryFate {
    /// It stands in the view byte for byte.
    Kept,
    /// It stands there in part.
    Cut,
    /// The summary stands for it.
    Dropped,
    /// It is one of the instructions, which no compaction touches.
    Instruction,
}

/// Whether a session shows an entry now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryPlace {
    /// It does, whole.
    InState,
    /// A compaction cut it or left it to the summary.
    Left,
}

impl EntryPlace {
    /// Finds out whether an entry that a compaction was given is there after the last one.
    pub(crate) fn find(
        reading: &CompactionReading,
        at: usize,
        latest: &CompactionRecord,
    ) -> EntryPlace {
        match reading.is_shown_after(at, latest) {
            true => EntryPlace::InState,
            false => EntryPlace::Left,
        }
    }
}

/// Entries of one fate, and what they cost before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FateSum {
    pub(crate) entries: u64,
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// What went in, entry by entry, with what became of each.
pub(crate) struct Comparison {
    pub(crate) subjects: Vec<EntrySubject>,
    fates: Vec<EntryFate>,
    /// Places of the view by the entry that they show.
    shown: HashMap<usize, usize>,
    sums: HashMap<EntryFate, FateSum>,
    /// Whether it is known what came out.
    pub(crate) has_view: bool,
    /// What the engine wrote.
    pub(crate) added: FateSum,
}

impl EntryFate {
    /// Returns the class of its rows.
    pub(crate) fn class(self) -> &'static str {
        match self {
            EntryFate::Kept => "kept",
            EntryFate::Cut => "cut",
            EntryFate::Dropped => "dropped",
            EntryFate::Instruction => "fixed",
        }
    }

    /// Returns it in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            EntryFate::Kept => "kept whole",
            EntryFate::Cut => "cut",
            EntryFate::Dropped => "left to the summary",
            EntryFate::Instruction => "instructions, as they were",
        }
    }
}

impl Comparison {
    /// Compares what a compaction was given with its view.
    pub(crate) fn new(reading: &CompactionReading) -> Comparison {
        let view = reading.view().unwrap_or_default();
        let places = view.iter().enumerate();
        let shown: HashMap<usize, usize> = places
            .filter_map(|(place, item)| Some((item.source?, place)))
            .collect();
        let has_view = reading.view().is_some();
        let fate = |at: usize| match shown.get(&at).and_then(|place| view.get(*place)) {
            _ if reading.is_instruction(at) => EntryFate::Instruction,
            Some(item) if item.is_edited => EntryFate::Cut,
            None if has_view => EntryFate::Dropped,
            _ => EntryFate::Kept,
        };
        let fates: Vec<EntryFate> = (0..reading.entry_count()).map(fate).collect();
        let mut comparison = Comparison {
            subjects: reading.subjects(),
            added: FateSum::default(),
            sums: HashMap::new(),
            has_view,
            fates,
            shown,
        };
        comparison.add_up(reading);
        comparison
    }

    /// Returns what became of an entry.
    pub(crate) fn fate(&self, at: usize) -> EntryFate {
        self.fates.get(at).copied().unwrap_or(EntryFate::Kept)
    }

    /// Returns the place of the view that shows an entry.
    pub(crate) fn shown_at(&self, at: usize) -> Option<usize> {
        self.shown.get(&at).copied()
    }

    /// Returns the entries of a fate.
    pub(crate) fn sum(&self, fate: EntryFate) -> FateSum {
        self.sums.get(&fate).copied().unwrap_or_default()
    }

    /// Sums what went in by fate, and what came out. What is kept costs the same in both; whatever rounding leaves falls to
    /// what the engine wrote.
    fn add_up(&mut self, reading: &CompactionReading) {
        let view = reading.view().unwrap_or_default();
        for (at, fate) in self.fates.iter().enumerate() {
            let sum = self.sums.entry(*fate).or_default();
            let before = reading.entry_tokens(at).0;
            let place = self.shown.get(&at).and_then(|place| view.get(*place));
            sum.entries += 1;
            sum.before += before;
            sum.after += match fate {
                EntryFate::Kept | EntryFate::Instruction => before,
                EntryFate::Cut => place.map_or(0, |item| item.tokens.0),
                EntryFate::Dropped => 0,
            };
        }
        let told: u64 = self.sums.values().map(|sum| sum.after).sum();
        let new = view.iter().filter(|item| item.source.is_none());
        let all: u64 = view.iter().map(|item| item.tokens.0).sum();
        self.added = FateSum {
            entries: new.count() as u64,
            before: 0,
            after: all.saturating_sub(told),
        };
    }
}
