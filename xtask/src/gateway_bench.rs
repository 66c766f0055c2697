//! `cargo xtask bench gateway`: the gateway as shipped beside plain proxies and other gateways for models, in one run.
//!
//! Everything that is measured runs on one core; the load and the upstream have the other. Rounds go through all of them in
//! turn, so that noise meets all alike, and every figure is what a gateway adds to asking the upstream directly.
//! `COMPACT_TRIALS` sets the number of rounds, and `COMPACTCTL` names a command that was built already. A summary that
//! Claude Code asks for and memory over many requests follow. Writes `target/bench/gateway.json`.

mod history;
mod load;
mod message;
mod proxy;
mod table;
mod upstream;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::shell::{self, Console};
use history::{GrowingHistory, HistoryWire};
use load::{LoadClient, LoadRate, LoadSample, LoadTarget, run_load};
use proxy::{ProxyKind, ProxyPlace, RunningProxy};
use table::{Figure, Limit};
use upstream::MockUpstream;

/// What this project's gateway is called in tables.
const OURS: &str = "Compact";

/// How often everything is measured.
const ROUNDS: usize = 5;

/// How many clients ask at a time.
const CLIENTS: usize = 4;

/// How many summaries are asked for.
const SUMMARIES: usize = 10;

/// The size of a history of 200,000 tokens, in bytes.
const SUMMARIZED: usize = 800_000;

/// How many requests memory is watched over, and after how many for the first time.
const MANY_REQUESTS: usize = 100_000;
const FIRST_LOOK: usize = 20_000;
const MANY_CLIENTS: usize = 24;

/// How many requests of ours may be no continuation: the first view of each history of 4 MB.
const FIRST_VIEWS: u32 = 4;

/// A size of requests.
#[derive(Clone, Copy, Debug)]
struct RequestSize {
    name: &'static str,
    bytes: usize,
    rate: LoadRate,
    /// Whether gateways that take seconds for it are measured too.
    is_for_peers: bool,
}

const SIZES: [RequestSize; 4] = [
    RequestSize {
        name: "0.13 kB",
        bytes: 130,
        rate: LoadRate {
            requests: 120,
            per_second: 40.0,
        },
        is_for_peers: true,
    },
    RequestSize {
        name: "86 kB",
        bytes: 86_000,
        rate: LoadRate {
            requests: 60,
            per_second: 15.0,
        },
        is_for_peers: true,
    },
    RequestSize {
        name: "0.8 MB",
        bytes: 800_000,
        rate: LoadRate {
            requests: 20,
            per_second: 4.0,
        },
        is_for_peers: false,
    },
    RequestSize {
        name: "4 MB",
        bytes: 4_000_000,
        rate: LoadRate {
            requests: 20,
            per_second: 2.0,
        },
        is_for_peers: false,
    },
];

/// Measures, prints tables, and fails where a limit is exceeded.
pub(crate) fn bench_gateway(console: &Console) -> Result<()> {
    proxy::install_proxies(console)?;
    let command = built_command(console)?;
    let folder = shell::target_folder().join("bench/gateway");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("could not clear the folder of the bench")?;
    }
    std::fs::create_dir_all(&folder)?;
    let began = Instant::now();
    let upstream = MockUpstream::start(began)?;
    let place = ProxyPlace {
        folder: folder.clone(),
        upstream: upstream.port,
        command,
    };
    let proxies = proxy::start_proxies(&place)?;
    let own_id = std::process::id().to_string();
    shell::output("taskset", &["-a", "-c", "-p", "0", &own_id])?;
    println!("load before: {}", machine_load());
    let mut figures = measure_rounds(&proxies, began)?;
    for figure in &mut figures {
        let session = format!("{}.{}.", figure.proxy, figure.size).replace(' ', "_");
        figure.kept = upstream.kept_prefixes(&session);
    }
    let ours = proxies.iter().find(|proxy| proxy.kind == ProxyKind::Ours);
    let ours = ours.context("the gateway is not there")?;
    let summaries = measure_summaries(ours, began)?;
    let memory = measure_memory(ours, began)?;
    println!("load after: {}", machine_load());
    let limits = table::check_limits(&figures, &summaries, memory);
    table::print(&figures, &limits);
    write_report(&folder.with_extension("json"), &figures, &limits)?;
    match limits.iter().all(Limit::holds) {
        true => Ok(()),
        false => bail!("a limit is exceeded"),
    }
}

/// Returns the command that `COMPACTCTL` names, or builds it as shipped.
fn built_command(console: &Console) -> Result<PathBuf> {
    if let Some(command) = std::env::var_os("COMPACTCTL") {
        return Ok(PathBuf::from(command));
    }
    shell::build_command(console, &["--profile", "dist"])?;
    Ok(shell::target_folder().join("dist/compactctl"))
}

fn measure_rounds(proxies: &[RunningProxy], began: Instant) -> Result<Vec<Figure>> {
    let trials = std::env::var("COMPACT_TRIALS").ok();
    let rounds = trials
        .and_then(|trials| trials.parse().ok())
        .unwrap_or(ROUNDS);
    let mut figures = Vec::new();
    for size in SIZES {
        let mut measured: Vec<(&RunningProxy, Vec<GrowingHistory>, Figure)> = Vec::new();
        let takes_it = |proxy: &&RunningProxy| size.is_for_peers || proxy.kind != ProxyKind::Peer;
        for proxy in proxies.iter().filter(takes_it) {
            let mut histories = open_histories(proxy.name, size);
            // What a first request costs is not what the next ones do.
            let rate = LoadRate {
                requests: 2 * CLIENTS,
                ..size.rate
            };
            run_load(&proxy.target, &mut histories, rate, began)
                .with_context(|| format!("{} at {}", proxy.name, size.name))?;
            measured.push((proxy, histories, Figure::new(proxy, size.name)));
        }
        for round in 1..=rounds {
            println!("{}, round {round} of {rounds}", size.name);
            for (proxy, histories, figure) in &mut measured {
                let before = proxy.cpu_seconds();
                let samples = run_load(&proxy.target, histories, size.rate, began)
                    .with_context(|| format!("{} at {}", proxy.name, size.name))?;
                figure.cpu_seconds += proxy.cpu_seconds() - before;
                figure.add_samples(&samples);
            }
        }
        for (proxy, _, figure) in &mut measured {
            figure.memory_mb = proxy.memory_mb();
        }
        figures.extend(measured.into_iter().map(|(_, _, figure)| figure));
    }
    Ok(figures)
}

fn open_histories(proxy: &str, size: RequestSize) -> Vec<GrowingHistory> {
    let name = |client: usize| format!("{proxy}.{}.{client}", size.name).replace(' ', "_");
    let open = |client| GrowingHistory::new(HistoryWire::Chat, &name(client), size.bytes);
    (0..CLIENTS).map(open).collect()
}

/// Times summaries of histories that the gateway saw before, and of some that it did not.
fn measure_summaries(ours: &RunningProxy, began: Instant) -> Result<[Vec<LoadSample>; 2]> {
    println!("summaries");
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..SUMMARIES {
        for (is_new, times) in [false, true].into_iter().zip(&mut times) {
            let name = format!("summary-{number}-{is_new}");
            let mut history = GrowingHistory::new(HistoryWire::Anthropic, &name, SUMMARIZED);
            let target = |class: &str| LoadTarget {
                path: "/v1/messages?beta=true",
                headers: format!(
                    "x-claude-code-session-id: {name}\r\nx-claude-code-request-class: {class}\r\n"
                ),
                ..ours.target.clone()
            };
            if !is_new {
                let body = history.next_body();
                LoadClient::open(&target("main"), began)?.ask(&body, Instant::now())?;
            }
            let mut client = LoadClient::open(&target("compaction"), began)?;
            let body = history.compaction_body();
            times.push(client.ask(&body, Instant::now())?);
        }
    }
    Ok(times)
}

/// Returns the memory after some requests and after many, in megabytes.
fn measure_memory(ours: &RunningProxy, began: Instant) -> Result<(f64, f64)> {
    println!("memory over {MANY_REQUESTS} requests");
    let open = |client| {
        GrowingHistory::new(
            HistoryWire::Chat,
            &format!("memory.{client}"),
            SIZES[0].bytes,
        )
    };
    let mut histories: Vec<GrowingHistory> = (0..MANY_CLIENTS).map(open).collect();
    let mut run = |requests| {
        let rate = LoadRate {
            requests,
            per_second: f64::INFINITY,
        };
        run_load(&ours.target, &mut histories, rate, began).map(|_| ours.memory_mb())
    };
    Ok((run(FIRST_LOOK)?, run(MANY_REQUESTS - FIRST_LOOK)?))
}

fn machine_load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.trim().to_owned()
}

fn write_report(path: &Path, figures: &[Figure], limits: &[Limit]) -> Result<()> {
    let report = json!({
        "load": machine_load(),
        "figures": figures.iter().map(Figure::to_json).collect::<Vec<_>>(),
        "limits": limits.iter().map(Limit::to_json).collect::<Vec<_>>(),
    });
    std::fs::write(path, serde_json::to_string_pretty(&report)?)
        .with_context(|| format!("could not write {}", path.display()))
}
