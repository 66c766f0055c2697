//! How long things take, as shares of a BPE count over the same session.
//!
//! A machine's speed cancels out: baseline and candidate run in turns on the same generated session
//! of a million tokens, five times, and the median of the five ratios counts. `cargo xtask bench` prints the table with
//! the worst of them, writes `target/bench/report.json`, and fails when a ratio exceeds its limit.

mod archive;
mod chain;
mod compact;
mod memory;
mod preflight;
mod report;
mod subject;
mod time;

use std::process::ExitCode;

use anyhow::Result;
use report::BenchReport;
use subject::BenchSession;
use time::Timing;

/// Runs of each candidate and of the baseline.
const ROUNDS: usize = 5;

/// A ratio's name, its limit, and what measures it.
type TimedRatio = (&'static str, f64, fn(&BenchSession) -> Result<Timing>);

/// The ratios of times, in the order of the table.
const TIMED: [TimedRatio; 8] = [
    ("ledger_over_bpe", 0.6, compact::ledger),
    ("compact_over_bpe", 2.0, compact::file_to_fixed_view),
    ("compact_fifth_over_bpe", 3.0, compact::file_to_fifth),
    (
        "compact_default_over_bpe",
        4.0,
        compact::file_to_default_view,
    ),
    ("preflight_appended_over_bpe", 0.01, preflight::appended),
    ("preflight_resent_over_bpe", 0.15, preflight::resent),
    ("trigger_to_view_over_bpe", 2.0, preflight::triggered),
    // The summarizer weighs all that a session said, which is twenty-five times as much at the end.
    ("chain_last_over_second", 10.0, chain::last_over_second),
];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [memory::CHILD, file] => memory::child(file),
        // `cargo bench` says so; anything else that runs every target has no use for a benchmark.
        all if all.contains(&"--bench") => bench(all.iter().find(|a| !a.starts_with('-')).copied()),
        _ => Ok(()),
    }
}

/// Runs the benchmarks whose name contains the filter.
fn bench(filter: Option<&str>) -> Result<()> {
    let wanted = |name: &str| filter.is_none_or(|filter| name.contains(filter));
    let subject = BenchSession::new();
    let mut report = BenchReport::new(&subject);
    for (name, limit, measure) in TIMED {
        if wanted(name) {
            report.timed(name, limit, &measure(&subject)?);
        }
        if wanted(name) && name == "compact_default_over_bpe" {
            report.stages(compact::stages(&subject)?);
        }
    }
    if wanted("archive_over_zstd") {
        report.ratio("archive_over_zstd", 1.3, archive::over_zstd(&subject)?);
    }
    if wanted("peak_memory_over_file") {
        report.ratio("peak_memory_over_file", 4.0, memory::over_file()?);
    }
    report.finish()
}
