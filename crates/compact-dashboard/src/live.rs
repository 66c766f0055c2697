//! Tells open pages that something changed, so that they fetch themselves again.
//!
//! Others compact in processes of their own, so the catalog and the journal are looked at every second as long as a page is open; what is
//! done here is told at once.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use compact::overview::ChangeMark;
use futures::Stream;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::visit::{Asked, Visit};

/// How often the catalog is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Counts what was changed here, by session; `None` when all is over.
#[derive(Clone)]
pub(crate) struct ChangeSignal(watch::Sender<Option<ChangeCounts>>);

/// How often each session was changed.
type ChangeCounts = BTreeMap<String, u64>;

impl Default for ChangeSignal {
    fn default() -> Self {
        ChangeSignal(watch::Sender::new(Some(ChangeCounts::new())))
    }
}

impl ChangeSignal {
    /// Tells every open page that may show the session.
    pub(crate) fn announce(&self, session: &str) {
        self.0.send_modify(|counts| {
            if let Some(counts) = counts {
                *counts.entry(session.to_owned()).or_default() += 1;
            }
        });
    }

    /// Returns how much was changed so far of sessions whose names begin so: a page that is about to be made says so when it
    /// asks for the stream.
    pub(crate) fn count(&self, scope: &str) -> u64 {
        self.0
            .borrow()
            .as_ref()
            .map_or(0, |counts| count_changes(counts, scope))
    }

    /// Ends every stream, so that whoever serves them can end.
    pub(crate) fn close(&self) {
        self.0.send_replace(None);
    }
}

/// Counts the changes of sessions whose names begin so: what others do is not told by a number either.
fn count_changes(counts: &ChangeCounts, scope: &str) -> u64 {
    let own = counts.range(scope.to_owned()..);
    let own = own.take_while(|(session, _)| session.starts_with(scope));
    own.map(|(_, count)| count).sum()
}

/// What the address asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamQuery {
    /// What the page has seen already.
    #[serde(default)]
    seen: u64,
}

impl Asked for StreamQuery {
    fn session(&self) -> Option<&str> {
        None
    }
}

/// Answers with an event for each change.
pub(crate) async fn stream(
    visit: Visit<StreamQuery>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mark = read_mark(&visit, None).await;
    let first = LiveStream {
        changes: visit.dashboard.changes.0.subscribe(),
        seen: visit.asked.seen,
        mark,
        visit,
    };
    let events = futures::stream::unfold(first, async |mut stream| {
        stream.wait().await?;
        // Browsers drop an event without data.
        let event = Event::default().event("changed").data("now");
        Some((Ok(event), stream))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// What an open page has seen.
struct LiveStream {
    visit: Visit<StreamQuery>,
    changes: watch::Receiver<Option<ChangeCounts>>,
    seen: u64,
    mark: Option<ChangeMark>,
}

impl LiveStream {
    /// Waits for a change that is the viewer's to see; `None` when all is over.
    async fn wait(&mut self) -> Option<()> {
        loop {
            let scope = self.visit.viewer.scope.as_str();
            let count = count_changes(self.changes.borrow_and_update().as_ref()?, scope);
            let now = read_mark(&self.visit, self.mark.as_ref()).await;
            let differs = match (&now, &self.mark) {
                (Some(now), Some(mark)) => now.differs_from(mark),
                (now, mark) => now.is_some() != mark.is_some(),
            };
            self.mark = now;
            if count > self.seen || differs {
                self.seen = count;
                return Some(());
            }
            let _ = timeout(LOOK_EVERY, self.changes.changed()).await;
        }
    }
}

async fn read_mark(visit: &Visit<StreamQuery>, before: Option<&ChangeMark>) -> Option<ChangeMark> {
    let scope = visit.viewer.scope.as_str();
    visit
        .dashboard
        .compact
        .change_mark(scope, before)
        .await
        .ok()
}
