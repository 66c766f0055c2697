//! Leases: of all processes that share a catalog, one compacts a session at a time.
//!
//! Whoever does not get the lease waits for it as long as the policy says, and then goes without: with
//! the view that there is. A lease is renewed while its compaction runs, and runs out when its holder
//! dies. A holder that was only slow finds out when it wants to go on record: the catalog refuses it.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Manager;
use crate::error::Error;
use crate::port::catalog::{Lease, SessionCatalog};

/// The first pause before the catalog is asked again; each next one is longer, up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_millis(500);

/// A lease that is given back.
pub(crate) struct HeldLease {
    catalog: Arc<dyn SessionCatalog>,
    lease: Option<Lease>,
}

impl Manager {
    /// The lease of a session, if it can be had within `patience`.
    pub(crate) async fn claim_session(
        &self,
        session: &str,
        patience: Duration,
    ) -> Result<Option<HeldLease>, Error> {
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(lease) = self.catalog.claim(session).await? {
                return Ok(Some(HeldLease {
                    catalog: Arc::clone(&self.catalog),
                    lease: Some(lease),
                }));
            }
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// How long a call waits for another process.
    pub(crate) fn wait_limit(&self) -> Duration {
        Duration::from_secs(self.policy.wait_seconds)
    }
}

impl HeldLease {
    /// The lease itself.
    pub(crate) fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    /// Does something for as long as the lease is ours, and gives it back.
    pub(crate) async fn run_leased<T>(
        mut self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let result = tokio::select! {
            biased;
            result = work => result,
            overtaken = self.renew_until_lost() => Err(overtaken),
        };
        if let Some(lease) = self.lease.take() {
            // It runs out by itself.
            let _ = self.catalog.release(&lease).await;
        }
        result
    }

    /// Renews the lease until somebody else has it. A catalog that does not answer is asked again.
    async fn renew_until_lost(&self) -> Error {
        let pause = self.catalog.lease_time() / 3;
        loop {
            tokio::time::sleep(pause).await;
            let Some(lease) = &self.lease else {
                continue;
            };
            if let Ok(false) = self.catalog.renew(lease).await {
                return Error::Overtaken(lease.session_id.clone());
            }
        }
    }
}

impl Drop for HeldLease {
    /// A caller may give up at any moment; then nobody else should have to wait.
    fn drop(&mut self) {
        if let (Some(lease), Ok(runtime)) = (self.lease.take(), Handle::try_current()) {
            let catalog = Arc::clone(&self.catalog);
            runtime.spawn(async move { catalog.release(&lease).await });
        }
    }
}
