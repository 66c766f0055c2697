//! Leases in the database. Time is that of the catalog's clock: the machine's, which all who open the
//! file share.

use std::time::Duration;

use compact_runtime::port::catalog::{Lease, MAX_LEASE_TIMES};
use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, params};

/// Takes the lease of a session that nobody holds.
pub(super) fn claim(
    t: &Transaction<'_>,
    session_id: String,
    now: Timestamp,
    time: Duration,
) -> rusqlite::Result<Option<Lease>> {
    const FORGET: &str = "DELETE FROM leases WHERE session = ? AND NOT (? < ends AND ends <= ?)";
    const INSERT: &str = "INSERT INTO leases (session, ends) VALUES (?, ?) \
         ON CONFLICT DO NOTHING RETURNING fence";
    let furthest = end_of(now, time * MAX_LEASE_TIMES);
    t.execute(FORGET, params![session_id, now.as_millisecond(), furthest])?;
    let end = end_of(now, time);
    let fence = t.query_row(INSERT, params![session_id, end], |row| row.get(0));
    Ok(fence.optional()?.map(|fence: i64| Lease {
        session_id,
        fence: fence.unsigned_abs(),
    }))
}

/// Lets a lease last from now on.
pub(super) fn renew(
    t: &Transaction<'_>,
    lease: &Lease,
    now: Timestamp,
    time: Duration,
) -> rusqlite::Result<bool> {
    const UPDATE: &str = "UPDATE leases SET ends = ? WHERE fence = ?";
    let renewed = t.execute(UPDATE, params![end_of(now, time), signed_fence(lease)])?;
    Ok(renewed > 0)
}

/// Gives a lease back.
pub(super) fn release(t: &Transaction<'_>, lease: &Lease) -> rusqlite::Result<()> {
    t.execute("DELETE FROM leases WHERE fence = ?", [signed_fence(lease)])
        .map(drop)
}

/// Returns true while nobody else was granted it.
pub(super) fn is_held(t: &Transaction<'_>, lease: &Lease) -> rusqlite::Result<bool> {
    let mut select = t.prepare_cached("SELECT 1 FROM leases WHERE fence = ?")?;
    select.exists([signed_fence(lease)])
}

fn signed_fence(lease: &Lease) -> i64 {
    i64::try_from(lease.fence).unwrap_or(i64::MAX)
}

/// Returns the time in so long, in milliseconds since 1970.
fn end_of(now: Timestamp, time: Duration) -> i64 {
    let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    now.as_millisecond().saturating_add(time)
}
