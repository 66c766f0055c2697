//! Commit: archive original and view, record the receipt, tell the sinks. In that order.

use std::sync::Arc;

use bytes::Bytes;
use compact_core::engine::Compaction;
use compact_core::event::{CategoryTokens, EventKind, EventScope};
use compact_core::receipt::ReceiptNote;
use compact_core::redact::{RedactionCounts, Redactor};
use tokio::time::Instant;

use super::{Manager, MeasuredRequest, ModelAdvice, emit};
use crate::error::Error;
use crate::port::archive::{PackId, PackInfo};
use crate::port::catalog::{
    ArchivedPacks, CompactionRecord, InputRelation, Lease, RuntimeFields, StoredReceipt,
};

/// What the archive keeps of an original.
#[derive(Clone, Debug, Default)]
pub enum ArchiveMode {
    /// Its exact bytes.
    #[default]
    Exact,
    /// Its bytes with secrets replaced: restore is not exact, and the receipt says so.
    Redacted(Arc<Redactor>),
}

/// A compaction that is on record.
#[derive(Debug)]
pub struct CommittedCompaction {
    /// The view and its proof.
    pub compaction: Compaction,
    /// The receipt as it is stored, with archive and time.
    pub receipt: StoredReceipt,
}

/// A compaction whose original is in the archive, and that is not on record yet.
pub(super) struct StoredCompaction {
    made: Compaction,
    record: CompactionRecord,
    /// Tokens by category before it.
    before: CategoryTokens,
    started: Instant,
}

impl StoredCompaction {
    /// Tokens by category after it: the history is the view's, the memory its summary.
    fn tokens_after(&self) -> CategoryTokens {
        let receipt = &self.made.receipt;
        CategoryTokens {
            history: receipt.tokens_after,
            memory: receipt.summary_tokens,
            user_input: None,
            tool_results: None,
            ..self.before
        }
    }

    /// What there is to emit of it once it is on record, in this order.
    fn events(&self) -> Vec<EventKind> {
        let receipt = &self.made.receipt;
        let mut events = vec![
            EventKind::PolicyApplied {
                rung: receipt.rung.clone(),
            },
            EventKind::SummaryCreated {
                version: receipt.summary_version,
                summarizer: receipt.summarizer.clone(),
                retention: receipt.retention.score,
            },
            EventKind::PrunedMessages,
            self.completed(),
        ];
        let is_repair =
            |note: &ReceiptNote| matches!(note, ReceiptNote::MalformedToolMessages { .. });
        if receipt.notes.iter().any(is_repair) {
            events.push(EventKind::Repaired);
        }
        let entries = receipt.kept.newest_cut;
        if entries > 0 {
            events.push(EventKind::NewestCut { entries });
        }
        events
    }

    fn completed(&self) -> EventKind {
        let receipt = &self.made.receipt;
        EventKind::Completed {
            tokens_before: receipt.tokens_before,
            tokens_after: receipt.tokens_after,
            before: self.before,
            after: self.tokens_after(),
            retention: receipt.retention.score,
            duration_ms: emit::milliseconds(self.started.elapsed()),
        }
    }
}

impl Manager {
    /// Everything before the record: dropped halfway, it leaves at most a pack that nothing names.
    pub(super) async fn store(
        &self,
        measured: &MeasuredRequest<'_>,
        made: Compaction,
        scope: &EventScope,
        started: Instant,
    ) -> Result<StoredCompaction, Error> {
        let continues = self.input_relation(measured).await;
        // A disk takes as long to make sure of two packs as of one.
        let (input, view, ()) = tokio::try_join!(
            self.archive_original(measured, continues, scope, &made),
            self.archive_view(measured, continues, &made),
            self.archive_record_before(measured),
        )?;
        let advice = self.archive_advice(measured, &made).await?;
        let archive = input.as_ref().map(|input| ArchivedPacks {
            pack: input.id,
            plain_bytes: input.plain_bytes,
            stored_bytes: input.stored_bytes,
            view,
            advice,
        });
        let fields = RuntimeFields {
            archive,
            exact: matches!(self.archive_mode, ArchiveMode::Exact),
            created_at: self.clock.timestamp(),
            elapsed_ms: started.elapsed().as_millis() as u64,
            window: self.window,
        };
        let record = build_record(measured, &made, fields, continues)?;
        Ok(StoredCompaction {
            before: CategoryTokens::from_account(&measured.account),
            started,
            made,
            record,
        })
    }

    /// Puts a stored compaction on record, in the catalog first, and tells of it. Under a lease that
    /// was lost nothing goes on record.
    pub(super) async fn commit_stored(
        &self,
        scope: &EventScope,
        stored: StoredCompaction,
        lease: Option<&Lease>,
    ) -> Result<CommittedCompaction, Error> {
        match lease {
            Some(lease) => {
                self.catalog
                    .save_record_under(lease, &stored.record)
                    .await?
            }
            None => self.catalog.save_record(&stored.record).await?,
        }
        self.archive_record(&stored.record).await?;
        self.emit_committed(scope, &stored);
        Ok(CommittedCompaction {
            compaction: stored.made,
            receipt: stored.record.receipt,
        })
    }

    async fn archive_original(
        &self,
        measured: &MeasuredRequest<'_>,
        continues: InputRelation,
        scope: &EventScope,
        made: &Compaction,
    ) -> Result<Option<PackInfo>, Error> {
        let Some(archive) = &self.archive else {
            self.emit_of_receipt(scope, &made.receipt, EventKind::NotArchived);
            return Ok(None);
        };
        let stored = self.bytes_to_archive(&measured.request.original);
        let pack = match self.archived_before(made, &stored).await {
            Some(pack) => archive.info(&pack).await?,
            None => {
                // What began anew resembles nothing, and must not keep what was before alive.
                let latest = measured
                    .latest
                    .as_ref()
                    .filter(|_| continues != InputRelation::Fresh);
                let base = latest.and_then(|r| r.input_pack);
                archive.put(stored, base.as_ref()).await?
            }
        };
        let archived = EventKind::Archived {
            pack: pack.id.to_string(),
            stored_bytes: pack.stored_bytes,
        };
        self.emit_of_receipt(scope, &made.receipt, archived);
        Ok(Some(pack))
    }

    /// Keeps what models said, so that the receipt can be proved again without asking them.
    async fn archive_advice(
        &self,
        measured: &MeasuredRequest<'_>,
        made: &Compaction,
    ) -> Result<Option<PackId>, Error> {
        let Some(archive) = &self.archive else {
            return Ok(None);
        };
        if measured.advice == ModelAdvice::default() {
            return Ok(None);
        }
        let bytes = serde_json::to_vec(&measured.advice).map_err(|source| Error::Record {
            receipt: made.receipt.receipt_id.clone(),
            source,
        })?;
        Ok(Some(archive.put(Bytes::from(bytes), None).await?.id))
    }

    /// The pack of the same compaction made before: an original is kept once.
    async fn archived_before(&self, made: &Compaction, stored: &Bytes) -> Option<PackId> {
        let record = self.catalog.find_record(&made.receipt.receipt_id).await;
        let pack = record.ok()??.input_pack?;
        let before = self.archive.as_ref()?.get(&pack).await.ok()?;
        (before == *stored).then_some(pack)
    }

    /// How the input relates to the session's last one: a file that still opens with all of it
    /// carries the whole session by itself; one that opens with its view continues from there.
    async fn input_relation(&self, measured: &MeasuredRequest<'_>) -> InputRelation {
        let (Some(archive), Some(latest)) = (&self.archive, &measured.latest) else {
            return InputRelation::Fresh;
        };
        // What opens with a view and what came after it goes on from that view as well.
        let is_whole = latest.continues != InputRelation::View || measured.prior.is_none();
        if let Some(pack) = latest.input_pack.filter(|_| is_whole)
            && let Ok(before) = archive.get(&pack).await
            && self
                .bytes_to_archive(&measured.request.original)
                .starts_with(&before)
        {
            return InputRelation::Transcript;
        }
        match measured.prior {
            Some(_) => InputRelation::View,
            None => InputRelation::Fresh,
        }
    }

    /// What goes into the archive for an original.
    pub(super) fn bytes_to_archive(&self, original: &Bytes) -> Bytes {
        match (&self.archive_mode, std::str::from_utf8(original)) {
            (ArchiveMode::Redacted(redactor), Ok(text)) => {
                let redacted = redactor.redact_json(text, &mut RedactionCounts::new());
                Bytes::from(redacted.into_owned().into_bytes())
            }
            _ => original.clone(),
        }
    }

    fn emit_committed(&self, scope: &EventScope, stored: &StoredCompaction) {
        let receipt = &stored.made.receipt;
        for kind in stored.events() {
            self.emit_of_receipt(scope, receipt, kind);
        }
    }
}

/// Makes the record of a compaction: the engine's receipt with what only the runtime knows.
fn build_record(
    measured: &MeasuredRequest<'_>,
    made: &Compaction,
    fields: RuntimeFields,
    continues: InputRelation,
) -> Result<CompactionRecord, Error> {
    let receipt = StoredReceipt::new(&made.receipt, &fields);
    Ok(CompactionRecord {
        receipt_id: made.receipt.receipt_id.clone(),
        session_id: measured.session_id.clone(),
        created_at: fields.created_at,
        summary_version: made.receipt.summary_version,
        previous: made.receipt.previous.clone(),
        input_pack: fields.archive.map(|packs| packs.pack),
        format: measured.request.format.to_owned(),
        receipt: receipt.map_err(|source| Error::Record {
            receipt: made.receipt.receipt_id.clone(),
            source,
        })?,
        entry_hashes: measured.hashes.clone(),
        view_hashes: made.view_identity.iter().map(|(hash, _)| *hash).collect(),
        new_from: measured.new_from(),
        continues,
        source_chain: Some(measured.source_chain),
    })
}

impl MeasuredRequest<'_> {
    /// The first entry that the view before did not show.
    fn new_from(&self) -> u64 {
        let Some(prior) = &self.prior else { return 0 };
        let conversation = &*self.conversation;
        let common = compact_core::engine::common_prefix(conversation, &self.hashes, prior);
        (conversation.leading_instructions() + common) as u64
    }
}
