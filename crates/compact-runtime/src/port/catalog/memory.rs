//! A catalog for programs that keep nothing: as durable as the process. Its leases are measured by
//! Tokio's time, which nobody sets back.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use compact_core::identity::Chain;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Attempt, CatalogError, CompactionRecord, LEASE_TIME, Lease, MIN_PREFIX, SessionCatalog,
    SessionInfo,
};

/// Records in memory.
#[derive(Debug, Default)]
pub struct MemoryCatalog {
    contents: Mutex<CatalogContents>,
    lease_time: Option<Duration>,
}

#[derive(Debug, Default)]
struct CatalogContents {
    /// In the order in which they were first recorded.
    records: Vec<CompactionRecord>,
    /// In the order in which they were first seen.
    sessions: Vec<CatalogSession>,
    /// Fence and end of each lease.
    leases: HashMap<String, (u64, Instant)>,
    last_fence: u64,
}

#[derive(Debug, Default)]
struct CatalogSession {
    id: String,
    events: Vec<Value>,
    attempts: Vec<Attempt>,
}

impl CatalogContents {
    fn find_or_add_session(&mut self, id: &str) -> Option<&mut CatalogSession> {
        if !self.sessions.iter().any(|session| session.id == id) {
            self.sessions.push(CatalogSession {
                id: id.to_owned(),
                ..CatalogSession::default()
            });
        }
        self.sessions.iter_mut().find(|session| session.id == id)
    }

    fn holds_lease(&self, lease: &Lease) -> bool {
        let found = self.leases.get(&lease.session_id);
        found.is_some_and(|(fence, _)| *fence == lease.fence)
    }

    fn add_record(&mut self, record: &CompactionRecord) {
        self.find_or_add_session(&record.session_id);
        let key = |r: &CompactionRecord| (r.session_id.clone(), r.receipt_id.clone());
        match self
            .records
            .iter_mut()
            .find(|known| key(known) == key(record))
        {
            Some(known) => {
                known.input_pack = known.input_pack.or(record.input_pack);
            }
            None => self.records.push(record.clone()),
        }
    }

    fn session_info(&self, session: &CatalogSession) -> SessionInfo {
        let of_session = |record: &&CompactionRecord| record.session_id == session.id;
        let last = self.records.iter().rfind(of_session);
        SessionInfo {
            session_id: session.id.clone(),
            compactions: self.records.iter().filter(of_session).count() as u64,
            last_receipt: last.map(|record| record.receipt_id.clone()),
            last_at: last.map(|record| record.created_at.clone()),
            format: last.map(|record| record.format.clone()),
        }
    }

    fn by_prefix(&self, prefix: &str) -> Result<Option<CompactionRecord>, CatalogError> {
        let mut found = self
            .records
            .iter()
            .filter(|r| r.receipt_id.starts_with(prefix));
        let first = found.next();
        match found.find(|other| Some(&other.receipt_id) != first.map(|r| &r.receipt_id)) {
            Some(_) => Err(CatalogError::Ambiguous {
                prefix: prefix.to_owned(),
            }),
            None => Ok(first.cloned()),
        }
    }
}

impl MemoryCatalog {
    /// The same with leases of another length.
    pub fn with_lease_time(self, time: Duration) -> MemoryCatalog {
        MemoryCatalog {
            lease_time: Some(time),
            ..self
        }
    }

    fn lock_contents(&self) -> MutexGuard<'_, CatalogContents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SessionCatalog for MemoryCatalog {
    async fn save_record(&self, record: &CompactionRecord) -> Result<(), CatalogError> {
        self.lock_contents().add_record(record);
        Ok(())
    }

    async fn save_record_under(
        &self,
        lease: &Lease,
        record: &CompactionRecord,
    ) -> Result<(), CatalogError> {
        let mut contents = self.lock_contents();
        if !contents.holds_lease(lease) {
            let session = lease.session_id.clone();
            return Err(CatalogError::Fenced { session });
        }
        contents.add_record(record);
        Ok(())
    }

    fn lease_time(&self) -> Duration {
        self.lease_time.unwrap_or(LEASE_TIME)
    }

    async fn claim(&self, session: &str) -> Result<Option<Lease>, CatalogError> {
        let mut contents = self.lock_contents();
        let now = Instant::now();
        let held = contents.leases.get(session);
        if held.is_some_and(|(_, end)| *end > now) {
            return Ok(None);
        }
        contents.last_fence += 1;
        let fence = contents.last_fence;
        let end = now + self.lease_time();
        contents.leases.insert(session.to_owned(), (fence, end));
        Ok(Some(Lease {
            session_id: session.to_owned(),
            fence,
        }))
    }

    async fn renew(&self, lease: &Lease) -> Result<bool, CatalogError> {
        let mut contents = self.lock_contents();
        if !contents.holds_lease(lease) {
            return Ok(false);
        }
        let renewed = (lease.fence, Instant::now() + self.lease_time());
        contents.leases.insert(lease.session_id.clone(), renewed);
        Ok(true)
    }

    async fn release(&self, lease: &Lease) -> Result<(), CatalogError> {
        let mut contents = self.lock_contents();
        if contents.holds_lease(lease) {
            contents.leases.remove(&lease.session_id);
        }
        Ok(())
    }

    async fn find_record(
        &self,
        receipt_id: &str,
    ) -> Result<Option<CompactionRecord>, CatalogError> {
        let contents = self.lock_contents();
        let exact = contents
            .records
            .iter()
            .find(|record| record.receipt_id == receipt_id);
        if exact.is_some() || receipt_id.chars().count() < MIN_PREFIX {
            return Ok(exact.cloned());
        }
        contents.by_prefix(receipt_id)
    }

    async fn session_records(&self, session: &str) -> Result<Vec<CompactionRecord>, CatalogError> {
        let contents = self.lock_contents();
        let of_session = contents
            .records
            .iter()
            .filter(|record| record.session_id == session);
        Ok(of_session.cloned().collect())
    }

    async fn find_sessions(
        &self,
        histories: &[Chain],
    ) -> Result<Vec<(String, Chain)>, CatalogError> {
        let contents = self.lock_contents();
        // A history has as many beginnings as messages; the chains on record are few.
        let known = contents
            .records
            .iter()
            .filter_map(|record| record.source_chain);
        let known: HashSet<Chain> = known.collect();
        let wanted = histories.iter().filter(|chain| known.contains(chain));
        let wanted: HashSet<&Chain> = wanted.collect();
        let found = |record: &CompactionRecord| {
            let chain = record.source_chain.filter(|chain| wanted.contains(chain))?;
            Some((record.session_id.clone(), chain))
        };
        let mut found: Vec<_> = contents.records.iter().filter_map(found).collect();
        found.sort();
        found.dedup();
        Ok(found)
    }

    async fn sessions(&self) -> Result<Vec<SessionInfo>, CatalogError> {
        let contents = self.lock_contents();
        Ok(contents
            .sessions
            .iter()
            .map(|session| contents.session_info(session))
            .collect())
    }

    async fn save_event(&self, session: &str, event: &Value) -> Result<(), CatalogError> {
        if let Some(session) = self.lock_contents().find_or_add_session(session) {
            session.events.push(event.clone());
        }
        Ok(())
    }

    async fn events(&self, session: &str) -> Result<Vec<Value>, CatalogError> {
        let contents = self.lock_contents();
        let found = contents.sessions.iter().find(|known| known.id == session);
        Ok(found.map(|known| known.events.clone()).unwrap_or_default())
    }

    async fn save_attempt(&self, session: &str, attempt: &Attempt) -> Result<(), CatalogError> {
        if let Some(session) = self.lock_contents().find_or_add_session(session) {
            session.attempts.push(attempt.clone());
        }
        Ok(())
    }

    async fn last_attempt(&self, session: &str) -> Result<Option<Attempt>, CatalogError> {
        let contents = self.lock_contents();
        let found = contents.sessions.iter().find(|known| known.id == session);
        Ok(found.and_then(|known| known.attempts.last().cloned()))
    }

    async fn remove_receipt(&self, session: &str, receipt_id: &str) -> Result<(), CatalogError> {
        self.lock_contents()
            .records
            .retain(|record| record.session_id != session || record.receipt_id != receipt_id);
        Ok(())
    }

    async fn remove_session(&self, session: &str) -> Result<(), CatalogError> {
        let mut contents = self.lock_contents();
        contents
            .records
            .retain(|record| record.session_id != session);
        contents.sessions.retain(|known| known.id != session);
        Ok(())
    }
}
