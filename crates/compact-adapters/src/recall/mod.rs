//! Recall indexes: where the terms of everything archived are found.

mod postgres;
mod row;
mod sealed;
mod sqlite;

pub use postgres::PostgresIndex;
pub use sealed::SealedIndex;
pub use sqlite::SqliteIndex;
