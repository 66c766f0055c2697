//! A few connections, opened when they are needed and handed out one at a time.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard, Semaphore, SemaphorePermit};

use super::{Address, PATIENCE, ServerError, tls};

/// A connection that was used more recently is not asked whether it still lives.
const FRESH: Duration = Duration::from_millis(500);

/// The longest that a connection may take to say so.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// The connections to one database.
pub(super) struct Pool {
    address: Address,
    place: String,
    /// As many as there are slots: whoever has one finds a slot that is free.
    permits: Semaphore,
    slots: Vec<Mutex<Option<Connection>>>,
    driver: Driver,
}

struct Connection {
    client: tokio_postgres::Client,
    used: Instant,
}

/// The thread that reads and writes the sockets.
struct Driver(Option<Runtime>);

impl Drop for Driver {
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
    pub(super) fn new(address: Address) -> std::io::Result<Pool> {
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
            driver: Driver(Some(runtime)),
            address,
        })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// A connection that answers: one that is there, or a new one.
    pub(super) async fn client(&self) -> Result<Client<'_>, ServerError> {
        let permit = self.permits.acquire().await;
        let permit = permit.map_err(|_| ServerError::Closed)?;
        let mut slot = self.free_slot().ok_or(ServerError::Closed)?;
        let is_alive = match &*slot {
            Some(connection) => connection.is_alive().await,
            None => false,
        };
        if !is_alive {
            *slot = Some(Connection {
                client: self.connect().await?,
                used: Instant::now(),
            });
        }
        let client = MutexGuard::try_map(slot, |slot| {
            let connection = slot.as_mut()?;
            connection.used = Instant::now();
            Some(&mut connection.client)
        });
        Ok(Client {
            client: client.map_err(|_| ServerError::Closed)?,
            _permit: permit,
        })
    }

    /// One that has a connection if there is any, so that no more are opened than are needed.
    fn free_slot(&self) -> Option<MutexGuard<'_, Option<Connection>>> {
        let mut free: Vec<_> = self
            .slots
            .iter()
            .filter_map(|s| s.try_lock().ok())
            .collect();
        let at = free.iter().position(|slot| slot.is_some()).unwrap_or(0);
        (at < free.len()).then(|| free.swap_remove(at))
    }

    async fn connect(&self) -> Result<tokio_postgres::Client, ServerError> {
        let mut config = self.address.config.clone();
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        let tls = tls::connector(&self.address)?;
        let runtime = self.driver.0.as_ref().ok_or(ServerError::Closed)?;
        let connecting = runtime.spawn(async move {
            let (client, connection) = config.connect(tls).await?;
            // It ends with the client, and whatever it has to say the client says too.
            tokio::spawn(connection);
            Ok(client)
        });
        let connected = connecting.await.map_err(|_| ServerError::Closed)?;
        connected.map_err(|source| ServerError::Unreachable {
            place: self.place.clone(),
            source,
        })
    }
}

impl Connection {
    async fn is_alive(&self) -> bool {
        if self.client.is_closed() {
            return false;
        }
        if self.used.elapsed() < FRESH {
            return true;
        }
        let answer = tokio::time::timeout(SIGN_OF_LIFE, self.client.simple_query("")).await;
        matches!(answer, Ok(Ok(_)))
    }
}

/// A connection for one piece of work; it is free again when this is dropped.
pub(crate) struct Client<'a> {
    client: MappedMutexGuard<'a, tokio_postgres::Client>,
    _permit: SemaphorePermit<'a>,
}

impl Deref for Client<'_> {
    type Target = tokio_postgres::Client;

    fn deref(&self) -> &tokio_postgres::Client {
        &self.client
    }
}

impl DerefMut for Client<'_> {
    fn deref_mut(&mut self) -> &mut tokio_postgres::Client {
        &mut self.client
    }
}
