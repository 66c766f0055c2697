//! The right to compact a session, for a while.

use std::time::Duration;

/// How long a lease lasts unless a catalog is told otherwise.
pub const LEASE_TIME: Duration = Duration::from_secs(15);

/// How many lease times ahead a lease ends at most. A holder sets its end one lease time ahead; an end
/// beyond two of them was set before the catalog's clock was set back, and nobody may be left to
/// renew it. Such a lease is none: it would block its session until that time comes again.
pub const MAX_LEASE_TIMES: u32 = 2;

/// The right to compact a session. Whoever is granted one has a higher fence than all before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The session.
    pub session_id: String,
    /// Tells this lease from every other.
    pub fence: u64,
}
