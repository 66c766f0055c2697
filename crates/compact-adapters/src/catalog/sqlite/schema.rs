//! The catalog's schema.

use std::path::Path;

use rusqlite::Connection;

use crate::database::{self, DatabaseOpenError, Durability};

/// File `n` of `migrations/` leads from version `n - 1` to `n`.
const MIGRATIONS: [&str; 3] = [
    include_str!("migrations/0001_init.sql"),
    include_str!("migrations/0002_leases.sql"),
    include_str!("migrations/0003_source_chain.sql"),
];

/// The newest schema that this version knows.
pub(super) const KNOWN_VERSION: u32 = MIGRATIONS.len() as u32;

/// Opens the database at `file`; a record that was acknowledged survives a power cut.
pub(super) fn open(file: &Path) -> Result<Connection, DatabaseOpenError> {
    database::open(file, Durability::Full, &MIGRATIONS)
}

/// Opens the catalog only for reading, even if nothing can be written.
pub(super) fn open_to_read(file: &Path) -> Result<Connection, DatabaseOpenError> {
    database::open_to_read(file, Durability::Full, &MIGRATIONS)
}
