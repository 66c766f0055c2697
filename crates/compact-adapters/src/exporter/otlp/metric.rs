//! Metrics: sums and histograms over every event, cumulative since the exporter began.

use std::collections::BTreeMap;

use compact_core::event::{Event, EventKind, UsageReport};
use compact_core::trigger::CompactionCause;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};

use super::ExportedEvent;
use super::attribute::{key_value, str_field, string_value};

/// The metrics that events are counted for.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum MetricName {
    Compactions,
    Fallbacks,
    Pressure,
    Tokens,
    Retention,
    CompactionDuration,
    CallDuration,
    RecallDuration,
    UsageTokens,
    UsageCost,
    GenAiTokens,
    Events,
    Dropped,
}

const SECONDS: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
];
const SHARES: &[f64] = &[
    0.25, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 1.0, 1.2,
];
const CONTEXTS: &[f64] = &[
    0.0, 500.0, 1e3, 2e3, 4e3, 8e3, 16e3, 32e3, 64e3, 128e3, 256e3, 512e3, 1e6, 2e6,
];
/// As the conventions for generative AI advise.
const GEN_AI: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

impl MetricName {
    fn as_str(self) -> &'static str {
        match self {
            MetricName::Compactions => "compact.compactions",
            MetricName::Fallbacks => "compact.fallbacks",
            MetricName::Pressure => "compact.pressure",
            MetricName::Tokens => "compact.tokens",
            MetricName::Retention => "compact.retention",
            MetricName::CompactionDuration => "compact.compaction.duration",
            MetricName::CallDuration => "compact.call.duration",
            MetricName::RecallDuration => "compact.recall.duration",
            MetricName::UsageTokens => "compact.usage.tokens",
            MetricName::UsageCost => "compact.usage.cost",
            MetricName::GenAiTokens => "gen_ai.client.token.usage",
            MetricName::Events => "compact.events",
            MetricName::Dropped => "compact.events.dropped",
        }
    }

    fn description(self) -> &'static str {
        match self {
            MetricName::Compactions => "Compactions by outcome and cause",
            MetricName::Fallbacks => "Times that a fallback replaced a summarizer",
            MetricName::Pressure => "Context as a share of the window, at each decision",
            MetricName::Tokens => "Tokens by category, before and after a compaction",
            MetricName::Retention => "Share of the anchors that a view still shows",
            MetricName::CompactionDuration => "From the start of a compaction to its record",
            MetricName::CallDuration => "Duration of a call, compaction included",
            MetricName::RecallDuration => "Duration of a recall",
            MetricName::UsageTokens => "Tokens that providers reported, with cached ones separate",
            MetricName::UsageCost => "Cost of the reported tokens by list price",
            MetricName::GenAiTokens => "Number of input and output tokens used",
            MetricName::Events => "Events by name",
            MetricName::Dropped => "Events that could not be delivered",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            MetricName::Compactions => "{compaction}",
            MetricName::Fallbacks => "{fallback}",
            MetricName::Pressure | MetricName::Retention => "1",
            MetricName::CompactionDuration
            | MetricName::CallDuration
            | MetricName::RecallDuration => "s",
            MetricName::Tokens | MetricName::UsageTokens | MetricName::GenAiTokens => "{token}",
            MetricName::UsageCost => "USD",
            MetricName::Events | MetricName::Dropped => "{event}",
        }
    }

    /// Returns the upper ends of a histogram's buckets; a sum has none.
    fn bounds(self) -> &'static [f64] {
        match self {
            MetricName::Pressure | MetricName::Retention => SHARES,
            MetricName::Tokens => CONTEXTS,
            MetricName::CompactionDuration
            | MetricName::CallDuration
            | MetricName::RecallDuration => SECONDS,
            MetricName::GenAiTokens => GEN_AI,
            _ => &[],
        }
    }
}

/// One number with what it is counted by.
struct Measurement {
    name: MetricName,
    value: f64,
    by: Vec<(&'static str, String)>,
}

/// The combinations that are told apart; further ones are counted together.
const MOST_SERIES: usize = 1000;

type MetricSeries = (MetricName, Vec<(&'static str, String)>);

pub(super) struct EventMetrics {
    since: u64,
    series: BTreeMap<MetricSeries, SeriesPoint>,
}

#[derive(Default)]
struct SeriesPoint {
    count: u64,
    sum: f64,
    buckets: Vec<u64>,
}

impl EventMetrics {
    pub(super) fn new(since: u64) -> EventMetrics {
        EventMetrics {
            since,
            series: BTreeMap::new(),
        }
    }

    /// Counts what an event says.
    pub(super) fn count(&mut self, event: &ExportedEvent) {
        for Measurement { name, value, by } in measure_event(event) {
            let mut series = (name, by);
            if self.series.len() >= MOST_SERIES && !self.series.contains_key(&series) {
                series.1 = vec![("otel.metric.overflow", "true".to_owned())];
            }
            let point = self.series.entry(series).or_default();
            point.add(value, name.bounds());
        }
    }

    /// Returns everything counted so far.
    pub(super) fn collect(&self, now: u64, dropped: u64) -> Vec<Metric> {
        let lost = SeriesPoint {
            count: 1,
            sum: dropped as f64,
            buckets: Vec::new(),
        };
        let dropped = (MetricName::Dropped, Vec::new());
        let mut by_name: BTreeMap<MetricName, Vec<(&MetricSeries, &SeriesPoint)>> = BTreeMap::new();
        for (series, point) in self.series.iter().chain([(&dropped, &lost)]) {
            by_name.entry(series.0).or_default().push((series, point));
        }
        let times = (self.since, now);
        by_name
            .into_iter()
            .map(|(name, points)| build_metric(name, &points, times))
            .collect()
    }
}

impl SeriesPoint {
    fn add(&mut self, value: f64, bounds: &[f64]) {
        self.count += 1;
        self.sum += value;
        if bounds.is_empty() {
            return;
        }
        self.buckets.resize(bounds.len() + 1, 0);
        let at = bounds.iter().take_while(|bound| value > **bound).count();
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket += 1;
        }
    }
}

fn build_metric(
    name: MetricName,
    points: &[(&MetricSeries, &SeriesPoint)],
    times: (u64, u64),
) -> Metric {
    let bounds = name.bounds();
    let temporality = AggregationTemporality::Cumulative as i32;
    let data = if bounds.is_empty() {
        Data::Sum(Sum {
            data_points: points.iter().map(|p| sum_point(p, times)).collect(),
            aggregation_temporality: temporality,
            is_monotonic: true,
        })
    } else {
        Data::Histogram(Histogram {
            data_points: points
                .iter()
                .map(|p| histogram_point(p, bounds, times))
                .collect(),
            aggregation_temporality: temporality,
        })
    };
    Metric {
        name: name.as_str().to_owned(),
        unit: name.unit().to_owned(),
        description: name.description().to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn sum_point(
    (series, point): &(&MetricSeries, &SeriesPoint),
    (since, now): (u64, u64),
) -> NumberDataPoint {
    let value = match series.0 {
        MetricName::UsageCost => Number::AsDouble(point.sum),
        _ => Number::AsInt(point.sum as i64),
    };
    NumberDataPoint {
        attributes: series_attributes(series),
        start_time_unix_nano: since,
        time_unix_nano: now,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

fn histogram_point(
    (series, point): &(&MetricSeries, &SeriesPoint),
    bounds: &[f64],
    (since, now): (u64, u64),
) -> HistogramDataPoint {
    HistogramDataPoint {
        attributes: series_attributes(series),
        start_time_unix_nano: since,
        time_unix_nano: now,
        count: point.count,
        sum: Some(point.sum),
        bucket_counts: point.buckets.clone(),
        explicit_bounds: bounds.to_vec(),
        ..HistogramDataPoint::default()
    }
}

fn series_attributes(series: &MetricSeries) -> Vec<KeyValue> {
    let label = |(key, value): &(&str, String)| key_value(key, string_value(value));
    series.1.iter().map(label).collect()
}

/// Returns everything that an event is counted for; of a host's own, that it happened.
fn measure_event(exported: &ExportedEvent) -> Vec<Measurement> {
    let name = str_field(&exported.json, "event").unwrap_or("event");
    let mut out = vec![count_one(
        MetricName::Events,
        vec![("event", name.to_owned())],
    )];
    out.extend(exported.event.iter().flat_map(measure_kind));
    out.retain(|measured| measured.value.is_finite());
    out
}

fn measure_kind(event: &Event) -> Vec<Measurement> {
    match &event.kind {
        EventKind::TriggerDecision { pressure, .. } => {
            vec![observe(MetricName::Pressure, *pressure, vec![])]
        }
        EventKind::Completed { .. } => measure_completed(event),
        EventKind::Failed { .. } => vec![count_outcome(event, "failed")],
        EventKind::Discarded { .. } => vec![count_outcome(event, "discarded")],
        EventKind::Fallback {
            reason, fallback, ..
        } => {
            let fallback = ("fallback", fallback.as_str().to_owned());
            let by = vec![fallback, ("reason", reason.clone())];
            vec![count_one(MetricName::Fallbacks, by)]
        }
        EventKind::Recalled { duration_ms, .. } => {
            vec![observe_ms(MetricName::RecallDuration, *duration_ms, vec![])]
        }
        EventKind::CallEnded {
            call,
            outcome,
            duration_ms,
        } => {
            let outcome = ("outcome", outcome.as_str().to_owned());
            let by = vec![("call", call.clone()), outcome];
            vec![observe_ms(MetricName::CallDuration, *duration_ms, by)]
        }
        EventKind::Usage(report) => measure_usage(event, report),
        _ => Vec::new(),
    }
}

fn measure_completed(event: &Event) -> Vec<Measurement> {
    let EventKind::Completed {
        before,
        after,
        retention,
        duration_ms,
        ..
    } = &event.kind
    else {
        return Vec::new();
    };
    let by = vec![cause_label(event)];
    let mut out = vec![
        count_outcome(event, "completed"),
        observe_ms(MetricName::CompactionDuration, *duration_ms, by),
    ];
    out.extend(retention.map(|share| observe(MetricName::Retention, share, vec![])));
    for (phase, tokens) in [("before", before), ("after", after)] {
        out.extend(tokens.by_name().map(|(category, tokens)| {
            let by = vec![
                ("category", category.to_owned()),
                ("phase", phase.to_owned()),
            ];
            observe(MetricName::Tokens, tokens.0 as f64, by)
        }));
    }
    out
}

fn measure_usage(event: &Event, report: &UsageReport) -> Vec<Measurement> {
    let model = event.scope.model.as_deref().unwrap_or("unknown");
    let model = || ("gen_ai.request.model", model.to_owned());
    let mut out = Vec::new();
    let input = report.turn_input as f64;
    let output = report.turn_output as f64;
    let cache_read = report.turn_cache_read as f64;
    let cache_creation = report.turn_cache_creation as f64;
    for (kind, tokens) in [
        ("input", input),
        ("output", output),
        ("cache_read", cache_read),
        ("cache_creation", cache_creation),
    ] {
        let by = vec![("type", kind.to_owned()), model()];
        out.push(observe(MetricName::UsageTokens, tokens, by));
    }
    let cost = report.turn_cost_usd;
    out.extend(cost.map(|cost| observe(MetricName::UsageCost, cost, vec![model()])));
    let prompt = input + cache_read + cache_creation;
    for (kind, tokens) in [("input", prompt), ("output", output)] {
        let operation = ("gen_ai.operation.name", "chat".to_owned());
        let by = vec![operation, model(), ("gen_ai.token.type", kind.to_owned())];
        out.push(observe(MetricName::GenAiTokens, tokens, by));
    }
    out
}

fn observe(name: MetricName, value: f64, by: Vec<(&'static str, String)>) -> Measurement {
    Measurement { name, value, by }
}

fn observe_ms(name: MetricName, ms: f64, by: Vec<(&'static str, String)>) -> Measurement {
    observe(name, ms / 1000.0, by)
}

fn count_one(name: MetricName, by: Vec<(&'static str, String)>) -> Measurement {
    observe(name, 1.0, by)
}

fn count_outcome(event: &Event, outcome: &str) -> Measurement {
    let by = vec![("outcome", outcome.to_owned()), cause_label(event)];
    count_one(MetricName::Compactions, by)
}

fn cause_label(event: &Event) -> (&'static str, String) {
    let cause = event.scope.cause.map_or("unknown", CompactionCause::as_str);
    ("cause", cause.to_owned())
}
