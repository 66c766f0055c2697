//! Catalogs: SQLite, embedded, for one machine; PostgreSQL for many; objects in a program's own store.

mod continues;
mod object;
mod postgres;
mod sqlite;

pub use object::ObjectCatalog;
pub use postgres::PostgresCatalog;
pub use sqlite::SqliteCatalog;
