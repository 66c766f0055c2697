//! Events to an OpenTelemetry collector, as logs, spans and metrics (S2-52, S2-151).
//!
//! Each event is a log record at once, and a span event on the span of its call when that ends; both
//! carry the same ids. Metrics are counted from every event, whatever is sampled. One thread sends,
//! behind a [`Background`]: what a collector does not take in time is dropped and counted there.
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

use super::Background;
use super::background::Courier;
use super::console;
use attribute::{attributes, identity, moment, text};
use metric::Metrics;
use span::Spans;
use transport::Transport;

pub use settings::{Protocol, Settings, Signal};

/// A sink that sends events to a collector. Fails only where there can be no client at all.
pub fn otlp(settings: Settings) -> Result<Background, String> {
    Ok(Background::carried_by(Otlp::new(settings)?))
}

struct Otlp {
    settings: Settings,
    transport: Transport,
    runtime: Runtime,
    resource: Resource,
    spans: Spans,
    metrics: Metrics,
    metrics_sent: Instant,
}

/// How many records of a request did not arrive, and what was in it.
type Sent = u64;

impl Otlp {
    fn new(settings: Settings) -> Result<Otlp, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Otlp {
            transport: Transport::new(&settings)?,
            resource: Resource {
                attributes: settings.resource(),
                ..Resource::default()
            },
            spans: Spans::new(settings.sampler),
            metrics: Metrics::new(now()),
            metrics_sent: Instant::now(),
            runtime,
            settings,
        })
    }

    fn logs(&self, events: &[Value]) -> Option<ExportLogsServiceRequest> {
        if events.is_empty() || !self.settings.sends(Signal::Logs) {
            return None;
        }
        let logs = ScopeLogs {
            scope: Some(scope()),
            log_records: events.iter().map(log_record).collect(),
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

    fn traces(&self, spans: Vec<Span>) -> Option<ExportTraceServiceRequest> {
        if spans.is_empty() || !self.settings.sends(Signal::Traces) {
            return None;
        }
        let spans = ScopeSpans {
            scope: Some(scope()),
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

    fn sums(&self, dropped: u64) -> Option<ExportMetricsServiceRequest> {
        if !self.settings.sends(Signal::Metrics) {
            return None;
        }
        let metrics = ScopeMetrics {
            scope: Some(scope()),
            metrics: self.metrics.collect(now(), dropped),
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

impl Courier for Otlp {
    fn carry(&mut self, burst: Vec<Value>, dropped: u64) -> Sent {
        let mut ended = Vec::new();
        for event in &burst {
            self.metrics.count(event);
            ended.extend(self.spans.take(event));
        }
        let (logs, traces) = (self.logs(&burst), self.traces(ended));
        let sent = self.runtime.block_on(async {
            let logs = self.transport.send(Signal::Logs, logs);
            let traces = self.transport.send(Signal::Traces, traces);
            tokio::join!(logs, traces).0
        });
        if self.due().is_some_and(|wait| wait.is_zero()) {
            self.flush(dropped);
        }
        if sent { 0 } else { burst.len() as Sent }
    }

    fn due(&self) -> Option<Duration> {
        let interval = self.settings.metric_interval;
        Some(interval.saturating_sub(self.metrics_sent.elapsed()))
    }

    fn flush(&mut self, dropped: u64) {
        self.metrics_sent = Instant::now();
        let sums = self.sums(dropped);
        let send = self.transport.send(Signal::Metrics, sums);
        self.runtime.block_on(send);
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "compact".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

/// An event as a log record: the line that a person would read, and every field as an attribute.
fn log_record(event: &Value) -> LogRecord {
    let severity = match text(event, "severity") {
        Some("high") => SeverityNumber::Error,
        Some("warning") => SeverityNumber::Warn,
        _ => SeverityNumber::Info,
    };
    LogRecord {
        time_unix_nano: moment(event),
        observed_time_unix_nano: now(),
        severity_number: severity as i32,
        severity_text: match severity {
            SeverityNumber::Error => "ERROR",
            SeverityNumber::Warn => "WARN",
            _ => "INFO",
        }
        .to_owned(),
        event_name: text(event, "event").unwrap_or_default().to_owned(),
        body: Some(attribute::string(&console::line(event))),
        attributes: attributes(event),
        trace_id: identity(event, "trace_id"),
        span_id: identity(event, "span_id"),
        ..LogRecord::default()
    }
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
