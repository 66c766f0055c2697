//! Events to an OpenTelemetry collector, as logs, spans and metrics.
//!
//! Each event is a log record at once, and a span event on the span of its call when that ends; both
//! carry the same ids. Metrics are counted from every event, whatever is sampled. One thread sends,
//! behind a [`BackgroundSink`]: what a collector does not take in time is dropped and counted there.
//!
//! The messages are OpenTelemetry's own; batching, spans and sums are ours, because the events that
//! we have are complete and a single queue can say exactly what was lost.

mod attribute;
mod metric;
mod settings;
mod span;
#[cfg(test)]
mod tests;
mod transport;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::background::BatchExporter;
use super::console;
use super::{BackgroundSink, ExportedEvent};
use attribute::{event_attributes, event_time, id_bytes, str_field};
use metric::EventMetrics;
use span::SpanAssembler;
use transport::Transport;

pub use settings::{CollectorProtocol, CollectorSettings, OtlpSignal};

/// Returns a sink that sends events to a collector. Fails only where there can be no client at all.
pub fn otlp_sink(settings: CollectorSettings) -> Result<BackgroundSink<ExportedEvent>, String> {
    Ok(BackgroundSink::with_exporter(OtlpBatchExporter::new(
        settings,
    )?))
}

struct OtlpBatchExporter {
    settings: CollectorSettings,
    transport: Transport,
    runtime: Runtime,
    resource: Resource,
    spans: SpanAssembler,
    metrics: EventMetrics,
    metrics_sent: Instant,
}

/// How many records of a request did not arrive, and what was in it.
type LostEvents = u64;

impl OtlpBatchExporter {
    fn new(settings: CollectorSettings) -> Result<OtlpBatchExporter, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        Ok(OtlpBatchExporter {
            transport: Transport::new(&settings)?,
            resource: Resource {
                attributes: settings.resource(),
                ..Resource::default()
            },
            spans: SpanAssembler::new(settings.sampler),
            metrics: EventMetrics::new(unix_nanoseconds()),
            metrics_sent: Instant::now(),
            runtime,
            settings,
        })
    }

    fn logs_request(&self, events: &[ExportedEvent]) -> Option<ExportLogsServiceRequest> {
        if events.is_empty() || !self.settings.sends(OtlpSignal::Logs) {
            return None;
        }
        let logs = ScopeLogs {
            scope: Some(instrumentation_scope()),
            log_records: events.iter().map(|event| log_record(&event.json)).collect(),
            ..ScopeLogs::default()
        };
        Some(ExportLogsServiceRequest {
            resource_logs: vec![ResourceLogs {
                resource: Some(self.resource.clone()),
                scope_logs: vec![logs],
                ..ResourceLogs::default()
            }],
        })
    }

    fn traces_request(&self, spans: Vec<Span>) -> Option<ExportTraceServiceRequest> {
        if spans.is_empty() || !self.settings.sends(OtlpSignal::Traces) {
            return None;
        }
        let spans = ScopeSpans {
            scope: Some(instrumentation_scope()),
            spans,
            ..ScopeSpans::default()
        };
        Some(ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![spans],
                ..ResourceSpans::default()
            }],
        })
    }

    fn metrics_request(&self, dropped: u64) -> Option<ExportMetricsServiceRequest> {
        if !self.settings.sends(OtlpSignal::Metrics) {
            return None;
        }
        let metrics = ScopeMetrics {
            scope: Some(instrumentation_scope()),
            metrics: self.metrics.collect(unix_nanoseconds(), dropped),
            ..ScopeMetrics::default()
        };
        Some(ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource.clone()),
                scope_metrics: vec![metrics],
                ..ResourceMetrics::default()
            }],
        })
    }
}

impl BatchExporter for OtlpBatchExporter {
    type Item = ExportedEvent;

    fn export_batch(&mut self, burst: Vec<ExportedEvent>, dropped: u64) -> LostEvents {
        let mut ended = Vec::new();
        for event in &burst {
            self.metrics.count(event);
            ended.extend(self.spans.add_event(event));
        }
        let (logs, traces) = (self.logs_request(&burst), self.traces_request(ended));
        let sent = self.runtime.block_on(async {
            let logs = self.transport.send(OtlpSignal::Logs, logs);
            let traces = self.transport.send(OtlpSignal::Traces, traces);
            tokio::join!(logs, traces).0
        });
        if self.time_to_flush().is_some_and(|wait| wait.is_zero()) {
            self.flush(dropped);
        }
        if sent { 0 } else { burst.len() as LostEvents }
    }

    fn time_to_flush(&self) -> Option<Duration> {
        let interval = self.settings.metric_interval;
        Some(interval.saturating_sub(self.metrics_sent.elapsed()))
    }

    fn flush(&mut self, dropped: u64) {
        self.metrics_sent = Instant::now();
        let sums = self.metrics_request(dropped);
        let send = self.transport.send(OtlpSignal::Metrics, sums);
        self.runtime.block_on(send);
    }
}

fn instrumentation_scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "compact".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

/// Returns an event as a log record: the line that a person would read, and every field as an attribute.
fn log_record(event: &Value) -> LogRecord {
    let severity = match str_field(event, "severity") {
        Some("high" | "error") => SeverityNumber::Error,
        Some("warning") => SeverityNumber::Warn,
        _ => SeverityNumber::Info,
    };
    LogRecord {
        time_unix_nano: event_time(event),
        observed_time_unix_nano: unix_nanoseconds(),
        severity_number: severity as i32,
        severity_text: match severity {
            SeverityNumber::Error => "ERROR",
            SeverityNumber::Warn => "WARN",
            _ => "INFO",
        }
        .to_owned(),
        event_name: str_field(event, "event").unwrap_or_default().to_owned(),
        body: Some(attribute::string_value(&console::event_line(event))),
        attributes: event_attributes(event),
        trace_id: id_bytes(event, "trace_id"),
        span_id: id_bytes(event, "span_id"),
        ..LogRecord::default()
    }
}

/// Returns the time in nanoseconds since 1970.
fn unix_nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
