//! Recall indexes: where the terms of everything archived are found.

mod postgres;
mod row;
mod sqlite;

pub use postgres::PostgresIndex;
pub use sqlite::SqliteIndex;
