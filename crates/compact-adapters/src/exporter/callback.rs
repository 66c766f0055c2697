//! Events to a function of the host.

use compact_runtime::port::event::EventSink;
use serde_json::Value;

/// Calls a function with every event (S2-53). One that may be slow or panic belongs behind a
/// [`Background`](super::Background).
pub struct Callback(pub Box<dyn Fn(&Value) + Send + Sync>);

impl Callback {
    /// A sink that calls `function`.
    pub fn new(function: impl Fn(&Value) + Send + Sync + 'static) -> Callback {
        Callback(Box::new(function))
    }
}

impl EventSink for Callback {
    fn emit(&self, event: &Value) {
        (self.0)(event);
    }
}
