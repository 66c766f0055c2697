//! Recall: everything archived, found by words and brought back by pointers.
//!
//! The index follows the archive: what a compaction stored is added after its commit, or when
//! somebody asks and it is found to be behind. A pointer is resolved from the catalog and the
//! archive alone, so it holds as long as they do, whatever becomes of the index.

mod answer_text;
mod entry_text;
pub mod event;
mod excerpt;
mod exchange;
mod expand;
mod index_update;
mod passage;
mod pointer;
mod rank;
mod read;
mod said_at;
mod selection;
mod sentence;
pub mod term;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use compact_core::message::{EntryId, Role};
use compact_core::redact::Redactor;
use serde::Serialize;

use crate::error::Error;
use crate::port::archive::ArchiveStore;
use crate::port::catalog::{CompactionRecord, SessionCatalog, find_named_record};
use crate::port::index::{IndexLookup, LookupResult, RecallCandidate, RecallIndex};

pub use answer_text::{AnswerStyle, QUOTE_NOTE, fence_text};
pub use entry_text::entry_text;
pub use excerpt::ExcerptWindow;
pub use expand::{EntryPartner, RestoredEntry};
pub use index_update::{IndexUpdate, OutdatedSession};
pub use pointer::{EntryKey, EntryPointer};
pub use read::{ExpandQuery, Expansion, SecretDisplay, ShownEntry, ShownPartner};
pub(crate) use said_at::time_of;
pub use selection::{LinePattern, SelectedText, TextPart};

use rank::{QueryTerms, RankLimit, RankedEntry};

/// What stands for the session that was compacted last, wherever a session or a receipt is named.
const LAST_SESSION: &str = ".";

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
#[derive(Clone, Debug, Default)]
pub struct RecallQuery<'a> {
    /// A question or a few words: prose, identifiers, paths; no syntax.
    pub text: &'a str,
    /// One session, by its id, a receipt, or `.` for the one that was compacted last; or all.
    pub session_id: Option<&'a str>,
    /// Only entries with a higher ordinal.
    pub after: Option<u64>,
    /// Which hit comes first.
    pub order: HitOrder,
    /// The most hits.
    pub limit: usize,
    /// Whether what is found stands with its secrets. They are never searched for: the index has none.
    pub secrets: SecretDisplay,
}

/// Which hit comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HitOrder {
    /// The one that answers best.
    #[default]
    Best,
    /// The newest of those that answer.
    Latest,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SearchAnswer {
    /// The entries that answer, in the order that was asked for.
    pub hits: Vec<SearchHit>,
    /// The words of the question that nothing archived holds.
    pub unknown_words: Vec<String>,
}

impl SearchAnswer {
    /// Whether one of the hits holds every word of the question.
    pub fn has_all_words(&self) -> bool {
        self.hits.iter().any(|hit| hit.missing_words.is_empty())
    }
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
    /// How many entries the session had when it was last compacted.
    pub session_entries: u64,
    /// The receipt whose archived input holds it.
    pub receipt_id: String,
    /// What [`Recall::expand`] takes.
    pub pointer: String,
    /// Its role.
    pub role: Role,
    /// When the receipt was recorded.
    pub created_at: String,
    /// When it was said, where its transcript says so.
    pub said_at: Option<String>,
    /// How well it answers; comparable within one query only.
    pub score: f64,
    /// The match in its surroundings: the windows, one after the other.
    pub snippet: String,
    /// Where in the entry the matches are, with line numbers.
    pub windows: Vec<ExcerptWindow>,
    /// How many lines the entry has.
    pub lines: u64,
    /// The other half of an exchange: the result of this call, or the call of this result.
    pub partner: Option<HitPartner>,
    /// Words of the question that the entry does not hold.
    pub missing_words: Vec<String>,
}

/// The other half of an exchange.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HitPartner {
    /// What [`Recall::expand`] takes.
    pub pointer: String,
    /// Its place in the session.
    pub ordinal: u64,
    /// Its role.
    pub role: Role,
    /// Its beginning.
    pub excerpt: String,
}

/// About how many bytes of a call, and of a result, are shown beside the other.
const CALL_EXCERPT: usize = 160;
const RESULT_EXCERPT: usize = 320;

impl Recall {
    /// The entries that answer. Looks at what is indexed; call [`Recall::update_index`] first.
    pub async fn search(&self, query: &RecallQuery<'_>) -> Result<SearchAnswer, Error> {
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
            after: query.after,
            limit: CANDIDATES.max(query.limit * 4),
        };
        let found = self.index.find(&lookup).await?;
        let known = found.without_candidates();
        let limit = RankLimit {
            count: query.limit,
            order: query.order,
        };
        let mut hits = Vec::new();
        for ranked in rank::rank(&question, found, limit) {
            let ranked = match query.secrets {
                SecretDisplay::Redacted => ranked,
                SecretDisplay::Shown => self.with_archived_words(ranked, &question, &known).await,
            };
            hits.push(self.hit(ranked, &question, query.secrets).await?);
        }
        self.count_entries(&mut hits).await?;
        let is_known = |at: usize| known.frequencies.get(at).is_some_and(|count| *count > 0);
        Ok(SearchAnswer {
            unknown_words: question.words_without(is_known),
            hits,
        })
    }

    /// The entry with the words that were archived, which the index lacks where they are secret. One that
    /// cannot be read is shown as it is indexed.
    async fn with_archived_words(
        &self,
        ranked: RankedEntry,
        question: &QueryTerms,
        known: &LookupResult,
    ) -> RankedEntry {
        match self.archived_text(&ranked.candidate).await {
            Some(text) if text != ranked.candidate.text => ranked.with_text(&text, question, known),
            _ => ranked,
        }
    }

    async fn archived_text(&self, candidate: &RecallCandidate) -> Option<Arc<str>> {
        let restored = self.expand(&pointer_to(candidate)).await.ok()?;
        Some(restored.readable_text().into())
    }

    async fn hit(
        &self,
        ranked: RankedEntry,
        question: &QueryTerms,
        secrets: SecretDisplay,
    ) -> Result<SearchHit, Error> {
        let candidate = ranked.candidate;
        let pointer = pointer_to(&candidate);
        let mut windows = excerpt::cut_windows(&candidate.text, &ranked.places);
        // What was indexed under other rules is redacted by the present ones.
        for window in &mut windows {
            window.text = self.hide_secrets(&window.text, secrets).into_owned();
        }
        let texts: Vec<&str> = windows.iter().map(|window| window.text.as_str()).collect();
        Ok(SearchHit {
            pointer: pointer.to_string(),
            snippet: texts.join("\n…\n"),
            windows,
            lines: candidate.text.lines().count() as u64,
            partner: self.partner_of(&candidate, secrets).await?,
            missing_words: question.words_missing_in(&candidate.text),
            session_entries: 0,
            session_id: candidate.session_id,
            entry_id: candidate.entry_id,
            ordinal: candidate.ordinal,
            receipt_id: candidate.receipt_id,
            role: candidate.role,
            created_at: candidate.created_at,
            said_at: candidate.said_at,
            score: (ranked.score * 10_000.0).round() / 10_000.0,
        })
    }

    /// Returns the call of a result, or the result of a call, on the entry's own line: as the index has it, else as
    /// the archive does.
    async fn partner_of(
        &self,
        candidate: &RecallCandidate,
        secrets: SecretDisplay,
    ) -> Result<Option<HitPartner>, Error> {
        let Some(ordinal) = candidate.partner else {
            return Ok(None);
        };
        let found = match self.indexed_partner(candidate, ordinal).await? {
            Some(partner) => {
                let archived = match secrets {
                    SecretDisplay::Redacted => None,
                    SecretDisplay::Shown => self.archived_text(&partner).await,
                };
                let text = archived.unwrap_or_else(|| Arc::clone(&partner.text));
                (partner.receipt_id, partner.role, text)
            }
            None => {
                let receipt = &candidate.receipt_id;
                let pointer = EntryPointer::new(receipt, Some(ordinal), "");
                match self.expand(&pointer).await {
                    Ok(entry) => (receipt.clone(), entry.role, entry.readable_text().into()),
                    Err(_) => return Ok(None),
                }
            }
        };
        let (receipt, role, text) = found;
        let room = match role {
            Role::Tool => RESULT_EXCERPT,
            _ => CALL_EXCERPT,
        };
        let excerpt = excerpt::head_window(&text, room);
        Ok(excerpt.map(|window| HitPartner {
            pointer: EntryPointer::new(&receipt, Some(ordinal), "").to_string(),
            ordinal,
            role,
            excerpt: self.hide_secrets(&window.text, secrets).into_owned(),
        }))
    }

    /// Returns what the index has at a place on the line of an entry. A session that went apart has several entries
    /// with one number, of which it may hold only that of another branch.
    async fn indexed_partner(
        &self,
        candidate: &RecallCandidate,
        ordinal: u64,
    ) -> Result<Option<RecallCandidate>, Error> {
        let session = &candidate.session_id;
        let found = self.index.entries_at(session, &[ordinal]).await?;
        let is_same_input = |other: &RecallCandidate| other.receipt_id == candidate.receipt_id;
        if found.is_empty() || found.iter().any(is_same_input) {
            return Ok(found.into_iter().find(is_same_input));
        }
        let record = self.catalog.find_record(&candidate.receipt_id).await?;
        let given = record.map_or(Vec::new(), |record| record.entry_hashes);
        let mut found = found.into_iter();
        Ok(found.find(|other| given.contains(&other.hash)))
    }

    /// Notes how many entries the session of each hit has.
    async fn count_entries(&self, hits: &mut [SearchHit]) -> Result<(), Error> {
        let mut counts: HashMap<String, u64> = HashMap::new();
        for hit in hits {
            if !counts.contains_key(&hit.session_id) {
                let latest = self.catalog.latest_record(&hit.session_id).await?;
                let count = latest.map_or(0, |record| record.next_ordinal());
                counts.insert(hit.session_id.clone(), count);
            }
            hit.session_entries = counts.get(&hit.session_id).copied().unwrap_or(0);
        }
        Ok(())
    }

    /// Returns the whole id of the session that a name stands for.
    pub async fn session_named(&self, name: &str) -> Result<String, Error> {
        if name == LAST_SESSION {
            return Ok(self.last_record().await?.session_id);
        }
        let named = find_named_record(&*self.catalog, name).await?;
        let named = named.ok_or_else(|| Error::NotFound(name.to_owned()))?;
        Ok(named.into_record().session_id)
    }

    /// Returns the record of the compaction that was made last, in whichever session.
    async fn last_record(&self) -> Result<CompactionRecord, Error> {
        let none = || Error::NotFound(LAST_SESSION.to_owned());
        let sessions = self.catalog.sessions().await?;
        let last = sessions
            .into_iter()
            .max_by(|a, b| a.last_at.cmp(&b.last_at));
        let session = last.ok_or_else(none)?.session_id;
        self.catalog.latest_record(&session).await?.ok_or_else(none)
    }
}

fn pointer_to(candidate: &RecallCandidate) -> EntryPointer {
    EntryPointer::new(
        &candidate.receipt_id,
        candidate.ordinal,
        &candidate.entry_id.0,
    )
}
