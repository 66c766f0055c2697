//! Ledgers of the latest compactions, so that what goes on from one of them need not draw it again.
//!
//! A ledger follows from what is archived: where it is not kept here, it is drawn from there. It is kept only
//! where both come to the same: the archive has the exact originals, and the same rules redact what is drawn.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use compact_core::ledger::Ledger;
use compact_core::receipt::Receipt;

use super::{ArchiveMode, Manager};
use crate::port::catalog::CompactionRecord;

/// Ledgers of so many sessions are kept. One is as large as the names and sentences of its session.
const MOST: usize = 4;

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
    pub(super) fn keep_ledger(&self, receipt: &Receipt, ledger: &Arc<Ledger>) {
        if self.archive.is_some() && matches!(self.archive_mode, ArchiveMode::Exact) {
            self.ledgers.keep(receipt, Arc::clone(ledger));
        }
    }

    /// The ledger of a compaction on record, if it is kept and the archive still has what it was drawn from.
    pub(super) async fn kept_ledger(&self, record: &CompactionRecord) -> Option<Arc<Ledger>> {
        let (archive, pack) = (self.archive.as_ref()?, record.input_pack.as_ref()?);
        if !record.is_exact() || !self.is_same_redaction(record) {
            return None;
        }
        let ledger = self.ledgers.find(&record.receipt_id)?;
        archive.info(pack).await.ok().map(|_| ledger)
    }
}
