//! The recall index: which passages of which archived entries hold which terms.
//!
//! It is derived: everything in it can be drawn again from the archive, so it may be behind, and it
//! may be thrown away. It holds what the archive holds, redacted where that is. How text becomes
//! terms and how candidates are ranked is the runtime's affair, so that every index answers alike.

pub mod conformance;
mod memory;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use compact_core::identity::EntryHash;
use compact_core::message::{EntryId, Role};
use serde::{Deserialize, Serialize};

pub use memory::MemoryIndex;

/// Who speaks in an entry, as far as it matters to whoever looks for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntrySpeaker {
    /// The person.
    User,
    /// The model, in words.
    Model,
    /// The model, calling tools.
    Call,
    /// A tool.
    Tool,
    /// The host: instructions and what the client injects.
    Host,
}

impl EntrySpeaker {
    /// Whether somebody tells something, rather than a program.
    pub fn writes_prose(self) -> bool {
        matches!(self, EntrySpeaker::User | EntrySpeaker::Model)
    }
}

/// How much more a term weighs where somebody [tells](EntrySpeaker::writes_prose): tools repeat the same
/// few words in thousands of lines, and would leave no place for what was said about them.
pub const PROSE_WEIGHT: f64 = 1.2;

/// A stretch of an entry's text that is found by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedPassage {
    /// Its bytes in the entry's text.
    pub span: Range<usize>,
    /// Its different terms: without white space, quotes or control characters.
    pub terms: Vec<String>,
}

/// An entry with its passages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedEntry {
    /// Its identity: an entry is held once per session.
    pub hash: EntryHash,
    /// The wire's own name for it.
    pub entry_id: EntryId,
    /// Its place in the session, when the compaction saw it.
    pub ordinal: Option<u64>,
    /// The place of the other half of an exchange: the result of a call, the call of a result.
    pub partner: Option<u64>,
    /// When it was said, as RFC 3339 in UTC, where its transcript says so.
    pub said_at: Option<String>,
    /// Its role.
    pub role: Role,
    /// Who speaks.
    pub voice: EntrySpeaker,
    /// Its words.
    pub text: String,
    /// Where they are found.
    pub passages: Vec<IndexedPassage>,
}

/// Entries that are made one by one, when an index takes them: those of a large transcript, with all their terms, are
/// many times its size.
pub type EntryStream = Box<dyn Iterator<Item = Result<IndexedEntry, IndexError>> + Send>;

/// What one compaction adds to the index.
pub struct IndexAddition {
    /// The session.
    pub session_id: String,
    /// The receipt whose archived input holds the entries.
    pub receipt_id: String,
    /// When it was recorded, as RFC 3339 in UTC.
    pub created_at: String,
    /// The entries that no earlier receipt of the session added.
    pub entries: EntryStream,
}

/// What to look for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexLookup {
    /// The terms, each once.
    pub terms: Vec<String>,
    /// One session, or all.
    pub session_id: Option<String>,
    /// Only entries with a higher ordinal.
    pub after: Option<u64>,
    /// The most candidates.
    pub limit: usize,
}

/// A passage that holds some of the terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecallCandidate {
    /// The session.
    pub session_id: String,
    /// The receipt whose archived input holds the entry.
    pub receipt_id: String,
    /// When that was recorded.
    pub created_at: String,
    /// The entry's identity.
    pub hash: EntryHash,
    /// The wire's own name for it.
    pub entry_id: EntryId,
    /// Its place in the session, when the compaction saw it.
    pub ordinal: Option<u64>,
    /// The place of the other half of an exchange: the result of a call, the call of a result.
    pub partner: Option<u64>,
    /// When it was said, as RFC 3339 in UTC, where its transcript says so.
    pub said_at: Option<String>,
    /// Its role.
    pub role: Role,
    /// Who speaks.
    pub voice: EntrySpeaker,
    /// The entry's words.
    pub text: Arc<str>,
    /// The passage's bytes among them.
    pub span: Range<usize>,
}

impl RecallCandidate {
    /// The passage's words.
    pub fn passage_text(&self) -> &str {
        self.text.get(self.span.clone()).unwrap_or_default()
    }
}

/// What an index knows about a lookup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookupResult {
    /// How many passages the index holds in all.
    pub passages: u64,
    /// How many of them hold each term, in the order of the lookup.
    pub frequencies: Vec<u64>,
    /// The passages whose terms weigh most, in no order that a caller may rely on.
    pub candidates: Vec<RecallCandidate>,
}

impl LookupResult {
    /// What is known of the terms alone.
    pub(crate) fn without_candidates(&self) -> LookupResult {
        LookupResult {
            passages: self.passages,
            frequencies: self.frequencies.clone(),
            candidates: Vec::new(),
        }
    }

    /// How telling each term is: the rarer, the more; one that nothing holds tells nothing.
    pub fn weights(&self) -> Vec<f64> {
        let weigh = |frequency: &u64| match frequency {
            0 => 0.0,
            some => term_weight(*some, self.passages),
        };
        self.frequencies.iter().map(weigh).collect()
    }
}

/// The inverse document frequency of a term that `frequency` of `passages` hold.
pub fn term_weight(frequency: u64, passages: u64) -> f64 {
    let (frequency, all) = (frequency as f64, passages.max(frequency) as f64);
    (1.0 + (all - frequency + 0.5) / (frequency + 0.5)).ln()
}

/// Why the index could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The data was written by a later version of this program.
    #[error(
        "recall index {place} has schema {found}, this version knows up to {known}: \
         upgrade Compact, or remove the file; it is rebuilt from the archive"
    )]
    Newer {
        /// The file or server.
        place: String,
        /// Its schema version.
        found: u32,
        /// The newest that this version reads.
        known: u32,
    },
    /// The store behind the index failed.
    #[error("cannot {action}")]
    Store {
        /// What was being done, and to what.
        action: String,
        /// The store's own error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Finds passages by their terms. Implementations are safe to share between tasks and processes.
#[async_trait]
pub trait RecallIndex: Send + Sync {
    /// Every receipt that was added, with its session.
    async fn receipts(&self) -> Result<Vec<(String, String)>, IndexError>;

    /// Adds the entries of a receipt whole or not at all, and takes them one after the other. A receipt that was added
    /// before changes nothing; an entry that its session holds already is not held twice: it takes the new place,
    /// unless that has no ordinal.
    async fn add(&self, addition: IndexAddition) -> Result<(), IndexError>;

    /// Forgets everything of a session, beyond recovery; one that is not there is no error.
    async fn forget(&self, session: &str) -> Result<(), IndexError>;

    /// The passages that hold the weightiest of the terms. What no passage holds finds nothing.
    async fn find(&self, lookup: &IndexLookup) -> Result<LookupResult, IndexError>;

    /// The entries of a session at these ordinals, whole, as far as the index has them.
    async fn entries_at(
        &self,
        session: &str,
        ordinals: &[u64],
    ) -> Result<Vec<RecallCandidate>, IndexError>;
}
