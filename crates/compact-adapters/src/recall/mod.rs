//! Recall indexes: where the terms of everything archived are found.

mod sqlite;

pub use sqlite::SqliteIndex;
