//! How long things take, as shares of a BPE count over the same session.
//!
//! A machine's speed cancels out: baseline and candidate run in turns on the same generated session
//! of a million tokens, and the fastest run of each counts. `cargo xtask bench` prints the table,
//! writes `target/bench/report.json`, and fails when a ratio exceeds its limit.

mod archive;
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

/// Runs of each candidate and of the baseline.
const ROUNDS: usize = 5;

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
    if wanted("ledger_over_bpe") {
        report.timed("ledger_over_bpe", 0.6, compact::ledger(&subject)?);
    }
    if wanted("compact_over_bpe") {
        report.timed(
            "compact_over_bpe",
            2.0,
            compact::file_to_fixed_view(&subject)?,
        );
    }
    if wanted("compact_default_over_bpe") {
        report.timed(
            "compact_default_over_bpe",
            4.0,
            compact::file_to_default_view(&subject)?,
        );
        report.stages(compact::stages(&subject)?);
    }
    if wanted("preflight_appended_over_bpe") {
        report.timed(
            "preflight_appended_over_bpe",
            0.01,
            preflight::appended(&subject)?,
        );
    }
    if wanted("preflight_resent_over_bpe") {
        report.timed(
            "preflight_resent_over_bpe",
            0.15,
            preflight::resent(&subject)?,
        );
    }
    if wanted("trigger_to_view_over_bpe") {
        report.timed("trigger_to_view_over_bpe", 2.0, preflight::triggered()?);
    }
    if wanted("archive_over_zstd") {
        report.ratio("archive_over_zstd", 1.3, archive::over_zstd(&subject)?);
    }
    if wanted("peak_memory_over_file") {
        report.ratio("peak_memory_over_file", 4.0, memory::over_file()?);
    }
    report.finish()
}
