//! Spans: the events of a call gathered until the call ends.
//!
//! A call that never ends (its caller gave up) is forgotten when too many are open.

use std::collections::VecDeque;

use compact_core::event::{CallOutcome, EventKind};
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use serde_json::Value;

use super::ExportedEvent;
use super::attribute::{
    event_attributes, event_time, gen_ai_attributes, id_bytes, key_value, str_field, string_value,
};
use super::settings::TraceSampler;

/// Calls that are open at a time.
const MOST_OPEN: usize = 512;

/// Events on one span; what is beyond is in the logs alone.
const MOST_EVENTS: usize = 128;

pub(super) struct SpanAssembler {
    sampler: TraceSampler,
    open: VecDeque<OpenSpan>,
}

struct OpenSpan {
    span_id: Vec<u8>,
    events: Vec<Event>,
    beyond: u32,
}

impl SpanAssembler {
    pub(super) fn new(sampler: TraceSampler) -> SpanAssembler {
        SpanAssembler {
            sampler,
            open: VecDeque::new(),
        }
    }

    /// Adds an event to the span of its call; the span, when this event ends it.
    pub(super) fn add_event(&mut self, event: &ExportedEvent) -> Option<Span> {
        let json = &event.json;
        let span_id = id_bytes(json, "span_id");
        let trace_id = id_bytes(json, "trace_id");
        if span_id.len() != 8 || trace_id.len() != 16 || !self.sampler.is_sampled(&trace_id) {
            return None;
        }
        let at = self.open.iter().position(|open| open.span_id == span_id);
        if let Some(end) = SpanEnd::from_event(event) {
            let open = at.and_then(|at| self.open.remove(at));
            return Some(end.finish_span(trace_id, span_id, open));
        }
        let open = match at {
            Some(at) => self.open.get_mut(at)?,
            None => self.begin(span_id)?,
        };
        open.add(json);
        None
    }

    fn begin(&mut self, span_id: Vec<u8>) -> Option<&mut OpenSpan> {
        if self.open.len() >= MOST_OPEN {
            self.open.pop_front();
        }
        self.open.push_back(OpenSpan {
            span_id,
            events: Vec::new(),
            beyond: 0,
        });
        self.open.back_mut()
    }
}

impl OpenSpan {
    fn add(&mut self, event: &Value) {
        if self.events.len() >= MOST_EVENTS {
            self.beyond += 1;
            return;
        }
        self.events.push(Event {
            time_unix_nano: event_time(event),
            name: str_field(event, "event").unwrap_or("event").to_owned(),
            attributes: event_attributes(event),
            dropped_attributes_count: 0,
        });
    }
}

/// The event that ends a call.
struct SpanEnd<'a> {
    json: &'a Value,
    call: &'a str,
    outcome: CallOutcome,
    duration_ms: f64,
}

impl SpanEnd<'_> {
    fn from_event(event: &ExportedEvent) -> Option<SpanEnd<'_>> {
        match &event.event.as_ref()?.kind {
            EventKind::CallEnded {
                call,
                outcome,
                duration_ms,
            } => Some(SpanEnd {
                json: &event.json,
                call,
                outcome: *outcome,
                duration_ms: *duration_ms,
            }),
            _ => None,
        }
    }

    /// Returns the span that ends: it began as long before as it took.
    fn finish_span(&self, trace_id: Vec<u8>, span_id: Vec<u8>, open: Option<OpenSpan>) -> Span {
        let took = self.duration_ms.max(0.0) * 1e6;
        let (events, beyond) = open.map_or((Vec::new(), 0), |open| (open.events, open.beyond));
        // The end is told to the millisecond, what came before it as well: nothing is before its span.
        let first = events.iter().map(|event| event.time_unix_nano).min();
        let until = event_time(self.json);
        let since = until.saturating_sub(took as u64);
        let mut attributes = gen_ai_attributes(self.json);
        let outcome = string_value(self.outcome.as_str());
        attributes.push(key_value("compact.outcome", outcome));
        Span {
            trace_id,
            span_id,
            parent_span_id: id_bytes(self.json, "parent_span_id"),
            name: self.call.to_owned(),
            kind: SpanKind::Internal as i32,
            start_time_unix_nano: first.map_or(since, |first| since.min(first)),
            end_time_unix_nano: until,
            attributes,
            events,
            dropped_events_count: beyond,
            status: (self.outcome == CallOutcome::Failed).then(|| Status {
                code: StatusCode::Error as i32,
                message: String::new(),
            }),
            ..Span::default()
        }
    }
}
