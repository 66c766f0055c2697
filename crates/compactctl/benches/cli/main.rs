//! What the command costs, start to end, as people run it: with default settings, the archive and the recall index that
//! follows in a process of its own.
//!
//! A compaction is compared with a pass of bpe-openai over the same session, in turns, so that a machine's speed cancels
//! out. Throughput is of sessions of 100,000 tokens into one store, by one process at a time and by several at once; what
//! still indexes is waited for before the next row. `cargo xtask bench cli` prints the table with medians and the worst,
//! adds it to `target/bench/report.json`, and fails when a limit is exceeded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Instant;

use compact::format::{self, Format, TranscriptScope};
use compact_eval::generate;
use serde_json::{Map, Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Runs of what is measured one by one.
const ROUNDS: usize = 5;
/// How many sessions are compacted for each row of throughput, and how many at once.
const SESSIONS: usize = 24;
const AT_ONCE: [usize; 4] = [1, 2, 4, 8];

/// Milliseconds that a command takes to start and look at a kilobyte.
const START: f64 = 12.0;
/// How much longer a compaction of a million tokens may take than counting them once.
const COMPACT: f64 = 1.5;
/// Sessions a second that the best row must reach.
const THROUGHPUT: f64 = 12.0;
/// The share of the best row that any row with more at once must keep.
const KEPT: f64 = 0.8;

fn main() -> ExitCode {
    // `cargo bench` says so; anything else that runs every target has no use for a benchmark.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match bench() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench() -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let place = Place {
        folder: folder.path().to_owned(),
    };
    println!("{:<34} {:>9} {:>9} {:>9}", "", "median", "worst", "limit");
    let mut table = CommandTable::default();
    let start = repeated(|_| place.start())?;
    table.add("start: inspect of 1 kB, ms", Spread::of(&start), START);
    let whole = repeated(|round| place.compact_over_count(round))?;
    let name = "compact of 1M tokens / one count";
    table.add(name, Spread::of(&whole), COMPACT);
    let rates = place.rates()?;
    table.add_rates(&rates);
    table.report(&place)?;
    Ok(table.holds)
}

fn repeated(measure: impl Fn(usize) -> Result<f64>) -> Result<Vec<f64>> {
    (0..ROUNDS).map(measure).collect()
}

/// The middle of some runs, and the worst of them.
#[derive(Clone, Copy)]
struct Spread {
    median: f64,
    worst: f64,
}

impl Spread {
    fn of(runs: &[f64]) -> Spread {
        let mut sorted = runs.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |nth: usize| sorted.get(nth).copied().unwrap_or(f64::NAN);
        Spread {
            median: at(sorted.len() / 2),
            worst: at(sorted.len().saturating_sub(1)),
        }
    }
}

/// What was measured, and whether all of it is within its limits.
struct CommandTable {
    rows: Map<String, Value>,
    holds: bool,
}

impl Default for CommandTable {
    fn default() -> CommandTable {
        CommandTable {
            rows: Map::new(),
            holds: true,
        }
    }
}

impl CommandTable {
    fn add(&mut self, name: &str, spread: Spread, limit: f64) {
        let holds = spread.median <= limit;
        self.print(name, spread, limit, holds);
        let row = json!({ "median": spread.median, "worst": spread.worst, "limit": limit });
        self.rows.insert(name.to_owned(), row);
    }

    /// Rates are limited from below.
    fn add_rates(&mut self, rates: &[(usize, f64)]) {
        let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let best_at = rates.iter().find(|(_, rate)| *rate == best);
        let best_at = best_at.map_or(0, |(at_once, _)| *at_once);
        for (at_once, rate) in rates {
            let least = match at_once.cmp(&best_at) {
                std::cmp::Ordering::Less => 0.0,
                std::cmp::Ordering::Equal => THROUGHPUT,
                std::cmp::Ordering::Greater => best * KEPT,
            };
            let name = format!("sessions a second, {at_once} at once");
            let spread = Spread {
                median: *rate,
                worst: *rate,
            };
            self.print(&name, spread, least, *rate >= least);
            self.rows
                .insert(name, json!({ "rate": rate, "least": least }));
        }
    }

    fn print(&mut self, name: &str, spread: Spread, limit: f64, holds: bool) {
        let verdict = if holds { "" } else { "  EXCEEDED" };
        println!(
            "{name:<34} {:>9.2} {:>9.2} {limit:>9.2}{verdict}",
            spread.median, spread.worst
        );
        self.holds &= holds;
    }

    /// Adds the rows to the report of the other benchmarks.
    fn report(&self, place: &Place) -> Result<()> {
        let target = place.target()?;
        let file = target.join("bench/report.json");
        let known = fs::read(&file).unwrap_or_default();
        let mut report: Map<String, Value> = serde_json::from_slice(&known).unwrap_or_default();
        report.insert("cli".to_owned(), json!(self.rows));
        fs::create_dir_all(target.join("bench"))?;
        Ok(fs::write(file, serde_json::to_vec_pretty(&report)?)?)
    }
}

/// Where sessions and stores are.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn target(&self) -> Result<PathBuf> {
        let target = Path::new(env!("CARGO_BIN_EXE_compactctl"));
        let target = target.ancestors().nth(2);
        Ok(target.ok_or("there is no target folder")?.to_owned())
    }

    fn command(&self, store: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_compactctl"));
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .env("HOME", &self.folder)
            .env("COMPACT_STORAGE_PATH", self.folder.join(store))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Runs a command to its end; returns how long it took, in seconds.
    fn run(&self, store: &str, arguments: &[&str]) -> Result<f64> {
        let start = Instant::now();
        let status = self.command(store, arguments).status()?;
        let seconds = start.elapsed().as_secs_f64();
        match status.success() {
            true => Ok(seconds),
            false => Err(format!("compactctl {arguments:?} ended with {status}").into()),
        }
    }

    /// Waits for whoever indexes.
    fn settle(&self, store: &str) -> Result<()> {
        self.run(store, &["recall", "anything", "--json"]).map(drop)
    }

    fn start(&self) -> Result<f64> {
        let file = self.folder.join("kilobyte.json");
        if !file.exists() {
            let reply = json!({ "role": "assistant", "content": "done ".repeat(180) });
            let messages = json!([{ "role": "user", "content": "go" }, reply]);
            fs::write(&file, json!({ "messages": messages }).to_string())?;
        }
        Ok(1000.0 * self.run("store", &["inspect", "kilobyte.json"])?)
    }

    /// A new session of a million tokens in a new store, over a count of its texts.
    fn compact_over_count(&self, round: usize) -> Result<f64> {
        let file = self.folder.join("million.jsonl");
        if !file.exists() {
            fs::write(&file, generate::coding_session(21, 1_000_000).text)?;
        }
        let store = format!("million-{round}");
        let count = count_seconds(&file)?;
        let seconds = self.run(&store, &["compact", "million.jsonl", "--json"])?;
        self.settle(&store)?;
        fs::remove_dir_all(self.folder.join(store))?;
        Ok(seconds / count)
    }

    /// Sessions a second, for each number of processes at once.
    fn rates(&self) -> Result<Vec<(usize, f64)>> {
        for nth in 0..SESSIONS {
            let text = generate::coding_session(100 + nth as u64, 100_000).text;
            fs::write(self.folder.join(format!("{nth}.jsonl")), text)?;
        }
        let rate = |at_once: &usize| Ok((*at_once, self.rate(*at_once)?));
        AT_ONCE.iter().map(rate).collect()
    }

    fn rate(&self, at_once: usize) -> Result<f64> {
        let store = format!("many-{at_once}");
        let start = Instant::now();
        thread::scope(|scope| {
            let work = |first: usize| {
                let store = &store;
                let compact = move |nth: usize| {
                    let file = format!("{nth}.jsonl");
                    let arguments = ["compact", &*file, "--budget", "30000", "--json"];
                    self.run(store, &arguments)
                        .map_err(|error| error.to_string())
                };
                move || {
                    (first..SESSIONS)
                        .step_by(at_once)
                        .try_for_each(|nth| compact(nth).map(drop))
                }
            };
            let workers: Vec<_> = (0..at_once).map(|first| scope.spawn(work(first))).collect();
            let ended = |worker: thread::ScopedJoinHandle<'_, _>| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err("a worker broke off".to_owned()))
            };
            workers.into_iter().try_for_each(ended)
        })?;
        let seconds = start.elapsed().as_secs_f64();
        self.settle(&store)?;
        Ok(SESSIONS as f64 / seconds)
    }
}

/// How long one pass of bpe-openai over the texts of a session takes.
fn count_seconds(file: &Path) -> Result<f64> {
    let parsed = format::parse(
        fs::read(file)?,
        Some(Format::ClaudeCode),
        TranscriptScope::Live,
    )?;
    let bpe = bpe_openai::o200k_base();
    let blocks = parsed
        .conversation
        .entries
        .iter()
        .flat_map(|entry| &entry.blocks);
    let texts: Vec<&str> = blocks.flat_map(|block| block.text_parts()).collect();
    bpe.count("its tables are there");
    let start = Instant::now();
    let tokens: usize = texts.iter().map(|text| bpe.count(text)).sum();
    let seconds = start.elapsed().as_secs_f64();
    match tokens {
        0 => Err("the session has no tokens".into()),
        _ => Ok(seconds),
    }
}
