//! What the archive keeps of an outcome: the view that was made, and the record of the compaction.
//!
//! A view points into its input by index, so it costs little more than its summary; it is stored as
//! the difference to the view before. With it, a receipt can be checked and shown again whatever has
//! become of the engine. The hashes of entries are kept with the view and not in the record: most of
//! them are those of the view before.

use bytes::Bytes;
use compact_core::engine::{Compaction, CompactionOutcome};
use compact_core::identity::EntryHash;
use compact_core::message::Conversation;
use compact_core::redact::RedactionCounts;
use compact_core::view::{View, ViewItem};
use serde::{Deserialize, Serialize};

use super::commit::ArchiveMode;
use super::{CompactionJob, Manager, MeasuredRequest, restore};
use crate::error::Error;
use crate::port::archive::{ArchiveError, ArchiveStore, PackId};
use crate::port::catalog::{CompactionRecord, InputRelation};

/// The form in which views and records are written; a later one is not read.
const ARCHIVE_FORM: u32 = 1;

/// A view as the archive keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchivedView {
    form: u32,
    /// What was sent, pointing into the archived input.
    pub view: View,
    /// The entries of the input.
    pub entry_hashes: Vec<EntryHash>,
    /// The entries of the view.
    pub view_hashes: Vec<EntryHash>,
}

/// A record as the archive keeps it.
#[derive(Serialize, Deserialize)]
struct ArchivedRecord {
    form: u32,
    kind: RecordKind,
    #[serde(flatten)]
    record: CompactionRecord,
}

/// What a record is of.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordKind {
    Compaction,
}

impl Manager {
    /// Keeps the view that was made.
    pub(super) async fn archive_view(
        &self,
        measured: &MeasuredRequest<'_>,
        continues: InputRelation,
        made: &Compaction,
    ) -> Result<Option<PackId>, Error> {
        let Some(archive) = &self.archive else {
            return Ok(None);
        };
        let unwritable = |source| Error::Record {
            receipt: made.receipt.receipt_id.clone(),
            source,
        };
        let kept = ArchivedView {
            form: ARCHIVE_FORM,
            view: self.stored_view(&made.view).map_err(unwritable)?,
            entry_hashes: measured.hashes.clone(),
            view_hashes: made.view_identity.iter().map(|(hash, _)| *hash).collect(),
        };
        let bytes = Bytes::from(serde_json::to_vec(&kept).map_err(unwritable)?);
        let before = measured.latest.as_ref();
        // The same compaction made again is kept once.
        if let Some(same) = before.filter(|r| r.receipt_id == made.receipt.receipt_id)
            && let Some(pack) = same.view_pack()
            && archive.get(&pack).await.is_ok_and(|known| known == bytes)
        {
            return Ok(Some(pack));
        }
        let base = before.filter(|_| continues != InputRelation::Fresh);
        let base = base.and_then(CompactionRecord::view_pack);
        Ok(Some(archive.put(bytes, base.as_ref()).await?.id))
    }

    /// A view as it may be archived. Where secrets stay out, what was cut is kept as a whole entry: a cut
    /// could hide half of a secret from the rule that knows it.
    fn stored_view(&self, view: &View) -> Result<View, serde_json::Error> {
        let ArchiveMode::Redacted(redactor) = &self.archive_mode else {
            return Ok(view.clone());
        };
        let items = view.items.iter().map(|item| match item {
            ViewItem::Edited { entry, .. } => ViewItem::Kept { entry: *entry },
            other => other.clone(),
        });
        let text = serde_json::to_string(&View {
            items: items.collect(),
        })?;
        serde_json::from_str(&redactor.redact_json(&text, &mut RedactionCounts::new()))
    }

    /// Keeps a record that the catalog has: from then on the archive can tell of it by itself.
    pub(super) async fn archive_record(&self, record: &CompactionRecord) -> Result<(), Error> {
        let Some(archive) = &self.archive else {
            return Ok(());
        };
        // One that is there says when it was recorded first.
        if archive.get_record(&record.address()).await.is_ok() {
            return Ok(());
        }
        // A process that was ended before it came here left one in the catalog, and that is the one that counts.
        let known = self.catalog.latest_record(&record.session_id).await?;
        let known = known.filter(|known| known.receipt_id == record.receipt_id);
        let known = known.filter(|known| known.receipt.is_archived());
        write_record(&**archive, known.as_ref().unwrap_or(record)).await
    }

    /// Keeps the record of what a request goes on from, where a process that was ended left it to the catalog alone: only
    /// what nothing goes on from may stand there so.
    pub(super) async fn archive_record_before(
        &self,
        measured: &MeasuredRequest<'_>,
    ) -> Result<(), Error> {
        let Some(prior) = &measured.prior else {
            return Ok(());
        };
        let found;
        let record = match &measured.latest {
            Some(latest) if latest.receipt_id == prior.receipt_id => Some(latest),
            _ => {
                found = self.catalog.find_record(&prior.receipt_id).await?;
                found.as_ref()
            }
        };
        match record.filter(|record| record.input_pack.is_some()) {
            Some(record) => self.archive_record(record).await,
            None => Ok(()),
        }
    }

    /// The archived view of a record; `None` where none was kept.
    pub(crate) async fn archived_view(
        &self,
        record: &CompactionRecord,
    ) -> Result<Option<ArchivedView>, Error> {
        let (Some(archive), Some(_)) = (&self.archive, record.view_pack()) else {
            return Ok(None);
        };
        read_archived_view(&**archive, record).await
    }

    /// The view of a record over its input: as it was archived, or as this engine makes it where it
    /// is the one that made it, under the same redaction. `None` when neither can be had.
    pub(super) async fn view_of(
        &self,
        record: &CompactionRecord,
        job: &mut CompactionJob<'_>,
    ) -> Result<Option<View>, Error> {
        if let Some(kept) = self.archived_view(record).await? {
            return Ok(Some(kept.view));
        }
        job.measured.advice = self.advice_of(record).await?;
        match job.make_view()? {
            CompactionOutcome::Compacted(made) if made.receipt.receipt_id == record.receipt_id => {
                Ok(Some(made.view))
            }
            _ => Ok(None),
        }
    }
}

/// Writes a record into an archive, in place of what was there.
pub async fn write_record(
    archive: &dyn ArchiveStore,
    record: &CompactionRecord,
) -> Result<(), Error> {
    let mut slim = record.clone();
    if record.view_pack().is_some() {
        slim.entry_hashes.clear();
        slim.view_hashes.clear();
    }
    let kept = ArchivedRecord {
        form: ARCHIVE_FORM,
        kind: RecordKind::Compaction,
        record: slim,
    };
    let bytes = serde_json::to_vec(&kept).map_err(|source| Error::Record {
        receipt: record.receipt_id.clone(),
        source,
    })?;
    Ok(archive.put_record(&record.address(), bytes.into()).await?)
}

/// The record at an address of an archive, with its hashes.
pub async fn read_record(
    archive: &dyn ArchiveStore,
    address: &PackId,
) -> Result<CompactionRecord, Error> {
    let bytes = archive.get_record(address).await?;
    let kept: ArchivedRecord = serde_json::from_slice(&bytes).map_err(|source| Error::Record {
        receipt: address.to_string(),
        source,
    })?;
    check_form(*address, kept.form)?;
    let mut record = kept.record;
    if record.address() != *address {
        let reason = "its content does not match its name".to_owned();
        let pack = *address;
        return Err(ArchiveError::Damaged { pack, reason }.into());
    }
    if record.view_pack().is_none() {
        return Ok(record);
    }
    if let Ok(Some(kept)) = read_archived_view(archive, &record).await {
        record.entry_hashes = kept.entry_hashes;
        record.view_hashes = kept.view_hashes;
        return Ok(record);
    }
    // Without its view it can still be restored and searched.
    if let Some(pack) = &record.input_pack
        && let Ok(bytes) = archive.get(pack).await
        && let Ok((conversation, _)) = restore::read_conversation(&bytes, &record)
    {
        record.entry_hashes = EntryHash::from_entries(&conversation.entries);
    }
    Ok(record)
}

async fn read_archived_view(
    archive: &dyn ArchiveStore,
    record: &CompactionRecord,
) -> Result<Option<ArchivedView>, Error> {
    let Some(pack) = record.view_pack() else {
        return Ok(None);
    };
    let bytes = archive.get(&pack).await?;
    let kept: ArchivedView = serde_json::from_slice(&bytes).map_err(|source| Error::Record {
        receipt: record.receipt_id.clone(),
        source,
    })?;
    check_form(pack, kept.form)?;
    Ok(Some(kept))
}

/// Refuses a form that only a later version can read.
fn check_form(pack: PackId, form: u32) -> Result<(), ArchiveError> {
    match form > ARCHIVE_FORM {
        true => Err(ArchiveError::Newer { pack, found: form }),
        false => Ok(()),
    }
}

/// What a view shows of its input, as a conversation of its own.
pub(super) fn shown_conversation(view: &View, conversation: &Conversation) -> Conversation {
    Conversation {
        entries: view.shown_entries(conversation),
        ..conversation.clone()
    }
}

#[cfg(test)]
mod tests;
