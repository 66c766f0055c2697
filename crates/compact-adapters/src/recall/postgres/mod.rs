//! The recall index in PostgreSQL: for processes on any number of machines.
//!
//! The terms of a passage are a `tsvector` that is found through a GIN index. They come from the
//! runtime as they are: PostgreSQL's own parsers and dictionaries are not asked, and its ranking
//! neither, so that this index answers as every other does.

mod find;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use compact_runtime::port::index::{
    Addition, Found, IndexError, IndexedEntry, Lookup, RecallIndex,
};
use tokio::sync::OnceCell;
use tokio_postgres::Transaction;

use super::row::{compressed, name};
use crate::postgres::{Server, ServerError, integer, is_text, key};

const MIGRATIONS: [&str; 1] = [include_str!("0001_init.sql")];

/// The name of these tables among those that are migrated.
const PART: &str = "recall";

/// A longer lexeme is refused; nobody asks for one.
const LONGEST_TERM: usize = 2000;

/// An index in one database.
#[derive(Clone, Debug)]
pub struct PostgresIndex {
    server: Server,
    is_ready: Arc<OnceCell<()>>,
}

impl PostgresIndex {
    /// An index that is connected to, and brought up to date, when it is first needed.
    pub fn new(server: Server) -> PostgresIndex {
        PostgresIndex {
            server,
            is_ready: Arc::default(),
        }
    }

    async fn ready(&self) -> Result<(), IndexError> {
        let migrate = async || self.server.migrate(PART, &MIGRATIONS).await.map(drop);
        match self.is_ready.get_or_try_init(migrate).await {
            Ok(()) => Ok(()),
            Err(ServerError::Newer { found, known }) => Err(IndexError::Newer {
                place: self.server.place().to_owned(),
                found,
                known,
            }),
            Err(error) => Err(failed(&self.server, "open", error)),
        }
    }

    async fn all_receipts(&self) -> Result<Vec<(String, String)>, ServerError> {
        const SELECT: &str = "SELECT name, receipt_id FROM compact.recall_receipts AS receipts \
             JOIN compact.recall_sessions AS sessions ON sessions.id = session \
             ORDER BY receipts.id";
        let rows = self.server.client().await?.query(SELECT, &[]).await?;
        let read = |row: &tokio_postgres::Row| {
            let name = String::from_utf8_lossy(row.try_get(0)?).into_owned();
            Ok((name, row.try_get(1)?))
        };
        rows.iter().map(read).collect()
    }

    async fn add_all(&self, addition: &Addition) -> Result<(), ServerError> {
        let mut client = self.server.client().await?;
        let transaction = client.transaction().await?;
        add(&transaction, addition).await?;
        Ok(transaction.commit().await?)
    }
}

fn failed(server: &Server, verb: &str, error: ServerError) -> IndexError {
    IndexError::Store {
        action: format!("{verb} recall index {}", server.place()),
        source: error.into(),
    }
}

#[async_trait]
impl RecallIndex for PostgresIndex {
    async fn receipts(&self) -> Result<Vec<(String, String)>, IndexError> {
        self.ready().await?;
        let receipts = self.all_receipts().await;
        receipts.map_err(|error| failed(&self.server, "read", error))
    }

    async fn add(&self, addition: Addition) -> Result<(), IndexError> {
        self.ready().await?;
        let added = self.add_all(&addition).await;
        added.map_err(|error| failed(&self.server, "write to", error))
    }

    async fn forget(&self, session: &str) -> Result<(), IndexError> {
        const DELETE: &str = "DELETE FROM compact.recall_sessions WHERE key = $1";
        self.ready().await?;
        let forgotten = async {
            let client = self.server.client().await?;
            client.execute(DELETE, &[&key(session)]).await?;
            Ok(())
        };
        let forgotten: Result<(), ServerError> = forgotten.await;
        forgotten.map_err(|error| failed(&self.server, "write to", error))
    }

    async fn find(&self, lookup: &Lookup) -> Result<Found, IndexError> {
        self.ready().await?;
        let found = find::find(&self.server, lookup).await;
        found.map_err(|error| failed(&self.server, "read", error))
    }
}

async fn add(t: &Transaction<'_>, addition: &Addition) -> Result<(), ServerError> {
    // The session's row is held until the end: of two that add to it, one waits for the other.
    const SESSION: &str = "INSERT INTO compact.recall_sessions (key, name) VALUES ($1, $2) \
         ON CONFLICT (key) DO UPDATE SET name = excluded.name RETURNING id";
    const RECEIPT: &str = "INSERT INTO compact.recall_receipts (session, receipt_id, created_at) \
         VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING id";
    const COUNT: &str = "UPDATE compact.recall_sessions SET passages = passages + $1 WHERE id = $2";
    let (key, name) = (key(&addition.session_id), addition.session_id.as_bytes());
    let session: i64 = t.query_one(SESSION, &[&key, &name]).await?.get(0);
    let (receipt, at) = (&addition.receipt_id, &addition.created_at);
    let Some(receipt) = t.query_opt(RECEIPT, &[&session, receipt, at]).await? else {
        return Ok(());
    };
    let filing = Filing {
        session,
        receipt: receipt.get(0),
    };
    let mut passages = 0;
    for entry in &addition.entries {
        passages += filing.add(t, entry).await?;
    }
    t.execute(COUNT, &[&integer(passages), &session]).await?;
    Ok(())
}

/// Where the entries of an addition belong.
struct Filing {
    session: i64,
    receipt: i64,
}

impl Filing {
    /// An entry that its session holds already takes the new place. Returns how many passages came
    /// with it.
    async fn add(&self, t: &Transaction<'_>, entry: &IndexedEntry) -> Result<u64, ServerError> {
        const MOVE: &str = "UPDATE compact.recall_entries SET receipt = $1, entry_id = $2, \
             ordinal = $3 WHERE session = $4 AND hash = $5 AND $3::bigint IS NOT NULL";
        const INSERT: &str = "INSERT INTO compact.recall_entries \
             (receipt, entry_id, ordinal, session, hash, role, voice, text) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (session, hash) DO NOTHING \
             RETURNING id";
        let ordinal = entry.ordinal.map(integer);
        let (id, hash) = (entry.entry_id.0.as_bytes(), entry.hash.0.as_slice());
        let moved = t.prepare(MOVE).await?;
        let key: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&self.receipt, &id, &ordinal, &self.session, &hash];
        if t.execute(&moved, &key).await? > 0 {
            return Ok(0);
        }
        let [receipt, id, ordinal, session, hash] = key;
        let (role, voice) = (name(entry.role), name(entry.voice));
        let text = compressed(&entry.text)?;
        let values = [receipt, id, ordinal, session, hash, &role, &voice, &text];
        let Some(row) = t.query_opt(INSERT, &values).await? else {
            return Ok(0);
        };
        self.file(t, row.get(0), entry).await
    }

    async fn file(
        &self,
        t: &Transaction<'_>,
        id: i64,
        entry: &IndexedEntry,
    ) -> Result<u64, ServerError> {
        const INSERT: &str = "INSERT INTO compact.recall_passages \
             (session, entry, first, beyond, told, terms) \
             VALUES ($1, $2, $3, $4, $5, array_to_tsvector($6))";
        let insert = t.prepare(INSERT).await?;
        let told = entry.voice.tells();
        for passage in &entry.passages {
            let (first, beyond) = (passage.span.start as i32, passage.span.end as i32);
            let terms: Vec<&String> = passage.terms.iter().filter(|t| is_lexeme(t)).collect();
            t.execute(
                &insert,
                &[&self.session, &id, &first, &beyond, &told, &terms],
            )
            .await?;
        }
        Ok(entry.passages.len() as u64)
    }
}

/// Whether a `tsvector` can hold a term.
fn is_lexeme(term: &str) -> bool {
    !term.is_empty() && term.len() <= LONGEST_TERM && is_text(term)
}
