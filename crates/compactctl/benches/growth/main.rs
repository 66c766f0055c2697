//! What compacting costs as a session grows, and as its text takes odd shapes.
//!
//! The command runs with default settings, as a person runs it, but that the recall index, which follows the answer in a
//! process of its own, is left to whoever searches: it would run beside the next measurement. Time is the processor's
//! until the answer is out, memory the peak until then. A shape is compared with an ordinary session of its size, each
//! with the least of several runs, so that a busy machine matters little.
//! `cargo xtask bench growth` prints the tables, adds them to `target/bench/report.json`, and fails when
//! a limit is exceeded.

mod run;
mod shape;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use run::{Cost, compact_file};
use shape::SHAPES;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The sizes of ordinary sessions.
const MEGABYTES: [usize; 4] = [1, 10, 50, 200];
/// How many messages of a few letters.
const TINY: [usize; 3] = [100_000, 300_000, 1_000_000];
/// How many bytes a shape has.
const SHAPE_BYTES: [usize; 2] = [2_000_000, 4_000_000];

/// How cost may grow with size: its exponent.
const GROWTH: f64 = 1.1;
/// How long the largest session may take, in seconds of a clock.
const LARGEST_SECONDS: f64 = 60.0;
/// How often a large file may be in memory.
const PEAK: f64 = 4.0;
/// How much more than an ordinary session a shape may cost for each byte.
const SHAPE: f64 = 2.0;
/// What a message may cost beside its bytes, in seconds. However short it is, a message is an entry with a hash, a place in
/// the record and a line in the archive; without this limit a session of short messages would be none that is in order.
const MESSAGE_SECONDS: f64 = 5e-6;
/// How often a shape, what it is compared with, and tiny messages are measured.
const RUNS: usize = 3;

fn main() -> ExitCode {
    // `cargo bench` says so; anything else that runs every target has no use for a benchmark.
    let mut arguments = std::env::args().skip(1);
    if !arguments.any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let filter = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    match bench(filter.as_deref().unwrap_or_default()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures what the filter names: `sizes`, `tiny` or a shape; everything without one.
fn bench(filter: &str) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let mut growth = GrowthReport::default();
    println!(
        "{:<26} {:>9} {:>8} {:>8} {:>9} {:>7} {:>9} {:>8}",
        "", "MB", "s", "CPU s", "CPU s/MB", "MB", "× file", "growth"
    );
    let ordinary = growth.measure(
        "an ordinary session",
        folder.path(),
        (&SHAPE_BYTES, RUNS),
        shape::ordinary,
    )?;
    if "sizes".contains(filter) {
        growth.measure(
            "ordinary sessions",
            folder.path(),
            (&MEGABYTES, 1),
            |megabytes| shape::ordinary(megabytes * 1_000_000),
        )?;
    }
    if "tiny".contains(filter) {
        growth.measure(
            "tiny messages",
            folder.path(),
            (&TINY, RUNS),
            shape::tiny_messages,
        )?;
    }
    for (name, write) in SHAPES.iter().filter(|(name, _)| name.contains(filter)) {
        let cost = growth.measure(name, folder.path(), (&SHAPE_BYTES, RUNS), write)?;
        let for_bytes = cost.cpu_seconds - cost.messages as f64 * MESSAGE_SECONDS;
        let times = for_bytes / cost.megabytes / ordinary.cpu_per_megabyte();
        growth.check(name, "× an ordinary session", times, SHAPE);
    }
    growth.write()?;
    Ok(growth.exceeded.is_empty())
}

/// What was measured, and what was too much.
#[derive(Default)]
struct GrowthReport {
    rows: Vec<Value>,
    exceeded: Vec<String>,
}

impl GrowthReport {
    /// Measures sessions of one kind in growing sizes, each so many times; returns what the largest cost at least.
    fn measure(
        &mut self,
        name: &str,
        folder: &Path,
        (sizes, runs): (&[usize], usize),
        write: impl Fn(usize) -> String,
    ) -> Result<Cost> {
        let mut before: Option<Cost> = None;
        for size in sizes {
            let file = folder.join("session");
            fs::write(&file, write(*size))?;
            let mut cost = compact_file(&file, &folder.join("store"))?;
            for _ in 1..runs {
                cost = cost.least(compact_file(&file, &folder.join("store"))?);
            }
            let exponent = before.and_then(|before| cost.growth_since(&before));
            self.add_row(name, &cost, exponent);
            before = Some(cost);
        }
        before.ok_or_else(|| "no size was named".into())
    }

    fn add_row(&mut self, name: &str, cost: &Cost, exponent: Option<f64>) {
        let Cost { megabytes, .. } = *cost;
        let growth = exponent.map_or_else(String::new, |exponent| format!("{exponent:.2}"));
        println!(
            "{name:<26} {megabytes:>9.1} {:>8.2} {:>8.2} {:>9.3} {:>7.0} {:>9.1} {growth:>8}",
            cost.seconds,
            cost.cpu_seconds,
            cost.cpu_per_megabyte(),
            cost.peak_megabytes,
            cost.peak_over_file(),
        );
        if let Some(exponent) = exponent {
            self.check(name, "growth", exponent, GROWTH);
        }
        if megabytes > 100.0 {
            self.check(name, "seconds", cost.seconds, LARGEST_SECONDS);
            self.check(name, "× file", cost.peak_over_file(), PEAK);
        }
        self.rows.push(json!({
            "name": name, "megabytes": megabytes, "seconds": cost.seconds,
            "cpu_seconds": cost.cpu_seconds, "peak_megabytes": cost.peak_megabytes, "growth": exponent,
        }));
    }

    fn check(&mut self, name: &str, what: &str, value: f64, limit: f64) {
        if value > limit {
            println!("  EXCEEDED: {name}: {what} {value:.2}, at most {limit}");
            self.exceeded.push(format!("{name}: {what}"));
        }
    }

    /// Adds the rows to the report of all benchmarks.
    fn write(&self) -> Result<()> {
        let target = Path::new(env!("CARGO_BIN_EXE_compactctl"));
        let target = target
            .ancestors()
            .nth(2)
            .ok_or("there is no target folder")?;
        fs::create_dir_all(target.join("bench"))?;
        let file = target.join("bench/report.json");
        let known = fs::read(&file).unwrap_or_default();
        let mut report: Map<String, Value> = serde_json::from_slice(&known).unwrap_or_default();
        report.insert("growth".to_owned(), json!(self.rows));
        Ok(fs::write(&file, serde_json::to_vec_pretty(&report)?)?)
    }
}
