//! What a page takes at the server: the list of ten thousand sessions, a session of five thousand calls, and a year's money.
//!
//! Sessions are in a store on disk. One is a real compaction of five thousand calls, one of a few; the others stand beside
//! them in the catalog with the record of the small one under names of their own, since the list reads nothing else of
//! them. The recall index is up to date, as it is after every compaction. A page is timed from the request to its last
//! byte, first as nobody had looked at it before, then again: the first time and the median of five.
//! `cargo xtask bench dashboard` prints the table, adds it to `target/bench/report.json`, and fails when a limit is exceeded.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use compact::Compact;
use compact::recall::RecallQuery;
use compact_dashboard::{ActionMode, Dashboard, HostRule, router};
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};
use tower::ServiceExt;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SESSIONS: usize = 10_000;
const CALLS: usize = 5_000;
/// Requests of a busy year: a line of the journal each.
const REQUESTS: usize = 100_000;
/// How often a page is fetched after the first time.
const RUNS: usize = 5;
/// The most bytes of a page.
const WEIGHT: usize = 250_000;

/// Pages, and the most milliseconds that they may take.
const PAGES: [(&str, &str, f64); 4] = [
    ("list of 10,000 sessions", "/", 100.0),
    ("the same, searched", "/?page=3&q=session-77", 100.0),
    ("session of 5,000 calls", "/session?name=long", 200.0),
    ("money of 100,000 requests", "/money", 200.0),
];

fn main() -> ExitCode {
    // `cargo bench` says so; anything else that runs every target has no use for a benchmark.
    let mut arguments = std::env::args().skip(1);
    if !arguments.any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Runtime::new().map_err(Into::into);
    match runtime.and_then(|runtime| runtime.block_on(bench())) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn bench() -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let compact = Compact::builder()
        .model("gpt-5")
        .data_directory(folder.path())
        .build()?;
    fill_store(&compact).await?;
    write_journal(&compact, folder.path())?;
    let dashboard = Dashboard::new(compact, "", ActionMode::Allowed, HostRule::Loopback);
    let service = router(Arc::new(dashboard.ok_or("no randomness")?));
    let mut rows = Map::new();
    let mut is_met = true;
    println!(
        "{:<28} {:>9} {:>9} {:>7} {:>9}",
        "", "first ms", "median ms", "limit", "bytes"
    );
    for (name, path, limit) in PAGES {
        let (first, bytes) = fetch(&service, path).await?;
        let mut times = Vec::new();
        for _ in 0..RUNS {
            times.push(fetch(&service, path).await?.0);
        }
        times.sort_by(f64::total_cmp);
        let median = times.get(RUNS / 2).copied().unwrap_or(first);
        let is_over = first > limit || median > limit || bytes > WEIGHT;
        is_met &= !is_over;
        let mark = if is_over { "  over" } else { "" };
        println!("{name:<28} {first:>9.1} {median:>9.1} {limit:>7.0} {bytes:>9}{mark}");
        let row =
            json!({"first_ms": first, "median_ms": median, "limit_ms": limit, "bytes": bytes});
        rows.insert(name.to_owned(), row);
    }
    add_to_report(rows)?;
    Ok(is_met)
}

async fn fetch(service: &Router, path: &str) -> Result<(f64, usize)> {
    let request = Request::get(path).header("host", "127.0.0.1:8790");
    let request = request.body(Body::empty())?;
    let began = Instant::now();
    let answer = service.clone().oneshot(request).await?;
    let status = answer.status();
    let bytes = answer.into_body().collect().await?.to_bytes().len();
    let took = began.elapsed().as_secs_f64() * 1e3;
    if !status.is_success() {
        return Err(format!("{path} answered {status}").into());
    }
    Ok((took, bytes))
}

/// Compacts the long session and a short one, lists the record of that under all names, and brings the index up to date.
async fn fill_store(compact: &Compact) -> Result<()> {
    let turn = |n: usize| {
        let arguments = format!("{{\"path\":\"src/file_{}.rs\"}}", n % 40);
        let call = json!({"id": format!("c{n}"), "type": "function", "function": {"name": "read_file", "arguments": arguments}});
        [
            json!({"role": "user", "content": format!("Step {n}: round file {} to cents. Never touch the table billing_{n}.", n % 40)}),
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": format!("c{n}"), "content": format!("let total_{n} = cart.sum() + {n};\n").repeat(6)}),
            json!({"role": "assistant", "content": format!("Step {n} is done: ticket SHOP-{n}.")}),
        ]
    };
    // Each turn is two calls of the model.
    let turns = |count: usize| -> Vec<Value> { (0..count).flat_map(turn).collect() };
    compact
        .session("long")
        .compact(&turns(CALLS / 2), None)
        .await?;
    compact.session("short").compact(&turns(8), None).await?;
    let records = compact.session_records("short").await?;
    let record = records.last().ok_or("nothing was compacted")?;
    let store = compact.store_to_write()?;
    for n in 1..SESSIONS {
        let mut other = record.clone();
        other.session_id = format!("session-{n}");
        other.entry_hashes.clear();
        other.view_hashes.clear();
        store.catalog.save_record(&other).await?;
    }
    let query = RecallQuery {
        text: "ticket",
        ..RecallQuery::default()
    };
    compact.search(&query).await?;
    Ok(())
}

/// Writes as many requests as a busy year has, within the weeks that the page shows.
fn write_journal(compact: &Compact, root: &Path) -> Result<()> {
    let now = compact.clock().now().as_second();
    let mut weeks: Map<String, Value> = Map::new();
    for n in 0..REQUESTS {
        let back = (n as i64) * 8 * 7 * 86_400 / REQUESTS as i64;
        let at = jiff::Timestamp::from_second(now - back)?;
        let week = at.strftime("%G-W%V").to_string();
        let line = json!({
            "ts": at.to_string(), "session_id": format!("session-{}", n % 700), "event": "compact.usage", "model": "gpt-5",
            "turn_input": 900, "turn_output": 120, "turn_cache_read": 40_000, "turn_cache_creation": 800, "turn_cost_usd": 0.01,
            "project": format!("/home/me/project-{}", n % 9),
        });
        let text = weeks.entry(week).or_insert_with(|| json!(""));
        if let Value::String(text) = text {
            text.push_str(&format!("{line}\n"));
        }
    }
    let folder = root.join("journal");
    std::fs::create_dir_all(&folder)?;
    for (week, text) in &weeks {
        let text = text.as_str().unwrap_or_default();
        std::fs::write(folder.join(format!("{week}.jsonl")), text)?;
    }
    Ok(())
}

/// Adds the rows to the report of all benchmarks.
fn add_to_report(rows: Map<String, Value>) -> Result<()> {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let file = target.join("bench/report.json");
    let read = std::fs::read_to_string(&file).ok();
    let mut report: Value = read
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_else(|| json!({}));
    if let Some(report) = report.as_object_mut() {
        report.insert("dashboard".to_owned(), Value::Object(rows));
    }
    std::fs::create_dir_all(target.join("bench"))?;
    Ok(std::fs::write(file, serde_json::to_vec_pretty(&report)?)?)
}
