//! The recall index in a SQLite file of its own, next to the catalog: posting lists for the terms, the
//! texts compressed together beside them.
//!
//! Everything in it comes from the archive, so a file that is damaged is thrown away and filled
//! again. FTS5 is not used: it hands out the passages of a term row by row, and here every term of a
//! question is weighed in every passage that holds it.

mod find;
mod number;
mod posting;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use compact_runtime::port::index::{
    IndexAddition, IndexError, IndexLookup, IndexedEntry, LookupResult, RecallCandidate,
    RecallIndex,
};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::row;
use crate::database::{self, DatabaseOpenError, Durability};
use crate::waiting::run_waiting;
use posting::PostingAdditions;
use text::TextWriter;

const MIGRATIONS: [&str; 3] = [
    include_str!("0001_init.sql"),
    include_str!("0002_exchange.sql"),
    include_str!("0003_pages.sql"),
];

/// How much of the file is read without copying it, in bytes.
const MAPPED: i64 = 4 << 30;

/// Pages that are kept in memory while an addition is written, in KiB.
const CACHE: i64 = 32 << 10;

/// An index in one file.
#[derive(Clone, Debug)]
pub struct SqliteIndex {
    file: Arc<PathBuf>,
    connection: Arc<Mutex<Connection>>,
}

impl SqliteIndex {
    /// Opens `file`, creating it (0600) and the directories above it (0700) if they are not there;
    /// one that is damaged is begun anew, one that cannot be written to is read as it is.
    pub fn open(file: &Path) -> Result<SqliteIndex, IndexError> {
        let opened = match open_connection(file) {
            Err(DatabaseOpenError::Sql(error)) if database::is_damage(&error) => {
                remove_files(file).map_err(|source| sqlite_index_error(file, "replace", source))?;
                open_connection(file)
            }
            other => other,
        };
        match opened {
            Ok(connection) => Ok(SqliteIndex {
                file: Arc::new(file.to_owned()),
                connection: Arc::new(Mutex::new(connection)),
            }),
            Err(DatabaseOpenError::Sql(error)) => Err(sqlite_index_error(file, "open", error)),
            Err(DatabaseOpenError::Io(error)) => Err(sqlite_index_error(file, "open", error)),
            Err(DatabaseOpenError::Newer(found)) => Err(IndexError::Newer {
                place: file.display().to_string(),
                found,
                known: MIGRATIONS.len() as u32,
            }),
        }
    }

    /// Removes the index in `file`; one that is not there is no error.
    pub fn remove(file: &Path) -> Result<(), IndexError> {
        remove_files(file).map_err(|source| sqlite_index_error(file, "remove", source))
    }

    /// Runs `work` where it may wait, in one transaction that is rolled back when it fails.
    async fn run_transaction<T: Send + 'static>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, IndexError> {
        let connection = Arc::clone(&self.connection);
        let task = run_waiting(move || {
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
            .map_err(|error| sqlite_index_error(&self.file, verb, error))?;
        done.map_err(|error: rusqlite::Error| sqlite_index_error(&self.file, verb, error))
    }
}

fn open_connection(file: &Path) -> Result<Connection, DatabaseOpenError> {
    let connection = database::open_or_read(file, Durability::Consistent, &MIGRATIONS)?;
    // What is forgotten is overwritten, not only unlinked.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "mmap_size", MAPPED)?;
    connection.pragma_update(None, "cache_size", -CACHE)?;
    give_room_back(&connection)?;
    Ok(connection)
}

/// Gives the disk back what an index took that is to be drawn anew. Where that cannot be, the room is used again.
fn give_room_back(connection: &Connection) -> rusqlite::Result<()> {
    const IS_EMPTY: &str = "SELECT NOT EXISTS (SELECT 1 FROM receipts)";
    let freed: i64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    if freed > 0 && connection.query_row(IS_EMPTY, [], |row| row.get(0))? {
        let _ = connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
    }
    Ok(())
}

fn remove_files(file: &Path) -> std::io::Result<()> {
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

fn sqlite_index_error(
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
        self.run_transaction(TransactionBehavior::Deferred, |t| {
            let mut select = t.prepare_cached(SELECT)?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
        .await
    }

    async fn add(&self, addition: IndexAddition) -> Result<(), IndexError> {
        self.run_transaction(TransactionBehavior::Immediate, move |t| {
            insert_addition(t, addition)
        })
        .await
    }

    async fn forget(&self, session: &str) -> Result<(), IndexError> {
        let session = session.to_owned();
        self.run_transaction(TransactionBehavior::Immediate, move |t| {
            forget_session(t, &session)
        })
        .await
    }

    async fn find(&self, lookup: &IndexLookup) -> Result<LookupResult, IndexError> {
        let lookup = lookup.clone();
        self.run_transaction(TransactionBehavior::Deferred, move |t| {
            find::find_passages(t, &lookup)
        })
        .await
    }

    async fn entries_at(
        &self,
        session: &str,
        ordinals: &[u64],
    ) -> Result<Vec<RecallCandidate>, IndexError> {
        let (session, ordinals) = (session.to_owned(), ordinals.to_vec());
        self.run_transaction(TransactionBehavior::Deferred, move |t| {
            find::read_entries_at(t, &session, &ordinals)
        })
        .await
    }
}

fn insert_addition(t: &Transaction<'_>, addition: IndexAddition) -> rusqlite::Result<()> {
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
    let first = next_passage(t)?;
    let mut filing = SqliteEntryWriter {
        session,
        receipt: t.last_insert_rowid(),
        next: first,
        texts: TextWriter::new(t, session)?,
        growth: PostingAdditions::default(),
    };
    for entry in addition.entries {
        let made = entry.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()));
        filing.add_entry(t, made?)?;
    }
    t.execute(
        "UPDATE sessions SET passages = passages + ? WHERE id = ?",
        [filing.next - first, session],
    )?;
    filing.texts.write(t)?;
    filing.growth.write(t)
}

/// Returns the number after the last passage's.
fn next_passage(t: &Transaction<'_>) -> rusqlite::Result<i64> {
    const LAST: &str = "SELECT first + passages FROM entries ORDER BY first DESC LIMIT 1";
    let next = t.query_row(LAST, [], |row| row.get(0)).optional()?;
    Ok(next.unwrap_or(0))
}

/// An addition on its way into the file.
struct SqliteEntryWriter {
    session: i64,
    receipt: i64,
    /// The number of the next passage.
    next: i64,
    texts: TextWriter,
    growth: PostingAdditions,
}

impl SqliteEntryWriter {
    /// Returns an entry that its session holds already takes the new place.
    fn add_entry(&mut self, t: &Transaction<'_>, entry: IndexedEntry) -> rusqlite::Result<()> {
        const MOVE: &str = "UPDATE entries SET receipt = ?1, entry_id = ?2, ordinal = ?3, \
             partner = ?6, said_at = ?7 WHERE session = ?4 AND hash = ?5 AND ?3 IS NOT NULL";
        const KNOWN: &str = "SELECT 1 FROM entries WHERE session = ? AND hash = ?";
        const INSERT: &str = "INSERT INTO entries \
             (receipt, entry_id, ordinal, session, hash, partner, said_at, role, voice, first, \
             passages, spans, text, start, length) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let signed = |n: u64| i64::try_from(n).ok();
        let (ordinal, partner) = (
            entry.ordinal.and_then(signed),
            entry.partner.and_then(signed),
        );
        let id = &entry.entry_id.0;
        let key = params![
            self.receipt,
            id,
            ordinal,
            self.session,
            entry.hash.0,
            partner,
            entry.said_at,
        ];
        if t.prepare_cached(MOVE)?.execute(key)? > 0 {
            return Ok(());
        }
        if t.prepare_cached(KNOWN)?
            .exists(params![self.session, entry.hash.0])?
        {
            return Ok(());
        }
        let text = self.texts.push(t, &entry.text)?;
        t.prepare_cached(INSERT)?.execute(params![
            self.receipt,
            id,
            ordinal,
            self.session,
            entry.hash.0,
            partner,
            entry.said_at,
            row::serialized_name(entry.role),
            row::serialized_name(entry.voice),
            self.next,
            entry.passages.len() as i64,
            find::encode_spans(entry.passages.iter().map(|passage| &passage.span)),
            text.frame,
            text.start,
            text.length,
        ])?;
        self.add_postings(t, entry)
    }

    fn add_postings(&mut self, t: &Transaction<'_>, entry: IndexedEntry) -> rusqlite::Result<()> {
        for passage in entry.passages {
            let marks = posting::marker_terms(self.session, entry.voice);
            let terms = passage.terms.into_iter().chain(marks);
            self.growth.add_passage(t, self.next, terms)?;
            self.next += 1;
        }
        Ok(())
    }
}

fn forget_session(t: &Transaction<'_>, session: &str) -> rusqlite::Result<()> {
    const PASSAGES: &str = "SELECT first, first + entries.passages FROM entries \
         JOIN sessions ON sessions.id = entries.session WHERE name = ?";
    let mut gone: BTreeMap<i64, HashSet<u16>> = BTreeMap::new();
    let mut select = t.prepare_cached(PASSAGES)?;
    let mut rows = select.query([session])?;
    while let Some(row) = rows.next()? {
        for passage in row.get::<_, i64>(0)?..row.get(1)? {
            let (block, number) = posting::locate_passage(passage);
            gone.entry(block).or_default().insert(number);
        }
    }
    for (block, numbers) in &gone {
        posting::remove_passages(t, *block, numbers)?;
    }
    t.execute("DELETE FROM sessions WHERE name = ?", [session])?;
    Ok(())
}
