//! What other processes did to a session: their compactions become this one's view as well.
//!
//! A record says what went into a compaction, and the archive has the view that came out. Where the one
//! is how our own live context begins, the other is shown from then on, so both processes send the same
//! bytes, whatever the versions of their engines. A record of another history, one made under other
//! redaction rules, or one whose view cannot be had, is left alone: then this process compacts for itself.

use compact_core::engine::Prior;
use compact_core::identity::EntryHash;

use super::session_state::{FinishedCompaction, SessionSnapshot, SessionState, ViewBasis};
use super::{Manager, restore};
use crate::error::Error;
use crate::port::catalog::CompactionRecord;

impl Manager {
    /// Takes over what is on record and this session does not show yet. True when it shows more now.
    pub(crate) async fn catch_up(&self, session: &mut SessionState) -> Result<bool, Error> {
        let latest = self.catalog.latest_record(session.id()).await?;
        let known = session.previous_receipt();
        if latest.is_none_or(|latest| Some(latest.receipt_id) == known) {
            return Ok(false);
        }
        let chain = self.catalog.session_records(session.id()).await?;
        let is_known = |record: &CompactionRecord| Some(&record.receipt_id) == known.as_ref();
        let after = chain.iter().position(is_known).map_or(0, |at| at + 1);
        let mut caught_up = false;
        for record in chain.iter().skip(after) {
            caught_up |= self.adopt_record(session, record).await?;
        }
        Ok(caught_up)
    }

    /// True when a record that others made would become ours.
    pub(crate) async fn is_overtaken(&self, snapshot: &SessionSnapshot) -> Result<bool, Error> {
        let latest = self.catalog.latest_record(&snapshot.id).await?;
        let is_ours = |record: CompactionRecord| {
            snapshot.is_continued_by(&record) && self.is_same_redaction(&record)
        };
        Ok(latest.is_some_and(is_ours))
    }

    async fn adopt_record(
        &self,
        session: &mut SessionState,
        record: &CompactionRecord,
    ) -> Result<bool, Error> {
        let follows = record.previous == session.previous_receipt();
        if !record.is_exact() || !follows || !self.is_same_redaction(record) {
            return Ok(false);
        }
        let protected = self.protected_entries(session.id()).await?;
        if session.is_protected_left_out(record, &protected) {
            return Ok(false);
        }
        let Some(basis) = session.basis_of_record(record) else {
            return Ok(false);
        };
        let prior = session.prior().cloned();
        let Some(finished) = self.load_finished(basis, prior, record).await? else {
            return Ok(false);
        };
        // What cannot be joined to what came after stays on record: it is true of its own history.
        Ok(session.adopt(finished).is_ok())
    }

    /// The compaction of a record, as it is archived.
    async fn load_finished(
        &self,
        basis: ViewBasis,
        prior: Option<Prior>,
        record: &CompactionRecord,
    ) -> Result<Option<FinishedCompaction>, Error> {
        let Ok(original) = self.input_of(record).await else {
            return Ok(None);
        };
        let (conversation, rules) = restore::read_conversation(&original.bytes, record)?;
        if EntryHash::from_entries(&conversation.entries) != record.entry_hashes {
            return Ok(None);
        }
        let request = restore::request_of(record, &conversation, rules, &original.bytes);
        let mut job = self.measure_record(&request, record, prior).await?;
        let (Ok(Some(view)), Ok(receipt)) = (
            self.view_of(record, &mut job).await,
            record.receipt.to_receipt(),
        ) else {
            return Ok(None);
        };
        let prior = job.into_prior(&receipt, record.view_identity());
        Ok(Some(basis.finish(view, prior, receipt)))
    }
}
