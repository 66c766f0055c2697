//! Where events leave the program: the console, a callback, a collector, and the queue that keeps
//! them from holding up a compaction.
//!
//! Exporters get events that are already redacted and pass them on as they are. They add no fields,
//! read no clock and report no errors: what cannot be delivered is counted and dropped.

mod background;
mod callback;
mod console;
mod exported;
#[cfg(feature = "otlp")]
pub mod otlp;
#[cfg(test)]
mod tests;

pub use background::{BackgroundSink, BatchExporter};
pub use callback::CallbackSink;
pub use console::{ConsoleFormat, ConsoleSink};
pub use exported::ExportedEvent;
