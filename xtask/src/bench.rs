//! `cargo xtask bench`: the benchmarks in release, a table, `target/bench/report.json`.
//!
//! `cargo xtask bench recall` fills an archive first and takes minutes, so it runs only when asked for.

use anyhow::{Context, Result};

use crate::shell;

/// Runs the benchmarks whose name contains the filter; fails when one exceeds its limit.
pub(crate) fn run(filter: Option<&str>) -> Result<()> {
    let target = match filter {
        Some("recall") => "recall",
        _ => "ratios",
    };
    let mut arguments = vec![
        "bench",
        "--quiet",
        "--package",
        "compact-eval",
        "--bench",
        target,
    ];
    arguments.extend(filter.iter().flat_map(|filter| ["--", filter]));
    shell::run("cargo", &arguments).context("a benchmark failed or exceeded its limit")
}
