//! Catalogs: SQLite, embedded, for one machine.

mod sqlite;

pub use sqlite::SqliteCatalog;
