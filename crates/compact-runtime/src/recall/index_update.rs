//! Following the archive: what the index lacks is added, what was pruned is forgotten.
//!
//! The catalog says what should be there. An entry is added with the first receipt that holds it, so
//! the twentieth compaction of a session costs its new entries only.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::vec;

use bytes::Bytes;
use compact_core::frame;
use compact_core::identity::EntryHash;
use compact_core::message::{Conversation, Entry, EntryKind};
use compact_core::redact::Redactor;
use compact_formats::{Document, Format, TranscriptScope};

use super::exchange::ExchangePlaces;
use super::passage::{self, EntryPlacement};
use super::{Recall, said_at};
use crate::error::Error;
use crate::manager::restore;
use crate::port::catalog::CompactionRecord;
use crate::port::index::{EntryStream, IndexAddition, IndexError, IndexedEntry};

/// A session whose index is not what its records say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutdatedSession {
    /// The session.
    pub session_id: String,
    /// Its receipts that are indexed.
    indexed: HashSet<String>,
}

/// What following did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexUpdate {
    /// Receipts added.
    pub added: u64,
    /// Receipts whose archived input could not be read: `archive verify` tells why.
    pub unreadable: u64,
}

impl std::ops::AddAssign for IndexUpdate {
    fn add_assign(&mut self, other: IndexUpdate) {
        self.added += other.added;
        self.unreadable += other.unreadable;
    }
}

impl Recall {
    /// Brings the index up to date with the archive.
    pub async fn update_index(&self) -> Result<IndexUpdate, Error> {
        let mut followed = IndexUpdate::default();
        for behind in self.outdated_sessions().await? {
            followed += self.update_session(&behind).await?;
        }
        Ok(followed)
    }

    /// The sessions for which the index lacks something, or holds what is no longer on record.
    pub async fn outdated_sessions(&self) -> Result<Vec<OutdatedSession>, Error> {
        let mut indexed: HashMap<String, HashSet<String>> = HashMap::new();
        for (session, receipt) in self.index.receipts().await? {
            indexed.entry(session).or_default().insert(receipt);
        }
        let mut behind = Vec::new();
        for info in self.catalog.sessions().await? {
            let known = indexed.remove(&info.session_id).unwrap_or_default();
            let same = known.len() as u64 == info.compactions
                && info.last_receipt.is_none_or(|last| known.contains(&last));
            if !same {
                behind.push(OutdatedSession {
                    session_id: info.session_id,
                    indexed: known,
                });
            }
        }
        let gone = indexed
            .into_iter()
            .map(|(session_id, indexed)| OutdatedSession {
                session_id,
                indexed,
            });
        behind.extend(gone);
        Ok(behind)
    }

    /// Brings one session up to date.
    pub async fn update_session(&self, behind: &OutdatedSession) -> Result<IndexUpdate, Error> {
        let session = &behind.session_id;
        let chain = self.catalog.session_records(session).await?;
        let mut done = behind.indexed.clone();
        if done
            .iter()
            .any(|id| chain.iter().all(|r| r.receipt_id != *id))
        {
            // Which entries only the pruned receipt held is not known: the session is drawn again.
            self.index.forget(session).await?;
            done.clear();
        }
        let mut followed = IndexUpdate::default();
        let mut seen = SeenEntries {
            views: chain.iter().flat_map(|r| r.view_hashes.clone()).collect(),
            ..SeenEntries::default()
        };
        for record in &chain {
            if !done.contains(&record.receipt_id) {
                let Some(entries) = self.new_entries(record, &seen, &done).await? else {
                    followed.unreadable += 1;
                    continue;
                };
                self.index.add(build_addition(record, entries)).await?;
                done.insert(record.receipt_id.clone());
                followed.added += 1;
            }
            seen.add_record(record);
        }
        Ok(followed)
    }

    /// What a record adds; `None` when its input cannot be read.
    async fn new_entries(
        &self,
        record: &CompactionRecord,
        seen: &SeenEntries,
        done: &HashSet<String>,
    ) -> Result<Option<EntryStream>, Error> {
        let Some(pack) = record.input_pack else {
            return Ok(Some(Box::new(std::iter::empty())));
        };
        let Ok(bytes) = self.archive.get(&pack).await else {
            return Ok(None);
        };
        let Ok((live, document)) = restore::read_document(&bytes, record) else {
            return Ok(None);
        };
        let whole = read_longer(&bytes, record, &live);
        let start = seen
            .common_prefix(record)
            .max(continued_count(record, done));
        let numbered = NumberedEntries::new(record, &live, document.as_ref());
        let unseen = find_unseen_entries(&whole, &live, seen);
        let found = find_live_entries(&numbered, start, seen);
        let found = unseen.chain(found).collect();
        let placed = place_once(found, &numbered).into_iter();
        Ok(Some(Box::new(NewEntries {
            redactor: Arc::clone(&self.redactor),
            placed,
            live,
            whole,
        })))
    }
}

/// The entries that a record adds, each made when it is taken.
struct NewEntries {
    live: Conversation,
    whole: Conversation,
    placed: vec::IntoIter<(FoundAt, EntryPlacement)>,
    redactor: Arc<Redactor>,
}

/// Where an entry was found: in the context that was compacted, or in the part of its file before that.
#[derive(Clone, Copy)]
enum FoundAt {
    Live(usize),
    Before(usize),
}

impl Iterator for NewEntries {
    type Item = Result<IndexedEntry, IndexError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (at, place) = self.placed.next()?;
            let entry = match at {
                FoundAt::Live(at) => self.live.entries.get(at),
                FoundAt::Before(at) => self.whole.entries.get(at),
            };
            let indexed = passage::index_entry(entry?, place, &self.redactor);
            if let Some(indexed) = indexed {
                return Some(Ok(indexed));
            }
        }
    }
}

/// Returns the places of entries: each once, at its last place.
fn place_once(
    found: Vec<(FoundAt, &Entry)>,
    numbered: &NumberedEntries<'_>,
) -> Vec<(FoundAt, EntryPlacement)> {
    let mut seen = HashSet::new();
    let newest = found.into_iter().rev();
    let once = newest.filter(|(_, entry)| seen.insert(EntryHash::from_entry(entry)));
    let placed = once.map(|(at, entry)| match at {
        FoundAt::Live(nth) => (at, numbered.placement(nth, entry)),
        FoundAt::Before(_) => (at, EntryPlacement::default()),
    });
    let mut placed: Vec<(FoundAt, EntryPlacement)> = placed.collect();
    placed.reverse();
    placed
}

/// Returns the whole of a transcript that holds more than the context that was compacted; else nothing.
fn read_longer(bytes: &Bytes, record: &CompactionRecord, live: &Conversation) -> Conversation {
    if !has_boundaries(record) {
        return Conversation::default();
    }
    let whole = restore::read_scope(bytes, record, TranscriptScope::Whole);
    let longer = whole.ok().filter(|w| w.entries.len() > live.entries.len());
    longer.unwrap_or_default()
}

/// Returns whether a transcript may hold more than its live context: an agent's own does, what is sent to a provider
/// does not.
fn has_boundaries(record: &CompactionRecord) -> bool {
    !record.format.parse().is_ok_and(Format::is_sent)
}

fn build_addition(record: &CompactionRecord, entries: EntryStream) -> IndexAddition {
    IndexAddition {
        session_id: record.session_id.clone(),
        receipt_id: record.receipt_id.clone(),
        created_at: record.created_at.clone(),
        entries,
    }
}

/// What the records before said.
#[derive(Default)]
struct SeenEntries {
    hashes: HashSet<EntryHash>,
    last: Vec<EntryHash>,
    /// What any view of the session shows.
    views: HashSet<EntryHash>,
}

impl SeenEntries {
    /// True for a summary of ours: what it stands for is found itself.
    fn is_summary(&self, entry: &Entry) -> bool {
        frame::find_frame(&entry.blocks).is_some()
            && self.views.contains(&EntryHash::from_entry(entry))
    }

    fn add_record(&mut self, record: &CompactionRecord) {
        self.hashes.extend(&record.entry_hashes);
        self.hashes.extend(&record.view_hashes);
        self.last.clone_from(&record.entry_hashes);
    }

    /// How many entries open this input as they opened the one before.
    fn common_prefix(&self, record: &CompactionRecord) -> usize {
        let both = self.last.iter().zip(&record.entry_hashes);
        both.take_while(|(a, b)| a == b).count()
    }
}

/// How many entries of the input are the view before it, whose originals are indexed.
fn continued_count(record: &CompactionRecord, done: &HashSet<String>) -> usize {
    match &record.previous {
        Some(previous) if done.contains(previous) => record.new_from as usize,
        _ => 0,
    }
}

/// The entries of an input with their ordinals, the halves of exchanges, and their times.
struct NumberedEntries<'a> {
    entries: &'a [Entry],
    document: Option<&'a Document>,
    exchanges: ExchangePlaces<'a>,
    first_ordinal: u64,
    new_from: u64,
}

impl<'a> NumberedEntries<'a> {
    fn new(
        record: &CompactionRecord,
        live: &'a Conversation,
        document: Option<&'a Document>,
    ) -> NumberedEntries<'a> {
        NumberedEntries {
            entries: &live.entries,
            document,
            exchanges: ExchangePlaces::new(&live.entries),
            first_ordinal: record.first_ordinal(),
            new_from: record.new_from,
        }
    }

    fn ordinal(&self, at: usize) -> Option<u64> {
        let after = (at as u64).checked_sub(self.new_from);
        after.map(|after| self.first_ordinal + after)
    }

    fn placement(&self, at: usize, entry: &Entry) -> EntryPlacement {
        EntryPlacement {
            ordinal: self.ordinal(at),
            partner: self
                .exchanges
                .partner_of(at, entry)
                .and_then(|at| self.ordinal(at)),
            said_at: self
                .document
                .and_then(|document| said_at::time_of(document, at)),
        }
    }
}

/// The entries from `start` on, with their places.
fn find_live_entries<'a>(
    numbered: &NumberedEntries<'a>,
    start: usize,
    seen: &SeenEntries,
) -> impl Iterator<Item = (FoundAt, &'a Entry)> {
    let entries = numbered.entries.iter().enumerate().skip(start);
    let said = entries.filter(|(_, entry)| !seen.is_summary(entry));
    said.map(|(at, entry)| (FoundAt::Live(at), entry))
}

/// What the file holds beyond the context that was compacted: the part before its last boundary.
/// Of what came before the first compaction nothing is new to a later one.
fn find_unseen_entries<'a>(
    whole: &'a Conversation,
    live: &Conversation,
    seen: &SeenEntries,
) -> impl Iterator<Item = (FoundAt, &'a Entry)> {
    let shown: HashSet<EntryHash> = match whole.entries.is_empty() {
        false => EntryHash::from_entries(&live.entries).into_iter().collect(),
        true => HashSet::new(),
    };
    let known = |hash: &EntryHash| seen.hashes.contains(hash);
    let entries = whole.entries.iter().enumerate();
    let hashed = entries.map(|(at, entry)| (EntryHash::from_entry(entry), at, entry));
    hashed
        .skip_while(move |(hash, ..)| !seen.hashes.is_empty() && !known(hash))
        .filter(move |(hash, ..)| !known(hash) && !shown.contains(hash))
        .filter(|(.., entry)| entry.meta.kind != EntryKind::ForeignSummary)
        .filter(|(.., entry)| !seen.is_summary(entry))
        .map(|(_, at, entry)| (FoundAt::Before(at), entry))
}
