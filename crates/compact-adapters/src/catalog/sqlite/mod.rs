//! The catalog in an embedded SQLite database: one file, private, shared by every process of a user.
//!
//! Calls run on the blocking pool, one at a time per process; between processes SQLite's own locks
//! and its write-ahead log keep order. Session ids are bound values, never part of a statement or a
//! path.

mod lease;
mod row;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use compact_core::identity::Chain;
use compact_runtime::port::catalog::{
    Attempt, CatalogError, CompactionRecord, LEASE_TIME, Lease, MIN_PREFIX, SessionCatalog,
    SessionInfo,
};
use compact_runtime::port::clock::{Clock, SystemClock};
use rusqlite::{Connection, OptionalExtension, Params, Row, Transaction, TransactionBehavior};
use serde_json::Value;

use crate::database::{self, DatabaseOpenError};
use crate::waiting::run_waiting;

/// A catalog in one file.
#[derive(Clone, Debug)]
pub struct SqliteCatalog {
    file: Arc<PathBuf>,
    connection: Arc<Mutex<Connection>>,
    lease_time: Duration,
    clock: Arc<dyn Clock>,
}

impl SqliteCatalog {
    /// Returns the catalog with leases of another length.
    pub fn with_lease_time(self, time: Duration) -> SqliteCatalog {
        SqliteCatalog {
            lease_time: time,
            ..self
        }
    }

    /// Reads the time of leases from `clock` instead of the machine's.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> SqliteCatalog {
        SqliteCatalog { clock, ..self }
    }

    /// Opens `file`, creating it (0600) and the directories above it (0700) if they are not there,
    /// and brings its schema up to date.
    pub fn open(file: &Path) -> Result<SqliteCatalog, CatalogError> {
        SqliteCatalog::from_opened(file, schema::open(file))
    }

    /// Opens `file` as it is where it cannot be written to: on a full disk, or one that may only be read.
    pub fn open_to_read(file: &Path) -> Result<SqliteCatalog, CatalogError> {
        SqliteCatalog::from_opened(file, schema::open_to_read(file))
    }

    /// Returns whether no compaction is on record.
    pub(crate) fn is_empty(&self) -> Result<bool, CatalogError> {
        const SELECT: &str = "SELECT NOT EXISTS (SELECT 1 FROM receipts)";
        let connection = self.connection.lock();
        let connection = connection.unwrap_or_else(PoisonError::into_inner);
        let found = connection.query_row(SELECT, [], |row| row.get(0));
        found.map_err(|error| explain_sqlite_error(&self.file, Access::Read.verb(), error))
    }

    /// Fails where a page of the file is not as SQLite left it.
    pub async fn check_integrity(&self) -> Result<(), CatalogError> {
        let found: String = self
            .run_transaction(Access::Read, |t| {
                t.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            })
            .await?;
        match found.as_str() {
            "ok" => Ok(()),
            _ => Err(CatalogError::Damaged {
                place: self.file.display().to_string(),
                reason: found,
            }),
        }
    }

    fn from_opened(
        file: &Path,
        opened: Result<Connection, DatabaseOpenError>,
    ) -> Result<SqliteCatalog, CatalogError> {
        match opened {
            Ok(connection) => Ok(SqliteCatalog {
                file: Arc::new(file.to_owned()),
                connection: Arc::new(Mutex::new(connection)),
                lease_time: LEASE_TIME,
                clock: Arc::new(SystemClock),
            }),
            Err(DatabaseOpenError::Sql(error)) => Err(explain_sqlite_error(file, "open", error)),
            Err(DatabaseOpenError::Io(source)) => Err(sqlite_catalog_error(file, "open", source)),
            Err(DatabaseOpenError::Newer(found)) => Err(CatalogError::Newer {
                place: file.display().to_string(),
                found,
                known: schema::KNOWN_VERSION,
            }),
        }
    }

    /// Runs `work` where it may wait, in one transaction that is rolled back when it fails.
    async fn run_transaction<T: Send + 'static>(
        &self,
        access: Access,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, CatalogError> {
        let connection = Arc::clone(&self.connection);
        let task = run_waiting(move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            if access == Access::Lease {
                connection.pragma_update(None, "synchronous", "NORMAL")?;
            }
            let result = transact(&mut connection, access, work);
            if access == Access::Lease {
                connection.pragma_update(None, "synchronous", "FULL")?;
            }
            result
        });
        let done = task
            .await
            .map_err(|source| sqlite_catalog_error(&self.file, access.verb(), source))?;
        done.map_err(|error| explain_sqlite_error(&self.file, access.verb(), error))
    }

    async fn select_records(
        &self,
        clause: &'static str,
        key: &str,
    ) -> Result<Vec<CompactionRecord>, CatalogError> {
        let key = key.to_owned();
        self.run_transaction(Access::Read, move |t| records_where(t, clause, &key))
            .await
    }
}

/// Runs `work` in one transaction that is rolled back when it fails.
fn transact<T>(
    connection: &mut Connection,
    access: Access,
    work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let transaction = connection.transaction_with_behavior(access.behavior())?;
    let result = work(&transaction)?;
    transaction.commit()?;
    Ok(result)
}

/// The purpose of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    /// Writing what a power cut ends anyway, since it ends the process that holds it: it need not be on disk.
    Lease,
}

impl Access {
    /// Returns how a transaction begins. A writer takes the lock at once, because one that upgrades later
    /// could not wait for it.
    fn behavior(self) -> TransactionBehavior {
        match self {
            Access::Read => TransactionBehavior::Deferred,
            Access::Write | Access::Lease => TransactionBehavior::Immediate,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write | Access::Lease => "write to",
        }
    }
}

#[async_trait]
impl SessionCatalog for SqliteCatalog {
    async fn save_record(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        let record = record.clone();
        self.run_transaction(Access::Write, move |t| add_record(t, &record))
            .await
    }

    async fn save_record_under(
        &self,
        lease: &Lease,
        record: &CompactionRecord,
    ) -> Result<(), CatalogError> {
        let (mine, record) = (lease.clone(), record.clone());
        let is_mine = self.run_transaction(Access::Write, move |t| {
            let is_mine = lease::is_held(t, &mine)?;
            if is_mine {
                add_record(t, &record)?;
            }
            Ok(is_mine)
        });
        match is_mine.await? {
            true => Ok(()),
            false => Err(CatalogError::Fenced {
                session: lease.session_id.clone(),
            }),
        }
    }

    fn lease_time(&self) -> Duration {
        self.lease_time
    }

    async fn claim(&self, session: &str) -> Result<Option<Lease>, CatalogError> {
        let (session, clock, time) = (session.to_owned(), self.clock.clone(), self.lease_time);
        // The time is read under the lock: whoever waited for it long claims as of then.
        self.run_transaction(Access::Lease, move |t| {
            lease::claim(t, session, clock.now(), time)
        })
        .await
    }

    async fn renew(&self, lease: &Lease) -> Result<bool, CatalogError> {
        let (lease, clock, time) = (lease.clone(), self.clock.clone(), self.lease_time);
        self.run_transaction(Access::Lease, move |t| {
            lease::renew(t, &lease, clock.now(), time)
        })
        .await
    }

    async fn release(&self, lease: &Lease) -> Result<(), CatalogError> {
        let lease = lease.clone();
        self.run_transaction(Access::Lease, move |t| lease::release(t, &lease))
            .await
    }

    async fn find_record(
        &self,
        receipt_id: &str,
    ) -> Result<Option<CompactionRecord>, CatalogError> {
        const CLAUSE: &str = "WHERE receipt_id = ? ORDER BY seq LIMIT 1";
        let exact = self.select_records(CLAUSE, receipt_id).await?.pop();
        if exact.is_some() || receipt_id.chars().count() < MIN_PREFIX {
            return Ok(exact);
        }
        let prefix = receipt_id.to_owned();
        let ids = self
            .run_transaction(Access::Read, move |t| ids_with_prefix(t, &prefix))
            .await?;
        match ids.as_slice() {
            [] => Ok(None),
            [id] => Ok(self.select_records(CLAUSE, id).await?.pop()),
            _ => Err(CatalogError::Ambiguous {
                prefix: receipt_id.to_owned(),
            }),
        }
    }

    async fn latest_record(&self, session: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        let last = self.select_records("WHERE name = ? ORDER BY seq DESC LIMIT 1", session);
        Ok(last.await?.pop())
    }

    async fn session_records(&self, session: &str) -> Result<Vec<CompactionRecord>, CatalogError> {
        self.select_records("WHERE name = ? ORDER BY seq", session)
            .await
    }

    async fn find_sessions(
        &self,
        histories: &[Chain],
    ) -> Result<Vec<(String, Chain)>, CatalogError> {
        // A session is asked about with every one of its prefixes. DISTINCT would make a table for each question.
        const SELECT: &str = "SELECT name FROM receipts \
             JOIN sessions ON id = session WHERE source_chain = ?";
        let histories = histories.to_vec();
        self.run_transaction(Access::Read, move |t| {
            let mut select = t.prepare_cached(SELECT)?;
            let mut found = Vec::new();
            for chain in histories {
                let rows = select.query_map([chain.0], |row| row.get(0))?;
                let names = rows.collect::<rusqlite::Result<BTreeSet<String>>>()?;
                found.extend(names.into_iter().map(|name| (name, chain)));
            }
            Ok(found)
        })
        .await
    }

    async fn sessions(&self) -> Result<Vec<SessionInfo>, CatalogError> {
        self.run_transaction(Access::Read, all_sessions).await
    }

    async fn save_event(&self, session: &str, event: &Value) -> Result<(), CatalogError> {
        const INSERT: &str = "INSERT INTO events (session, event) \
             VALUES ((SELECT id FROM sessions WHERE name = ?), ?)";
        let (session, event) = (session.to_owned(), event.to_string());
        self.run_transaction(Access::Write, move |t| {
            add_session(t, &session)?;
            t.execute(INSERT, (session, event)).map(drop)
        })
        .await
    }

    async fn events(&self, session: &str) -> Result<Vec<Value>, CatalogError> {
        const SELECT: &str = "SELECT event FROM events JOIN sessions ON id = session \
             WHERE name = ? ORDER BY seq";
        let session = session.to_owned();
        self.run_transaction(Access::Read, move |t| {
            query_all(t, SELECT, [session], |r| row::read_json(r, 0))
        })
        .await
    }

    async fn save_attempt(&self, session: &str, attempt: &Attempt) -> Result<(), CatalogError> {
        const INSERT: &str = "INSERT INTO attempts (session, at, turn, outcome, tokens) \
             VALUES ((SELECT id FROM sessions WHERE name = ?), ?, ?, ?, ?)";
        let (session, attempt) = (session.to_owned(), attempt.clone());
        self.run_transaction(Access::Write, move |t| {
            add_session(t, &session)?;
            t.execute(INSERT, row::attempt_values(&session, &attempt))
                .map(drop)
        })
        .await
    }

    async fn last_attempt(&self, session: &str) -> Result<Option<Attempt>, CatalogError> {
        const SELECT: &str = "SELECT at, turn, outcome, tokens FROM attempts \
             JOIN sessions ON id = session WHERE name = ? ORDER BY seq DESC LIMIT 1";
        let session = session.to_owned();
        self.run_transaction(Access::Read, move |t| {
            t.query_row(SELECT, [session], row::read_attempt).optional()
        })
        .await
    }

    async fn remove_receipt(&self, session: &str, receipt_id: &str) -> Result<(), CatalogError> {
        const DELETE: &str = "DELETE FROM receipts WHERE receipt_id = ? \
             AND session = (SELECT id FROM sessions WHERE name = ?)";
        let key = (receipt_id.to_owned(), session.to_owned());
        self.run_transaction(Access::Write, move |t| t.execute(DELETE, key).map(drop))
            .await
    }

    async fn remove_session(&self, session: &str) -> Result<(), CatalogError> {
        let session = session.to_owned();
        self.run_transaction(Access::Write, move |t| {
            t.execute("DELETE FROM sessions WHERE name = ?", [session])
                .map(drop)
        })
        .await
    }
}

fn add_record(t: &Transaction<'_>, record: &CompactionRecord) -> rusqlite::Result<()> {
    add_session(t, &record.session_id)?;
    row::with_record_values(record, |values| t.execute(row::INSERT, values)).map(drop)
}

fn add_session(t: &Transaction<'_>, name: &str) -> rusqlite::Result<()> {
    t.execute(
        "INSERT INTO sessions (name) VALUES (?) ON CONFLICT DO NOTHING",
        [name],
    )
    .map(drop)
}

fn records_where(
    t: &Transaction<'_>,
    clause: &str,
    key: &str,
) -> rusqlite::Result<Vec<CompactionRecord>> {
    let columns = row::COLUMNS;
    let select = format!("SELECT {columns} FROM receipts JOIN sessions ON id = session {clause}");
    query_all(t, &select, [key], row::read_record)
}

/// Returns the receipt ids that start with `prefix`; two are enough to know that it is ambiguous.
fn ids_with_prefix(t: &Transaction<'_>, prefix: &str) -> rusqlite::Result<Vec<String>> {
    const SELECT: &str = "SELECT DISTINCT receipt_id FROM receipts \
         WHERE receipt_id >= ? AND receipt_id < ? LIMIT 2";
    let end = format!("{prefix}{}", char::MAX);
    query_all(t, SELECT, [prefix, &end], |row| row.get(0))
}

fn all_sessions(t: &Transaction<'_>) -> rusqlite::Result<Vec<SessionInfo>> {
    // With a bare max(), SQLite takes the other columns from the row that has it.
    const SELECT: &str = "SELECT name, count(seq), receipt_id, created_at, format, max(seq) \
         FROM sessions LEFT JOIN receipts ON session = id GROUP BY id ORDER BY id";
    query_all(t, SELECT, [], |row| {
        Ok(SessionInfo {
            session_id: row.get(0)?,
            compactions: row::read_number(row, 1)?,
            last_receipt: row.get(2)?,
            last_at: row.get(3)?,
            format: row.get(4)?,
        })
    })
}

fn query_all<T>(
    t: &Transaction<'_>,
    select: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    t.prepare_cached(select)?.query_map(params, read)?.collect()
}

/// Tells a damaged file from a failure of the moment, and a disk that takes no more from others.
fn explain_sqlite_error(file: &Path, verb: &str, error: rusqlite::Error) -> CatalogError {
    if database::is_damage(&error) {
        return CatalogError::Damaged {
            place: file.display().to_string(),
            reason: error.to_string(),
        };
    }
    match database::may_lack_space(&error) {
        true => sqlite_catalog_error(file, verb, format!("the disk may be full: {error}")),
        false => sqlite_catalog_error(file, verb, error),
    }
}

fn sqlite_catalog_error(
    file: &Path,
    verb: &str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> CatalogError {
    CatalogError::Store {
        action: format!("{verb} catalog {}", file.display()),
        source: source.into(),
    }
}
