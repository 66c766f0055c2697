//! Who hears of what happens: the program's own sinks, and the exporter that the configuration names.
//!
//! An exporter has one queue for the process, whoever sends to it. Everything is redacted for export
//! before it reaches a sink.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use compact_adapters::config::{Config, TelemetryConfig};
use compact_adapters::exporter::{BackgroundSink, ExportedEvent, open_exporter};
use compact_core::redact::Redactor;
use compact_runtime::port::event::{EventSink, FanoutSink, RedactingSink};

use crate::error::Error;

/// A queue in front of an exporter.
type ExportQueue = Arc<BackgroundSink<ExportedEvent>>;

/// The queues of this process, by where they lead.
static EXPORTERS: Mutex<Vec<(TelemetryConfig, ExportQueue)>> = Mutex::new(Vec::new());

/// Builds the sink of a configuration: its exporter, then the program's own sinks.
pub(crate) fn build_sink(
    config: &Config,
    own: &[Arc<dyn EventSink>],
    redactor: &Arc<Redactor>,
) -> Result<Arc<dyn EventSink>, Error> {
    let mut sinks: Vec<Box<dyn EventSink>> = Vec::new();
    if let Some(queue) = find_exporter(&config.telemetry)? {
        sinks.push(Box::new(queue));
    }
    for sink in own {
        sinks.push(Box::new(Arc::clone(sink)));
    }
    let all: Arc<dyn EventSink> = Arc::new(FanoutSink(sinks));
    Ok(Arc::new(RedactingSink::new(Arc::clone(redactor), all)))
}

/// Waits at most `limit` for exporters to deliver what is left; returns how many events they never
/// delivered.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(compact::event::flush_exporters(Duration::from_millis(10)), 0);
/// ```
pub fn flush_exporters(limit: Duration) -> u64 {
    let queues = EXPORTERS.lock().unwrap_or_else(PoisonError::into_inner);
    queues
        .iter()
        .map(|(_, queue)| queue.flush(limit) + queue.dropped())
        .sum()
}

/// Opens the exporter that a configuration names, or finds the queue that leads there already.
fn find_exporter(config: &TelemetryConfig) -> Result<Option<ExportQueue>, Error> {
    let mut queues = EXPORTERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = queues.iter().find(|(known, _)| known == config) {
        return Ok(Some(Arc::clone(known)));
    }
    let Some(queue) = open_exporter(config)? else {
        return Ok(None);
    };
    let queue = Arc::new(queue);
    queues.push((config.clone(), Arc::clone(&queue)));
    Ok(Some(queue))
}
