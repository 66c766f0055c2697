//! Where events go: a terminal, a collector, a callback.
//!
//! An event is a value, redacted before it gets here; its `Serialize` is the documented JSON. Emitting
//! is fire and forget: no answer, no error, and nothing that waits.

pub mod conformance;
mod redacting;
#[cfg(test)]
mod tests;

use compact_core::event::Event;

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
