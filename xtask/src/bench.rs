//! `cargo xtask bench`: the benchmarks as shipped (the profile `dist`), a table, `target/bench/report.json`.
//!
//! `cargo xtask bench hook` runs only what times the hooks, `cargo xtask bench chain` only a session that is compacted
//! fifty times.
//! `cargo xtask bench cli` times the command, start to end, and several at once.
//! `cargo xtask bench dashboard` times the pages over ten thousand sessions.
//! `cargo xtask bench growth` compacts sessions of up to 200 MB and of odd shapes; it takes minutes, so it runs only
//! when asked for.
//! `cargo xtask bench gateway` measures the gateway beside others in some minutes.
//! `cargo xtask bench peers` measures other packages and this one on one history.
//! `cargo xtask bench python` builds the wheel as shipped and times it against what others offer.
//! `cargo xtask bench recall` fills an archive first and takes minutes, so it runs only when asked for.

use anyhow::{Context, Result};

use crate::environment;
use crate::gateway_bench;
use crate::peers;
use crate::python;
use crate::shell::{self, Console};

/// Runs the benchmarks whose name contains the filter; fails when one exceeds its limit.
pub(crate) fn run(filter: Option<&str>) -> Result<()> {
    match filter {
        Some("cli") => run_bench("compactctl", "cli", None),
        Some("dashboard") => run_bench("compact-dashboard", "pages", None),
        Some("recall") => run_bench("compact-eval", "recall", filter),
        Some("gateway") => gateway_bench::bench_gateway(&Console::Terminal),
        Some("growth") => run_bench("compactctl", "growth", None),
        Some("hook") => run_bench("compactctl", "hook", None),
        Some(name @ ("peers" | "python")) => bench_packages(name),
        Some(_) => run_bench("compact-eval", "ratios", filter),
        None => {
            let ratios = run_bench("compact-eval", "ratios", None);
            run_bench("compactctl", "hook", None).and(ratios)
        }
    }
}

/// Measures packages of Python, while no other clone uses their environments.
fn bench_packages(name: &str) -> Result<()> {
    environment::TESTS.install_missing()?;
    let _held = environment::TESTS.hold()?;
    match name {
        "peers" => peers::bench_peers(&Console::Terminal),
        _ => python::bench_wheel(&Console::Terminal),
    }
}

fn run_bench(package: &str, target: &str, filter: Option<&str>) -> Result<()> {
    let profile = ["bench", "--quiet", "--profile", "dist"];
    let mut arguments = [&profile[..], &["--package", package, "--bench", target]].concat();
    arguments.extend(filter.iter().flat_map(|filter| ["--", filter]));
    shell::run("cargo", &arguments).context("a benchmark failed or exceeded its limit")
}
