//! The event of a recall: how much was found and how fast. What was asked stays with who asked.

use std::time::Duration;

use compact_core::event::{Event, EventKind, EventScope, PolicyBrief};
use compact_core::token::Tokens;

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
    let best = hits.first().map(|hit| hit.score);
    recalled(clock, query.session_id.unwrap_or_default(), took)
        .with("hits", hits.len())
        .with("terms", QueryTerms::from_text(query.text).terms.len())
        .with("best_score", best)
}

/// Makes the event of an entry that was found by its pointer within `took`.
pub fn expand_event(clock: &dyn Clock, session_id: &str, took: Duration) -> Event {
    recalled(clock, session_id, took).with("entries", 1)
}

fn recalled(clock: &dyn Clock, session_id: &str, took: Duration) -> Event {
    let scope = EventScope {
        session_id: session_id.to_owned(),
        model: None,
        window: Tokens(0),
        policy: PolicyBrief {
            trigger_pct: 0.0,
            buffer: 0,
        },
        tokens: Tokens(0),
        cause: None,
        call: None,
    };
    let event = scope.event(EventKind::Recalled, &clock.timestamp());
    event.with("duration_ms", milliseconds(took))
}
