//! The manager: runs the engine and commits what it made.
//!
//! Order of a commit: archive the original → record the receipt → emit events → hand out the view.
//! A failure before the record leaves everything as it was; sinks are told and never asked.

mod archived_state;
mod build;
mod catch_up;
mod clearing;
mod commit;
mod count;
pub(crate) mod emit;
pub(crate) mod gate;
mod job;
mod kept_ledger;
pub(crate) mod lease;
mod lifetime;
pub(crate) mod lineage;
mod model_summary;
pub(crate) mod outcome;
pub(crate) mod protect;
mod remember;
mod request;
pub(crate) mod restore;
pub(crate) mod session_driver;
pub(crate) mod session_state;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use compact_core::engine::ViewBounds;
use compact_core::identity::EntryHash;
use compact_core::message::Conversation;
use compact_core::policy::Policy;
use compact_core::redact::Redactor;
use compact_core::token::{Estimator, TokenAccount, Tokens};

use crate::error::Error;

use crate::port::archive::ArchiveStore;
use crate::port::catalog::SessionCatalog;
use crate::port::clock::Clock;
use crate::port::embedder::Embedder;
use crate::port::event::EventSink;
use crate::port::summarizer::Summarizer;
use kept_ledger::KeptLedgers;

pub use archived_state::ArchivedState;
pub use commit::{ArchiveMode, CommittedCompaction};
pub use job::{CompactionJob, MeasuredRequest};
pub use lifetime::{find_folder, is_measure};
pub use lineage::{namesake_opening, new_session_name};
pub use model_summary::ModelAdvice;
pub use outcome::{read_record, write_record};
pub use remember::MemoryLayers;
pub use request::CompactionRequest;
pub use restore::{FieldMismatch, RerunObstacle, RestoredOriginal, VerificationReport, VerifiedBy};
pub use session_state::{ENTRIES_FORMAT, Preflight, SessionState, serialize_entries};

/// An estimate of at least this share of what a provider counts is good enough.
const AGREEMENT: f64 = 0.9;

/// The outcome of an attempt at what does not fit whatever is done: the next process must find that out
/// for itself, or it would send it.
pub(super) const DOES_NOT_FIT: &str = "does_not_fit";

/// The outcome of an attempt that a store did not take: whether it does now is the next process's to find
/// out.
pub(super) const STORE_FAILED: &str = "store_failed";

/// The outcome that a person puts in the place of a failure: the next attempt may be made at once.
pub const RETRY_ASKED: &str = "retry_asked";

/// The event of a session that says why an attempt failed.
pub const FAILED_EVENT: &str = "compact.attempt_failed";

/// Runs compactions for any number of sessions. Its calls need a Tokio runtime with timers, as
/// `enable_all` gives: a lease is renewed while work goes on.
#[derive(Clone)]
pub struct Manager {
    pub(crate) archive: Option<Arc<dyn ArchiveStore>>,
    pub(crate) catalog: Arc<dyn SessionCatalog>,
    pub(crate) sink: Arc<dyn EventSink>,
    pub(crate) estimator: Arc<dyn Estimator>,
    pub(crate) policy: Policy,
    pub(crate) window: Tokens,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) archive_mode: ArchiveMode,
    pub(crate) summarizer: Option<Arc<dyn Summarizer>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ledgers: Arc<KeptLedgers>,
}

/// What came of a request.
#[derive(Debug)]
pub enum RequestOutcome {
    /// The history was within the budget already; nothing was written.
    Unchanged {
        /// The session's name.
        session_id: String,
        /// History tokens.
        tokens: Tokens,
        /// What it was allowed.
        budget: Tokens,
    },
    /// The summarizer failed, and the policy leaves the conversation to its host; nothing was written.
    Declined {
        /// The session's name.
        session_id: String,
        /// History tokens.
        tokens: Tokens,
        /// What it was to be brought to.
        budget: Tokens,
        /// Why.
        reason: String,
    },
    /// There is a view, and it is on record.
    Done(Box<CommittedCompaction>),
}

impl Manager {
    /// Compacts whatever the pressure, archives the original and records the receipt. Waits while
    /// another process compacts the same session.
    pub async fn compact(&self, request: &CompactionRequest<'_>) -> Result<RequestOutcome, Error> {
        self.measure(request).await?.compact().await
    }

    /// What bounds a view; in a window that is as much smaller as the provider counts more than the
    /// estimator.
    pub(crate) fn bounds(&self, account: &TokenAccount, reported: Tokens) -> ViewBounds<'_> {
        let share = account.total().0 as f64 / reported.0.max(1) as f64;
        let window = match share > AGREEMENT {
            true => self.window,
            false => Tokens((self.window.0 as f64 * share) as u64),
        };
        ViewBounds::from_account(window, &self.policy, account)
    }

    /// The most that a view may cost.
    pub fn largest_budget(&self, account: &TokenAccount) -> Tokens {
        ViewBounds::from_account(self.window, &self.policy, account).largest()
    }
}

fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// A name for the turn that a conversation is in: its latest user message.
fn turn_name(conversation: &Conversation, hashes: &[EntryHash]) -> String {
    conversation
        .entries
        .iter()
        .zip(hashes)
        .rev()
        .find(|(e, _)| e.is_user_message())
        .map_or_else(String::new, |(_, hash)| hash.to_string())
}
