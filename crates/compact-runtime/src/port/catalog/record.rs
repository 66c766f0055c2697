//! What the catalog stores.

use compact_core::identity::{Chain, EntryHash};
use compact_core::receipt::span_ordinals;
use serde::{Deserialize, Serialize};

use super::StoredReceipt;
use crate::port::archive::PackId;

/// One compaction: its receipt, where its bytes are, and how a later input aligns with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionRecord {
    /// The hash of what went in; the same in every session that compacts the same thing.
    pub receipt_id: String,
    /// The session, as its host calls it.
    pub session_id: String,
    /// When, as RFC 3339 in UTC.
    pub created_at: String,
    /// The `N` of `<COMPACT-SUMMARY vN>`.
    pub summary_version: u32,
    /// The receipt that this compaction builds on.
    pub previous: Option<String>,
    /// The exact input bytes.
    pub input_pack: Option<PackId>,
    /// The input's format.
    pub format: String,
    /// The receipt itself.
    pub receipt: StoredReceipt,
    /// The entries of the input, in order.
    pub entry_hashes: Vec<EntryHash>,
    /// The entries of the view, in order: a later input that starts with them continues from here.
    pub view_hashes: Vec<EntryHash>,
    /// The index of the first input entry that the previous view did not show.
    pub new_from: u64,
    /// What the input was, relative to the previous compaction.
    pub continues: InputRelation,
    /// Names the history that this is a compaction of, as its client told it, without the
    /// instructions at its head: a later history that begins with it goes on from here.
    #[serde(default)]
    pub source_chain: Option<Chain>,
}

impl CompactionRecord {
    /// What models said when it was made, if one was asked.
    pub fn advice_pack(&self) -> Option<PackId> {
        self.receipt.advice_pack()
    }

    /// The view that was made; earlier versions archived none.
    pub fn view_pack(&self) -> Option<PackId> {
        self.receipt.view_pack()
    }

    /// Every pack that this record needs.
    pub fn packs(&self) -> impl Iterator<Item = PackId> {
        let made = self.view_pack().into_iter().chain(self.advice_pack());
        self.input_pack.into_iter().chain(made)
    }

    /// Whether the archive holds the exact bytes, or redacted ones.
    pub fn is_exact(&self) -> bool {
        self.receipt.is_exact()
    }

    /// Names the redaction rules that it was made under; earlier versions did not say.
    pub fn redaction_fingerprint(&self) -> Option<&str> {
        self.receipt.redaction_fingerprint()
    }

    /// The same compaction as one of a session that is called so.
    #[must_use]
    pub fn in_session(mut self, name: &str) -> CompactionRecord {
        if self.session_id != name {
            self.session_id = name.to_owned();
            self.receipt = self.receipt.in_session(name);
        }
        self
    }

    /// Whether the archive's record of a compaction says what this one does. Two processes that record the same one
    /// at once may differ in when that was; a record from before there was an archive has no packs in its receipt;
    /// and hashes are told apart where the archive still has them.
    pub fn agrees_with(&self, archived: &CompactionRecord) -> bool {
        let mut told = CompactionRecord {
            created_at: self.created_at.clone(),
            ..archived.clone()
        };
        if self.receipt.is_archived() {
            told.receipt = told.receipt.with_times_of(&self.receipt);
        } else {
            told.receipt = self.receipt.clone();
            told.continues = self.continues;
        }
        if archived.view_hashes.is_empty() {
            told.entry_hashes.clone_from(&self.entry_hashes);
            told.view_hashes.clone_from(&self.view_hashes);
        }
        told == *self
    }

    /// Where the archive keeps it.
    pub fn address(&self) -> PackId {
        PackId::of_record(&self.session_id, &self.receipt_id)
    }

    /// Whether an entry stands whole in what a session shows after this: the view, or the copy where nothing was
    /// compacted.
    pub fn shows(&self, entry: &EntryHash) -> bool {
        let shown = match self.receipt.origin() {
            Some(_) => &self.entry_hashes,
            None => &self.view_hashes,
        };
        shown.contains(entry)
    }

    /// The ordinal of the first entry that the input added to its session.
    pub(crate) fn first_ordinal(&self) -> u64 {
        let all = self.entry_hashes.len() as u64;
        self.next_ordinal()
            .saturating_sub(all - self.new_from.min(all))
    }

    /// The ordinal after the last entry of the input: the summary's own, the largest of its view.
    pub(crate) fn next_ordinal(&self) -> u64 {
        let spans = self.receipt.view_spans();
        let all = self.entry_hashes.len() as u64;
        span_ordinals(&spans).max().unwrap_or(all)
    }

    /// How many entries before the first new one are the view that the input goes on from.
    pub(crate) fn known_entries(&self) -> u64 {
        match self.previous {
            Some(_) => self.new_from,
            None => 0,
        }
    }

    /// Identity and ordinal of each history entry of the view.
    pub fn view_identity(&self) -> Vec<(EntryHash, u64)> {
        let spans = self.receipt.view_spans();
        self.view_hashes
            .iter()
            .copied()
            .zip(span_ordinals(&spans))
            .collect()
    }
}

/// How an input relates to the compaction before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputRelation {
    /// The first of its session.
    #[default]
    Fresh,
    /// The previous view with entries appended.
    View,
    /// The whole transcript again, longer than before.
    Transcript,
}

/// The outcome of one attempt to compact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When, as RFC 3339 in UTC.
    pub at: String,
    /// Names the turn in which it was made.
    pub turn: String,
    /// What came of it, in the words of the receipt's `outcome`.
    pub outcome: String,
    /// The size of the context at the time.
    pub tokens: u64,
}

/// A session at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// The session, as its host calls it.
    pub session_id: String,
    /// How many records there are: compactions, copies that hooks and runs left, and states that somebody went back to.
    pub compactions: u64,
    /// The receipt of the last one.
    pub last_receipt: Option<String>,
    /// When that was.
    pub last_at: Option<String>,
    /// The format of its input.
    pub format: Option<String>,
}
