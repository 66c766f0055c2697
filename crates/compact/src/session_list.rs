//! All sessions in one list, the newest first: those that were compacted, through whichever door, those that hooks
//! and runs left copies of, and those whose requests were counted lately.
//!
//! The catalog is asked once for all of them; what a row shows beyond that is read for the rows of the page alone.

use std::collections::{HashMap, HashSet};

use compact_adapters::journal::{JournalEntry, JournalFact};
use compact_core::token::Tokens;
use compact_core::window::Window;
use compact_runtime::manager::{FAILED_EVENT, RETRY_ASKED, is_measure};
use compact_runtime::port::catalog::{
    Attempt, CompactionRecord, SessionCatalog, SessionInfo, StoredReceipt,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::compact::Compact;
use crate::error::Error;
use crate::session_action::{BRANCH_ORIGIN, SessionSource, read_source};
use crate::session_files::{self, SessionCopies, SessionOrigin};

/// How long a request counts as news of its session.
const LATELY: SignedDuration = SignedDuration::from_hours(24);

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
    /// Its name, and when something was written to it last.
    pub info: SessionInfo,
    /// How often it was compacted; copies and states before a compaction are none.
    pub compactions: u64,
    /// What left it.
    pub origin: SessionOrigin,
    /// The model of the last compaction, if it is known.
    pub model: Option<String>,
    /// The window of that model.
    pub window: Window,
    /// Tokens of the history before and after the last compaction.
    pub tokens: Option<(Tokens, Tokens)>,
    /// What is on record costs as the next request, instructions and tools among it.
    pub held: Option<Tokens>,
    /// The share of anchors that the last view shows.
    pub retention: Option<f64>,
    /// The last attempt, where it came to nothing after the last compaction.
    pub failed: Option<Attempt>,
    /// Why that was, where it is on record.
    pub failure: Option<String>,
    /// The last request, where it was counted lately and after the last compaction.
    pub request: Option<CountedRequest>,
}

/// What differs as soon as something happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeMark {
    sessions: usize,
    compactions: u64,
    last_at: Option<String>,
    journal_bytes: u64,
    last_request: Option<Timestamp>,
}

impl ChangeMark {
    /// Returns whether something happened between another mark and this one.
    pub fn differs_from(&self, other: &ChangeMark) -> bool {
        let known = |mark: &ChangeMark| {
            let ChangeMark {
                sessions,
                compactions,
                last_at,
                last_request,
                ..
            } = mark.clone();
            (sessions, compactions, last_at, last_request)
        };
        known(self) != known(other)
    }
}

/// A request of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedRequest {
    /// When.
    pub at: Timestamp,
    /// Its prompt.
    pub prompt: Tokens,
    /// Its prompt and its answer, which the next one begins with.
    pub tokens: Tokens,
    /// The window that it was counted against.
    pub window: Option<Tokens>,
    /// The model, when known.
    pub model: Option<String>,
}

/// What happened last in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// A request was answered.
    Request,
    /// It was compacted.
    Compaction,
    /// It should have been compacted, and was not.
    Failure,
    /// A hook or a run left a copy.
    Copy,
    /// Nothing yet: it was made by a person.
    Start,
}

impl ListedSession {
    /// Returns what happened last.
    pub fn last_event(&self) -> SessionEvent {
        let failed_at = self.failed.as_ref().map(|attempt| attempt.at.as_str());
        let failed_at = failed_at.and_then(|at| at.parse::<Timestamp>().ok());
        match (&self.request, failed_at) {
            (Some(request), failed) if failed.is_none_or(|failed| request.at > failed) => {
                SessionEvent::Request
            }
            (_, Some(_)) => SessionEvent::Failure,
            _ if self.tokens.is_some() => SessionEvent::Compaction,
            _ if self.origin == SessionOrigin::Branch => SessionEvent::Start,
            _ if self.info.last_receipt.is_some() => SessionEvent::Copy,
            _ => SessionEvent::Start,
        }
    }

    /// Returns whether [`ListedSession::tokens_now`] is what a provider counted; else it is estimated.
    pub fn is_counted(&self) -> bool {
        self.request.is_some()
    }

    /// Returns what the next request begins with: the last one with its answer, or what the last compaction left with
    /// instructions and tools.
    pub fn tokens_now(&self) -> Option<Tokens> {
        let counted = self.request.as_ref().map(|request| request.tokens);
        counted.or(self.held)
    }
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
        let mut requests = self.latest_requests(query);
        add_uncompacted(&mut sessions, &requests);
        // What happened last stands first; of those without a time, what was made last.
        sessions.reverse();
        sessions.sort_by_cached_key(|info| {
            let asked = requests.get(&info.session_id).map(|request| request.at);
            std::cmp::Reverse(Some(last_time(info)).max(asked))
        });
        let copies = self.copies_by_session();
        let total = sessions.len();
        let mut page = Vec::new();
        for info in sessions.into_iter().skip(query.skip).take(query.limit) {
            let copies = copies.get(&info.session_id).copied();
            let request = requests.remove(&info.session_id);
            let origin = find_origin(&*own.catalog, &info, copies).await?;
            let compactions = count_compactions(&*store.catalog, &info, origin, copies).await?;
            let listed = self.describe_listed(&*own.catalog, info, request).await?;
            page.push(ListedSession {
                origin,
                compactions,
                ..listed
            });
        }
        Ok(SessionList {
            total,
            sessions: page,
        })
    }

    /// Returns what differs as soon as a session was compacted, copied or asked whose name begins so, and nothing of
    /// others: far cheaper than the list. The mark before this one spares reading what was noted before.
    pub async fn change_mark(
        &self,
        prefix: &str,
        before: Option<&ChangeMark>,
    ) -> Result<ChangeMark, Error> {
        let mut sessions = self.store_to_read()?.catalog.sessions().await?;
        sessions.retain(|info| info.session_id.starts_with(prefix));
        let journal_bytes = self.journal().map_or(0, |journal| journal.newest_bytes());
        let last_request = match before.filter(|mark| mark.journal_bytes == journal_bytes) {
            Some(before) => before.last_request,
            None => self.last_request(prefix),
        };
        Ok(ChangeMark {
            compactions: sessions.iter().map(|info| info.compactions).sum(),
            last_at: sessions
                .iter()
                .filter_map(|info| info.last_at.clone())
                .max(),
            sessions: sessions.len(),
            journal_bytes,
            last_request,
        })
    }

    /// Returns when one of these sessions was asked last.
    fn last_request(&self, prefix: &str) -> Option<Timestamp> {
        let query = SessionListQuery {
            prefix,
            ..SessionListQuery::default()
        };
        let requests = self.latest_requests(&query);
        requests.values().map(|request| request.at).max()
    }

    fn copies_by_session(&self) -> HashMap<String, SessionCopies> {
        let root = self.data_directory();
        root.map_or_else(HashMap::new, session_files::copies_by_session)
    }

    /// Adds what the last record and the last attempt say.
    async fn describe_listed(
        &self,
        catalog: &dyn SessionCatalog,
        mut info: SessionInfo,
        request: Option<CountedRequest>,
    ) -> Result<ListedSession, Error> {
        let last = catalog.latest_record(&info.session_id).await?;
        let attempt = catalog.last_attempt(&info.session_id).await?;
        let tried_at = attempt.as_ref().map(|attempt| attempt.at.clone());
        let since = last.as_ref().map(|record| record.created_at.as_str());
        let failed = attempt.filter(|attempt| {
            let is_failure = !["compacted", RETRY_ASKED].contains(&attempt.outcome.as_str());
            // Both are kept to the millisecond, and only the last attempt is.
            is_failure && since.is_none_or(|at| attempt.at.as_str() >= at)
        });
        let failure = match &failed {
            Some(attempt) => find_reason(catalog, &info.session_id, attempt).await?,
            None => None,
        };
        if info.last_at.is_none() {
            let made_at = find_made_at(catalog, &info.session_id).await?;
            info.last_at = tried_at.or(made_at);
        }
        let compacted_at = since.and_then(|at| at.parse::<Timestamp>().ok());
        let window_then = request.as_ref().and_then(|request| request.window);
        let model_then = request.as_ref().and_then(|request| request.model.clone());
        let request = request.filter(|request| Some(request.at) > compacted_at);
        if let Some(request) = &request {
            info.last_at = Some(request.at.to_string());
        }
        let receipt = last.as_ref().map(|record| &record.receipt);
        let model = receipt.and_then(|receipt| receipt.model());
        let model = model.map(str::to_owned).or(model_then);
        Ok(ListedSession {
            // What the session's own program counted against is right, whatever this one is configured with.
            window: match window_then.or(receipt.and_then(|receipt| receipt.window())) {
                Some(tokens) => Window::for_model(Some(tokens), None),
                None => self.window(model.as_deref()),
            },
            tokens: receipt.and_then(|r| Some((r.tokens_before()?, r.tokens_after()?))),
            held: receipt.and_then(count_held),
            retention: receipt.and_then(|receipt| receipt.retention_score()),
            origin: SessionOrigin::Compaction,
            compactions: 0,
            model,
            failed,
            failure,
            request,
            info,
        })
    }

    /// Returns the last request of each session that matches, of those that were counted lately.
    fn latest_requests(&self, query: &SessionListQuery<'_>) -> HashMap<String, CountedRequest> {
        let Some(journal) = self.journal() else {
            return HashMap::new();
        };
        let since = self.clock().now().checked_sub(LATELY).unwrap_or_default();
        let wanted = query.contains.to_lowercase();
        let entries = journal.read_since(since, |line| line.contains("\"compact.usage\""));
        let matches = |session: &str| {
            session.starts_with(query.prefix) && session.to_lowercase().contains(&wanted)
        };
        let requests = entries.iter().filter(|entry| matches(&entry.session));
        let requests = requests.filter_map(|entry| {
            let request = CountedRequest::from_journal(entry)?;
            Some((entry.session.clone(), request))
        });
        requests.collect()
    }

    /// Returns a session as the list shows it; `None` if nothing is known of it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), compact::Error> {
    /// let compact = compact::Compact::builder().in_memory().build()?;
    /// assert!(compact.describe_session("no-such-session").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn describe_session(&self, session: &str) -> Result<Option<ListedSession>, Error> {
        let own = self.store_as_is()?;
        let records = self.session_records(session).await?;
        let last = records.last();
        let info = SessionInfo {
            session_id: session.to_owned(),
            compactions: records.len() as u64,
            last_receipt: last.map(|record| record.receipt_id.clone()),
            last_at: last.map(|record| record.created_at.clone()),
            format: last.map(|record| record.format.clone()),
        };
        let query = SessionListQuery {
            prefix: session,
            ..SessionListQuery::default()
        };
        let request = self.latest_requests(&query).remove(session);
        let copies = self.copies_by_session().remove(session);
        let origin = find_origin(&*own.catalog, &info, copies).await?;
        let described = self.describe_listed(&*own.catalog, info, request).await?;
        // What is listed can be opened: a session has a record, a request, an attempt or an event.
        let is_known =
            described.info.last_at.is_some() || !own.catalog.events(session).await?.is_empty();
        Ok(is_known.then(|| ListedSession {
            compactions: count_made(&records),
            origin,
            ..described
        }))
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

/// Returns the number of each record's compaction, counted from 1; copies and states before a compaction have none.
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
/// use compact::overview::compaction_numbers;
///
/// compact.session("runs").compact(&messages, None).await?;
/// let records = compact.session_records("runs").await?;
/// assert_eq!(compaction_numbers(&records), [Some(1)]);
/// # Ok(())
/// # }
/// ```
pub fn compaction_numbers(records: &[CompactionRecord]) -> Vec<Option<usize>> {
    let mut made = 0;
    let numbers = records.iter().map(|record| {
        let is_made = record.receipt.origin().is_none();
        made += usize::from(is_made);
        is_made.then_some(made)
    });
    numbers.collect()
}

/// Returns when a person made a session of another one.
async fn find_made_at(
    catalog: &dyn SessionCatalog,
    session: &str,
) -> Result<Option<String>, Error> {
    let events = catalog.events(session).await?;
    let made = events.iter().find(|event| read_source(event).is_some());
    let at = made.and_then(|event| event.get("ts")?.as_str());
    Ok(at.map(str::to_owned))
}

/// Counts what a session stands with after a record: the view, or what it was before the compaction that was undone, and
/// instructions and tools, which receipts count apart. What a copy holds is not counted before somebody looks at it.
fn count_held(receipt: &StoredReceipt) -> Option<Tokens> {
    let before = || match receipt.origin() {
        Some(BRANCH_ORIGIN) => receipt.tokens_before(),
        _ => None,
    };
    let history = receipt.tokens_after().or_else(before)?;
    let fixed = receipt.as_json().get("tokens_fixed");
    Some(history + Tokens(fixed.and_then(Value::as_u64).unwrap_or(0)))
}

/// Returns why an attempt failed, as it was recorded with it.
async fn find_reason(
    catalog: &dyn SessionCatalog,
    session: &str,
    attempt: &Attempt,
) -> Result<Option<String>, Error> {
    let events = catalog.events(session).await?;
    let field = |event: &Value, name: &str| Some(event.get(name)?.as_str()?.to_owned());
    let is_its_own = |event: &&Value| {
        field(event, "event").as_deref() == Some(FAILED_EVENT)
            && field(event, "ts").as_deref() == Some(&*attempt.at)
    };
    let own = events.iter().rfind(is_its_own);
    Ok(own.and_then(|event| field(event, "error")))
}

/// Returns what left a session.
async fn find_origin(
    catalog: &dyn SessionCatalog,
    info: &SessionInfo,
    copies: Option<SessionCopies>,
) -> Result<SessionOrigin, Error> {
    let events = catalog.events(&info.session_id).await?;
    let source = events.iter().find_map(read_source);
    Ok(match (source, copies) {
        (Some(SessionSource::Branch { .. }), _) => SessionOrigin::Branch,
        (_, Some(copies)) => copies.origin,
        _ => SessionOrigin::Compaction,
    })
}

/// Counts how often a session was compacted: its records without copies and without the state that it began with.
async fn count_compactions(
    catalog: &dyn SessionCatalog,
    info: &SessionInfo,
    origin: SessionOrigin,
    copies: Option<SessionCopies>,
) -> Result<u64, Error> {
    if origin == SessionOrigin::Branch || copies.is_some() {
        let records = catalog.session_records(&info.session_id).await?;
        return Ok(count_made(&records));
    }
    Ok(info.compactions)
}

fn count_made(records: &[CompactionRecord]) -> u64 {
    compaction_numbers(records).iter().flatten().count() as u64
}

impl CountedRequest {
    /// Reads a request of the journal; `None` of anything else.
    pub(crate) fn from_journal(entry: &JournalEntry) -> Option<CountedRequest> {
        let JournalFact::Request { usage, .. } = &entry.fact else {
            return None;
        };
        Some(CountedRequest {
            at: entry.at,
            prompt: usage.prompt_tokens(),
            tokens: Tokens(usage.prompt_tokens().0 + usage.output_tokens),
            window: entry.window,
            model: entry.model.clone(),
        })
    }
}

/// Adds the sessions of which nothing is on record but their requests.
fn add_uncompacted(sessions: &mut Vec<SessionInfo>, requests: &HashMap<String, CountedRequest>) {
    let known: HashSet<String> = sessions
        .iter()
        .map(|info| info.session_id.clone())
        .collect();
    let new = requests.iter().filter(|(name, _)| !known.contains(*name));
    let mut new: Vec<SessionInfo> = new
        .map(|(name, request)| SessionInfo {
            session_id: name.clone(),
            compactions: 0,
            last_receipt: None,
            last_at: Some(request.at.to_string()),
            format: None,
        })
        .collect();
    new.sort_by(|a, b| a.session_id.cmp(&b.session_id));
    sessions.extend(new);
}

/// Returns when a session was written to last; the beginning of time where nobody knows.
fn last_time(info: &SessionInfo) -> Timestamp {
    let at = info.last_at.as_deref();
    at.and_then(|at| at.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failure_is_told_until_somebody_asks_for_a_retry() {
        let compact = Compact::builder().in_memory().build().unwrap();
        let failed = Attempt {
            at: compact.clock().timestamp(),
            turn: "t".to_owned(),
            outcome: "failed".to_owned(),
            tokens: 900,
        };
        let catalog = compact.store_to_write().unwrap().catalog;
        catalog.save_attempt("s", &failed).await.unwrap();
        let told = compact.describe_session("s").await.unwrap().unwrap();
        assert_eq!(told.last_event(), SessionEvent::Failure);
        assert!(compact.retry_compaction("s").await.unwrap().is_none());
        let told = compact.describe_session("s").await.unwrap().unwrap();
        assert_eq!((told.failed, told.request), (None, None));
    }

    #[tokio::test]
    async fn a_session_that_was_only_asked_is_listed_with_its_window() {
        let folder = tempfile::tempdir().unwrap();
        let compact = Compact::builder().data_directory(folder.path());
        let compact = compact.build().unwrap();
        let journal = folder.path().join("journal");
        std::fs::create_dir_all(&journal).unwrap();
        let line = |at: Timestamp, session: &str| {
            format!(
                "{{\"ts\":\"{at}\",\"event\":\"compact.usage\",\"session_id\":\"{session}\",\"model\":\"m\",\"max\":9000,\"turn_input\":500,\"turn_output\":20}}\n"
            )
        };
        let now = compact.clock().now();
        let week = compact_adapters::journal::week_of(now);
        let lines = line(now - SignedDuration::from_hours(30), "old") + &line(now, "new");
        std::fs::write(journal.join(format!("{week}.jsonl")), lines).unwrap();
        let query = SessionListQuery::default();
        let list = compact.list_sessions(&query).await.unwrap();
        let [listed] = list.sessions.as_slice() else {
            panic!("{list:?}")
        };
        assert_eq!(listed.info.session_id, "new");
        assert_eq!(listed.last_event(), SessionEvent::Request);
        assert_eq!(listed.tokens_now(), Some(Tokens(520)));
        assert_eq!(listed.window.tokens, Tokens(9_000));
    }
}
