//! Where events leave the program: the console, a callback, a collector, and the queue that keeps
//! them from holding up a compaction.
//!
//! [`open_exporter`] is where a configuration's exporter is chosen, and the one place that knows them all.
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

use crate::config::{ExporterKind, OtlpConfig, TelemetryConfig};

/// Why there is no exporter as the configuration names it.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// There is no client for the collector.
    #[error("telemetry.exporter: cannot create a client for the collector: {0}")]
    Collector(String),
    /// This program was built without OpenTelemetry.
    #[error("telemetry.exporter: this program was built without OpenTelemetry")]
    NoOtlp,
}

/// Opens the exporter that a configuration names, behind a queue of its own; `None` for those that are the
/// program's.
pub fn open_exporter(
    config: &TelemetryConfig,
) -> Result<Option<BackgroundSink<ExportedEvent>>, ExporterError> {
    match config.exporter {
        ExporterKind::Otlp => open_otlp(&config.otlp).map(Some),
        // A door prints to its own console, and a program passes its own sinks.
        ExporterKind::Console | ExporterKind::Custom | ExporterKind::None => Ok(None),
    }
}

#[cfg(feature = "otlp")]
fn open_otlp(config: &OtlpConfig) -> Result<BackgroundSink<ExportedEvent>, ExporterError> {
    otlp::otlp_sink(config.collector_settings()).map_err(ExporterError::Collector)
}

#[cfg(not(feature = "otlp"))]
fn open_otlp(_: &OtlpConfig) -> Result<BackgroundSink<ExportedEvent>, ExporterError> {
    Err(ExporterError::NoOtlp)
}
