//! Leases in the database. Time is that of the machine, which all of its users share.

use std::time::{Duration, SystemTime};

use compact_runtime::port::catalog::Lease;
use rusqlite::{OptionalExtension, Transaction, params};

/// Takes the lease of a session that nobody holds.
pub(super) fn claim(
    t: &Transaction<'_>,
    session_id: String,
    time: Duration,
) -> rusqlite::Result<Option<Lease>> {
    const FORGET: &str = "DELETE FROM leases WHERE session = ? AND ends <= ?";
    const INSERT: &str = "INSERT INTO leases (session, ends) VALUES (?, ?) \
         ON CONFLICT DO NOTHING RETURNING fence";
    let now = unix_milliseconds(Duration::ZERO);
    t.execute(FORGET, params![session_id, now])?;
    let end = unix_milliseconds(time);
    let fence = t.query_row(INSERT, params![session_id, end], |row| row.get(0));
    Ok(fence.optional()?.map(|fence: i64| Lease {
        session_id,
        fence: fence.unsigned_abs(),
    }))
}

/// Lets a lease last from now on.
pub(super) fn renew(t: &Transaction<'_>, lease: &Lease, time: Duration) -> rusqlite::Result<bool> {
    const UPDATE: &str = "UPDATE leases SET ends = ? WHERE fence = ?";
    let renewed = t.execute(
        UPDATE,
        params![unix_milliseconds(time), signed_fence(lease)],
    )?;
    Ok(renewed > 0)
}

/// Gives a lease back.
pub(super) fn release(t: &Transaction<'_>, lease: &Lease) -> rusqlite::Result<()> {
    t.execute("DELETE FROM leases WHERE fence = ?", [signed_fence(lease)])
        .map(drop)
}

/// True while nobody else was granted it.
pub(super) fn is_held(t: &Transaction<'_>, lease: &Lease) -> rusqlite::Result<bool> {
    let mut select = t.prepare_cached("SELECT 1 FROM leases WHERE fence = ?")?;
    select.exists([signed_fence(lease)])
}

fn signed_fence(lease: &Lease) -> i64 {
    i64::try_from(lease.fence).unwrap_or(i64::MAX)
}

/// The time in so long.
fn unix_milliseconds(from_now: Duration) -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let then = now.unwrap_or_default() + from_now;
    i64::try_from(then.as_millis()).unwrap_or(i64::MAX)
}
