//! Recall over a large archive: is the right entry first, and how soon.
//!
//! A thousand sessions of two hundred megabytes are archived and indexed as a user's would be, on
//! disk; then two hundred questions are asked in this process. `cargo xtask bench recall` prints the
//! figures, adds them to `target/bench/report.json`, and fails when a limit is missed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use compact_adapters::archive::ObjectArchive;
use compact_adapters::catalog::SqliteCatalog;
use compact_adapters::recall::SqliteIndex;
use compact_eval::quiz::{DISTRACTORS, Exam, Quiz};
use compact_runtime::Recall;
use serde_json::{Value, json};

const SEED: u64 = 2026;
const SESSIONS: usize = 1_000;
const BYTES: usize = 210_000;
const QUESTIONS: usize = 200;

/// The share of questions whose answer must come first.
const FIRST: f64 = 0.9;
/// The time that 95 of 100 questions must stay within.
const P95_MS: f64 = 50.0;

fn main() -> ExitCode {
    // `cargo bench` says so; anything else that runs every target has no use for a benchmark.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let kept = std::env::var_os("RECALL_FOLDER").map(PathBuf::from);
    let folder = kept.unwrap_or_else(|| temporary.path().to_owned());
    let recall = open(&folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let quiz = Quiz::new(seed()?, SESSIONS, BYTES, QUESTIONS);
    let exam = runtime.block_on(Exam::prepare(&quiz, &recall))?;
    let start = Instant::now();
    runtime.block_on(recall.update_index())?;
    let indexing = start.elapsed().as_secs_f64();
    let result = runtime.block_on(exam.ask_all())?;
    let share = result.first as f64 / QUESTIONS as f64;
    let p95 = result.p95().as_secs_f64() * 1000.0;
    let median = result
        .times
        .get(QUESTIONS / 2)
        .map_or(0.0, |t| t.as_secs_f64() * 1000.0);
    let size = std::fs::metadata(folder.join("recall.db"))?.len();
    if std::env::var_os("RECALL_MISSED").is_some() {
        result
            .missed
            .iter()
            .for_each(|missed| println!("missed: {missed}\n"));
    }
    println!(
        "{SESSIONS} sessions, {} bytes archived, {DISTRACTORS} likes of each answer",
        exam.archived
    );
    println!(
        "right entry first   {:>6.1} %   at least {:.0} %",
        share * 100.0,
        FIRST * 100.0
    );
    println!(
        "among the first 5   {:>6.1} %",
        result.among_five as f64 * 100.0 / QUESTIONS as f64
    );
    println!("p95                 {p95:>6.1} ms  at most {P95_MS:.0} ms (median {median:.1} ms)");
    println!("indexing            {indexing:>6.1} s   {size} bytes");
    report(&json!({
        "sessions": SESSIONS, "bytes_archived": exam.archived, "questions": QUESTIONS,
        "likes": DISTRACTORS, "right_first": share, "right_among_five": result.among_five as f64 / QUESTIONS as f64,
        "p95_ms": p95, "median_ms": median, "indexing_seconds": indexing, "index_bytes": size,
        "limits": { "right_first": FIRST, "p95_ms": P95_MS },
    }))?;
    if share < FIRST || p95 > P95_MS {
        bail!("recall missed its limit");
    }
    Ok(())
}

/// Another quiz when `RECALL_SEED` says so.
fn seed() -> Result<u64> {
    match std::env::var("RECALL_SEED") {
        Ok(seed) => Ok(seed.parse()?),
        Err(_) => Ok(SEED),
    }
}

fn open(folder: &Path) -> Result<Recall> {
    Ok(Recall {
        archive: Arc::new(ObjectArchive::open(folder)?),
        catalog: Arc::new(SqliteCatalog::open(&folder.join("catalog.db"))?),
        index: Arc::new(SqliteIndex::open(&folder.join("recall.db"))?),
        redactor: Arc::default(),
    })
}

/// Adds a line to the report of the other benchmarks.
fn report(recall: &Value) -> Result<()> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.into(), PathBuf::from);
    let file = target.join("bench/report.json");
    std::fs::create_dir_all(target.join("bench"))?;
    let before = std::fs::read(&file).unwrap_or_default();
    let mut report: Value = serde_json::from_slice(&before).unwrap_or_else(|_| json!({}));
    if let Some(fields) = report.as_object_mut() {
        fields.insert("recall".to_owned(), recall.clone());
    }
    Ok(std::fs::write(file, format!("{report:#}\n"))?)
}
