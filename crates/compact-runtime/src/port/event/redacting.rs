//! Redaction in front of sinks: what leaves the process leaves without secrets and personal data.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use compact_core::redact::{RedactionCounts, Redactor};
use serde_json::{Value, json};

use super::EventSink;

/// Fields that we make ourselves. Random digits may look like a card's number, and a trace whose
/// name was replaced is no trace.
const OURS: [&str; 8] = [
    "ts",
    "event",
    "severity",
    "trace_id",
    "span_id",
    "parent_span_id",
    "receipt_id",
    "pack",
];

/// Takes out of an event's texts what a redactor finds.
pub fn redact_event(event: &mut Value, redactor: &Redactor) {
    let counts = &mut RedactionCounts::new();
    match event {
        _ if redactor.is_off() => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                if !OURS.contains(&name.as_str()) {
                    redactor.redact_value(value, counts);
                }
            }
        }
        other => redactor.redact_value(other, counts),
    }
}

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

    /// The warning, with everything that the first event says about where and when.
    fn warn(&self, first: &Value) {
        let mut warning = first.clone();
        if let Some(fields) = warning.as_object_mut() {
            for (name, value) in [
                ("event", "compact.redaction_disabled"),
                ("severity", "high"),
                ("boundary", "export"),
            ] {
                fields.insert(name.to_owned(), json!(value));
            }
        }
        self.sink.emit(&warning);
    }
}

impl EventSink for RedactingSink {
    fn emit(&self, event: &Value) {
        if self.redactor.is_off() {
            if !self.warned.swap(true, Ordering::Relaxed) {
                self.warn(event);
            }
            return self.sink.emit(event);
        }
        let mut event = event.clone();
        redact_event(&mut event, &self.redactor);
        self.sink.emit(&event);
    }
}
