//! SQLite files: private, with a write-ahead log, and migrated when they are opened.
//!
//! Migrations are numbered files, applied in order in one transaction; `user_version` counts them.
//! Where nothing can be written, a file is read as it is; one of an older schema is brought up to date
//! in memory.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::backup::Backup;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::private;

/// How long a process waits for another one to finish writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a database could not be opened.
#[derive(Debug)]
pub(crate) enum DatabaseOpenError {
    Io(io::Error),
    Sql(rusqlite::Error),
    Newer(u32),
}

impl From<io::Error> for DatabaseOpenError {
    fn from(error: io::Error) -> Self {
        DatabaseOpenError::Io(error)
    }
}

impl From<rusqlite::Error> for DatabaseOpenError {
    fn from(error: rusqlite::Error) -> Self {
        DatabaseOpenError::Sql(error)
    }
}

/// How much of the latest writes survives a power cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Durability {
    /// What was acknowledged is there afterwards.
    Full,
    /// It is whole afterwards; the latest changes may be missing.
    Consistent,
}

/// Opens the database at `file`, creating it if it is not there, and applies the migrations that it
/// lacks: the n-th leads from version n - 1 to n.
pub(crate) fn open(
    file: &Path,
    durability: Durability,
    migrations: &[&str],
) -> Result<Connection, DatabaseOpenError> {
    create_private(file)?;
    prepare(Connection::open(file)?, durability, migrations)
}

/// Sets a connection up and applies the migrations that its file lacks.
fn prepare(
    mut connection: Connection,
    durability: Durability,
    migrations: &[&str],
) -> Result<Connection, DatabaseOpenError> {
    connection.busy_timeout(PATIENCE)?;
    check_schema(&connection)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    use_write_ahead_log(&connection)?;
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Consistent => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    migrate(&mut connection, migrations)?;
    Ok(connection)
}

/// Opens a database that can be drawn again, creating it if it is not there; on a full disk or a read-only
/// mount it is read as it is.
pub(crate) fn open_or_read(
    file: &Path,
    durability: Durability,
    migrations: &[&str],
) -> Result<Connection, DatabaseOpenError> {
    read_if_unwritable(open(file, durability, migrations), file, migrations)
}

/// Opens a database only for reading, even on a full disk or a read-only mount. One that is not there is not
/// created: it is empty, and stays in memory.
pub(crate) fn open_to_read(
    file: &Path,
    durability: Durability,
    migrations: &[&str],
) -> Result<Connection, DatabaseOpenError> {
    let existing = OpenFlags::default().difference(OpenFlags::SQLITE_OPEN_CREATE);
    let opened = Connection::open_with_flags(file, existing).map_err(DatabaseOpenError::from);
    let opened = opened.and_then(|connection| prepare(connection, durability, migrations));
    read_if_unwritable(opened, file, migrations)
}

fn read_if_unwritable(
    opened: Result<Connection, DatabaseOpenError>,
    file: &Path,
    migrations: &[&str],
) -> Result<Connection, DatabaseOpenError> {
    match opened {
        Err(error) if is_unwritable(&error) => match file.exists() {
            true => open_as_it_is(file, migrations),
            false => migrate_in_memory(Connection::open_in_memory()?, migrations),
        },
        done => done,
    }
}

fn open_as_it_is(file: &Path, migrations: &[&str]) -> Result<Connection, DatabaseOpenError> {
    // A log holds what the file lacks. Without one the file is all there is, and SQLite is told not to
    // make the files that it shares with others.
    let connection = match has_log(file) {
        true => Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        false => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(format!("{}?immutable=1", sqlite_uri(file)), flags)?
        }
    };
    connection.busy_timeout(PATIENCE)?;
    check_schema(&connection)?;
    let known = migrations.len() as u32;
    match schema_version(&connection)? {
        found if found > known => Err(DatabaseOpenError::Newer(found)),
        found if found == known => Ok(connection),
        _ => {
            let mut copy = Connection::open_in_memory()?;
            Backup::new(&connection, &mut copy)?.run_to_completion(PAGES, Duration::ZERO, None)?;
            migrate_in_memory(copy, migrations)
        }
    }
}

fn migrate_in_memory(
    mut connection: Connection,
    migrations: &[&str],
) -> Result<Connection, DatabaseOpenError> {
    migrate(&mut connection, migrations)?;
    Ok(connection)
}

/// Pages that are copied at a time.
const PAGES: i32 = 1 << 14;

fn has_log(file: &Path) -> bool {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    std::fs::metadata(Path::new(&name)).is_ok_and(|log| log.len() > 0)
}

/// Returns a path as SQLite reads one with parameters.
fn sqlite_uri(file: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in file.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

/// Tells a disk that takes nothing from a file that cannot be read.
fn is_unwritable(error: &DatabaseOpenError) -> bool {
    let codes = [
        ErrorCode::ReadOnly,
        ErrorCode::CannotOpen,
        ErrorCode::DiskFull,
        ErrorCode::SystemIoFailure,
        ErrorCode::PermissionDenied,
    ];
    match error {
        DatabaseOpenError::Io(_) => true,
        DatabaseOpenError::Sql(error) => error
            .sqlite_error_code()
            .is_some_and(|c| codes.contains(&c)),
        DatabaseOpenError::Newer(_) => false,
    }
}

/// Creates the file with private permissions, which SQLite copies to its log and index files.
fn create_private(file: &Path) -> io::Result<()> {
    if let Some(dir) = file.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        private::create_dir(dir)?;
    }
    private::open(OpenOptions::new().append(true).create(true), file).map(drop)
}

/// Switches to the write-ahead log. It retries, because SQLite does not wait for the exclusive access that
/// this needs.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    let start = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if is_busy(&error) && start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let busy = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked];
    error
        .sqlite_error_code()
        .is_some_and(|code| busy.contains(&code))
}

/// Tells a damaged file from a failure of the moment.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, InvalidColumnType, SqliteFailure};
    let unreadable = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase];
    match error {
        SqliteFailure(failure, _) => unreadable.contains(&failure.code),
        FromSqlConversionFailure(..) | InvalidColumnType(..) => true,
        _ => false,
    }
}

/// Tells what a full disk leads to: SQLite names that one way out of several, which all are failures to make a file
/// longer.
pub(crate) fn may_lack_space(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};
    let codes = [SQLITE_FULL, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE];
    let failure = error.sqlite_error();
    failure.is_some_and(|failure| codes.contains(&failure.extended_code))
}

/// Refuses a file that computes what it is asked for, as no migration makes one: a view in the place of a table may
/// go on for ever.
fn check_schema(connection: &Connection) -> rusqlite::Result<()> {
    const IS_COMPUTED: &str = "SELECT \
         EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'view' OR sql LIKE 'CREATE VIRTUAL%') \
         OR EXISTS (SELECT 1 FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c \
                    WHERE t.type = 'table' AND c.hidden > 1)";
    let is_computed: bool = connection.query_row(IS_COMPUTED, [], |row| row.get(0))?;
    match is_computed {
        false => Ok(()),
        true => Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
            Some("it holds views or computed columns, which nothing here makes".to_owned()),
        )),
    }
}

fn migrate(connection: &mut Connection, migrations: &[&str]) -> Result<(), DatabaseOpenError> {
    let known = migrations.len() as u32;
    if schema_version(connection)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated while this one waited for the lock.
    let found = schema_version(&transaction)?;
    if found > known {
        return Err(DatabaseOpenError::Newer(found));
    }
    for migration in migrations.iter().skip(found as usize) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    Ok(transaction.commit()?)
}

fn schema_version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}
