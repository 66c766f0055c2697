//! Where events go: a terminal, a collector, a callback.
//!
//! An event is a value, redacted before it gets here; its `Serialize` is the documented JSON. Emitting
//! is fire and forget: no answer, no error, and nothing that waits.

pub mod conformance;
mod redacting;
#[cfg(test)]
mod tests;

use compact_core::event::{Event, TraceContext};

pub use redacting::RedactingSink;

/// Takes events. Must never block, fail or panic: a compaction does not depend on it.
pub trait EventSink: Send + Sync {
    /// Passes one event on.
    fn emit(&self, event: &Event);
}

impl<S: EventSink + ?Sized> EventSink for std::sync::Arc<S> {
    fn emit(&self, event: &Event) {
        (**self).emit(event);
    }
}

/// Returns a call within `parent`'s trace, or in one of its own.
pub fn call_within(parent: Option<&TraceContext>) -> TraceContext {
    let random = || fastrand::u64(1..);
    TraceContext {
        trace_id: parent.map_or_else(
            || format!("{:016x}{:016x}", random(), random()),
            |p| p.trace_id.clone(),
        ),
        span_id: format!("{:016x}", random()),
        parent_span_id: parent.map(|p| p.span_id.clone()),
    }
}

/// Drops every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentSink;

impl EventSink for SilentSink {
    fn emit(&self, _event: &Event) {}
}

/// Passes every event to each of several sinks.
#[derive(Default)]
pub struct FanoutSink(pub Vec<Box<dyn EventSink>>);

impl EventSink for FanoutSink {
    fn emit(&self, event: &Event) {
        self.0.iter().for_each(|sink| sink.emit(event));
    }
}
