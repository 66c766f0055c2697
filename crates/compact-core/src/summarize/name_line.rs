//! Where names stand: for each the newest line or sentence that shows it.

use super::revoke::RevokedRules;
use crate::ledger::{Excerpt, Ledger, Mention, clip};

/// A line that shows a name: the ordinal of its entry, and the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameLine {
    pub ordinal: u32,
    pub text: String,
}

/// Looks names up by their indices; what was taken back is not shown.
pub(crate) struct NameLines<'l> {
    ledger: &'l Ledger,
    revoked: RevokedRules<'l>,
}

/// Characters of a line that are quoted.
const CHARS: usize = 240;

impl<'l> NameLines<'l> {
    pub(crate) fn from_ledger(ledger: &'l Ledger) -> Self {
        NameLines {
            ledger,
            revoked: RevokedRules::from_facts(&ledger.facts),
        }
    }

    /// The newest line that shows the n-th name of the ledger.
    pub(crate) fn line_of(&self, nth: usize) -> Option<NameLine> {
        let entity = self.ledger.entities.get(nth)?;
        let newest = entity.spoken.iter().rev().chain(entity.heard.iter().rev());
        newest
            .filter_map(|mention| self.line_at(mention))
            .find(|line| line.text.contains(&*entity.text))
    }

    fn line_at(&self, mention: &Mention) -> Option<NameLine> {
        let excerpts = &self.ledger.excerpts;
        let before = |e: &Excerpt| {
            (e.ordinal, e.part, e.start)
                <= (mention.place.ordinal, mention.place.part, mention.start)
        };
        let at = excerpts.partition_point(before).checked_sub(1)?;
        let excerpt = excerpts.get(at)?;
        let offset = mention.start.checked_sub(excerpt.start)? as usize;
        let (head, tail) = excerpt.text.split_at_checked(offset)?;
        let from = head.rfind('\n').map_or(0, |at| at + 1);
        let to = offset + tail.find('\n').unwrap_or(tail.len());
        let line = excerpt.text.get(from..to)?;
        let shown = !self.revoked.appears_in(excerpt.ordinal, line);
        shown.then(|| NameLine {
            ordinal: excerpt.ordinal,
            text: clip(line, CHARS),
        })
    }
}
