//! Events to a function of the host.

use compact_core::event::Event;
use compact_runtime::port::event::EventSink;

/// Calls a function with every event. One that may be slow or panic belongs behind a
/// [`Background`](super::BackgroundSink).
pub struct CallbackSink(pub Box<dyn Fn(&Event) + Send + Sync>);

impl CallbackSink {
    /// Returns a sink that calls `function`.
    pub fn new(function: impl Fn(&Event) + Send + Sync + 'static) -> CallbackSink {
        CallbackSink(Box::new(function))
    }
}

impl EventSink for CallbackSink {
    fn emit(&self, event: &Event) {
        (self.0)(event);
    }
}
