//! The way back from a pointer to the entries it names, out of the archive.

use std::collections::HashSet;

use bytes::Bytes;
use compact_core::message::{Block, Conversation, Entry, Role};
use compact_formats::{Document, TranscriptScope};

use super::entry_text::entry_text;
use super::exchange::ExchangePlaces;
use super::{EntryKey, EntryPointer, LAST_SESSION, Recall, passage, said_at};
use crate::error::Error;
use crate::manager::restore;
use crate::port::catalog::{CatalogError, CompactionRecord, SESSION_SIGN, find_pointed_record};

/// The most entries that one pointer brings back.
const MOST_ENTRIES: u64 = 200;

/// An entry as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct RestoredEntry {
    /// Its session.
    pub session_id: String,
    /// The receipt whose archived input it was read from.
    pub receipt_id: String,
    /// What names it.
    pub pointer: EntryPointer,
    /// Its place in the session, when the pointer says it.
    pub ordinal: Option<u64>,
    /// Its place in what the compaction of that receipt was given, when the pointer says the other one.
    pub input_place: Option<usize>,
    /// How many entries the session had at the receipt that the pointer names.
    pub session_entries: u64,
    /// When it was said, as RFC 3339 in UTC, where its transcript says so.
    pub said_at: Option<String>,
    /// The entry.
    pub entry: Entry,
    /// Its role; a message that carries results is the tool's.
    pub role: Role,
    /// The other half of an exchange: the result of this call, or the call of this result.
    pub partner: Option<EntryPartner>,
    /// Its JSON in the archived input, byte for byte.
    pub source: Bytes,
    /// Whether it is exact, or redacted when it was archived.
    pub exact: bool,
}

/// The other half of an exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryPartner {
    /// Its place in the session.
    pub ordinal: u64,
    /// The entry.
    pub entry: Entry,
}

impl EntryPartner {
    /// Returns its words for a reader.
    pub fn readable_text(&self) -> String {
        entry_text(&self.entry)
    }

    /// Returns the name of the tool, if this is a call.
    pub fn tool_name(&self) -> Option<&str> {
        first_tool_name(&self.entry)
    }
}

impl RestoredEntry {
    /// The words of the entry as they were, block after block.
    pub fn text(&self) -> String {
        let blocks = self.entry.blocks.iter().map(|block| {
            let [first, second] = block.text_parts();
            match second {
                "" => first.to_owned(),
                arguments => format!("{first} {arguments}"),
            }
        });
        let texts: Vec<String> = blocks.filter(|text| !text.is_empty()).collect();
        texts.join("\n")
    }

    /// Returns its words for a reader: arguments as lines, edits as differences, no escapes.
    pub fn readable_text(&self) -> String {
        entry_text(&self.entry)
    }

    /// Returns the name of the first tool that it calls.
    pub fn tool_name(&self) -> Option<&str> {
        first_tool_name(&self.entry)
    }
}

fn first_tool_name(entry: &Entry) -> Option<&str> {
    entry.blocks.iter().find_map(|block| match block {
        Block::ToolCall { name, .. } => Some(name.as_str()),
        _ => None,
    })
}

impl Recall {
    /// The entry that a pointer names, from the input that first held it: never a clipped copy.
    pub async fn expand(&self, pointer: &EntryPointer) -> Result<RestoredEntry, Error> {
        let record = self.record_named(&pointer.name).await?;
        self.expand_one(&record, pointer).await
    }

    /// The same within one session, by its id, a receipt or `.`: a pointer without a receipt is to its newest one that
    /// reaches the entry, and one to another session is refused.
    pub async fn expand_within(
        &self,
        session: &str,
        pointer: &EntryPointer,
    ) -> Result<RestoredEntry, Error> {
        let record = self.record_within(session, pointer).await?;
        self.expand_one(&record, pointer).await
    }

    async fn expand_one(
        &self,
        record: &CompactionRecord,
        pointer: &EntryPointer,
    ) -> Result<RestoredEntry, Error> {
        let found = self.expand_around(record, pointer, 0).await?;
        let found = found.into_iter().next();
        found.ok_or_else(|| Error::NoSuchEntry(pointer.to_string()))
    }

    /// The entries that a pointer names, with as many neighbours on each side; 200 at most.
    pub(super) async fn expand_around(
        &self,
        record: &CompactionRecord,
        pointer: &EntryPointer,
        neighbours: u64,
    ) -> Result<Vec<RestoredEntry>, Error> {
        let (first, last) = match &pointer.place {
            EntryKey::Id(id) => return Ok(vec![self.by_id(record, pointer, id).await?]),
            EntryKey::Ordinal(ordinal) => (*ordinal, *ordinal),
            EntryKey::Ordinals(first, last) => (*first, *last),
        };
        let end = record.next_ordinal();
        if first >= end {
            return Err(Error::NoSuchEntry(pointer.to_string()));
        }
        let first = first.saturating_sub(neighbours);
        let beyond = last.saturating_add(neighbours).saturating_add(1);
        let beyond = beyond.min(end).min(first.saturating_add(MOST_ENTRIES));
        let mut found = Vec::new();
        let mut open: Option<ArchivedInput> = None;
        for ordinal in first..beyond {
            let input = match open.take().filter(|input| input.holds(ordinal)) {
                Some(input) => input,
                None => self.input_holding(record, pointer, ordinal).await?,
            };
            found.extend(input.restore_ordinal(pointer, ordinal, end));
            open = Some(input);
        }
        Ok(found)
    }

    /// The compaction that a pointer stands for to whoever reads one session.
    pub(super) async fn record_within(
        &self,
        session: &str,
        pointer: &EntryPointer,
    ) -> Result<CompactionRecord, Error> {
        let session = self.session_named(session).await?;
        let own = self.catalog.session_records(&session).await?;
        if pointer.name == LAST_SESSION {
            return newest_reaching(&session, own, pointer);
        }
        let named = self.record_named(&pointer.name).await?;
        // Two sessions that compacted the same thing have one receipt.
        let same = |record: &&CompactionRecord| record.receipt_id == named.receipt_id;
        if let Some(record) = own.iter().rfind(same) {
            return Ok(record.clone());
        }
        match self.goes_on_from(own, &named).await? {
            true => Ok(named),
            false => Err(Error::OtherSession {
                pointer: pointer.to_string(),
                session,
            }),
        }
    }

    /// Whether a compaction of another session is one that these were made on top of.
    async fn goes_on_from(
        &self,
        own: Vec<CompactionRecord>,
        earlier: &CompactionRecord,
    ) -> Result<bool, Error> {
        let mut met: HashSet<String> = own.iter().map(|r| r.receipt_id.clone()).collect();
        let mut open: Vec<String> = own.into_iter().filter_map(|r| r.previous).collect();
        while let Some(receipt) = open.pop() {
            if receipt == earlier.receipt_id {
                return Ok(true);
            }
            if met.insert(receipt.clone()) {
                let record = self.catalog.find_record(&receipt).await?;
                open.extend(record.and_then(|record| record.previous));
            }
        }
        Ok(false)
    }

    pub(super) async fn record_named(&self, name: &str) -> Result<CompactionRecord, Error> {
        if name == LAST_SESSION {
            return self.last_record().await;
        }
        let short = name.trim();
        let pointed = find_pointed_record(&*self.catalog, short).await?;
        if short == name {
            return pointed.ok_or_else(|| Error::NotFound(name.to_owned()));
        }
        // Blanks before a number may be part of a session's name.
        let whole = name.strip_prefix(SESSION_SIGN).unwrap_or(name);
        let called_so = self.catalog.latest_record(whole).await?;
        match (called_so, pointed) {
            (Some(_), Some(_)) => Err(CatalogError::Ambiguous {
                prefix: short.to_owned(),
            }
            .into()),
            (found, other) => found
                .or(other)
                .ok_or_else(|| Error::NotFound(name.to_owned())),
        }
    }

    /// Goes back along the compactions to the one that was given the entry.
    async fn input_holding(
        &self,
        record: &CompactionRecord,
        pointer: &EntryPointer,
        ordinal: u64,
    ) -> Result<ArchivedInput, Error> {
        let absent = || Error::NoSuchEntry(pointer.to_string());
        let mut met = HashSet::new();
        let mut record = record.clone();
        while ordinal < record.first_ordinal() {
            let previous = record.previous.clone().filter(|id| met.insert(id.clone()));
            let previous = previous.ok_or_else(absent)?;
            let earlier = self.catalog.find_record(&previous).await?;
            record = earlier.ok_or_else(absent)?;
        }
        let bytes = self.input_bytes(&record).await?;
        let (conversation, document) = restore::read_document(&bytes, &record)?;
        Ok(ArchivedInput {
            record,
            bytes,
            conversation,
            document,
        })
    }

    async fn by_id(
        &self,
        record: &CompactionRecord,
        pointer: &EntryPointer,
        id: &str,
    ) -> Result<RestoredEntry, Error> {
        let bytes = self.input_bytes(record).await?;
        let whole = restore::parse_input(bytes.clone(), &record.format, TranscriptScope::Whole)?;
        let input = ArchivedInput {
            record: record.clone(),
            bytes,
            conversation: whole.conversation,
            document: Some(whole.document),
        };
        let mut entries = input.conversation.entries.iter();
        let at = entries.position(|entry| entry.id.0 == id);
        let found = at.and_then(|at| input.restore_entry(at));
        let found = found.ok_or_else(|| Error::NoSuchEntry(pointer.to_string()))?;
        Ok(RestoredEntry {
            pointer: pointer.clone(),
            session_entries: record.next_ordinal(),
            ..found
        })
    }

    async fn input_bytes(&self, record: &CompactionRecord) -> Result<Bytes, Error> {
        match &record.input_pack {
            Some(pack) => Ok(self.archive.get(pack).await?),
            None => Err(Error::NotArchived(record.receipt_id.clone())),
        }
    }
}

/// The newest compaction of a session at which it had the first entry that is asked for.
fn newest_reaching(
    session: &str,
    own: Vec<CompactionRecord>,
    pointer: &EntryPointer,
) -> Result<CompactionRecord, Error> {
    let first = match pointer.place {
        EntryKey::Ordinal(first) | EntryKey::Ordinals(first, _) => first,
        EntryKey::Id(_) => 0,
    };
    let mut newest = own.into_iter().rev();
    let found = newest.find(|record| first < record.next_ordinal());
    let asked = EntryPointer {
        name: session.to_owned(),
        place: pointer.place.clone(),
    };
    found.ok_or_else(|| Error::NoSuchEntry(asked.to_string()))
}

/// An input of a compaction, read from the archive.
struct ArchivedInput {
    record: CompactionRecord,
    bytes: Bytes,
    conversation: Conversation,
    document: Option<Document>,
}

impl ArchivedInput {
    fn holds(&self, ordinal: u64) -> bool {
        (self.record.first_ordinal()..self.record.next_ordinal()).contains(&ordinal)
    }

    fn ordinal_of(&self, at: usize) -> Option<u64> {
        let after = (at as u64).checked_sub(self.record.known_entries());
        after.map(|after| self.record.first_ordinal() + after)
    }

    fn restore_ordinal(
        &self,
        pointer: &EntryPointer,
        ordinal: u64,
        session_entries: u64,
    ) -> Option<RestoredEntry> {
        let after = ordinal.checked_sub(self.record.first_ordinal())?;
        let at = (self.record.known_entries() + after) as usize;
        let found = self.restore_entry(at)?;
        Some(RestoredEntry {
            input_place: Some(at),
            pointer: EntryPointer {
                name: match pointer.name.as_str() {
                    LAST_SESSION => EntryPointer::new(&self.record.receipt_id, None, "").name,
                    name => name.to_owned(),
                },
                place: EntryKey::Ordinal(ordinal),
            },
            ordinal: Some(ordinal),
            session_entries,
            ..found
        })
    }

    fn restore_entry(&self, at: usize) -> Option<RestoredEntry> {
        let entry = self.conversation.entries.get(at)?.clone();
        let source = restore::entry_bytes(&self.bytes, self.document.as_ref(), at);
        Some(RestoredEntry {
            session_id: self.record.session_id.clone(),
            receipt_id: self.record.receipt_id.clone(),
            pointer: EntryPointer::new(&self.record.receipt_id, None, &entry.id.0),
            ordinal: None,
            input_place: None,
            session_entries: 0,
            said_at: self.document.as_ref().and_then(|d| said_at::time_of(d, at)),
            role: passage::role(&entry),
            partner: self.partner_of(at, &entry),
            entry,
            source,
            exact: self.record.is_exact(),
        })
    }

    fn partner_of(&self, at: usize, entry: &Entry) -> Option<EntryPartner> {
        let entries = &self.conversation.entries;
        let at = ExchangePlaces::new(entries).partner_of(at, entry)?;
        Some(EntryPartner {
            ordinal: self.ordinal_of(at)?,
            entry: entries.get(at)?.clone(),
        })
    }
}
