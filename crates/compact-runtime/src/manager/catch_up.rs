//! What other processes did to a session: their compactions become this one's view as well.
//!
//! A record says what went into a compaction. Where that is how our own live context begins, the same
//! engine makes the same view of it, and from then on both processes send the same bytes. A record of
//! another history, or one that does not recompute here, is left alone: then this process compacts
//! for itself.

use compact_core::engine::{self, Outcome, Prior};
use compact_core::identity::EntryHash;
use compact_core::token::Account;
use compact_core::trigger::Decision;
use serde_json::Value;

use super::session::{Finished, Session, Snapshot};
use super::{Manager, history};
use crate::error::Error;
use crate::port::catalog::CompactionRecord;

impl Manager {
    /// Takes over what is on record and this session does not show yet. True when it shows more now.
    pub(crate) async fn catch_up(
        &self,
        session: &mut Session,
        decision: &Decision,
    ) -> Result<bool, Error> {
        let latest = self.catalog.latest(session.id()).await?;
        let known = session.previous();
        if latest.is_none_or(|latest| Some(latest.receipt_id) == known) {
            return Ok(false);
        }
        let chain = self.catalog.chain(session.id()).await?;
        let is_known = |record: &CompactionRecord| Some(&record.receipt_id) == known.as_ref();
        let after = chain.iter().position(is_known).map_or(0, |at| at + 1);
        let mut caught_up = false;
        for record in chain.iter().skip(after) {
            caught_up |= self.take_up(session, record, decision).await?;
        }
        Ok(caught_up)
    }

    /// True when a record that others made would become ours.
    pub(crate) async fn is_overtaken(&self, snapshot: &Snapshot) -> Result<bool, Error> {
        let latest = self.catalog.latest(&snapshot.id).await?;
        Ok(latest.is_some_and(|record| snapshot.is_continued_by(&record)))
    }

    async fn take_up(
        &self,
        session: &mut Session,
        record: &CompactionRecord,
        decision: &Decision,
    ) -> Result<bool, Error> {
        let is_exact = record.receipt.get("exact") != Some(&Value::Bool(false));
        let follows = record.previous == session.previous();
        if !is_exact || !follows {
            return Ok(false);
        }
        let Some(snapshot) = session.begun_with(record, decision) else {
            return Ok(false);
        };
        let Some(finished) = self.made_again(snapshot, record).await? else {
            return Ok(false);
        };
        // What cannot be joined to what came after stays on record: it is true of its own history.
        Ok(session.adopt(finished).is_ok())
    }

    /// The compaction of a record, made once more from what is archived.
    async fn made_again(
        &self,
        mut snapshot: Snapshot,
        record: &CompactionRecord,
    ) -> Result<Option<Finished>, Error> {
        let Ok(original) = self.input_of(record).await else {
            return Ok(None);
        };
        let (conversation, _) = history::read(&original.bytes, record)?;
        if EntryHash::all(&conversation.entries) != snapshot.hashes {
            return Ok(None);
        }
        snapshot.account = Account::of(
            &conversation,
            &snapshot.hashes,
            &*self.estimator,
            &mut Default::default(),
        );
        let rules = snapshot.rules.clone();
        let request = history::request_of(record, &conversation, &rules, &original.bytes);
        snapshot.budget = request.budget;
        let mut measured = self.measured(&snapshot, &request).await?;
        measured.advice = self.advice_of(record).await?;
        let Ok(Outcome::Compacted(made)) = engine::compact(&self.input(&measured)) else {
            return Ok(None);
        };
        if made.receipt.receipt_id != record.receipt_id {
            return Ok(None);
        }
        let prior = Prior {
            receipt_id: made.receipt.receipt_id.clone(),
            summary_version: made.receipt.summary_version,
            view: made.view_identity,
            ledger: measured.ledger,
        };
        Ok(Some(snapshot.finished(made.view, prior, made.receipt)))
    }
}
