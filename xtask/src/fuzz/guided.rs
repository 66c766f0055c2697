//! The readers under libFuzzer, which keeps every input that reaches code that no other reached.
//!
//! It needs a compiler for C++ and no nightly Rust. What it found stays in `target/fuzz/guided`, so that the next run
//! goes on from there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{CORPUS, list_targets};
use crate::shell::{self, Console};

/// What makes LLVM record which code an input reaches.
const FLAGS: [&str; 7] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

/// The longest input that is tried.
const MAX_LENGTH: &str = "-max_len=16384";

/// Fuzzes every format, or one of them, for some seconds each.
pub(crate) fn run(
    console: &Console,
    seconds: u64,
    target: Option<&str>,
    seed: Option<u64>,
) -> Result<()> {
    let program = build(console)?;
    let seed = seed.unwrap_or_else(super::clock_seed) % u64::from(u32::MAX);
    let mut broken = Vec::new();
    for name in list_targets(target)? {
        let runs = [
            format!("-max_total_time={seconds}"),
            format!("-seed={seed}"),
        ];
        if let Err(error) = fuzz_one(console, &program, &name, &runs) {
            broken.push(format!("{name}: {error:#}"));
        }
    }
    match broken.is_empty() {
        true => console.print_line("no promise was broken"),
        false => bail!("formats broke a promise\n  {}", broken.join("\n  ")),
    }
}

/// Returns how many inputs a log of it says were tried.
pub(crate) fn count_inputs(log: &str) -> u64 {
    let counts = log
        .lines()
        .filter_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    counts.filter_map(|n| n.trim().parse::<u64>().ok()).sum()
}

/// Builds the program, in a folder of its own since its flags differ from all others.
fn build(console: &Console) -> Result<PathBuf> {
    if !shell::run_succeeds("c++", &["--version"]) {
        bail!("libFuzzer needs a compiler for C++");
    }
    let folder = shell::target_folder().join("fuzz-build");
    let place = folder.display().to_string();
    let flags = FLAGS.join("\x1f");
    let host = shell::output("rustc", &["--print", "host-tuple"])?;
    let host = host.trim();
    console.run(
        "cargo",
        &[
            "build",
            "--release",
            "--manifest-path",
            "fuzz/Cargo.toml",
            // With a target, the flags are not those of build scripts.
            "--target",
            host,
        ],
        &[
            ("CARGO_ENCODED_RUSTFLAGS", &flags),
            ("CARGO_TARGET_DIR", &place),
        ],
    )?;
    Ok(folder.join(host).join("release/compact-fuzz"))
}

fn fuzz_one(console: &Console, program: &Path, name: &str, runs: &[String]) -> Result<()> {
    let found = shell::target_folder().join("fuzz/guided").join(name);
    fs::create_dir_all(&found).with_context(|| format!("cannot create {}", found.display()))?;
    let seeds = shell::repo_root().join(CORPUS).join(name);
    let (found, seeds) = (found.display().to_string(), seeds.display().to_string());
    let broken = format!("-artifact_prefix={found}.");
    let mut arguments = vec![found.as_str(), &seeds, &broken, MAX_LENGTH];
    arguments.extend(["-print_final_stats=1", "-timeout=5", "-verbosity=0"]);
    arguments.extend(runs.iter().map(String::as_str));
    console.print_line(name)?;
    console.run(
        &program.display().to_string(),
        &arguments,
        &[("COMPACT_FUZZ_FORMAT", name)],
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn inputs_of_all_formats_are_counted() {
        let log = "pi\nstat::number_of_executed_units: 40\nstat::peak_rss_mb: 30\ngemini\nstat::number_of_executed_units: 2\n";
        assert_eq!(super::count_inputs(log), 42);
    }
}
