//! What a history goes on from: the compaction before, and the facts and numbers that it hands on.

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
}

impl Prior {
    /// Takes from a compaction what the next one needs, with the ledger that it was made of.
    pub fn from_compaction(compaction: &Compaction, ledger: impl Into<Arc<Ledger>>) -> Prior {
        Prior {
            receipt_id: compaction.receipt.receipt_id.clone(),
            summary_version: compaction.receipt.summary_version,
            view: compaction.view_identity.clone(),
            ledger: ledger.into(),
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
    ledger_before(conversation, hashes, prior, redactor, u64::MAX)
}

/// The same up to the entry with the ordinal `end`: what came from there on was taken back.
pub fn ledger_before(
    conversation: &Conversation,
    hashes: &[EntryHash],
    prior: Option<&Prior>,
    redactor: &Redactor,
    end: u64,
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
        let stays = usize::try_from(end.saturating_sub(ledger.next)).unwrap_or(usize::MAX);
        let words = words.get(..stays).unwrap_or(words);
        ledger.merge(Ledger::from_redacted(words, ledger.next, redactor));
        // A number is given once, also when its entry was taken back.
        ledger.next = next;
    }
    ledger
}
