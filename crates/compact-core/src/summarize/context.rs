//! Where names stand in the record: for each the newest stretch that shows it in context.

use super::passage::{self, QuotablePassage};
use super::revoke::RevokedRules;
use super::root::RootDirectory;
use crate::ledger::Ledger;

/// Part of a passage: which, its first byte, and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    passage: usize,
    from: u32,
    to: u32,
}

impl Stretch {
    /// Both as one, where they touch.
    pub(crate) fn join(self, other: Stretch) -> Option<Stretch> {
        let touch = self.passage == other.passage && self.from <= other.to && other.from <= self.to;
        touch.then(|| Stretch {
            passage: self.passage,
            from: self.from.min(other.from),
            to: self.to.max(other.to),
        })
    }
}

/// The stretches of some names.
pub(crate) struct NameContexts<'l> {
    passages: Vec<QuotablePassage<'l>>,
    found: Vec<Option<Stretch>>,
}

impl<'l> NameContexts<'l> {
    /// Looks names up by their indices; what was taken back is not shown.
    pub(crate) fn from_names(
        ledger: &'l Ledger,
        names: impl ExactSizeIterator<Item = Option<u32>>,
    ) -> NameContexts<'l> {
        let mut found = vec![None; names.len()];
        let mut passages = passage::passages(ledger, names, &RootDirectory::from_ledger(ledger));
        let revoked = RevokedRules::from_facts(&ledger.facts);
        passages.retain(|p| !revoked.appears_in(p.excerpt.ordinal, &p.excerpt.text));
        for (passage, nth) in passages.iter().zip(0..) {
            for mark in &passage.marks {
                if let Some(place) = found.get_mut(mark.group as usize) {
                    *place = Some(Stretch {
                        passage: nth,
                        from: mark.from,
                        to: mark.to,
                    });
                }
            }
        }
        NameContexts { passages, found }
    }

    /// The newest stretch that shows the n-th name.
    pub(crate) fn stretch(&self, nth: usize) -> Option<Stretch> {
        self.found.get(nth).copied().flatten()
    }

    /// The words of a stretch, and the ordinal of their entry.
    pub(crate) fn stretch_words(&self, stretch: Stretch) -> (u32, &str) {
        let Some(passage) = self.passages.get(stretch.passage) else {
            return (0, "");
        };
        let words = passage.text.get(stretch.from as usize..stretch.to as usize);
        (passage.excerpt.ordinal, words.unwrap_or_default())
    }
}
