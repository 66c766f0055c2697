//! Redaction in front of sinks: what leaves the process leaves without secrets and personal data.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use compact_core::event::{Event, EventKind};
use compact_core::redact::{RedactionBoundary, Redactor};

use super::EventSink;

/// Redacts events and passes them on. When it is given nothing to redact with, it says so first, as
/// loudly as there is.
pub struct RedactingSink {
    redactor: Arc<Redactor>,
    sink: Arc<dyn EventSink>,
    warned: AtomicBool,
}

impl RedactingSink {
    /// Stands in front of a sink.
    pub fn new(redactor: Arc<Redactor>, sink: Arc<dyn EventSink>) -> RedactingSink {
        RedactingSink {
            redactor,
            sink,
            warned: AtomicBool::new(false),
        }
    }

    /// Warns before the first event, with all that it says about where and when.
    fn warn(&self, first: &Event) {
        let boundary = RedactionBoundary::Export;
        self.sink.emit(&Event {
            kind: EventKind::RedactionDisabled { boundary },
            ..first.clone()
        });
    }
}

impl EventSink for RedactingSink {
    fn emit(&self, event: &Event) {
        if self.redactor.is_off() {
            if !self.warned.swap(true, Ordering::Relaxed) {
                self.warn(event);
            }
            return self.sink.emit(event);
        }
        let mut event = event.clone();
        event.redact(&self.redactor);
        self.sink.emit(&event);
    }
}
