//! The way back from a pointer to the entry it names, out of the archive.

use std::collections::HashSet;

use bytes::Bytes;
use compact_core::message::{Conversation, Entry, Role};
use compact_formats::TranscriptScope;

use super::index_update::{first_ordinal, next_ordinal};
use super::{EntryKey, EntryPointer, Recall, passage};
use crate::error::Error;
use crate::manager::restore;
use crate::port::catalog::{CompactionRecord, find_named_record};

/// An entry as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct RestoredEntry {
    /// Its session.
    pub session_id: String,
    /// The receipt whose archived input it was read from.
    pub receipt_id: String,
    /// Its place in the session, when the pointer says it.
    pub ordinal: Option<u64>,
    /// The entry.
    pub entry: Entry,
    /// Its role; a message that carries results is the tool's.
    pub role: Role,
    /// Its JSON in the archived input, byte for byte.
    pub source: Bytes,
    /// Whether it is exact, or redacted when it was archived.
    pub exact: bool,
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
}

impl Recall {
    /// The entry that a pointer names, from the input that first held it: never a clipped copy.
    pub async fn expand(&self, pointer: &EntryPointer) -> Result<RestoredEntry, Error> {
        let named = find_named_record(&*self.catalog, &pointer.name).await?;
        let named = named.ok_or_else(|| Error::NotFound(pointer.name.clone()))?;
        let record = named.into_record();
        match &pointer.place {
            EntryKey::Id(id) => self.by_id(&record, pointer, id).await,
            EntryKey::Ordinal(ordinal) => self.by_ordinal(record, pointer, *ordinal).await,
        }
    }

    /// Goes back along the compactions to the one that was given the entry.
    async fn by_ordinal(
        &self,
        record: CompactionRecord,
        pointer: &EntryPointer,
        ordinal: u64,
    ) -> Result<RestoredEntry, Error> {
        let absent = || Error::NoSuchEntry(pointer.to_string());
        if ordinal >= next_ordinal(&record) {
            return Err(absent());
        }
        let mut met = HashSet::new();
        let mut record = record;
        while ordinal < first_ordinal(&record) {
            let previous = record.previous.clone().filter(|id| met.insert(id.clone()));
            let previous = previous.ok_or_else(absent)?;
            let earlier = self.catalog.find_record(&previous).await?;
            record = earlier.ok_or_else(absent)?;
        }
        let bytes = self.input_bytes(&record).await?;
        let (conversation, document) = restore::read_document(&bytes, &record)?;
        let after = (ordinal - first_ordinal(&record)) as usize;
        let at = if record.previous.is_some() {
            record.new_from as usize + after
        } else {
            after
        };
        let source = restore::entry_bytes(&bytes, document.as_ref(), at);
        expand_entry(&record, Some(ordinal), &conversation, at, source).ok_or_else(absent)
    }

    async fn by_id(
        &self,
        record: &CompactionRecord,
        pointer: &EntryPointer,
        id: &str,
    ) -> Result<RestoredEntry, Error> {
        let bytes = self.input_bytes(record).await?;
        let whole = restore::parse_input(bytes.clone(), &record.format, TranscriptScope::Whole)?;
        let entries = &whole.conversation.entries;
        let at = entries.iter().position(|entry| entry.id.0 == id);
        let at = at.ok_or_else(|| Error::NoSuchEntry(pointer.to_string()))?;
        let source = restore::entry_bytes(&bytes, Some(&whole.document), at);
        expand_entry(record, None, &whole.conversation, at, source)
            .ok_or_else(|| Error::NoSuchEntry(pointer.to_string()))
    }

    async fn input_bytes(&self, record: &CompactionRecord) -> Result<Bytes, Error> {
        match &record.input_pack {
            Some(pack) => Ok(self.archive.get(pack).await?),
            None => Err(Error::NotArchived(record.receipt_id.clone())),
        }
    }
}

fn expand_entry(
    record: &CompactionRecord,
    ordinal: Option<u64>,
    conversation: &Conversation,
    at: usize,
    source: Bytes,
) -> Option<RestoredEntry> {
    let entry = conversation.entries.get(at)?.clone();
    Some(RestoredEntry {
        session_id: record.session_id.clone(),
        receipt_id: record.receipt_id.clone(),
        ordinal,
        role: passage::role(&entry),
        entry,
        source,
        exact: record.is_exact(),
    })
}
