//! The right to compact a session, for a while.

use std::time::Duration;

/// How long a lease lasts unless a catalog is told otherwise.
pub const LEASE_TIME: Duration = Duration::from_secs(15);

/// The right to compact a session. Whoever is granted one has a higher fence than all before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub session_id: String,
    /// Tells this lease from every other.
    pub fence: u64,
}
