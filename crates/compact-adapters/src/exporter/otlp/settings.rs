//! Where the collector is and how it is spoken to: OpenTelemetry's own variables, under what a
//! configuration says.
//!
//! A variable that makes no sense is passed over: it may be meant for another program, and
//! telemetry is no reason to stop.

use std::collections::BTreeMap;
use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::KeyValue;

use super::attribute::{key_value, string_value};

/// The protocol of requests to a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectorProtocol {
    /// gRPC over HTTP/2, usually on port 4317.
    Grpc,
    /// Protocol buffers over HTTP, usually on port 4318.
    Http,
}

/// The kinds of data that a collector accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OtlpSignal {
    /// A record for each event.
    Logs,
    /// A span for each call.
    Traces,
    /// Sums and histograms over events.
    Metrics,
}

/// The share of traces that is sent; logs and metrics are never sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TraceSampler(f64);

impl TraceSampler {
    /// Returns whether a trace is sampled, which depends only on its id.
    pub(super) fn is_sampled(self, trace_id: &[u8]) -> bool {
        let low = trace_id.iter().rev().take(7).rev();
        let number = low.fold(0_u64, |n, byte| (n << 8) | u64::from(*byte));
        (number as f64) < self.0 * (1_u64 << 56) as f64
    }
}

/// The address, protocol and limits of a collector.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectorSettings {
    /// The protocol of requests.
    pub protocol: CollectorProtocol,
    /// The longest that a request may take.
    pub timeout: Duration,
    /// How often metrics are sent.
    pub metric_interval: Duration,
    places: BTreeMap<OtlpSignal, String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) sampler: TraceSampler,
    resource: BTreeMap<String, String>,
}

const SIGNALS: [OtlpSignal; 3] = [OtlpSignal::Logs, OtlpSignal::Traces, OtlpSignal::Metrics];

impl CollectorSettings {
    /// Returns what variables say; `endpoint` and `protocol` come before them where they are given.
    pub fn new(
        endpoint: Option<&str>,
        protocol: Option<CollectorProtocol>,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> CollectorSettings {
        let variables = OtelVariables(variables.into_iter().collect());
        let protocol = protocol.unwrap_or_else(|| variables.protocol());
        let place = |signal| (signal, variables.signal_url(signal, endpoint, protocol));
        let is_on = |signal: &OtlpSignal| !variables.is_off(*signal);
        CollectorSettings {
            places: SIGNALS.into_iter().filter(is_on).map(place).collect(),
            timeout: variables.read_milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000),
            metric_interval: variables.read_milliseconds("OTEL_METRIC_EXPORT_INTERVAL", 60_000),
            headers: variables.read_pairs("OTEL_EXPORTER_OTLP_HEADERS"),
            sampler: variables.sampler(),
            resource: variables.resource(),
            protocol,
        }
    }

    /// Returns whether a kind of data is wanted.
    pub fn sends(&self, signal: OtlpSignal) -> bool {
        self.places.contains_key(&signal)
    }

    /// Returns where it is posted.
    pub(super) fn signal_url(&self, signal: OtlpSignal) -> Option<&str> {
        self.places.get(&signal).map(String::as_str)
    }

    /// Returns the attributes that name this service.
    pub(super) fn resource(&self) -> Vec<KeyValue> {
        let attribute = |(key, value): (&String, &String)| key_value(key, string_value(value));
        self.resource.iter().map(attribute).collect()
    }
}

struct OtelVariables(BTreeMap<String, String>);

impl OtelVariables {
    /// Returns a variable that is set and not blank.
    fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name)?.trim();
        (!value.is_empty()).then_some(value)
    }

    fn protocol(&self) -> CollectorProtocol {
        match self.get("OTEL_EXPORTER_OTLP_PROTOCOL") {
            Some("grpc") => CollectorProtocol::Grpc,
            _ => CollectorProtocol::Http,
        }
    }

    fn is_off(&self, signal: OtlpSignal) -> bool {
        let exporter = self.get(&format!("OTEL_{}_EXPORTER", signal.variable_part()));
        let disabled = self.get("OTEL_SDK_DISABLED");
        exporter == Some("none") || disabled.is_some_and(|v| v.eq_ignore_ascii_case("true"))
    }

    /// Returns the address of a signal: its own as it is, or the common one with the signal's path added.
    fn signal_url(
        &self,
        signal: OtlpSignal,
        endpoint: Option<&str>,
        protocol: CollectorProtocol,
    ) -> String {
        let own = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.variable_part());
        let own = self.get(&own).filter(|_| endpoint.is_none());
        let all = endpoint.or_else(|| self.get("OTEL_EXPORTER_OTLP_ENDPOINT"));
        match protocol {
            CollectorProtocol::Grpc => {
                let host = own.or(all).unwrap_or("http://localhost:4317");
                format!("{}{}", with_scheme(host), signal.grpc_path())
            }
            CollectorProtocol::Http => match own {
                Some(own) => with_scheme(own),
                None => {
                    let base = with_scheme(all.unwrap_or("http://localhost:4318"));
                    format!("{}{}", base.trim_end_matches('/'), signal.http_path())
                }
            },
        }
    }

    fn read_milliseconds(&self, name: &str, otherwise: u64) -> Duration {
        let given = self.get(name).and_then(|text| text.parse::<u64>().ok());
        Duration::from_millis(given.filter(|ms| *ms > 0).unwrap_or(otherwise))
    }

    /// Parses percent-encoded pairs such as `a=1,b=2`.
    fn read_pairs(&self, name: &str) -> Vec<(String, String)> {
        let list = self.get(name).unwrap_or_default().split(',');
        let pair = |text: &str| {
            let (key, value) = text.split_once('=')?;
            let key = key.trim();
            (!key.is_empty()).then(|| (key.to_owned(), percent_decode(value.trim())))
        };
        list.filter_map(pair).collect()
    }

    fn sampler(&self) -> TraceSampler {
        let name = self.get("OTEL_TRACES_SAMPLER").unwrap_or_default();
        let ratio = || {
            let ratio = self.get("OTEL_TRACES_SAMPLER_ARG")?.parse::<f64>().ok();
            ratio.filter(|ratio| (0.0..=1.0).contains(ratio))
        };
        TraceSampler(match name.trim_start_matches("parentbased_") {
            "always_off" => 0.0,
            "traceidratio" => ratio().unwrap_or(1.0),
            _ => 1.0,
        })
    }

    fn resource(&self) -> BTreeMap<String, String> {
        let mut resource = BTreeMap::from([
            ("service.name".to_owned(), "compact".to_owned()),
            (
                "service.version".to_owned(),
                env!("CARGO_PKG_VERSION").to_owned(),
            ),
            ("process.pid".to_owned(), std::process::id().to_string()),
        ]);
        resource.extend(self.read_pairs("OTEL_RESOURCE_ATTRIBUTES"));
        if let Some(name) = self.get("OTEL_SERVICE_NAME") {
            resource.insert("service.name".to_owned(), name.to_owned());
        }
        resource
    }
}

fn with_scheme(place: &str) -> String {
    if place.contains("://") {
        place.trim_end_matches('/').to_owned()
    } else {
        format!("http://{}", place.trim_end_matches('/'))
    }
}

/// Decodes percent escapes such as `%20`; anything else stays.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|hex| {
            let hex = std::str::from_utf8(hex).ok()?;
            u8::from_str_radix(hex, 16).ok()
        });
        match code.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl OtlpSignal {
    fn variable_part(self) -> &'static str {
        match self {
            OtlpSignal::Logs => "LOGS",
            OtlpSignal::Traces => "TRACES",
            OtlpSignal::Metrics => "METRICS",
        }
    }

    fn http_path(self) -> &'static str {
        match self {
            OtlpSignal::Logs => "/v1/logs",
            OtlpSignal::Traces => "/v1/traces",
            OtlpSignal::Metrics => "/v1/metrics",
        }
    }

    fn grpc_path(self) -> &'static str {
        match self {
            OtlpSignal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
            OtlpSignal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            OtlpSignal::Metrics => {
                "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
            }
        }
    }
}
