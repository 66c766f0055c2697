//! Ledgers of the latest compactions, so that what goes on from one of them need not draw it again.
//!
//! A ledger follows from what is archived: where it is not kept here, it is drawn from there. It is kept only
//! where both come to the same: the archive has the exact originals, and the same rules redact what is drawn. That of a long
//! chain is kept beside the archive too, one for each session, so that a new process need not draw the whole chain again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use compact_core::ledger::Ledger;
use compact_core::receipt::{ENGINE, Receipt};
use serde::{Deserialize, Serialize};

use super::{ArchiveMode, Manager};
use crate::port::archive::PackId;
use crate::port::catalog::CompactionRecord;

/// Ledgers of so many sessions are kept. One is as large as the names and sentences of its session.
const MOST: usize = 4;

/// Shorter chains are drawn again in less time than a ledger of megabytes takes to be written and read.
const LONG_CHAIN: u32 = 4;

/// A ledger as it is kept beside the archive, with the compaction that it was made with.
#[derive(Serialize, Deserialize)]
struct StoredLedger<L> {
    /// Another version may draw another one.
    engine: String,
    receipt_id: String,
    ledger: L,
}

/// Where the ledger of a session is kept: the place of a receipt that none is called.
fn ledger_address(session: &str) -> PackId {
    PackId::of_record(session, "ledger")
}

/// The ledgers that were drawn last, with the receipts of their compactions. A receipt's id covers all that its
/// ledger was drawn from.
#[derive(Default)]
pub(crate) struct KeptLedgers(Mutex<VecDeque<(String, Arc<Ledger>)>>);

impl KeptLedgers {
    /// Keeps a ledger instead of the one that it goes on from.
    fn keep(&self, receipt: &Receipt, ledger: Arc<Ledger>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_older = |known: &String| {
            *known == receipt.receipt_id || Some(known) == receipt.previous.as_ref()
        };
        kept.retain(|(known, _)| !is_older(known));
        kept.push_back((receipt.receipt_id.clone(), ledger));
        let excess = kept.len().saturating_sub(MOST);
        kept.drain(..excess);
    }

    fn find(&self, receipt_id: &str) -> Option<Arc<Ledger>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut latest = kept.iter().rev();
        let (_, ledger) = latest.find(|(known, _)| known == receipt_id)?;
        Some(Arc::clone(ledger))
    }
}

impl Manager {
    /// Keeps the ledger of a compaction that went on record.
    pub(super) async fn keep_ledger(&self, session: &str, receipt: &Receipt, ledger: &Arc<Ledger>) {
        let Some(archive) = &self.archive else {
            return;
        };
        if !matches!(self.archive_mode, ArchiveMode::Exact) {
            return;
        }
        self.ledgers.keep(receipt, Arc::clone(ledger));
        if receipt.summary_version < LONG_CHAIN {
            return;
        }
        let stored = StoredLedger {
            engine: ENGINE.to_owned(),
            receipt_id: receipt.receipt_id.clone(),
            ledger: &**ledger,
        };
        // What cannot be kept is drawn again.
        if let Ok(packed) = rmp_serde::to_vec_named(&stored) {
            let address = ledger_address(session);
            let _ = archive.put_derived(&address, packed.into()).await;
        }
    }

    /// The ledger of a compaction on record, if it is kept and the archive still has what it was drawn from.
    pub(super) async fn kept_ledger(&self, record: &CompactionRecord) -> Option<Arc<Ledger>> {
        let (archive, pack) = (self.archive.as_ref()?, record.input_pack.as_ref()?);
        if !record.is_exact() || !self.is_same_redaction(record) {
            return None;
        }
        let ledger = match self.ledgers.find(&record.receipt_id) {
            Some(ledger) => ledger,
            None => self.stored_ledger(record).await?,
        };
        archive.info(pack).await.ok().map(|_| ledger)
    }

    /// The ledger of a compaction that is kept beside the archive.
    async fn stored_ledger(&self, record: &CompactionRecord) -> Option<Arc<Ledger>> {
        if record.summary_version < LONG_CHAIN || !matches!(self.archive_mode, ArchiveMode::Exact) {
            return None;
        }
        let address = ledger_address(&record.session_id);
        let packed = self.archive.as_ref()?.get_derived(&address).await.ok()??;
        let stored: StoredLedger<Ledger> = rmp_serde::from_slice(&packed).ok()?;
        let is_known = stored.engine == ENGINE && stored.receipt_id == record.receipt_id;
        is_known.then(|| Arc::new(stored.ledger))
    }
}
