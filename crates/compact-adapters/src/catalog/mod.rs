//! Catalogs: SQLite, embedded, for one machine; PostgreSQL for many.

mod continues;
mod postgres;
mod sqlite;

pub use postgres::PostgresCatalog;
pub use sqlite::SqliteCatalog;
