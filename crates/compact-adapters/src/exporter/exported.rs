//! An event as an exporter takes it that knows more events than ours.

use compact_core::event::Event;
use serde::Deserialize;
use serde_json::Value;

/// An event's JSON, and the event itself where it is one of ours: a host may export its own.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedEvent {
    /// The JSON.
    pub json: Value,
    /// The event that it is the JSON of.
    pub event: Option<Event>,
}

impl From<&Event> for ExportedEvent {
    fn from(event: &Event) -> ExportedEvent {
        ExportedEvent {
            json: serde_json::to_value(event).unwrap_or_default(),
            event: Some(event.clone()),
        }
    }
}

impl From<Value> for ExportedEvent {
    fn from(json: Value) -> ExportedEvent {
        ExportedEvent {
            event: Event::deserialize(&json).ok(),
            json,
        }
    }
}
