//! What was measured, what it may be, and both as tables.

use std::time::Duration;

use serde_json::{Value, json};

use super::load::LoadSample;
use super::proxy::{ProxyKind, RunningProxy};

/// What was measured of a gateway with requests of one size.
pub(super) struct Figure {
    pub(super) proxy: &'static str,
    pub(super) size: &'static str,
    kind: ProxyKind,
    first_bytes: Vec<f64>,
    events: Vec<f64>,
    /// The processor time of all requests.
    pub(super) cpu_seconds: f64,
    pub(super) memory_mb: f64,
    /// How many requests began with the bytes of the one before, and of how many.
    pub(super) kept: (u32, u32),
}

/// A demand, and what was measured for it.
pub(super) struct Limit {
    what: String,
    measured: f64,
    most: f64,
    unit: &'static str,
}

impl Figure {
    pub(super) fn new(proxy: &RunningProxy, size: &'static str) -> Figure {
        Figure {
            proxy: proxy.name,
            kind: proxy.kind,
            size,
            first_bytes: Vec::new(),
            events: Vec::new(),
            cpu_seconds: 0.0,
            memory_mb: 0.0,
            kept: (0, 0),
        }
    }

    /// Adds what was measured in a round.
    pub(super) fn add_samples(&mut self, samples: &[LoadSample]) {
        for sample in samples {
            self.first_bytes.push(milliseconds(sample.first_byte));
            self.events
                .extend(sample.events.iter().copied().map(milliseconds));
        }
    }

    fn cpu_ms(&self) -> f64 {
        1000.0 * self.cpu_seconds / self.first_bytes.len().max(1) as f64
    }

    /// Returns what it adds to asking directly, in milliseconds.
    fn added(&self, direct: &Figure, share: f64) -> f64 {
        quantile(&self.first_bytes, share) - quantile(&direct.first_bytes, share)
    }

    fn added_to_events(&self, direct: &Figure, share: f64) -> f64 {
        quantile(&self.events, share) - quantile(&direct.events, share)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "gateway": self.proxy, "size": self.size, "requests": self.first_bytes.len(),
            "first_byte_ms": [quantile(&self.first_bytes, 0.5), quantile(&self.first_bytes, 0.99)],
            "event_ms": [quantile(&self.events, 0.5), quantile(&self.events, 0.99)],
            "cpu_ms": self.cpu_ms(), "memory_mb": self.memory_mb, "kept_prefixes": [self.kept.0, self.kept.1],
        })
    }
}

impl Limit {
    fn new(what: impl Into<String>, measured: f64, most: f64, unit: &'static str) -> Limit {
        Limit {
            what: what.into(),
            measured,
            most,
            unit,
        }
    }

    /// Returns whether the demand is met.
    pub(super) fn holds(&self) -> bool {
        self.measured <= self.most
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"what": self.what, "measured": self.measured, "limit": self.most, "unit": self.unit})
    }
}

/// Compares what was measured with what is promised.
pub(super) fn check_limits(
    figures: &[Figure],
    summaries: &[Vec<LoadSample>; 2],
    memory: (f64, f64),
) -> Vec<Limit> {
    let mut limits = size_limits(figures);
    for (samples, which) in summaries.iter().zip(["seen before", "never seen"]) {
        let times = samples.iter().map(|sample| milliseconds(sample.whole));
        let times: Vec<f64> = times.collect();
        let what = format!("a summary of 200k tokens, {which}: p50");
        limits.push(Limit::new(what, quantile(&times, 0.5), 100.0, "ms"));
    }
    let what = "memory after 100,000 requests; after 20,000 and a tenth";
    limits.push(Limit::new(what, memory.1, memory.0 * 1.1, "MB"));
    let ours = figures
        .iter()
        .filter(|figure| figure.kind == ProxyKind::Ours);
    let changed: u32 = ours.map(|figure| figure.kept.1 - figure.kept.0).sum();
    let what = "requests that do not go on from the one before";
    let most = f64::from(super::FIRST_VIEWS);
    limits.push(Limit::new(what, f64::from(changed), most, ""));
    limits
}

/// Compares what requests of each size cost.
fn size_limits(figures: &[Figure]) -> Vec<Limit> {
    let mut limits = Vec::new();
    let mut add = |what, measured, most| limits.push(Limit::new(what, measured, most, "ms"));
    if let Some((direct, nginx, ours)) = find_three(figures, "0.13 kB") {
        let most = nginx.added(direct, 0.5) + 0.5;
        let what = "0.13 kB: added, p50; nginx and 0.5 ms";
        add(what, ours.added(direct, 0.5), most);
    }
    if let Some((direct, _, ours)) = find_three(figures, "86 kB") {
        let peers = figures.iter();
        let peers = peers.filter(|f| f.size == "86 kB" && f.kind == ProxyKind::Peer);
        let (p99, cpu): (Vec<f64>, Vec<f64>) = peers
            .map(|peer| (peer.added(direct, 0.99), peer.cpu_ms()))
            .unzip();
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let what = "86 kB: added, p99; the best other gateway";
        add(what, ours.added(direct, 0.99), least(&p99));
        let what = "86 kB: processor; the best other gateway";
        add(what, ours.cpu_ms(), least(&cpu));
    }
    if let Some((direct, _, ours)) = find_three(figures, "4 MB") {
        let what = "4 MB, a frozen view: added, p50";
        add(what, ours.added(direct, 0.5), 15.0);
        let what = "4 MB, a frozen view: added, p99";
        add(what, ours.added(direct, 0.99), 40.0);
    }
    limits
}

/// Returns the figures of asking directly, of nginx and of ours.
fn find_three<'f>(
    figures: &'f [Figure],
    size: &str,
) -> Option<(&'f Figure, &'f Figure, &'f Figure)> {
    let find = |name: &str| figures.iter().find(|f| f.size == size && f.proxy == name);
    Some((find("direct")?, find("nginx")?, find(super::OURS)?))
}

/// Prints both tables.
pub(super) fn print(figures: &[Figure], limits: &[Limit]) {
    println!(
        "\n| request | through | first byte, p50 | p99 | an event, p50 | p99 | processor | memory | goes on from the one before |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for figure in figures {
        let same_size = |other: &&Figure| other.size == figure.size;
        let mut direct = figures.iter().filter(same_size);
        let Some(direct) = direct.find(|other| other.kind == ProxyKind::Direct) else {
            continue;
        };
        let times = match figure.kind {
            ProxyKind::Direct => [
                quantile(&figure.first_bytes, 0.5),
                quantile(&figure.first_bytes, 0.99),
                quantile(&figure.events, 0.5),
                quantile(&figure.events, 0.99),
            ],
            _ => [
                figure.added(direct, 0.5),
                figure.added(direct, 0.99),
                figure.added_to_events(direct, 0.5),
                figure.added_to_events(direct, 0.99),
            ],
        };
        let times = times.map(|time| match figure.kind {
            ProxyKind::Direct => format!("{time:.2}"),
            _ => format!("{time:+.2}"),
        });
        let times = times.join(" | ");
        println!(
            "| {} | {} | {times} | {:.2} | {:.0} MB | {} of {} |",
            figure.size,
            figure.proxy,
            figure.cpu_ms(),
            figure.memory_mb,
            figure.kept.0,
            figure.kept.1
        );
    }
    println!(
        "\n(Times in ms; of gateways, what they add.)\n\n| what | measured | limit |\n|---|---|---|"
    );
    for limit in limits {
        let over = if limit.holds() { "" } else { ", **over**" };
        println!(
            "| {} | {:.2} {}{over} | {:.2} {} |",
            limit.what, limit.measured, limit.unit, limit.most, limit.unit
        );
    }
}

fn milliseconds(time: Duration) -> f64 {
    1000.0 * time.as_secs_f64()
}

/// Returns the value that a share of all do not exceed.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let at = (share * last as f64).round();
    sorted.get(at as usize).copied().unwrap_or(f64::NAN)
}
