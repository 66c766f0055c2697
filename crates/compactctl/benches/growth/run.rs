//! One compaction in a process of its own, and what the system says that it took.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;

/// How often the process is looked at.
const INTERVAL: Duration = Duration::from_millis(10);
/// After how long it is ended.
const PATIENCE: Duration = Duration::from_secs(600);
/// How many ticks the kernel counts a second in.
const TICKS: f64 = 100.0;

/// What a compaction took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// The size of the file.
    pub(crate) megabytes: f64,
    /// How many messages it has.
    pub(crate) messages: usize,
    /// Until the answer, by the clock.
    pub(crate) seconds: f64,
    /// Until the answer, of all processors.
    pub(crate) cpu_seconds: f64,
    /// The most memory until the answer.
    pub(crate) peak_megabytes: f64,
}

impl Cost {
    pub(crate) fn cpu_per_megabyte(&self) -> f64 {
        self.cpu_seconds / self.megabytes
    }

    pub(crate) fn peak_over_file(&self) -> f64 {
        self.peak_megabytes / self.megabytes
    }

    /// The cheaper of two runs.
    pub(crate) fn least(self, other: Cost) -> Cost {
        match other.cpu_seconds < self.cpu_seconds {
            true => other,
            false => self,
        }
    }

    /// The exponent with which time grew since a smaller one; nothing where that was too short to tell.
    pub(crate) fn growth_since(&self, smaller: &Cost) -> Option<f64> {
        let size = (self.megabytes / smaller.megabytes).ln();
        let time = (self.cpu_seconds / smaller.cpu_seconds).ln();
        (smaller.cpu_seconds > 0.2).then(|| time / size)
    }
}

/// What the kernel knows of a process.
#[derive(Clone, Copy, Default)]
struct Usage {
    cpu_seconds: f64,
    peak_megabytes: f64,
}

/// Compacts a file over a new store.
pub(crate) fn compact_file(file: &Path, store: &Path) -> Result<Cost> {
    let _ = fs::remove_dir_all(store);
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_compactctl"))
        .args(["compact", "--json"])
        .arg(file)
        .env_clear()
        .env("HOME", store)
        .env("COMPACT_STORAGE_PATH", store)
        .env("COMPACT_STORAGE_INDEXING", "on_recall")
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let answered = watch_until_answer(&mut child)?;
    let seconds = start.elapsed().as_secs_f64();
    expect_success(&mut child)?;
    let text = fs::read_to_string(file)?;
    Ok(Cost {
        megabytes: text.len() as f64 / 1e6,
        messages: text.matches("\"role\":").count(),
        seconds,
        cpu_seconds: answered.cpu_seconds,
        peak_megabytes: answered.peak_megabytes,
    })
}

fn watch_until_answer(child: &mut Child) -> Result<Usage> {
    let stdout = child.stdout.take().ok_or("there is no stdout")?;
    let (tell, told) = channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = tell.send(line);
    });
    let start = Instant::now();
    let mut usage = Usage::default();
    while told.recv_timeout(INTERVAL).is_err() {
        usage = read_usage(child.id()).unwrap_or(usage);
        if start.elapsed() > PATIENCE {
            child.kill()?;
        }
    }
    Ok(read_usage(child.id()).unwrap_or(usage))
}

fn expect_success(child: &mut Child) -> Result<()> {
    let status = child.wait()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("compactctl ended with {status}").into()),
    }
}

fn read_usage(process: u32) -> Option<Usage> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let peak: f64 = peak.trim().trim_end_matches(" kB").parse().ok()?;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it may hold anything, blanks and brackets too.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: f64 = ticks.filter_map(|field| field.parse::<f64>().ok()).sum();
    Some(Usage {
        cpu_seconds: ticks / TICKS,
        peak_megabytes: peak / 1000.0,
    })
}
