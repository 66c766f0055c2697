//! Who hears of what happens: the program's own sinks, and the collector that the configuration names.
//!
//! A collector has one queue for the process, whoever sends to it. Everything is redacted for export
//! before it reaches a sink.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use compact_adapters::config::{Config, ExporterKind, OtlpConfig};
use compact_adapters::exporter::{BackgroundSink, ExportedEvent};
use compact_core::redact::Redactor;
use compact_runtime::port::event::{EventSink, FanoutSink, RedactingSink};

use crate::error::Error;

/// A queue in front of a collector.
type CollectorQueue = Arc<BackgroundSink<ExportedEvent>>;

/// The queues of this process, by where they lead.
static COLLECTORS: Mutex<Vec<(OtlpConfig, CollectorQueue)>> = Mutex::new(Vec::new());

/// Builds the sink of a configuration: its collector, then the program's own sinks.
pub(crate) fn build_sink(
    config: &Config,
    own: &[Arc<dyn EventSink>],
    redactor: &Arc<Redactor>,
) -> Result<Arc<dyn EventSink>, Error> {
    let mut sinks: Vec<Box<dyn EventSink>> = Vec::new();
    match config.telemetry.exporter {
        ExporterKind::Otlp => sinks.push(Box::new(open_collector(&config.telemetry.otlp)?)),
        // A door prints to its own console, and a program passes its own sinks.
        ExporterKind::Console | ExporterKind::Custom | ExporterKind::None => {}
    }
    for sink in own {
        sinks.push(Box::new(Arc::clone(sink)));
    }
    let all: Arc<dyn EventSink> = Arc::new(FanoutSink(sinks));
    Ok(Arc::new(RedactingSink::new(Arc::clone(redactor), all)))
}

/// Waits at most `limit` for collectors to accept what is left; returns how many events they never
/// accepted.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(compact::event::flush_collectors(Duration::from_millis(10)), 0);
/// ```
pub fn flush_collectors(limit: Duration) -> u64 {
    let queues = COLLECTORS.lock().unwrap_or_else(PoisonError::into_inner);
    queues
        .iter()
        .map(|(_, queue)| queue.flush(limit) + queue.dropped())
        .sum()
}

#[cfg(feature = "otlp")]
fn open_collector(config: &OtlpConfig) -> Result<CollectorQueue, Error> {
    let mut queues = COLLECTORS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = queues.iter().find(|(known, _)| known == config) {
        return Ok(Arc::clone(known));
    }
    let queue = compact_adapters::exporter::otlp::otlp_sink(config.collector_settings());
    let queue = Arc::new(queue.map_err(Error::Collector)?);
    queues.push((config.clone(), Arc::clone(&queue)));
    Ok(queue)
}

#[cfg(not(feature = "otlp"))]
fn open_collector(_: &OtlpConfig) -> Result<CollectorQueue, Error> {
    Err(Error::NoOtlp)
}
