//! Spans: the events of a call gathered until the call ends.
//!
//! A call that never ends (its caller gave up) is forgotten when too many are open.

use std::collections::VecDeque;

use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use serde_json::Value;

use super::attribute::{
    attributes, conventional, identity, key_value, moment, number, string, text,
};
use super::settings::Sampler;

/// Calls that are open at a time.
const MOST_OPEN: usize = 512;

/// Events on one span; what is beyond is in the logs alone.
const MOST_EVENTS: usize = 128;

/// The event that ends a call.
const END: &str = "compact.call_ended";

pub(super) struct Spans {
    sampler: Sampler,
    open: VecDeque<Open>,
}

struct Open {
    span_id: Vec<u8>,
    events: Vec<Event>,
    beyond: u32,
}

impl Spans {
    pub(super) fn new(sampler: Sampler) -> Spans {
        Spans {
            sampler,
            open: VecDeque::new(),
        }
    }

    /// Adds an event to the span of its call; the span, when this event ends it.
    pub(super) fn take(&mut self, event: &Value) -> Option<Span> {
        let span_id = identity(event, "span_id");
        let trace_id = identity(event, "trace_id");
        if span_id.len() != 8 || trace_id.len() != 16 || !self.sampler.takes(&trace_id) {
            return None;
        }
        let at = self.open.iter().position(|open| open.span_id == span_id);
        if text(event, "event") == Some(END) {
            let open = at.and_then(|at| self.open.remove(at));
            return Some(ended(event, trace_id, span_id, open));
        }
        let open = match at {
            Some(at) => self.open.get_mut(at)?,
            None => self.begin(span_id)?,
        };
        open.add(event);
        None
    }

    fn begin(&mut self, span_id: Vec<u8>) -> Option<&mut Open> {
        if self.open.len() >= MOST_OPEN {
            self.open.pop_front();
        }
        self.open.push_back(Open {
            span_id,
            events: Vec::new(),
            beyond: 0,
        });
        self.open.back_mut()
    }
}

impl Open {
    fn add(&mut self, event: &Value) {
        if self.events.len() >= MOST_EVENTS {
            self.beyond += 1;
            return;
        }
        self.events.push(Event {
            time_unix_nano: moment(event),
            name: text(event, "event").unwrap_or("event").to_owned(),
            attributes: attributes(event),
            dropped_attributes_count: 0,
        });
    }
}

/// The span that an event ends: it began as long before as it took.
fn ended(end: &Value, trace_id: Vec<u8>, span_id: Vec<u8>, open: Option<Open>) -> Span {
    let took = number(end, "duration_ms").unwrap_or_default().max(0.0) * 1e6;
    let (events, beyond) = open.map_or((Vec::new(), 0), |open| (open.events, open.beyond));
    // The end is told to the millisecond, what came before it as well: nothing is before its span.
    let first = events.iter().map(|event| event.time_unix_nano).min();
    let until = moment(end);
    let since = until.saturating_sub(took as u64);
    let outcome = text(end, "outcome").unwrap_or_default();
    let mut attributes = conventional(end);
    attributes.push(key_value("compact.outcome", string(outcome)));
    Span {
        trace_id,
        span_id,
        parent_span_id: identity(end, "parent_span_id"),
        name: text(end, "call").unwrap_or("call").to_owned(),
        kind: SpanKind::Internal as i32,
        start_time_unix_nano: first.map_or(since, |first| since.min(first)),
        end_time_unix_nano: until,
        attributes,
        events,
        dropped_events_count: beyond,
        status: (outcome == "failed").then(|| Status {
            code: StatusCode::Error as i32,
            message: String::new(),
        }),
        ..Span::default()
    }
}
