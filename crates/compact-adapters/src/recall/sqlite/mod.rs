//! The recall index in a SQLite file of its own, next to the catalog: FTS5 for the terms, the texts
//! compressed beside them.
//!
//! Everything in it comes from the archive, so a file that is damaged is thrown away and filled
//! again. FTS5 answers which passages hold a term; which of them matter is summed up here, because
//! its own ranking reads every passage that holds any term, however common.

mod find;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use compact_runtime::port::index::{
    Addition, Found, IndexError, IndexedEntry, Lookup, RecallIndex,
};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::database::{self, Durability, OpenError};

const MIGRATIONS: [&str; 1] = [include_str!("0001_init.sql")];

/// Terms that wait in memory before FTS5 writes them: larger batches merge less.
const PENDING_BYTES: i64 = 16 << 20;

/// Fast rather than small: texts are read one by one and often.
const LEVEL: i32 = 3;

/// An index in one file.
#[derive(Clone, Debug)]
pub struct SqliteIndex {
    file: Arc<PathBuf>,
    connection: Arc<Mutex<Connection>>,
}

impl SqliteIndex {
    /// Opens `file`, creating it (0600) and the directories above it (0700) if they are not there;
    /// one that is damaged is begun anew.
    pub fn open(file: &Path) -> Result<SqliteIndex, IndexError> {
        let opened = match open(file) {
            Err(OpenError::Sql(error)) if database::is_damage(&error) => {
                remove(file).map_err(|source| failed(file, "replace", source))?;
                open(file)
            }
            other => other,
        };
        match opened {
            Ok(connection) => Ok(SqliteIndex {
                file: Arc::new(file.to_owned()),
                connection: Arc::new(Mutex::new(connection)),
            }),
            Err(OpenError::Sql(error)) => Err(failed(file, "open", error)),
            Err(OpenError::Io(error)) => Err(failed(file, "open", error)),
            Err(OpenError::Newer(found)) => Err(IndexError::Newer {
                place: file.display().to_string(),
                found,
                known: MIGRATIONS.len() as u32,
            }),
        }
    }

    /// Runs `work` on the blocking pool, in one transaction that is rolled back when it fails.
    async fn run<T: Send + 'static>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, IndexError> {
        let connection = Arc::clone(&self.connection);
        let task = tokio::task::spawn_blocking(move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let transaction = connection.transaction_with_behavior(behavior)?;
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        });
        let verb = match behavior {
            TransactionBehavior::Immediate => "write to",
            _ => "read",
        };
        let done = task
            .await
            .map_err(|error| failed(&self.file, verb, error))?;
        done.map_err(|error: rusqlite::Error| failed(&self.file, verb, error))
    }
}

fn open(file: &Path) -> Result<Connection, OpenError> {
    let connection = database::open(file, Durability::Whole, &MIGRATIONS)?;
    // What is forgotten is overwritten, not only unlinked.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.execute(
        "INSERT INTO terms (terms, rank) VALUES ('hashsize', ?)",
        [PENDING_BYTES],
    )?;
    Ok(connection)
}

fn remove(file: &Path) -> std::io::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn failed(
    file: &Path,
    verb: &str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> IndexError {
    IndexError::Store {
        action: format!("{verb} recall index {}", file.display()),
        source: source.into(),
    }
}

#[async_trait]
impl RecallIndex for SqliteIndex {
    async fn receipts(&self) -> Result<Vec<(String, String)>, IndexError> {
        const SELECT: &str = "SELECT name, receipt_id FROM receipts \
             JOIN sessions ON sessions.id = session ORDER BY receipts.id";
        self.run(TransactionBehavior::Deferred, |t| {
            let mut select = t.prepare_cached(SELECT)?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
        .await
    }

    async fn add(&self, addition: Addition) -> Result<(), IndexError> {
        self.run(TransactionBehavior::Immediate, move |t| add(t, &addition))
            .await
    }

    async fn forget(&self, session: &str) -> Result<(), IndexError> {
        let session = session.to_owned();
        self.run(TransactionBehavior::Immediate, move |t| forget(t, &session))
            .await
    }

    async fn find(&self, lookup: &Lookup) -> Result<Found, IndexError> {
        let lookup = lookup.clone();
        self.run(TransactionBehavior::Deferred, move |t| {
            find::find(t, &lookup)
        })
        .await
    }
}

fn add(t: &Transaction<'_>, addition: &Addition) -> rusqlite::Result<()> {
    t.execute(
        "INSERT INTO sessions (name) VALUES (?) ON CONFLICT DO NOTHING",
        [&addition.session_id],
    )?;
    let session: i64 = t.query_row(
        "SELECT id FROM sessions WHERE name = ?",
        [&addition.session_id],
        |row| row.get(0),
    )?;
    let added = t.execute(
        "INSERT INTO receipts (session, receipt_id, created_at) VALUES (?, ?, ?) \
         ON CONFLICT DO NOTHING",
        params![session, addition.receipt_id, addition.created_at],
    )?;
    if added == 0 {
        return Ok(());
    }
    let place = (session, t.last_insert_rowid());
    for entry in &addition.entries {
        add_entry(t, place, entry)?;
    }
    Ok(())
}

fn add_entry(
    t: &Transaction<'_>,
    (session, receipt): (i64, i64),
    entry: &IndexedEntry,
) -> rusqlite::Result<()> {
    const MOVE: &str = "UPDATE entries SET receipt = ?1, entry_id = ?2, ordinal = ?3 \
         WHERE session = ?4 AND hash = ?5 AND ?3 IS NOT NULL";
    const INSERT: &str = "INSERT INTO entries \
         (receipt, entry_id, ordinal, session, hash, role, voice, text) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING";
    let ordinal = entry.ordinal.and_then(|n| i64::try_from(n).ok());
    let id = &entry.entry_id.0;
    let moved = t.prepare_cached(MOVE)?;
    let key = params![receipt, id, ordinal, session, entry.hash.0];
    if { moved }.execute(key)? > 0 {
        return Ok(());
    }
    let inserted = t.prepare_cached(INSERT)?.execute(params![
        receipt,
        id,
        ordinal,
        session,
        entry.hash.0,
        find::name(entry.role),
        find::name(entry.voice),
        compressed(&entry.text)?,
    ])?;
    if inserted == 0 {
        return Ok(());
    }
    add_passages(t, session, t.last_insert_rowid(), entry)
}

fn add_passages(
    t: &Transaction<'_>,
    session: i64,
    row: i64,
    entry: &IndexedEntry,
) -> rusqlite::Result<()> {
    let mut insert =
        t.prepare_cached("INSERT INTO passages (entry, start, bytes) VALUES (?, ?, ?)")?;
    let mut index = t.prepare_cached("INSERT INTO terms (rowid, words) VALUES (?, ?)")?;
    for passage in &entry.passages {
        let (start, bytes) = (passage.span.start as i64, passage.span.len() as i64);
        let id = insert.insert(params![row, start, bytes])?;
        let terms = format!("{} #{session}", passage.terms.join(" "));
        index.execute(params![id, terms])?;
    }
    Ok(())
}

fn compressed(text: &str) -> rusqlite::Result<Vec<u8>> {
    zstd::bulk::compress(text.as_bytes(), LEVEL)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn forget(t: &Transaction<'_>, session: &str) -> rusqlite::Result<()> {
    let terms = t.execute(
        "DELETE FROM terms WHERE rowid IN (SELECT passages.id FROM sessions \
         JOIN entries ON entries.session = sessions.id JOIN passages ON entry = entries.id \
         WHERE name = ?)",
        [session],
    )?;
    t.execute("DELETE FROM sessions WHERE name = ?", [session])?;
    if terms > 0 {
        // FTS5 marks the rows only; merging everything is what takes their terms out of the file.
        t.execute("INSERT INTO terms (terms) VALUES ('optimize')", [])?;
    }
    Ok(())
}
