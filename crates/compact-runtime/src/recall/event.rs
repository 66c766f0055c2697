//! The event of a recall: how much was found and how fast. What was asked stays with who asked.

use std::time::Duration;

use compact_core::event::{Event, EventKind, EventScope, RecallCounts};

use super::rank::QueryTerms;
use super::{RecallQuery, SearchHit};
use crate::manager::emit::milliseconds;
use crate::port::clock::Clock;

/// Makes the event of a search that was answered within `took`.
pub fn search_event(
    clock: &dyn Clock,
    query: &RecallQuery<'_>,
    hits: &[SearchHit],
    took: Duration,
) -> Event {
    let found = RecallCounts::Search {
        hits: hits.len() as u64,
        terms: QueryTerms::from_text(query.text).terms.len() as u64,
        best_score: hits.first().map(|hit| hit.score),
    };
    recalled(clock, query.session_id.unwrap_or_default(), found, took)
}

/// Makes the event of entries of a session that were found by their pointers within `took`.
pub fn expand_event(clock: &dyn Clock, session_id: &str, entries: u64, took: Duration) -> Event {
    recalled(clock, session_id, RecallCounts::Expansion { entries }, took)
}

fn recalled(clock: &dyn Clock, session_id: &str, found: RecallCounts, took: Duration) -> Event {
    let scope = EventScope {
        session_id: session_id.to_owned(),
        ..EventScope::default()
    };
    let duration_ms = milliseconds(took);
    scope.event(
        EventKind::Recalled { duration_ms, found },
        &clock.timestamp(),
    )
}
