//! The catalog: what happened in each session, queryable.
//!
//! It holds records and pointers, never conversation text: the bytes are in the archive. A session
//! id is any text a host likes to use; it is a key here and nothing else.

mod branch;
pub mod conformance;
mod copy;
mod find;
mod lease;
mod memory;
mod record;
mod stored_receipt;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use compact_core::error::Hinted;
use compact_core::identity::Chain;
use serde_json::Value;

use crate::port::archive::PackId;

pub(crate) use branch::{BranchHistory, distinct_histories};
pub use branch::{branch_ends, live_ends, widest_ends};
pub use copy::{CopiedRecords, SessionRenames, copy_catalog, find_missing_records};
pub(crate) use find::{HISTORY_SIGN, RECEIPT_SIGN, SESSION_SIGN};
pub use find::{NamedRecord, find_named_record, find_pointed_record};
pub use lease::{LEASE_TIME, Lease, MAX_LEASE_TIMES};
pub use memory::MemoryCatalog;
pub use record::{Attempt, CompactionRecord, InputRelation, SessionInfo};
pub use stored_receipt::{ArchivedPacks, ArchivedSize, ReceiptTerms, RuntimeFields, StoredReceipt};

/// The shortest prefix of a receipt id that [`SessionCatalog::find_record`] looks up.
pub const MIN_PREFIX: usize = 8;

/// Why the catalog could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.sentence())]
#[non_exhaustive]
pub enum CatalogError {
    /// A prefix that names more than one receipt or session.
    Ambiguous {
        /// The prefix asked for.
        prefix: String,
    },
    /// A session that is called like a receipt, or the beginning of its id.
    ReceiptOrSession {
        /// The name asked for.
        name: String,
        /// The receipt that begins so.
        receipt: String,
    },
    /// `session:NAME` where one session is called `NAME` and another one `session:NAME`.
    TwoSessions {
        /// The name asked for, which is that of a session.
        name: String,
        /// The last receipt of that session.
        receipt: String,
        /// The name of the other.
        session: String,
        /// Its last receipt.
        latest: String,
    },
    /// The data was written by a later version of this program.
    Newer {
        /// The file or server.
        place: String,
        /// Its schema version.
        found: u32,
        /// The newest that this version reads.
        known: u32,
    },
    /// The data cannot be read.
    Damaged {
        /// The file or server.
        place: String,
        /// What the check found.
        reason: String,
    },
    /// There is an archive, and what says whose it is has gone.
    Lost {
        /// The file.
        place: String,
        /// Whether it is missing or empty.
        state: &'static str,
    },
    /// A lease ran out and somebody else has it, or had it: what was made under it does not count.
    Fenced {
        /// The session.
        session: String,
    },
    /// The database is not as it was configured, or lets nobody in who comes like this.
    Refused {
        /// What was being done.
        action: String,
        /// What is wrong, and where.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// The database does not answer.
    Unreachable {
        /// What was being done.
        action: String,
        /// Who does not answer, and how it shows.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// The database behind the catalog failed.
    Store {
        /// What was being done, and to what.
        action: String,
        /// The database's own error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Hinted for CatalogError {
    fn message(&self) -> String {
        match self {
            CatalogError::Ambiguous { prefix } => {
                format!("`{prefix}` is ambiguous: give more characters of the id")
            }
            CatalogError::ReceiptOrSession { name, receipt, .. } => {
                format!("`{name}` is a session, and the receipt {receipt} begins so")
            }
            CatalogError::TwoSessions { name, session, .. } => {
                format!("`{name}` is a session, and `{session}` is another")
            }
            CatalogError::Newer {
                place,
                found,
                known,
            } => format!(
                "catalog {place} has schema {found}, this version knows up to {known}: \
                 upgrade Compact or set COMPACT_STORAGE_PATH to another directory"
            ),
            CatalogError::Damaged { place, reason } => {
                format!("catalog {place} is damaged ({reason})")
            }
            CatalogError::Lost { place, state } => {
                format!("catalog {place} is {state}, and the archive beside it is not")
            }
            CatalogError::Fenced { session } => format!(
                "another process has taken over session '{session}': nothing was recorded, its \
                 view counts"
            ),
            CatalogError::Refused { action, reason, .. }
            | CatalogError::Unreachable { action, reason, .. } => {
                format!("cannot {action}: {reason}")
            }
            CatalogError::Store { action, .. } => format!("cannot {action}"),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            CatalogError::Damaged { .. } => {
                Some("rebuild it from the archive, which is not affected".to_owned())
            }
            CatalogError::Lost { .. } => Some("rebuild it from the archive".to_owned()),
            CatalogError::ReceiptOrSession { name, receipt } => Some(format!(
                "write {} for the receipt, {SESSION_SIGN}{name} for the session",
                signed_receipt(receipt, name)
            )),
            CatalogError::TwoSessions {
                receipt, latest, ..
            } => Some(format!(
                "write {RECEIPT_SIGN}{receipt} or {HISTORY_SIGN}{receipt} for the first, \
                 {RECEIPT_SIGN}{latest} or {HISTORY_SIGN}{latest} for the other"
            )),
            CatalogError::Refused { hint, .. } | CatalogError::Unreachable { hint, .. } => {
                Some(hint.clone())
            }
            CatalogError::Ambiguous { .. }
            | CatalogError::Newer { .. }
            | CatalogError::Fenced { .. }
            | CatalogError::Store { .. } => None,
        }
    }
}

/// How a receipt is written that a session is called like: by its whole id, or its beginning where that is the name.
fn signed_receipt(receipt: &str, name: &str) -> String {
    let whole = format!("{RECEIPT_SIGN}{receipt}");
    let shown = if whole == name { SHORT_ID } else { usize::MAX };
    let id: String = receipt.chars().take(shown).collect();
    format!("{RECEIPT_SIGN}{id}")
}

/// How much of an id is shown where the whole will not do: as good as unique.
const SHORT_ID: usize = 16;

/// Remembers sessions. Implementations are safe to share between tasks and processes.
#[async_trait]
pub trait SessionCatalog: Send + Sync {
    /// Stores a compaction whole or not at all. A receipt is recorded once per session: recording
    /// it again changes nothing, except that packs it had not named before are filled in.
    async fn save_record(&self, record: &CompactionRecord) -> Result<(), CatalogError>;

    /// The same for the holder of a lease. Refuses one that somebody else was granted since, whether
    /// that one still has it or not: a late writer changes nothing.
    async fn save_record_under(
        &self,
        lease: &Lease,
        record: &CompactionRecord,
    ) -> Result<(), CatalogError>;

    /// How long a lease lasts that is not renewed.
    fn lease_time(&self) -> Duration {
        LEASE_TIME
    }

    /// Grants the lease of a session, unless somebody has it. Time is the catalog's own; a lease that
    /// ends further ahead than [`MAX_LEASE_TIMES`] lease times counts no more.
    async fn claim(&self, session: &str) -> Result<Option<Lease>, CatalogError>;

    /// Lets a lease last its time from now on. False when somebody else was granted it.
    async fn renew(&self, lease: &Lease) -> Result<bool, CatalogError>;

    /// Gives a lease back; one that is lost already is no error.
    async fn release(&self, lease: &Lease) -> Result<(), CatalogError>;

    /// The record of a receipt, by its id or a unique prefix of at least [`MIN_PREFIX`] characters.
    /// A receipt that several sessions share answers with the one that recorded it first.
    async fn find_record(&self, receipt_id: &str)
    -> Result<Option<CompactionRecord>, CatalogError>;

    /// The last compaction of a session.
    async fn latest_record(&self, session: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        Ok(self.session_records(session).await?.pop())
    }

    /// Every compaction of a session, the oldest first.
    async fn session_records(&self, session: &str) -> Result<Vec<CompactionRecord>, CatalogError>;

    /// The sessions that compacted one of these histories, each with the one that it compacted.
    async fn find_sessions(
        &self,
        histories: &[Chain],
    ) -> Result<Vec<(String, Chain)>, CatalogError>;

    /// Every session that has a record, an event or an attempt, the oldest first.
    async fn sessions(&self) -> Result<Vec<SessionInfo>, CatalogError>;

    /// Appends an event to a session.
    async fn save_event(&self, session: &str, event: &Value) -> Result<(), CatalogError>;

    /// The events of a session, the oldest first.
    async fn events(&self, session: &str) -> Result<Vec<Value>, CatalogError>;

    /// Appends the outcome of an attempt, so that the loop guard survives a restart.
    async fn save_attempt(&self, session: &str, attempt: &Attempt) -> Result<(), CatalogError>;

    /// The last attempt of a session.
    async fn last_attempt(&self, session: &str) -> Result<Option<Attempt>, CatalogError>;

    /// Every pack that some record names: what a clean-up of the archive must keep.
    async fn referenced_packs(&self) -> Result<Vec<PackId>, CatalogError> {
        let mut packs = BTreeSet::new();
        for session in self.sessions().await? {
            let chain = self.session_records(&session.session_id).await?;
            packs.extend(chain.iter().flat_map(CompactionRecord::packs));
        }
        Ok(packs.into_iter().collect())
    }

    /// Forgets one compaction of a session; one that is not there is no error.
    async fn remove_receipt(&self, session: &str, receipt_id: &str) -> Result<(), CatalogError>;

    /// Forgets a session with its records, events and attempts.
    async fn remove_session(&self, session: &str) -> Result<(), CatalogError>;
}
