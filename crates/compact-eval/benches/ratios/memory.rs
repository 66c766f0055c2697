//! The peak memory of compacting a large file, above the tables, over the file's size.
//!
//! The peak belongs to a process, so a child of this one does the work and reports.

use std::process::Command;

use anyhow::{Context, Result, bail};
use compact_adapters::estimator::BpeEstimator;
use compact_core::token::Estimator;
use compact_eval::generate;

use crate::compact::view_of;
use crate::subject::{WINDOW, manager, runtime};

/// Tells the child what it is.
pub(crate) const CHILD: &str = "--peak-memory-of";

/// At least this many bytes.
const FILE_BYTES: usize = 50_000_000;

pub(crate) fn over_file() -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("large.jsonl");
    let size = write_large(&path)?;
    let output = Command::new(std::env::current_exe()?)
        .arg(CHILD)
        .arg(&path)
        .output()?;
    if !output.status.success() {
        bail!(
            "the child failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let peak: f64 = String::from_utf8_lossy(&output.stdout).trim().parse()?;
    Ok(peak / size as f64)
}

fn write_large(path: &std::path::Path) -> Result<usize> {
    let mut tokens = 4_500_000;
    loop {
        let file = generate::coding_session(23, tokens).text;
        if file.len() >= FILE_BYTES {
            std::fs::write(path, &file)?;
            return Ok(file.len());
        }
        tokens += 500_000;
    }
}

/// Compacts the file and prints the bytes of the peak above what the loaded tables take.
pub(crate) fn child(file: &str) -> Result<()> {
    BpeEstimator::O200k.count_units("load the tables");
    let tables = status_kb("VmRSS:")?;
    let file = std::fs::read(file)?;
    let view = view_of(&runtime()?, &manager(WINDOW, None)?, file.into(), None)?;
    std::hint::black_box(view);
    println!("{}", status_kb("VmHWM:")?.saturating_sub(tables) * 1024);
    Ok(())
}

fn status_kb(field: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")
        .context("peak memory is measured on Linux only")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .context("no such field")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
