//! The pipeline: measured entries in, a frozen and verified view out.
//!
//! `plan → summarize → assemble → conform → verify → validate`, on values alone. The caller measures
//! and decides before, archives and records after. The same input gives the same bytes.

mod attempt;
mod claim;
mod proof;
mod report;
mod run;

use crate::error::CompactError;
use crate::identity::EntryHash;
use crate::ledger::Ledger;
use crate::message::{Conversation, Entry, EntryKind};
use crate::plan::{Plan, RoomClaims};
use crate::policy::Policy;
use crate::prompt::{SummaryContent, SummarySource};
use crate::prune::meaning::MeaningVector;
use crate::receipt::Receipt;
use crate::redact::{self, Redactor};
use crate::token::{Estimator, TokenAccount, Tokens};
use crate::view::View;
use crate::wire::WireRules;

pub use claim::classify_summaries;
use run::CompactionRun;

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
    pub ledger: Ledger,
}

/// Everything a compaction is a function of.
pub struct CompactionInput<'a> {
    /// The live context.
    pub conversation: &'a Conversation,
    /// The session's name, for the receipt.
    pub session_id: &'a str,
    /// The identity of each entry.
    pub hashes: &'a [EntryHash],
    /// The count of each entry.
    pub account: &'a TokenAccount,
    /// The compaction before.
    pub prior: Option<&'a Prior>,
    /// The session's facts up to the last entry; see [`session_ledger`].
    pub ledger: &'a Ledger,
    /// The user's decisions.
    pub policy: &'a Policy,
    /// What the history of the view may cost.
    pub budget: Tokens,
    /// What its summary may take before earlier turns are kept beside it; `None` for all that the
    /// recent part leaves. A policy that keeps nothing but the summary takes it for a limit.
    pub summary_limit: Option<Tokens>,
    /// A digest of the bytes that the conversation was read from, so that two files with the same
    /// words have two receipts and each is restored as itself.
    pub original: &'a str,
    /// How texts are counted.
    pub estimator: &'a dyn Estimator,
    /// What the wire accepts.
    pub rules: &'a WireRules,
    /// Applied to every summary.
    pub redactor: &'a Redactor,
    /// What becomes of what the view does not show.
    pub beyond: Originals<'a>,
    /// A person's wish for this compaction.
    pub note: Option<&'a str>,
    /// An embedding of each unit of the outline; `None` to go by their words.
    pub meaning: Option<&'a [MeaningVector]>,
    /// What the summary is made of.
    pub words: &'a SummaryContent,
}

/// Where the originals are after the compaction.
#[derive(Clone, Copy, Debug)]
pub enum Originals<'a> {
    /// In an archive, byte for byte: recoverable.
    Archived,
    /// In an archive, without what this takes out: the rest is recoverable.
    Redacted(&'a Redactor),
    /// Nowhere: what the view does not show is lost.
    Gone,
}

impl<'a> Originals<'a> {
    /// What is taken out of them, if they are archived without it.
    pub fn redactor(self) -> Option<&'a Redactor> {
        match self {
            Originals::Redacted(redactor) => Some(redactor),
            Originals::Archived | Originals::Gone => None,
        }
    }
}

impl CompactionInput<'_> {
    /// Names what redaction does to the summary and to what is archived.
    fn redaction_fingerprint(&self) -> String {
        redact::fingerprint(self.redactor, self.beyond.redactor())
    }
}

/// A finished compaction, not yet committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Compaction {
    /// What the model is to see.
    pub view: View,
    /// What happened.
    pub receipt: Receipt,
    /// Identity and ordinal of each history entry of the view: the next prior.
    pub view_identity: Vec<(EntryHash, u64)>,
}

/// What came of a request to compact.
#[derive(Clone, Debug, PartialEq)]
pub enum CompactionOutcome {
    /// The history is within the budget.
    Unchanged,
    /// There is a new view.
    Compacted(Box<Compaction>),
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
pub fn entry_ordinals(
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
            prior.ledger.clone(),
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

/// Compacts, or says why not. The conversation is never changed.
pub fn compact(input: &CompactionInput<'_>) -> Result<CompactionOutcome, CompactError> {
    if input.account.history <= input.budget {
        return Ok(CompactionOutcome::Unchanged);
    }
    CompactionRun::new(input)?
        .finish()
        .map(|c| CompactionOutcome::Compacted(Box::new(c)))
}

/// What the view of this input leaves out or cuts: what a model may be asked to tell.
pub fn summary_source<'a>(input: &CompactionInput<'a>) -> Result<SummarySource<'a>, CompactError> {
    CompactionRun::new(input)?.summary_source()
}

/// The verdict and shape of a compaction without its summary: what `plan` shows.
pub fn preview(input: &CompactionInput<'_>) -> Result<Plan, CompactError> {
    CompactionRun::new(input)?.make_plan()
}

/// What a view of this input must hold, whatever its budget: what budgets are made of.
pub fn room_claims(input: &CompactionInput<'_>) -> Result<RoomClaims, CompactError> {
    Ok(CompactionRun::new(input)?.room_claims())
}
