//! Where events go: a terminal, a collector, a callback.
//!
//! An event is a JSON object in one schema (`ts`, `session_id`, `event`, `model`, `t_est`, `max`,
//! `policy`, `kept`, `pruned_count`, `summary_tokens`), redacted before it gets
//! here. Emitting is fire and forget: no answer, no error, and nothing that waits.

pub mod conformance;
mod redacting;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use redacting::{RedactingSink, redact_event};

/// Takes events. Must never block, fail or panic: a compaction does not depend on it.
pub trait EventSink: Send + Sync {
    /// Passes one event on.
    fn emit(&self, event: &Value);
}

impl<S: EventSink + ?Sized> EventSink for std::sync::Arc<S> {
    fn emit(&self, event: &Value) {
        (**self).emit(event);
    }
}

/// Drops every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentSink;

impl EventSink for SilentSink {
    fn emit(&self, _event: &Value) {}
}

/// Passes every event to each of several sinks.
#[derive(Default)]
pub struct FanoutSink(pub Vec<Box<dyn EventSink>>);

impl EventSink for FanoutSink {
    fn emit(&self, event: &Value) {
        self.0.iter().for_each(|sink| sink.emit(event));
    }
}
