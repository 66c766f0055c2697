//! What a history goes on from: the compaction before, and the facts and numbers that it hands on.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::identity::EntryHash;
use crate::ledger::Ledger;
use crate::message::{Conversation, Entry, EntryKind};
use crate::redact::Redactor;

use super::Compaction;

/// The compaction before this one, as far as it matters here.
#[derive(Clone, Debug, PartialEq)]
pub struct Prior {
    /// Its receipt.
    pub receipt_id: String,
    /// N of its summary.
    pub summary_version: u32,
    /// Identity and ordinal of each history entry of its view, in order.
    pub view: Vec<(EntryHash, u64)>,
    /// The session's facts up to that view.
    pub ledger: Arc<Ledger>,
    /// How many entries of its view a history lacks that shows what follows them.
    pub trimmed: u64,
}

/// What a later history took back of what was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// The ordinal from which on everything was.
    pub from: u64,
    /// Single entries before that.
    pub entries: BTreeSet<u64>,
}

impl Default for TakenBack {
    /// Nothing at all.
    fn default() -> Self {
        TakenBack {
            from: u64::MAX,
            entries: BTreeSet::new(),
        }
    }
}

impl TakenBack {
    /// True where everything that was said still holds.
    pub fn is_nothing(&self) -> bool {
        *self == TakenBack::default()
    }

    /// The runs of `words` that were not taken back, each with the ordinal of its first; `first` is that of the
    /// first word.
    fn runs_left<'w>(&self, words: &'w [Entry], first: u64) -> Vec<(u64, &'w [Entry])> {
        let stays = usize::try_from(self.from.saturating_sub(first)).unwrap_or(usize::MAX);
        let words = words.get(..stays).unwrap_or(words);
        let mut at = first;
        let mut runs = Vec::new();
        let ends = self.entries.range(first..).map(|gone| gone + 1);
        for end in ends.chain([u64::MAX]) {
            let begin = (at - first) as usize;
            let length = usize::try_from(end - at).unwrap_or(usize::MAX);
            let rest = words.get(begin..).unwrap_or_default();
            let run = match rest.get(..length) {
                // Its last entry is the one that is gone.
                Some(run) => run.split_last().map_or(run, |(_, run)| run),
                None => rest,
            };
            runs.push((at, run));
            at = end;
        }
        runs.retain(|(_, run)| !run.is_empty());
        runs
    }
}

impl Prior {
    /// Takes from a compaction what the next one needs, with the ledger that it was made of.
    pub fn from_compaction(compaction: &Compaction, ledger: impl Into<Arc<Ledger>>) -> Prior {
        Prior {
            receipt_id: compaction.receipt.receipt_id.clone(),
            summary_version: compaction.receipt.summary_version,
            view: compaction.view_identity.clone(),
            ledger: ledger.into(),
            trimmed: 0,
        }
    }
}

/// How many history entries of `conversation` are those of the prior view, from the start on.
pub fn common_prefix(conversation: &Conversation, hashes: &[EntryHash], prior: &Prior) -> usize {
    hashes
        .iter()
        .skip(conversation.leading_instructions())
        .zip(&prior.view)
        .take_while(|(now, (then, _))| *now == then)
        .count()
}

/// The ordinal of each entry in its session: known ones keep theirs, new ones count on.
pub(crate) fn entry_ordinals(
    conversation: &Conversation,
    hashes: &[EntryHash],
    prior: Option<&Prior>,
) -> Vec<u64> {
    let leading = conversation.leading_instructions();
    let Some(prior) = prior else {
        return (0..conversation.entries.len() as u64).collect();
    };
    let common = common_prefix(conversation, hashes, prior);
    let known = prior.view.iter().take(common).map(|(_, ordinal)| *ordinal);
    let new = (0..).map(|i| prior.ledger.next + i);
    (0..leading as u64)
        .chain(known)
        .chain(new)
        .take(conversation.entries.len())
        .collect()
}

/// The session's facts up to the last entry: those of the prior, and those of what is new, drawn
/// from redacted texts.
pub fn session_ledger(
    conversation: &Conversation,
    hashes: &[EntryHash],
    prior: Option<&Prior>,
    redactor: &Redactor,
) -> Ledger {
    ledger_without(conversation, hashes, prior, redactor, &TakenBack::default())
}

/// The same without what was taken back since.
pub fn ledger_without(
    conversation: &Conversation,
    hashes: &[EntryHash],
    prior: Option<&Prior>,
    redactor: &Redactor,
    taken_back: &TakenBack,
) -> Ledger {
    let leading = conversation.leading_instructions();
    let (mut ledger, start) = match prior {
        Some(prior) => (
            Ledger::clone(&prior.ledger),
            leading + common_prefix(conversation, hashes, prior),
        ),
        None => {
            let next = leading as u64;
            (
                Ledger {
                    next,
                    ..Ledger::default()
                },
                leading,
            )
        }
    };
    let known = |e: &Entry| {
        prior.is_some_and(|p| {
            matches!(&e.meta.kind, EntryKind::Summary { receipt: Some(r), .. } if *r == p.receipt_id)
        })
    };
    // The prior's own summary says nothing that its ledger does not say better.
    for run in conversation
        .entries
        .get(start..)
        .unwrap_or_default()
        .split_inclusive(known)
    {
        let words = run
            .split_last()
            .filter(|(last, _)| known(last))
            .map_or(run, |(_, rest)| rest);
        let next = ledger.next + run.len() as u64;
        for (first, said) in taken_back.runs_left(words, ledger.next) {
            ledger.merge(Ledger::from_redacted(said, first, redactor));
        }
        // A number is given once, also when its entry was taken back.
        ledger.next = next;
    }
    ledger
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;

    #[test]
    fn what_was_taken_back_is_left_out_of_what_was_said() {
        let words: Vec<Entry> = (10..16)
            .map(|n| Entry::from_text(format!("{n}"), Role::User, format!("word {n}")))
            .collect();
        let left = |from, entries: &[u64]| {
            let taken_back = TakenBack {
                from,
                entries: entries.iter().copied().collect(),
            };
            let runs = taken_back.runs_left(&words, 10).into_iter();
            let texts = |run: &[Entry]| {
                run.iter()
                    .map(Entry::plain_text)
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let told: Vec<String> = runs
                .map(|(first, run)| format!("{first}: {}", texts(run)))
                .collect();
            told
        };
        let all = "10: word 10 word 11 word 12 word 13 word 14 word 15";
        assert_eq!(left(u64::MAX, &[]), [all]);
        assert_eq!(left(u64::MAX, &[3, 20]), [all]);
        assert_eq!(left(12, &[]), ["10: word 10 word 11"]);
        assert_eq!(left(9, &[]), [""; 0]);
        let parts = ["11: word 11 word 12", "14: word 14"];
        assert_eq!(left(15, &[10, 13]), parts);
        assert_eq!(
            left(u64::MAX, &[15]),
            ["10: word 10 word 11 word 12 word 13 word 14"]
        );
    }
}
