//! A few connections, opened when they are needed and handed out one at a time.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard, Semaphore, SemaphorePermit};

use super::{PATIENCE, PostgresAddress, PostgresError, tls};

/// A connection that was used more recently is not asked whether it still lives.
const FRESH: Duration = Duration::from_millis(500);

/// The longest that a connection may take to say so.
const ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The connections to one database.
pub(super) struct Pool {
    address: PostgresAddress,
    place: String,
    /// As many as there are slots: whoever has one finds a slot that is free.
    permits: Semaphore,
    slots: Vec<Mutex<Option<PooledConnection>>>,
    driver: SocketRuntime,
}

struct PooledConnection {
    client: tokio_postgres::Client,
    used: Instant,
}

/// The thread that reads and writes the sockets.
struct SocketRuntime(Option<Runtime>);

impl Drop for SocketRuntime {
    fn drop(&mut self) {
        // Waiting for it is not allowed where futures run, and there is nothing to wait for.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.place).finish()
    }
}

impl Pool {
    pub(super) fn new(address: PostgresAddress) -> std::io::Result<Pool> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("compact-postgres")
            .enable_all()
            .build()?;
        let slots = std::iter::repeat_with(|| Mutex::new(None));
        Ok(Pool {
            place: address.to_string(),
            permits: Semaphore::new(address.connections),
            slots: slots.take(address.connections).collect(),
            driver: SocketRuntime(Some(runtime)),
            address,
        })
    }

    pub(super) fn location(&self) -> &str {
        &self.place
    }

    /// Returns a connection that answers: one that is there, or a new one.
    pub(super) async fn acquire_client(&self) -> Result<PooledClient<'_>, PostgresError> {
        let permit = self.permits.acquire().await;
        let permit = permit.map_err(|_| PostgresError::Closed)?;
        let mut slot = self.free_slot().ok_or(PostgresError::Closed)?;
        let is_alive = match &*slot {
            Some(connection) => connection.is_alive().await,
            None => false,
        };
        if !is_alive {
            *slot = Some(PooledConnection {
                client: self.connect().await?,
                used: Instant::now(),
            });
        }
        let client = MutexGuard::try_map(slot, |slot| {
            let connection = slot.as_mut()?;
            connection.used = Instant::now();
            Some(&mut connection.client)
        });
        Ok(PooledClient {
            client: client.map_err(|_| PostgresError::Closed)?,
            _permit: permit,
        })
    }

    /// Returns one that has a connection if there is any, so that no more are opened than are needed.
    fn free_slot(&self) -> Option<MutexGuard<'_, Option<PooledConnection>>> {
        let mut free: Vec<_> = self
            .slots
            .iter()
            .filter_map(|s| s.try_lock().ok())
            .collect();
        let at = free.iter().position(|slot| slot.is_some()).unwrap_or(0);
        (at < free.len()).then(|| free.swap_remove(at))
    }

    async fn connect(&self) -> Result<tokio_postgres::Client, PostgresError> {
        let mut config = self.address.config.clone();
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        let tls = tls::build_connector(&self.address)?;
        let runtime = self.driver.0.as_ref().ok_or(PostgresError::Closed)?;
        let connecting = runtime.spawn(async move {
            let (client, connection) = config.connect(tls).await?;
            // It ends with the client, and whatever it has to say the client says too.
            tokio::spawn(connection);
            Ok(client)
        });
        let connected = connecting.await.map_err(|_| PostgresError::Closed)?;
        connected.map_err(|source| PostgresError::Unreachable {
            place: self.place.clone(),
            source,
        })
    }
}

impl PooledConnection {
    async fn is_alive(&self) -> bool {
        if self.client.is_closed() {
            return false;
        }
        if self.used.elapsed() < FRESH {
            return true;
        }
        let answer = tokio::time::timeout(ALIVE_TIMEOUT, self.client.simple_query("")).await;
        matches!(answer, Ok(Ok(_)))
    }
}

/// A connection for one piece of work; it is free again when this is dropped.
pub(crate) struct PooledClient<'a> {
    client: MappedMutexGuard<'a, tokio_postgres::Client>,
    _permit: SemaphorePermit<'a>,
}

impl Deref for PooledClient<'_> {
    type Target = tokio_postgres::Client;

    fn deref(&self) -> &tokio_postgres::Client {
        &self.client
    }
}

impl DerefMut for PooledClient<'_> {
    fn deref_mut(&mut self) -> &mut tokio_postgres::Client {
        &mut self.client
    }
}
