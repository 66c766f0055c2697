//! The catalog in PostgreSQL: for processes on any number of machines.
//!
//! It mirrors the embedded one table by table. Session ids are bound values, found by their hash. A
//! session's row is locked while something is added to it, so that the order of its records is the
//! order in which they were committed.

mod row;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use compact_core::identity::Chain;
use compact_runtime::port::catalog::{
    Attempt, CatalogError, CompactionRecord, LEASE_TIME, Lease, MAX_LEASE_TIMES, MIN_PREFIX,
    SessionCatalog, SessionInfo,
};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::continues;
use crate::postgres::{PostgresError, PostgresServer, hash_key, is_text, to_signed};

/// File `n` of `migrations/` leads from version `n - 1` to `n`.
const MIGRATIONS: [&str; 2] = [
    include_str!("migrations/0001_init.sql"),
    include_str!("migrations/0002_source_chain.sql"),
];

/// The name of these tables among those that are migrated.
const PART: &str = "catalog";

/// Names the session, adds it if it is new, and holds it until the statement is committed.
const SESSION: &str = "WITH held AS (INSERT INTO compact.sessions (key, name) VALUES ($1, $2) \
     ON CONFLICT (key) DO UPDATE SET name = excluded.name RETURNING id) ";

/// A catalog in one database.
#[derive(Clone, Debug)]
pub struct PostgresCatalog {
    server: PostgresServer,
    lease_time: Duration,
    /// The version of the tables as they were found, once somebody looked.
    found: Arc<OnceCell<u32>>,
}

/// Why a statement gave no answer.
enum StatementError {
    Server(PostgresError),
    Damaged(String),
}

impl<E: Into<PostgresError>> From<E> for StatementError {
    fn from(error: E) -> StatementError {
        StatementError::Server(error.into())
    }
}

impl PostgresCatalog {
    /// Returns a catalog that is connected to, and brought up to date, when it is first needed.
    pub fn new(server: PostgresServer) -> PostgresCatalog {
        PostgresCatalog {
            server,
            lease_time: LEASE_TIME,
            found: Arc::default(),
        }
    }

    /// Returns the catalog with leases of another length.
    pub fn with_lease_time(self, time: Duration) -> PostgresCatalog {
        PostgresCatalog {
            lease_time: time,
            ..self
        }
    }

    /// Connects, and brings the tables up to date. Returns their version before and since.
    pub async fn migrate(&self) -> Result<(u32, u32), CatalogError> {
        let found = self
            .found
            .get_or_try_init(|| self.server.migrate(PART, &MIGRATIONS));
        match found.await {
            Ok(found) => Ok((*found, MIGRATIONS.len() as u32)),
            Err(PostgresError::Newer { found, known }) => Err(CatalogError::Newer {
                place: self.server.location().to_owned(),
                found,
                known,
            }),
            Err(error) => Err(postgres_catalog_error(&self.server, "open", error)),
        }
    }

    async fn query_rows<T>(
        &self,
        select: &str,
        values: &[&(dyn ToSql + Sync)],
        read: impl Fn(&Row) -> Result<T, StatementError> + Send,
    ) -> Result<Vec<T>, CatalogError> {
        self.migrate().await?;
        let rows = async {
            let client = self.server.acquire_client().await?;
            let statement = client.prepare(select).await?;
            Ok::<_, PostgresError>(client.query(&statement, values).await?)
        };
        let rows = rows
            .await
            .map_err(|error| self.explain_statement_error("read", error.into()))?;
        let read = rows.iter().map(read).collect::<Result<_, _>>();
        read.map_err(|problem| self.explain_statement_error("read", problem))
    }

    async fn execute_statement(
        &self,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, CatalogError> {
        self.migrate().await?;
        let done = async {
            let client = self.server.acquire_client().await?;
            Ok::<_, PostgresError>(client.execute(statement, values).await?)
        };
        done.await
            .map_err(|error| self.explain_statement_error("write to", error.into()))
    }

    async fn select_records(
        &self,
        clause: &str,
        value: &(dyn ToSql + Sync),
    ) -> Result<Vec<CompactionRecord>, CatalogError> {
        let columns = row::COLUMNS;
        let select = format!(
            "SELECT {columns} FROM compact.receipts JOIN compact.sessions ON id = session {clause}"
        );
        self.query_rows(&select, &[value], row::read_record).await
    }

    /// Adds a record to the session that `session` names and holds; `more` are its further values.
    async fn insert(
        &self,
        session: &str,
        record: &CompactionRecord,
        more: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, CatalogError> {
        let insert = format!(
            "{session} INSERT INTO compact.receipts (session, receipt_id, created_at, \
             summary_version, previous, input_pack, format, receipt, entry_hashes, view_hashes, \
             new_from, continues, advice_pack, source_chain) \
             SELECT id, $3, $4, $5, $6, $7, $8, $9::text::json, $10, $11, $12, $13, $14, $15 \
             FROM held \
             ON CONFLICT (session, receipt_id) DO UPDATE SET \
             input_pack = coalesce(receipts.input_pack, excluded.input_pack)"
        );
        let values: [&(dyn ToSql + Sync); 15] = [
            &hash_key(&record.session_id),
            &record.session_id.as_bytes(),
            &record.receipt_id,
            &record.created_at,
            &i64::from(record.summary_version),
            &record.previous,
            &record.input_pack.map(|pack| pack.0.to_vec()),
            &record.format,
            &record.receipt.to_string(),
            &row::concat_hashes(&record.entry_hashes),
            &row::concat_hashes(&record.view_hashes),
            &to_signed(record.new_from),
            &continues::to_name(record.continues),
            &record.advice_pack().map(|pack| pack.0.to_vec()),
            &record.source_chain.map(|chain| chain.0.to_vec()),
        ];
        self.execute_statement(&insert, &[&values, more].concat())
            .await
    }

    fn lease_milliseconds(&self) -> f64 {
        self.lease_time.as_secs_f64() * 1000.0
    }

    /// Tells damage from a failure of the moment.
    fn explain_statement_error(&self, verb: &str, problem: StatementError) -> CatalogError {
        match problem {
            StatementError::Server(error) => postgres_catalog_error(&self.server, verb, error),
            StatementError::Damaged(reason) => CatalogError::Damaged {
                place: self.server.location().to_owned(),
                reason,
            },
        }
    }
}

fn postgres_catalog_error(
    server: &PostgresServer,
    verb: &str,
    error: PostgresError,
) -> CatalogError {
    error.into_catalog_error(format!("{verb} catalog {}", server.location()))
}

#[async_trait]
impl SessionCatalog for PostgresCatalog {
    async fn save_record(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        self.insert(SESSION, record, &[]).await.map(drop)
    }

    async fn save_record_under(
        &self,
        lease: &Lease,
        record: &CompactionRecord,
    ) -> Result<(), CatalogError> {
        // The lease is locked until the record is committed: nobody is granted it in between.
        const SESSION_UNDER: &str = "WITH mine AS (SELECT 1 FROM compact.leases \
             WHERE key = $1 AND fence = $16 FOR UPDATE), \
             held AS (INSERT INTO compact.sessions (key, name) SELECT $1, $2 FROM mine \
             ON CONFLICT (key) DO UPDATE SET name = excluded.name RETURNING id) ";
        let fence = to_signed(lease.fence);
        match self.insert(SESSION_UNDER, record, &[&fence]).await? {
            0 => Err(CatalogError::Fenced {
                session: lease.session_id.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn lease_time(&self) -> Duration {
        self.lease_time
    }

    async fn claim(&self, session: &str) -> Result<Option<Lease>, CatalogError> {
        const CLAIM: &str = "INSERT INTO compact.leases AS lease (key, ends) \
             VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond') \
             ON CONFLICT (key) DO UPDATE SET fence = DEFAULT, ends = excluded.ends \
             WHERE lease.ends <= clock_timestamp() \
             OR lease.ends > clock_timestamp() + $3 * interval '1 millisecond' RETURNING fence";
        let (key, time) = (hash_key(session), self.lease_milliseconds());
        let furthest = time * f64::from(MAX_LEASE_TIMES);
        let read = |row: &Row| Ok(row.try_get::<_, i64>(0)?);
        let rows = self
            .query_rows(CLAIM, &[&key, &time, &furthest], read)
            .await?;
        let fence = rows.into_iter().next();
        Ok(fence.map(|fence| Lease {
            session_id: session.to_owned(),
            fence: fence.unsigned_abs(),
        }))
    }

    async fn renew(&self, lease: &Lease) -> Result<bool, CatalogError> {
        const RENEW: &str = "UPDATE compact.leases \
             SET ends = clock_timestamp() + $1 * interval '1 millisecond' WHERE fence = $2";
        let (time, fence) = (self.lease_milliseconds(), to_signed(lease.fence));
        Ok(self.execute_statement(RENEW, &[&time, &fence]).await? > 0)
    }

    async fn release(&self, lease: &Lease) -> Result<(), CatalogError> {
        const RELEASE: &str = "DELETE FROM compact.leases WHERE fence = $1";
        self.execute_statement(RELEASE, &[&to_signed(lease.fence)])
            .await
            .map(drop)
    }

    async fn find_record(
        &self,
        receipt_id: &str,
    ) -> Result<Option<CompactionRecord>, CatalogError> {
        const CLAUSE: &str = "WHERE receipt_id = $1 ORDER BY seq LIMIT 1";
        const PREFIXED: &str = "SELECT DISTINCT receipt_id FROM compact.receipts \
             WHERE receipt_id >= $1 AND receipt_id < $2 LIMIT 2";
        if !is_text(receipt_id) {
            return Ok(None);
        }
        let exact = self.select_records(CLAUSE, &receipt_id).await?.pop();
        if exact.is_some() || receipt_id.chars().count() < MIN_PREFIX {
            return Ok(exact);
        }
        let end = format!("{receipt_id}{}", char::MAX);
        let read = |row: &Row| Ok(row.try_get::<_, String>(0)?);
        let ids = self
            .query_rows(PREFIXED, &[&receipt_id, &end], read)
            .await?;
        match ids.as_slice() {
            [] => Ok(None),
            [id] => Ok(self.select_records(CLAUSE, id).await?.pop()),
            _ => Err(CatalogError::Ambiguous {
                prefix: receipt_id.to_owned(),
            }),
        }
    }

    async fn latest_record(&self, session: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        let clause = "WHERE key = $1 ORDER BY seq DESC LIMIT 1";
        Ok(self.select_records(clause, &hash_key(session)).await?.pop())
    }

    async fn session_records(&self, session: &str) -> Result<Vec<CompactionRecord>, CatalogError> {
        self.select_records("WHERE key = $1 ORDER BY seq", &hash_key(session))
            .await
    }

    async fn find_sessions(
        &self,
        histories: &[Chain],
    ) -> Result<Vec<(String, Chain)>, CatalogError> {
        const SELECT: &str = "SELECT DISTINCT name, source_chain FROM compact.receipts \
             JOIN compact.sessions ON id = session WHERE source_chain = ANY($1)";
        let histories: Vec<&[u8]> = histories.iter().map(|chain| chain.0.as_slice()).collect();
        let read = |row: &Row| {
            Ok((
                row::read_name(row, 0)?,
                row::chain_from_bytes(row.try_get(1)?)?,
            ))
        };
        self.query_rows(SELECT, &[&histories], read).await
    }

    async fn sessions(&self) -> Result<Vec<SessionInfo>, CatalogError> {
        const SELECT: &str = "SELECT name, \
             (SELECT count(*) FROM compact.receipts WHERE session = sessions.id), \
             last.receipt_id, last.created_at, last.format \
             FROM compact.sessions LEFT JOIN LATERAL (SELECT * FROM compact.receipts \
             WHERE session = sessions.id ORDER BY seq DESC LIMIT 1) AS last ON true \
             ORDER BY sessions.id";
        self.query_rows(SELECT, &[], row::read_session).await
    }

    async fn save_event(&self, session: &str, event: &Value) -> Result<(), CatalogError> {
        let insert = format!(
            "{SESSION} INSERT INTO compact.events (session, event) \
             SELECT id, $3::text::json FROM held"
        );
        let (key, name, event) = (hash_key(session), session.as_bytes(), event.to_string());
        self.execute_statement(&insert, &[&key, &name, &event])
            .await
            .map(drop)
    }

    async fn events(&self, session: &str) -> Result<Vec<Value>, CatalogError> {
        const SELECT: &str = "SELECT event::text FROM compact.events \
             JOIN compact.sessions ON id = session WHERE key = $1 ORDER BY seq";
        self.query_rows(SELECT, &[&hash_key(session)], |r| row::read_json(r, 0))
            .await
    }

    async fn save_attempt(&self, session: &str, attempt: &Attempt) -> Result<(), CatalogError> {
        let insert = format!(
            "{SESSION} INSERT INTO compact.attempts (session, at, turn, outcome, tokens) \
             SELECT id, $3, $4, $5, $6 FROM held"
        );
        let values: [&(dyn ToSql + Sync); 6] = [
            &hash_key(session),
            &session.as_bytes(),
            &attempt.at,
            &attempt.turn,
            &attempt.outcome,
            &to_signed(attempt.tokens),
        ];
        self.execute_statement(&insert, &values).await.map(drop)
    }

    async fn last_attempt(&self, session: &str) -> Result<Option<Attempt>, CatalogError> {
        const SELECT: &str = "SELECT at, turn, outcome, tokens FROM compact.attempts \
             JOIN compact.sessions ON id = session WHERE key = $1 ORDER BY seq DESC LIMIT 1";
        let mut last = self
            .query_rows(SELECT, &[&hash_key(session)], row::read_attempt)
            .await?;
        Ok(last.pop())
    }

    async fn remove_receipt(&self, session: &str, receipt_id: &str) -> Result<(), CatalogError> {
        const DELETE: &str = "DELETE FROM compact.receipts USING compact.sessions \
             WHERE id = session AND key = $1 AND receipt_id = $2";
        if !is_text(receipt_id) {
            return Ok(());
        }
        self.execute_statement(DELETE, &[&hash_key(session), &receipt_id])
            .await
            .map(drop)
    }

    async fn remove_session(&self, session: &str) -> Result<(), CatalogError> {
        const DELETE: &str = "DELETE FROM compact.sessions WHERE key = $1";
        self.execute_statement(DELETE, &[&hash_key(session)])
            .await
            .map(drop)
    }
}
