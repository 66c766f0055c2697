//! A collector that is not ours hears of every decision, over both transports alike.
//!
//! `cargo xtask test` fetches it and names it in `COMPACT_COLLECTOR`. Without that the test has nobody
//! to tell and says so, except on a build server, where nothing may be left out.

#![allow(
    clippy::panic,
    clippy::print_stderr,
    reason = "a test reports by panicking"
)]

mod printed;
mod pulse;

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use compact_adapters::exporter::otlp::{CollectorProtocol, CollectorSettings, otlp_sink};
use compact_adapters::exporter::{BackgroundSink, ExportedEvent};
use compact_core::message::{Entry, Role};
use compact_core::redact::Redactor;
use compact_core::token::Chars4;
use compact_core::usage::{Semantics, Usage};
use compact_core::wire::WireRules;
use compact_formats::usage::ReportedUsage;
use compact_runtime::port::archive::MemoryArchive;
use compact_runtime::port::catalog::MemoryCatalog;
use compact_runtime::port::event::EventSink;
use compact_runtime::{Manager, Session};

use crate::place;
use printed::{Line, Printed, Record};
use pulse::Pulse;

/// How many decisions are timed, over each transport.
const DECISIONS: usize = 1_000;

/// So many are made at a time, and so many times at most, until enough of them were made while the
/// machine kept pace.
const BATCH: usize = 250;
const BATCHES: usize = 40;

/// The latest that all but one in a hundred may arrive.
const SOON: Duration = Duration::from_millis(200);

/// The collector, which prints what it receives.
struct Collector {
    process: Child,
    grpc: u16,
    http: u16,
    heard: Arc<Mutex<Vec<Line>>>,
}

impl Collector {
    fn start(program: &str) -> Collector {
        let [grpc, http] = free_ports();
        let mut process = Command::new(program)
            .arg("start")
            .args(["--otlp-grpc-endpoint", &format!("127.0.0.1:{grpc}")])
            .args(["--otlp-http-endpoint", &format!("127.0.0.1:{http}")])
            .args(["--exporter", "blackhole"])
            .args([
                "--debug-log",
                "traces",
                "--debug-log",
                "metrics",
                "--debug-log",
                "logs",
            ])
            .args(["--debug-log-verbosity", "detailed"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        listen(process.stdout.take().unwrap(), &heard);
        listen(process.stderr.take().unwrap(), &heard);
        for port in [grpc, http] {
            wait_for(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        }
        Collector {
            process,
            grpc,
            http,
            heard,
        }
    }

    fn printed(&self, service: &str) -> Printed {
        // Whoever listens must not wait until this is read.
        let lines = self.heard.lock().unwrap().clone();
        Printed::by(service, &lines)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn listen(stream: impl Read + Send + 'static, heard: &Arc<Mutex<Vec<Line>>>) {
    let heard = Arc::clone(heard);
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let at = SystemTime::now();
            heard.lock().unwrap().push((at, line));
        }
    });
}

fn free_ports() -> [u16; 2] {
    let held = [0, 0].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}

fn wait_for(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn settings(collector: &Collector, protocol: CollectorProtocol) -> CollectorSettings {
    let port = match protocol {
        CollectorProtocol::Grpc => collector.grpc,
        CollectorProtocol::Http => collector.http,
    };
    let endpoint = format!("http://127.0.0.1:{port}");
    let name = ("OTEL_SERVICE_NAME".to_owned(), service(protocol));
    CollectorSettings::new(Some(&endpoint), Some(protocol), [name])
}

/// What a sender is called.
fn service(protocol: CollectorProtocol) -> String {
    format!("probe-{protocol:?}")
}

fn manager(sink: Arc<dyn EventSink>) -> Manager {
    let redactor = Arc::new(Redactor::new(&Default::default()).unwrap());
    let catalog = Arc::new(MemoryCatalog::default());
    Manager::new(catalog, Arc::new(Chars4), redactor, place::WINDOW)
        .with_archive(Some(Arc::new(MemoryArchive::default())))
        .with_sink(sink)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_hears_of_every_decision_over_both_transports() {
    let Ok(program) = std::env::var("COMPACT_COLLECTOR") else {
        assert!(std::env::var("CI").is_err(), "COMPACT_COLLECTOR is not set");
        eprintln!("skipped: run `cargo xtask test`");
        return;
    };
    let collector = Collector::start(&program);
    for protocol in [CollectorProtocol::Http, CollectorProtocol::Grpc] {
        let queue = Arc::new(otlp_sink(settings(&collector, protocol)).unwrap());
        let manager = manager(queue.clone());
        tell_of_a_compaction(&manager, &collector, &queue, protocol).await;
        let mut waits = tell_of_decisions(&manager, &collector, protocol).await;
        waits.sort();
        let [median, late] = [50, 99].map(|percent| waits[waits.len() * percent / 100]);
        eprintln!(
            "{protocol:?}: of {} decisions half were there after {median:?}, 99 of 100 after {late:?}",
            waits.len()
        );
        assert!(late < SOON, "{protocol:?}: {late:?}");
        assert_eq!(queue.flush(Duration::from_secs(10)), 0);
        assert_eq!(queue.dropped(), 0);
    }
}

/// A compaction with all that belongs to it: records, a span with events, metrics.
async fn tell_of_a_compaction(
    manager: &Manager,
    collector: &Collector,
    queue: &BackgroundSink<ExportedEvent>,
    protocol: CollectorProtocol,
) {
    let name = format!("whole-{protocol:?}");
    let mut session = session(manager, &name);
    session.append((0..40).map(place::entry)).unwrap();
    let ready = session.preflight().await.unwrap();
    assert!(ready.receipt.is_some());
    let usage = Usage::of_turn(1200, 80, 900);
    let semantics = Semantics::LastRequest;
    session.observe(Some(ReportedUsage { usage, semantics }));
    assert_eq!(queue.flush(Duration::from_secs(10)), 0);
    // Each kind is printed line by line, and none waits for another.
    wait_for(|| {
        let printed = collector.printed(&service(protocol));
        printed.metrics.len() >= METRICS.len()
            && printed.records.len() >= EVENTS.len()
            && !printed.spans.is_empty()
    });
    let printed = collector.printed(&service(protocol));
    let told: Vec<&str> = printed.records.iter().map(|r| r.event.as_str()).collect();
    assert_eq!(told, EVENTS, "{protocol:?}");
    let names = printed.metrics.iter().map(String::as_str);
    assert_eq!(names.collect::<Vec<_>>(), METRICS, "{protocol:?}");
    let [span] = printed.spans.as_slice() else {
        panic!("{protocol:?}: {:?}", printed.spans);
    };
    assert_eq!(span.name, "before_model_call");
    // The end of a call is the span's own, and what a provider reported comes after it.
    assert_eq!(span.events, EVENTS[..EVENTS.len() - 2], "{protocol:?}");
    let decision = &printed.records[1];
    let keys: Vec<&str> = decision.attributes.iter().map(|a| a.0.as_str()).collect();
    assert_eq!(keys, DECISION, "{protocol:?}");
    assert_eq!(session_of(decision), Some(name.as_str()));
    assert_eq!(
        (&decision.trace, &decision.span),
        (&span.trace, &span.id),
        "{protocol:?}"
    );
}

/// What is told of a call that compacts, and of the usage that was reported after it.
const EVENTS: [&str; 10] = [
    "compact.token_estimate",
    "compact.trigger_decision",
    "compact.started",
    "compact.archived",
    "compact.policy_applied",
    "compact.summary_created",
    "compact.pruned_messages",
    "compact.completed",
    "compact.call_ended",
    "compact.usage",
];

/// Every field of the founding event, as the attributes of a record.
const DECISION: [&str; 19] = [
    "compact.session_id",
    "compact.event",
    "compact.severity",
    "compact.t_est",
    "compact.max",
    "compact.policy.trigger_pct",
    "compact.policy.buffer",
    "compact.kept.pinned",
    "compact.kept.recent_turns",
    "compact.kept.tool_pairs",
    "compact.kept.clipped",
    "compact.kept.newest_cut",
    "compact.pruned_count",
    "compact.summary_tokens",
    "compact.cause",
    "compact.verdict",
    "compact.reason",
    "compact.pressure",
    "gen_ai.conversation.id",
];

const METRICS: [&str; 10] = [
    "compact.call.duration",
    "compact.compaction.duration",
    "compact.compactions",
    "compact.events",
    "compact.events.dropped",
    "compact.pressure",
    "compact.retention",
    "compact.tokens",
    "compact.usage.tokens",
    "gen_ai.client.token.usage",
];

/// How long each decision took from its own timestamp until the collector had printed all of its
/// record. Those during which the machine stood still say nothing about us.
async fn tell_of_decisions(
    manager: &Manager,
    collector: &Collector,
    protocol: CollectorProtocol,
) -> Vec<Duration> {
    let pulse = Pulse::start();
    let mut waits = Vec::new();
    for batch in 0..BATCHES {
        let prefix = format!("decision-{protocol:?}-{batch}-");
        decide(manager, &prefix).await;
        let found = || decisions(collector, protocol, &prefix);
        wait_for(|| found().len() == BATCH);
        let spans = found().into_iter().map(|record| {
            let decided = UNIX_EPOCH + Duration::from_nanos(record.at);
            (decided, record.arrived.unwrap())
        });
        let kept_pace = spans.filter(|(from, to)| !pulse.stood_still(*from, *to));
        waits.extend(kept_pace.map(|(from, to)| to.duration_since(from).unwrap_or_default()));
        collector.heard.lock().unwrap().clear();
        if waits.len() >= DECISIONS {
            return waits;
        }
    }
    panic!("the machine kept pace for {} decisions only", waits.len());
}

fn session(manager: &Manager, name: &str) -> Session {
    let manager = Arc::new(manager.clone());
    Session::new(manager, name, &WireRules::LENIENT).without_background()
}

async fn decide(manager: &Manager, prefix: &str) {
    for n in 0..BATCH {
        let mut session = session(manager, &format!("{prefix}{n}"));
        let said = Entry::from_text("u", Role::User, "go");
        session.append([said]).unwrap();
        session.preflight().await.unwrap();
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

/// The records of the decisions on some sessions that are there as a whole.
fn decisions(collector: &Collector, protocol: CollectorProtocol, prefix: &str) -> Vec<Record> {
    let records = collector.printed(&service(protocol)).records.into_iter();
    let is_one = |record: &Record| {
        record.event == "compact.trigger_decision"
            && record.arrived.is_some()
            && session_of(record).is_some_and(|name| name.starts_with(prefix))
    };
    records.filter(is_one).collect()
}

fn session_of(record: &Record) -> Option<&str> {
    let attribute = record
        .attributes
        .iter()
        .find(|(key, _)| key == "compact.session_id");
    attribute.map(|(_, value)| value.as_str())
}
