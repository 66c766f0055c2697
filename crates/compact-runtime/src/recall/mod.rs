//! Recall: everything archived, found by words and brought back by pointers.
//!
//! The index follows the archive: what a compaction stored is added after its commit, or when
//! somebody asks and it is found to be behind. A pointer is resolved from the catalog and the
//! archive alone, so it holds as long as they do, whatever becomes of the index.

pub mod event;
mod expand;
mod index_update;
mod passage;
mod pointer;
mod rank;
mod sentence;
mod snippet;
pub mod term;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use compact_core::message::{EntryId, Role};
use compact_core::redact::{RedactionCounts, Redactor};
use serde::Serialize;

use crate::error::Error;
use crate::port::archive::ArchiveStore;
use crate::port::catalog::{SessionCatalog, find_named_record};
use crate::port::index::{IndexLookup, RecallIndex};

pub use expand::RestoredEntry;
pub use index_update::{IndexUpdate, OutdatedSession};
pub use pointer::{EntryKey, EntryPointer};

use rank::{QueryTerms, RankedPassage};

/// Passages whose texts are read to find the best few.
const CANDIDATES: usize = 160;

/// Searches an archive.
#[derive(Clone)]
pub struct Recall {
    /// The originals.
    pub archive: Arc<dyn ArchiveStore>,
    /// What is known about them.
    pub catalog: Arc<dyn SessionCatalog>,
    /// Where their words are found.
    pub index: Arc<dyn RecallIndex>,
    /// Applied to whatever is indexed, before it is cut, and to what is found: a model may read it.
    pub redactor: Arc<Redactor>,
}

/// What to look for.
#[derive(Clone, Debug)]
pub struct RecallQuery<'a> {
    /// A question or a few words: prose, identifiers, paths; no syntax.
    pub text: &'a str,
    /// One session, or all.
    pub session_id: Option<&'a str>,
    /// The most hits.
    pub limit: usize,
}

/// An entry that answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchHit {
    /// Its session.
    pub session_id: String,
    /// The wire's own name for it.
    pub entry_id: EntryId,
    /// Its place in the session, when the compaction saw it.
    pub ordinal: Option<u64>,
    /// The receipt whose archived input holds it.
    pub receipt_id: String,
    /// What [`Recall::expand`] takes.
    pub pointer: String,
    /// Its role.
    pub role: Role,
    /// When the receipt was recorded.
    pub created_at: String,
    /// How well it answers; comparable within one query only.
    pub score: f64,
    /// The match in its surroundings.
    pub snippet: String,
}

impl Recall {
    /// The entries that answer best, the best first. Looks at what is indexed; call
    /// [`Recall::update_index`] first.
    pub async fn search(&self, query: &RecallQuery<'_>) -> Result<Vec<SearchHit>, Error> {
        let question = QueryTerms::from_text(query.text);
        if question.terms.is_empty() {
            return Err(Error::EmptyQuery);
        }
        let session_id = match query.session_id {
            Some(name) => Some(self.session_named(name).await?),
            None => None,
        };
        let lookup = IndexLookup {
            terms: question.terms.clone(),
            session_id,
            limit: CANDIDATES.max(query.limit * 4),
        };
        let found = self.index.find(&lookup).await?;
        let ranked = rank::rank(&question, found, query.limit);
        Ok(ranked.into_iter().map(|r| self.hit(r)).collect())
    }

    fn hit(&self, ranked: RankedPassage) -> SearchHit {
        let candidate = ranked.candidate;
        let pointer = EntryPointer::new(
            &candidate.receipt_id,
            candidate.ordinal,
            &candidate.entry_id.0,
        );
        // What was indexed under other rules is redacted by the present ones.
        let snippet = self
            .redactor
            .redact(&ranked.snippet, &mut RedactionCounts::new());
        SearchHit {
            pointer: pointer.to_string(),
            session_id: candidate.session_id,
            entry_id: candidate.entry_id,
            ordinal: candidate.ordinal,
            receipt_id: candidate.receipt_id,
            role: candidate.role,
            created_at: candidate.created_at,
            score: (ranked.score * 10_000.0).round() / 10_000.0,
            snippet: snippet.into_owned(),
        }
    }

    /// Returns the whole id of the session that a name stands for.
    async fn session_named(&self, name: &str) -> Result<String, Error> {
        let named = find_named_record(&*self.catalog, name).await?;
        let named = named.ok_or_else(|| Error::NotFound(name.to_owned()))?;
        Ok(named.into_record().session_id)
    }
}
