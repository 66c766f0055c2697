//! Metrics: sums and histograms over every event, cumulative since the exporter began.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};
use serde_json::Value;

use super::attribute::{key_value, number, string, text};

/// What is measured.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Name {
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

impl Name {
    fn as_str(self) -> &'static str {
        match self {
            Name::Compactions => "compact.compactions",
            Name::Fallbacks => "compact.fallbacks",
            Name::Pressure => "compact.pressure",
            Name::Tokens => "compact.tokens",
            Name::Retention => "compact.retention",
            Name::CompactionDuration => "compact.compaction.duration",
            Name::CallDuration => "compact.call.duration",
            Name::RecallDuration => "compact.recall.duration",
            Name::UsageTokens => "compact.usage.tokens",
            Name::UsageCost => "compact.usage.cost",
            Name::GenAiTokens => "gen_ai.client.token.usage",
            Name::Events => "compact.events",
            Name::Dropped => "compact.events.dropped",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Name::Compactions => "Compactions by outcome and cause",
            Name::Fallbacks => "Times that another took a model's place",
            Name::Pressure => "The context over the window, at each decision",
            Name::Tokens => "Tokens by category, before and after a compaction",
            Name::Retention => "Anchors that a view shows, of those that it should",
            Name::CompactionDuration => "From the start of a compaction to its record",
            Name::CallDuration => "What a call takes, compaction included",
            Name::RecallDuration => "What finding something archived takes",
            Name::UsageTokens => "Tokens that providers reported, cached ones apart",
            Name::UsageCost => "What they cost by list price",
            Name::GenAiTokens => "Number of input and output tokens used",
            Name::Events => "Events by name",
            Name::Dropped => "Events that could not be passed on",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Name::Compactions => "{compaction}",
            Name::Fallbacks => "{fallback}",
            Name::Pressure | Name::Retention => "1",
            Name::CompactionDuration | Name::CallDuration | Name::RecallDuration => "s",
            Name::Tokens | Name::UsageTokens | Name::GenAiTokens => "{token}",
            Name::UsageCost => "USD",
            Name::Events | Name::Dropped => "{event}",
        }
    }

    /// The upper ends of a histogram's buckets; a sum has none.
    fn bounds(self) -> &'static [f64] {
        match self {
            Name::Pressure | Name::Retention => SHARES,
            Name::Tokens => CONTEXTS,
            Name::CompactionDuration | Name::CallDuration | Name::RecallDuration => SECONDS,
            Name::GenAiTokens => GEN_AI,
            _ => &[],
        }
    }
}

/// One number with what it is counted by.
struct Measured {
    name: Name,
    value: f64,
    by: Vec<(&'static str, String)>,
}

/// The combinations that are told apart; further ones are counted together.
const MOST_SERIES: usize = 1000;

type Series = (Name, Vec<(&'static str, String)>);

pub(super) struct Metrics {
    since: u64,
    series: BTreeMap<Series, Point>,
}

#[derive(Default)]
struct Point {
    count: u64,
    sum: f64,
    buckets: Vec<u64>,
}

impl Metrics {
    pub(super) fn new(since: u64) -> Metrics {
        Metrics {
            since,
            series: BTreeMap::new(),
        }
    }

    /// Counts what an event says.
    pub(super) fn count(&mut self, event: &Value) {
        for Measured { name, value, by } in measured(event) {
            let mut series = (name, by);
            if self.series.len() >= MOST_SERIES && !self.series.contains_key(&series) {
                series.1 = vec![("otel.metric.overflow", "true".to_owned())];
            }
            let point = self.series.entry(series).or_default();
            point.add(value, name.bounds());
        }
    }

    /// Everything counted so far.
    pub(super) fn collect(&self, now: u64, dropped: u64) -> Vec<Metric> {
        let lost = Point {
            count: 1,
            sum: dropped as f64,
            buckets: Vec::new(),
        };
        let dropped = (Name::Dropped, Vec::new());
        let mut by_name: BTreeMap<Name, Vec<(&Series, &Point)>> = BTreeMap::new();
        for (series, point) in self.series.iter().chain([(&dropped, &lost)]) {
            by_name.entry(series.0).or_default().push((series, point));
        }
        let times = (self.since, now);
        by_name
            .into_iter()
            .map(|(name, points)| metric(name, &points, times))
            .collect()
    }
}

impl Point {
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

fn metric(name: Name, points: &[(&Series, &Point)], times: (u64, u64)) -> Metric {
    let bounds = name.bounds();
    let temporality = AggregationTemporality::Cumulative as i32;
    let data = if bounds.is_empty() {
        Data::Sum(Sum {
            data_points: points.iter().map(|p| sum(p, times)).collect(),
            aggregation_temporality: temporality,
            is_monotonic: true,
        })
    } else {
        Data::Histogram(Histogram {
            data_points: points.iter().map(|p| histogram(p, bounds, times)).collect(),
            aggregation_temporality: temporality,
        })
    };
    Metric {
        name: name.as_str().to_owned(),
        unit: name.unit().to_owned(),
        description: name.about().to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn sum((series, point): &(&Series, &Point), (since, now): (u64, u64)) -> NumberDataPoint {
    let value = match series.0 {
        Name::UsageCost => Number::AsDouble(point.sum),
        _ => Number::AsInt(point.sum as i64),
    };
    NumberDataPoint {
        attributes: labels(series),
        start_time_unix_nano: since,
        time_unix_nano: now,
        value: Some(value),
        ..NumberDataPoint::default()
    }
}

fn histogram(
    (series, point): &(&Series, &Point),
    bounds: &[f64],
    (since, now): (u64, u64),
) -> HistogramDataPoint {
    HistogramDataPoint {
        attributes: labels(series),
        start_time_unix_nano: since,
        time_unix_nano: now,
        count: point.count,
        sum: Some(point.sum),
        bucket_counts: point.buckets.clone(),
        explicit_bounds: bounds.to_vec(),
        ..HistogramDataPoint::default()
    }
}

fn labels(series: &Series) -> Vec<KeyValue> {
    let label = |(key, value): &(&str, String)| key_value(key, string(value));
    series.1.iter().map(label).collect()
}

/// Everything that an event is counted for.
fn measured(event: &Value) -> Vec<Measured> {
    let name = text(event, "event").unwrap_or("event");
    let mut out = vec![one(Name::Events, vec![("event", name.to_owned())])];
    match name {
        "compact.trigger_decision" => {
            out.extend(value(Name::Pressure, event, "pressure", vec![]));
        }
        "compact.completed" => out.extend(completed(event)),
        "compact.failed" => out.push(one(Name::Compactions, outcome(event, "failed"))),
        "compact.discarded" => out.push(one(Name::Compactions, outcome(event, "discarded"))),
        "compact.fallback" => {
            let by = vec![label(event, "fallback"), label(event, "reason")];
            out.push(one(Name::Fallbacks, by));
        }
        "compact.recalled" => out.extend(seconds(Name::RecallDuration, event, vec![])),
        "compact.call_ended" => {
            let by = vec![label(event, "call"), label(event, "outcome")];
            out.extend(seconds(Name::CallDuration, event, by));
        }
        "compact.usage" => out.extend(usage(event)),
        _ => {}
    }
    out
}

fn completed(event: &Value) -> Vec<Measured> {
    let mut out = vec![one(Name::Compactions, outcome(event, "completed"))];
    let cause = vec![label(event, "cause")];
    out.extend(seconds(Name::CompactionDuration, event, cause));
    out.extend(value(Name::Retention, event, "retention", vec![]));
    for phase in ["before", "after"] {
        let tokens = event.get(phase).and_then(Value::as_object);
        for (category, tokens) in tokens.into_iter().flatten() {
            let by = vec![("category", category.clone()), ("phase", phase.to_owned())];
            let value = tokens.as_f64().unwrap_or_default();
            out.push(Measured {
                name: Name::Tokens,
                value,
                by,
            });
        }
    }
    out
}

fn usage(event: &Value) -> Vec<Measured> {
    let model = || {
        let model = text(event, "model").unwrap_or("unknown");
        ("gen_ai.request.model", model.to_owned())
    };
    let mut out = Vec::new();
    for (field, kind) in [
        ("turn_input", "input"),
        ("turn_output", "output"),
        ("turn_cache_read", "cache_read"),
        ("turn_cache_creation", "cache_creation"),
    ] {
        let by = vec![("type", kind.to_owned()), model()];
        out.extend(value(Name::UsageTokens, event, field, by));
    }
    out.extend(value(
        Name::UsageCost,
        event,
        "turn_cost_usd",
        vec![model()],
    ));
    let count = |fields: &[&str]| fields.iter().filter_map(|f| number(event, f)).sum();
    for (kind, value) in [
        (
            "input",
            count(&["turn_input", "turn_cache_read", "turn_cache_creation"]),
        ),
        ("output", count(&["turn_output"])),
    ] {
        let operation = ("gen_ai.operation.name", "chat".to_owned());
        let by = vec![operation, model(), ("gen_ai.token.type", kind.to_owned())];
        out.push(Measured {
            name: Name::GenAiTokens,
            value,
            by,
        });
    }
    out
}

fn one(name: Name, by: Vec<(&'static str, String)>) -> Measured {
    Measured {
        name,
        value: 1.0,
        by,
    }
}

fn value(
    name: Name,
    event: &Value,
    field: &str,
    by: Vec<(&'static str, String)>,
) -> Option<Measured> {
    let value = number(event, field)?;
    Some(Measured { name, value, by })
}

fn seconds(name: Name, event: &Value, by: Vec<(&'static str, String)>) -> Option<Measured> {
    let value = number(event, "duration_ms")? / 1000.0;
    Some(Measured { name, value, by })
}

fn outcome(event: &Value, outcome: &str) -> Vec<(&'static str, String)> {
    vec![("outcome", outcome.to_owned()), label(event, "cause")]
}

fn label(event: &Value, field: &'static str) -> (&'static str, String) {
    (field, text(event, field).unwrap_or("unknown").to_owned())
}
