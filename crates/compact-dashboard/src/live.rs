//! Tells open pages that something changed, so that they fetch themselves again.
//!
//! Others compact in processes of their own, so the catalog and the journal are looked at every second as long as a page is open; what is
//! done here is told at once.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::Stream;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::Dashboard;

/// How often the catalog is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Counts what was changed here; `None` when all is over.
#[derive(Clone)]
pub(crate) struct ChangeSignal(watch::Sender<Option<u64>>);

impl Default for ChangeSignal {
    fn default() -> Self {
        ChangeSignal(watch::Sender::new(Some(0)))
    }
}

impl ChangeSignal {
    /// Tells every open page.
    pub(crate) fn announce(&self) {
        self.0
            .send_modify(|count| *count = count.map(|count| count + 1));
    }

    /// Returns how much was changed so far: a page that is about to be made says so when it asks for the stream.
    pub(crate) fn count(&self) -> u64 {
        self.0.borrow().unwrap_or(0)
    }

    /// Ends every stream, so that whoever serves them can end.
    pub(crate) fn close(&self) {
        self.0.send_replace(None);
    }
}

/// What the address asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct StreamQuery {
    /// What the page has seen already.
    #[serde(default)]
    seen: u64,
}

/// Answers with an event for each change.
pub(crate) async fn stream(
    State(dashboard): State<Arc<Dashboard>>,
    Query(query): Query<StreamQuery>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let changes = dashboard.changes.0.subscribe();
    let mark = dashboard.compact.change_mark().await.ok();
    let first = (dashboard, changes, query.seen, mark);
    let events = futures::stream::unfold(first, async |(dashboard, mut changes, seen, mark)| {
        loop {
            let count = (*changes.borrow_and_update())?;
            let now = dashboard.compact.change_mark().await.ok();
            if count > seen || now != mark {
                // Browsers drop an event without data.
                let event = Event::default().event("changed").data("now");
                return Some((Ok(event), (dashboard, changes, count, now)));
            }
            let _ = timeout(LOOK_EVERY, changes.changed()).await;
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}
