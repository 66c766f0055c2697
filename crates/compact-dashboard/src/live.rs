//! Tells open pages that something changed, so that they fetch themselves again.
//!
//! Others compact in processes of their own, so the catalog is looked at every second as long as a page is open.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use compact::overview::SessionListQuery;
use futures::Stream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::Dashboard;

/// How often the catalog is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Says that something was changed here, and when all is over.
pub(crate) struct ChangeSignal(watch::Sender<Liveness>);

/// Whether pages are kept up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Liveness {
    #[default]
    Open,
    Closed,
}

impl Default for ChangeSignal {
    fn default() -> Self {
        ChangeSignal(watch::Sender::new(Liveness::Open))
    }
}

impl ChangeSignal {
    /// Ends every stream, so that whoever serves them can end.
    pub(crate) fn close(&self) {
        self.0.send_replace(Liveness::Closed);
    }
}

/// Answers with an event for each change.
pub(crate) async fn stream(
    State(dashboard): State<Arc<Dashboard>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let changes = dashboard.changes.0.subscribe();
    let seen = catalog_state(&dashboard).await;
    let first = (dashboard, changes, seen);
    let events = futures::stream::unfold(first, async |(dashboard, mut changes, mut seen)| {
        loop {
            let woken = timeout(LOOK_EVERY, changes.changed()).await;
            if *changes.borrow() == Liveness::Closed {
                return None;
            }
            let now = catalog_state(&dashboard).await;
            if woken.is_ok() || now != seen {
                seen = now;
                // Browsers drop an event without data.
                let event = Event::default().event("changed").data("now");
                return Some((Ok(event), (dashboard, changes, seen)));
            }
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// Returns what changes when a session is compacted or copied.
async fn catalog_state(dashboard: &Dashboard) -> (usize, Option<String>, u64) {
    let query = SessionListQuery {
        limit: 1,
        ..SessionListQuery::default()
    };
    let Ok(list) = dashboard.compact.list_sessions(&query).await else {
        return (0, None, 0);
    };
    let newest = list.sessions.into_iter().next().map(|listed| listed.info);
    let compactions = newest.as_ref().map_or(0, |info| info.compactions);
    let at = newest.and_then(|info| info.last_at);
    (list.total, at, compactions)
}
