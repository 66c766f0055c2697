//! A PostgreSQL server behind a few connections, for whatever keeps its tables there.
//!
//! Connections live on a runtime of their own, so a caller may come and go with any runtime. One that
//! broke is replaced the next time somebody asks; nothing is repeated behind the caller's back. What
//! is in the tables is not known here.

mod address;
mod fault;
mod pool;
#[cfg(test)]
pub(crate) mod tests;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Transaction;

pub use address::{PostgresAddress, PostgresAddressError, SslMode};
use pool::Pool;
pub(crate) use pool::PooledClient;

/// How many connections a process opens at most, unless the address says otherwise.
const CONNECTIONS: usize = 4;

/// The longest that connecting may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Any number: every process that migrates takes the same lock.
const MIGRATION_LOCK: i64 = 0x636f_6d70_6163_7401;

/// An error on the way to a server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PostgresError {
    #[error("cannot reach {place}")]
    Unreachable {
        place: String,
        source: tokio_postgres::Error,
    },
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
    #[error("the connections to the server were closed")]
    Closed,
    #[error("cannot pack or unpack a text")]
    Text(#[from] std::io::Error),
    #[error(transparent)]
    Sql(#[from] tokio_postgres::Error),
    #[error("its schema is {found}, this version knows up to {known}")]
    Newer { found: u32, known: u32 },
}

/// A database on a server.
#[derive(Clone, Debug)]
pub struct PostgresServer {
    pool: Arc<Pool>,
}

impl PostgresServer {
    /// Returns a server that is connected to when it is first needed.
    pub fn new(address: PostgresAddress) -> Result<PostgresServer, std::io::Error> {
        Ok(PostgresServer {
            pool: Arc::new(Pool::new(address)?),
        })
    }

    /// Returns where it is, without any secret.
    pub(crate) fn location(&self) -> &str {
        self.pool.location()
    }

    /// Returns a connection that answers.
    pub(crate) async fn acquire_client(&self) -> Result<PooledClient<'_>, PostgresError> {
        self.pool.acquire_client().await
    }

    /// Brings the tables of a part up to date: the n-th migration leads from version n - 1 to n.
    /// Returns the version that was found.
    pub(crate) async fn migrate(
        &self,
        part: &str,
        migrations: &[&str],
    ) -> Result<u32, PostgresError> {
        let known = migrations.len() as u32;
        let mut client = self.acquire_client().await?;
        // Whoever may only read and write rows must be able to open what is up to date.
        let ready = "SELECT to_regclass('compact.migrations') IS NOT NULL";
        if client.query_one(ready, &[]).await?.get(0) {
            let found = migrated_version(&client.transaction().await?, part).await?;
            if found == known {
                return Ok(found);
            }
        }
        let transaction = client.transaction().await?;
        let lock = "SELECT pg_advisory_xact_lock($1)";
        transaction.execute(lock, &[&MIGRATION_LOCK]).await?;
        transaction
            .batch_execute(include_str!("migrations.sql"))
            .await?;
        let found = migrated_version(&transaction, part).await?;
        if found > known {
            return Err(PostgresError::Newer { found, known });
        }
        for migration in migrations.iter().skip(found as usize) {
            transaction.batch_execute(migration).await?;
        }
        let note = "INSERT INTO compact.migrations (part, version) VALUES ($1, $2) \
             ON CONFLICT (part) DO UPDATE SET version = excluded.version";
        transaction.execute(note, &[&part, &(known as i32)]).await?;
        transaction.commit().await?;
        Ok(found)
    }
}

async fn migrated_version(
    transaction: &Transaction<'_>,
    part: &str,
) -> Result<u32, tokio_postgres::Error> {
    let select = "SELECT version FROM compact.migrations WHERE part = $1";
    let row = transaction.query_opt(select, &[&part]).await?;
    Ok(row.map_or(0, |row| row.get::<_, i32>(0).unsigned_abs()))
}

/// Returns the key of a name: PostgreSQL's indexes do not take texts of any length, nor its texts any
/// character.
pub(crate) fn hash_key(name: &str) -> Vec<u8> {
    blake3::hash(name.as_bytes()).as_bytes().to_vec()
}

/// Returns what a `TEXT` column cannot hold cannot be in one.
pub(crate) fn is_text(value: &str) -> bool {
    !value.contains('\0')
}

/// Converts a number for PostgreSQL, whose integers are signed; a larger one becomes the largest.
pub(crate) fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
