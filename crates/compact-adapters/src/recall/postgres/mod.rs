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
    IndexAddition, IndexError, IndexLookup, IndexedEntry, LookupResult, RecallCandidate,
    RecallIndex,
};
use tokio::sync::OnceCell;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Statement, Transaction};

use super::row::{compress, serialized_name};
use crate::postgres::{PostgresError, PostgresServer, hash_key, is_text, to_signed};

const MIGRATIONS: [&str; 2] = [
    include_str!("0001_init.sql"),
    include_str!("0002_exchange.sql"),
];

/// The name of these tables among those that are migrated.
const PART: &str = "recall";

/// A longer lexeme is refused; nobody asks for one.
const LONGEST_TERM: usize = 2000;

/// So many passages are sent at once.
const BATCH: usize = 1000;

/// An index in one database.
#[derive(Clone, Debug)]
pub struct PostgresIndex {
    server: PostgresServer,
    is_ready: Arc<OnceCell<()>>,
}

impl PostgresIndex {
    /// Returns an index that is connected to, and brought up to date, when it is first needed.
    pub fn new(server: PostgresServer) -> PostgresIndex {
        PostgresIndex {
            server,
            is_ready: Arc::default(),
        }
    }

    async fn ensure_migrated(&self) -> Result<(), IndexError> {
        let migrate = async || self.server.migrate(PART, &MIGRATIONS).await.map(drop);
        match self.is_ready.get_or_try_init(migrate).await {
            Ok(()) => Ok(()),
            Err(PostgresError::Newer { found, known }) => Err(IndexError::Newer {
                place: self.server.location().to_owned(),
                found,
                known,
            }),
            Err(error) => Err(postgres_index_error(&self.server, "open", error)),
        }
    }

    async fn all_receipts(&self) -> Result<Vec<(String, String)>, PostgresError> {
        const SELECT: &str = "SELECT name, receipt_id FROM compact.recall_receipts AS receipts \
             JOIN compact.recall_sessions AS sessions ON sessions.id = session \
             ORDER BY receipts.id";
        let rows = self
            .server
            .acquire_client()
            .await?
            .query(SELECT, &[])
            .await?;
        let read = |row: &tokio_postgres::Row| {
            let name = String::from_utf8_lossy(row.try_get(0)?).into_owned();
            Ok((name, row.try_get(1)?))
        };
        rows.iter().map(read).collect()
    }

    async fn add_in_transaction(&self, addition: IndexAddition) -> Result<(), PostgresError> {
        let mut client = self.server.acquire_client().await?;
        let transaction = client.transaction().await?;
        insert_addition(&transaction, addition).await?;
        Ok(transaction.commit().await?)
    }
}

fn postgres_index_error(server: &PostgresServer, verb: &str, error: PostgresError) -> IndexError {
    IndexError::Store {
        action: format!("{verb} recall index {}", server.location()),
        source: error.into(),
    }
}

#[async_trait]
impl RecallIndex for PostgresIndex {
    async fn receipts(&self) -> Result<Vec<(String, String)>, IndexError> {
        self.ensure_migrated().await?;
        let receipts = self.all_receipts().await;
        receipts.map_err(|error| postgres_index_error(&self.server, "read", error))
    }

    async fn add(&self, addition: IndexAddition) -> Result<(), IndexError> {
        self.ensure_migrated().await?;
        let added = self.add_in_transaction(addition).await;
        added.map_err(|error| postgres_index_error(&self.server, "write to", error))
    }

    async fn forget(&self, session: &str) -> Result<(), IndexError> {
        const DELETE: &str = "DELETE FROM compact.recall_sessions WHERE key = $1";
        self.ensure_migrated().await?;
        let forgotten = async {
            let client = self.server.acquire_client().await?;
            client.execute(DELETE, &[&hash_key(session)]).await?;
            Ok(())
        };
        let forgotten: Result<(), PostgresError> = forgotten.await;
        forgotten.map_err(|error| postgres_index_error(&self.server, "write to", error))
    }

    async fn find(&self, lookup: &IndexLookup) -> Result<LookupResult, IndexError> {
        self.ensure_migrated().await?;
        let found = find::find_passages(&self.server, lookup).await;
        found.map_err(|error| postgres_index_error(&self.server, "read", error))
    }

    async fn entries_at(
        &self,
        session: &str,
        ordinals: &[u64],
    ) -> Result<Vec<RecallCandidate>, IndexError> {
        self.ensure_migrated().await?;
        let found = find::read_entries_at(&self.server, session, ordinals).await;
        found.map_err(|error| postgres_index_error(&self.server, "read", error))
    }
}

async fn insert_addition(
    t: &Transaction<'_>,
    addition: IndexAddition,
) -> Result<(), PostgresError> {
    // The session's row is held until the end: of two that add to it, one waits for the other.
    const SESSION: &str = "INSERT INTO compact.recall_sessions (key, name) VALUES ($1, $2) \
         ON CONFLICT (key) DO UPDATE SET name = excluded.name RETURNING id";
    const RECEIPT: &str = "INSERT INTO compact.recall_receipts (session, receipt_id, created_at) \
         VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING id";
    const COUNT: &str = "UPDATE compact.recall_sessions SET passages = passages + $1 WHERE id = $2";
    let (key, name) = (
        hash_key(&addition.session_id),
        addition.session_id.as_bytes(),
    );
    let session: i64 = t.query_one(SESSION, &[&key, &name]).await?.get(0);
    let (receipt, at) = (&addition.receipt_id, &addition.created_at);
    let Some(receipt) = t.query_opt(RECEIPT, &[&session, receipt, at]).await? else {
        return Ok(());
    };
    let filing = PostgresEntryWriter::new(t, session, receipt.get(0)).await?;
    let mut passages = PassageBatch::default();
    let mut count = 0;
    for entry in addition.entries {
        let entry = entry.map_err(std::io::Error::other)?;
        if let Some(id) = filing.add_entry(&entry).await? {
            passages.push_entry(id, &entry);
        }
        if passages.entry.len() >= BATCH {
            count += filing.add_passages(std::mem::take(&mut passages)).await?;
        }
    }
    count += filing.add_passages(passages).await?;
    t.execute(COUNT, &[&to_signed(count), &session]).await?;
    Ok(())
}

/// Where the entries of an addition belong, and how they get there.
struct PostgresEntryWriter<'a> {
    transaction: &'a Transaction<'a>,
    session: i64,
    receipt: i64,
    move_entry: Statement,
    insert_entry: Statement,
}

impl<'a> PostgresEntryWriter<'a> {
    async fn new(
        transaction: &'a Transaction<'a>,
        session: i64,
        receipt: i64,
    ) -> Result<PostgresEntryWriter<'a>, PostgresError> {
        const MOVE: &str = "UPDATE compact.recall_entries SET receipt = $1, entry_id = $2, \
             ordinal = $3, partner = $6, said_at = $7 \
             WHERE session = $4 AND hash = $5 AND $3::bigint IS NOT NULL";
        const INSERT: &str = "INSERT INTO compact.recall_entries \
             (receipt, entry_id, ordinal, session, hash, partner, said_at, role, voice, text) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
             ON CONFLICT (session, hash) DO NOTHING RETURNING id";
        Ok(PostgresEntryWriter {
            transaction,
            session,
            receipt,
            move_entry: transaction.prepare(MOVE).await?,
            insert_entry: transaction.prepare(INSERT).await?,
        })
    }

    /// Returns an entry that its session holds already takes the new place. Returns the id of a new one.
    async fn add_entry(&self, entry: &IndexedEntry) -> Result<Option<i64>, PostgresError> {
        let ordinal = entry.ordinal.map(to_signed);
        let (id, hash) = (entry.entry_id.0.as_bytes(), entry.hash.0.as_slice());
        let (partner, said_at) = (entry.partner.map(to_signed), &entry.said_at);
        let key: [&(dyn ToSql + Sync); 7] = [
            &self.receipt,
            &id,
            &ordinal,
            &self.session,
            &hash,
            &partner,
            said_at,
        ];
        if self.transaction.execute(&self.move_entry, &key).await? > 0 {
            return Ok(None);
        }
        let (role, voice) = (serialized_name(entry.role), serialized_name(entry.voice));
        let text = compress(entry.text.as_bytes())?;
        let values = [key.as_slice(), &[&role, &voice, &text]].concat();
        let row = self
            .transaction
            .query_opt(&self.insert_entry, &values)
            .await?;
        Ok(row.map(|row| row.get(0)))
    }

    /// Returns how many there were.
    async fn add_passages(&self, passages: PassageBatch) -> Result<u64, PostgresError> {
        const INSERT: &str = "INSERT INTO compact.recall_passages \
             (session, entry, first, beyond, told, terms) \
             SELECT $1, entry, first, beyond, told, terms::tsvector \
             FROM unnest($2::bigint[], $3::int[], $4::int[], $5::bool[], $6::text[]) \
             AS passage (entry, first, beyond, told, terms)";
        let values: [&(dyn ToSql + Sync); 6] = [
            &self.session,
            &passages.entry,
            &passages.first,
            &passages.beyond,
            &passages.told,
            &passages.terms,
        ];
        Ok(self.transaction.execute(INSERT, &values).await?)
    }
}

/// Passages on their way to the server, column by column: many are sent as one statement, since a
/// session has thousands and each statement waits for its answer.
#[derive(Default)]
struct PassageBatch {
    entry: Vec<i64>,
    first: Vec<i32>,
    beyond: Vec<i32>,
    told: Vec<bool>,
    terms: Vec<String>,
}

impl PassageBatch {
    fn push_entry(&mut self, id: i64, entry: &IndexedEntry) {
        for passage in &entry.passages {
            let lexemes = passage.terms.iter().filter_map(|term| quote_term(term));
            self.entry.push(id);
            self.first.push(passage.span.start as i32);
            self.beyond.push(passage.span.end as i32);
            self.told.push(entry.voice.writes_prose());
            self.terms.push(lexemes.collect::<Vec<_>>().join(" "));
        }
    }
}

/// Returns a term as PostgreSQL reads it, whatever it consists of; `None` for one that no `tsvector` holds.
fn quote_term(term: &str) -> Option<String> {
    let quoted = || format!("'{}'", term.replace('\\', "\\\\").replace('\'', "''"));
    is_lexeme(term).then(quoted)
}

/// Returns whether a `tsvector` can hold a term.
fn is_lexeme(term: &str) -> bool {
    !term.is_empty() && term.len() <= LONGEST_TERM && is_text(term)
}
