//! What the gateway counts, as Prometheus reads it. Labels name classes and upstreams, never a session or a key.

use std::fmt::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The counters of a gateway.
pub(crate) struct GatewayMetrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    answers: AtomicU64,
    compactions: Family<CauseLabel, Counter>,
    failures: Family<ReasonLabel, Counter>,
    overflows: Family<OverflowLabels, Counter>,
    usage: Family<UsageLabels, Counter>,
    lookups: Counter,
    nudges: Counter,
    preflight: Histogram,
    /// Requests that are being answered.
    pub(crate) in_flight: Gauge,
    /// Sessions in memory.
    pub(crate) sessions: Gauge<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    class: &'static str,
    upstream: String,
    status: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabel {
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OverflowLabels {
    upstream: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UsageLabels {
    upstream: String,
    kind: &'static str,
}

impl GatewayMetrics {
    /// Sets every counter to zero.
    pub(crate) fn new() -> GatewayMetrics {
        let mut metrics = GatewayMetrics {
            registry: Registry::with_prefix("compact_gateway"),
            requests: Family::default(),
            answers: AtomicU64::new(0),
            compactions: Family::default(),
            failures: Family::default(),
            overflows: Family::default(),
            usage: Family::default(),
            lookups: Counter::default(),
            nudges: Counter::default(),
            preflight: Histogram::new(exponential_buckets(0.000_25, 2.0, 16)),
            in_flight: Gauge::default(),
            sessions: Gauge::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        let requests = self.requests.clone();
        registry.register(
            "requests",
            "Answers, by class, upstream and status",
            requests,
        );
        let compactions = self.compactions.clone();
        registry.register(
            "compactions",
            "Histories that were compacted, by what for",
            compactions,
        );
        let failures = self.failures.clone();
        let help = "Requests that went out unchanged because something of ours failed";
        registry.register("failed_open", help, failures);
        let overflows = self.overflows.clone();
        registry.register(
            "overflows",
            "Prompts that an upstream refused as too long",
            overflows,
        );
        let usage = self.usage.clone();
        registry.register("usage_tokens", "Tokens that upstreams reported", usage);
        let lookups = self.lookups.clone();
        let help = "Calls of a model that were answered here";
        registry.register("lookups", help, lookups);
        let nudges = self.nudges.clone();
        let help = "Answers that told a client of more tokens than its provider reported";
        registry.register("nudges", help, nudges);
        let preflight = self.preflight.clone();
        let help = "Time from a request's body to what is sent";
        registry.register("preflight_seconds", help, preflight);
        let in_flight = self.in_flight.clone();
        registry.register("in_flight", "Requests that are being answered", in_flight);
        let sessions = self.sessions.clone();
        registry.register("sessions", "Sessions in memory", sessions);
    }

    /// Counts an answer.
    pub(crate) fn count_answer(&self, class: &'static str, upstream: &str, status: u16) {
        let labels = RequestLabels {
            class,
            upstream: upstream.to_owned(),
            status: u32::from(status),
        };
        self.requests.get_or_create(&labels).inc();
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many answers were counted.
    pub(crate) fn answer_count(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Counts a compaction.
    pub(crate) fn count_compaction(&self, cause: &'static str) {
        self.compactions.get_or_create(&CauseLabel { cause }).inc();
    }

    /// Counts a failure of ours, after which a request went out as it came.
    pub(crate) fn count_failure(&self, reason: &'static str) {
        self.failures.get_or_create(&ReasonLabel { reason }).inc();
    }

    /// Counts a prompt that an upstream refused.
    pub(crate) fn count_overflow(&self, upstream: &str, outcome: &'static str) {
        let upstream = upstream.to_owned();
        let labels = OverflowLabels { upstream, outcome };
        self.overflows.get_or_create(&labels).inc();
    }

    /// Counts what an upstream reported.
    pub(crate) fn count_usage(&self, upstream: &str, kind: &'static str, tokens: u64) {
        let upstream = upstream.to_owned();
        let labels = UsageLabels { upstream, kind };
        self.usage.get_or_create(&labels).inc_by(tokens);
    }

    /// Counts calls of a model that were answered here.
    pub(crate) fn count_lookups(&self, calls: usize) {
        self.lookups.inc_by(calls as u64);
    }

    /// Counts an answer that tells a client of more tokens than its provider reported.
    pub(crate) fn count_nudge(&self) {
        self.nudges.inc();
    }

    /// Notes how long it took to find out what to send.
    pub(crate) fn note_preflight(&self, took: Duration) {
        self.preflight.observe(took.as_secs_f64());
    }

    /// Writes all of it down.
    pub(crate) fn render(&self) -> Result<String, Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
