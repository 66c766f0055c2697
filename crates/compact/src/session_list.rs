//! All sessions in one list, the newest first: those that were compacted, through whichever door, and those that hooks
//! and runs left copies of.
//!
//! The catalog is asked once for all of them; what a row shows beyond that is read for the rows of the page alone.

use std::collections::HashMap;

use compact_core::token::Tokens;
use compact_core::window::Window;
use compact_runtime::manager::is_measure;
use compact_runtime::port::catalog::{Attempt, CompactionRecord, SessionCatalog, SessionInfo};
use jiff::Timestamp;

use crate::compact::Compact;
use crate::error::Error;
use crate::session_files::{self, SessionOrigin};

/// Which sessions are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionListQuery<'a> {
    /// Only sessions whose name begins so: those of one tenant.
    pub prefix: &'a str,
    /// Only sessions whose name contains this, in whatever case.
    pub contains: &'a str,
    /// How many of the newest are left out.
    pub skip: usize,
    /// The most that are returned.
    pub limit: usize,
}

impl Default for SessionListQuery<'_> {
    fn default() -> Self {
        SessionListQuery {
            prefix: "",
            contains: "",
            skip: 0,
            limit: 50,
        }
    }
}

/// A part of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionList {
    /// How many sessions match in all.
    pub total: usize,
    /// The part that was asked for, the newest first.
    pub sessions: Vec<ListedSession>,
}

/// A session in the list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedSession {
    /// Its name, compactions, and when the last one was.
    pub info: SessionInfo,
    /// What left it.
    pub origin: SessionOrigin,
    /// The model of the last compaction, if it is known.
    pub model: Option<String>,
    /// The window of that model.
    pub window: Window,
    /// Tokens of the history before and after the last compaction.
    pub tokens: Option<(Tokens, Tokens)>,
    /// The share of anchors that the last view shows.
    pub retention: Option<f64>,
    /// The last attempt, where it came to nothing after the last compaction.
    pub failed: Option<Attempt>,
}

impl Compact {
    /// Lists sessions, the newest first.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// # use serde_json::{Value, json};
    /// # let compact = compact::Compact::builder().in_memory().window(20_000).build()?;
    /// # let turn = |n: u32| [
    /// #     json!({"role": "user", "content": format!("Measure run {n}.")}),
    /// #     json!({"role": "assistant", "content": format!("Run {n} took {n} ms. ").repeat(60)}),
    /// # ];
    /// # let messages: Vec<Value> = (0..40).flat_map(turn).collect();
    /// use compact::overview::SessionListQuery;
    ///
    /// compact.session("runs").compact(&messages, None).await?;
    /// let list = compact.list_sessions(&SessionListQuery::default()).await?;
    /// let (before, after) = list.sessions[0].tokens.unwrap();
    /// assert!(list.total == 1 && before > after);
    /// let other = SessionListQuery { contains: "walks", ..SessionListQuery::default() };
    /// assert_eq!(compact.list_sessions(&other).await?.total, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_sessions(&self, query: &SessionListQuery<'_>) -> Result<SessionList, Error> {
        let store = self.store_to_read()?;
        let own = self.store_as_is()?;
        let wanted = query.contains.to_lowercase();
        let mut sessions = store.catalog.sessions().await?;
        sessions.retain(|SessionInfo { session_id, .. }| {
            !is_measure(session_id)
                && session_id.starts_with(query.prefix)
                && session_id.to_lowercase().contains(&wanted)
        });
        // What was written last stands first; of those without a time, what was made last.
        sessions.reverse();
        sessions.sort_by_cached_key(|info| std::cmp::Reverse(last_time(info)));
        let origins = match self.data_directory() {
            Some(root) => session_files::origins_by_session(root),
            None => HashMap::new(),
        };
        let total = sessions.len();
        let mut page = Vec::new();
        for info in sessions.into_iter().skip(query.skip).take(query.limit) {
            let origin = origins.get(&info.session_id).copied();
            page.push(self.describe_listed(&*own.catalog, info, origin).await?);
        }
        Ok(SessionList {
            total,
            sessions: page,
        })
    }

    /// Adds what the last record and the last attempt say.
    async fn describe_listed(
        &self,
        catalog: &dyn SessionCatalog,
        mut info: SessionInfo,
        origin: Option<SessionOrigin>,
    ) -> Result<ListedSession, Error> {
        let last = catalog.latest_record(&info.session_id).await?;
        let attempt = catalog.last_attempt(&info.session_id).await?;
        let since = last.as_ref().map(|record| record.created_at.as_str());
        let failed = attempt.filter(|attempt| {
            attempt.outcome != "compacted" && since.is_none_or(|at| attempt.at.as_str() > at)
        });
        if info.last_at.is_none() {
            info.last_at = failed.as_ref().map(|attempt| attempt.at.clone());
        }
        let receipt = last.as_ref().map(|record| &record.receipt);
        let model = receipt.and_then(|receipt| receipt.model());
        let model = model.map(str::to_owned);
        Ok(ListedSession {
            window: self.window(model.as_deref()),
            tokens: receipt.and_then(|r| Some((r.tokens_before()?, r.tokens_after()?))),
            retention: receipt.and_then(|receipt| receipt.retention_score()),
            origin: origin.unwrap_or(SessionOrigin::Compaction),
            model,
            failed,
            info,
        })
    }

    /// Returns every compaction of a session, the oldest first, and the copies that hooks and runs left of it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// let compact = compact::Compact::builder().in_memory().build()?;
    /// assert!(compact.session_records("no-such-session").await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn session_records(&self, session: &str) -> Result<Vec<CompactionRecord>, Error> {
        let store = self.store_to_read()?;
        Ok(store.catalog.session_records(session).await?)
    }
}

/// Returns when a session was written to last; the beginning of time where nobody knows.
fn last_time(info: &SessionInfo) -> Timestamp {
    let at = info.last_at.as_deref();
    at.and_then(|at| at.parse().ok()).unwrap_or_default()
}
