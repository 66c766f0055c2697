//! How long an agent waits for its hook before it compacts a session of ten megabytes.
//!
//! The command runs as an agent runs it, start to end. The copy of the transcript is measured by
//! itself and taken off, since no hook can be faster than the disk; the fastest of several rounds
//! counts. `cargo xtask bench hook` prints the table, adds it to `target/bench/report.json`, and fails
//! when a limit is exceeded.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const ROUNDS: usize = 9;
const BYTES: usize = 10_000_000;
/// Where the ledger was kept at the last prompt.
const WARM: Duration = Duration::from_millis(50);
/// Where the whole transcript must be read.
const COLD: Duration = Duration::from_millis(400);

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
    let session = Session::write(folder.path())?;
    let (mut warm, mut cold, mut copy) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for round in 0..ROUNDS {
        copy = copy.min(session.copy()?);
        cold = cold.min(session.before(&format!("cold{round}"))?);
        let store = format!("warm{round}");
        session.prompt(&store)?;
        session.grow(round)?;
        warm = warm.min(session.before(&store)?);
    }
    println!(
        "transcript: {} bytes, copied in {:.1} ms\n",
        session.len()?,
        millis(copy)
    );
    println!("{:<28} {:>9} {:>10} {:>9}", "", "ms", "less copy", "limit");
    let rows = [
        ("precompact_warm", warm, WARM),
        ("precompact_cold", cold, COLD),
    ];
    let mut told = serde_json::Map::new();
    let mut holds = true;
    for (name, time, limit) in rows {
        let own = time.saturating_sub(copy);
        let verdict = if own > limit { "  EXCEEDED" } else { "" };
        println!(
            "{name:<28} {:>9.1} {:>10.1} {:>9}{verdict}",
            millis(time),
            millis(own),
            limit.as_millis()
        );
        let row =
            json!({ "ms": millis(time), "less_copy_ms": millis(own), "limit_ms": millis(limit) });
        told.insert(name.to_owned(), row);
        holds &= own <= limit;
    }
    told.insert(
        "cold_over_warm".to_owned(),
        json!(cold.as_secs_f64() / warm.as_secs_f64()),
    );
    report(&Value::Object(told))?;
    Ok(holds)
}

/// A session that grows, and the agent in it.
struct Session {
    folder: PathBuf,
    file: PathBuf,
}

impl Session {
    fn write(folder: &Path) -> Result<Session> {
        let text = compact_eval::generate::coding_session(21, BYTES / 4).text;
        let lines = text.split_inclusive('\n').scan(0, |sum, line| {
            *sum += line.len();
            (*sum <= BYTES).then_some(line)
        });
        let mut lines: Vec<&str> = lines.collect();
        // A person writes the next prompt when the model has spoken, not while a tool is at work.
        let has_spoken =
            |line: &&str| line.contains("\"type\":\"assistant\"") && !line.contains("\"tool_use\"");
        while lines.pop_if(|line| !has_spoken(line)).is_some() {}
        let file = folder.join("session.jsonl");
        fs::write(&file, lines.concat())?;
        fs::create_dir_all(folder.join("work/.git"))?;
        Ok(Session {
            folder: folder.to_owned(),
            file,
        })
    }

    fn len(&self) -> Result<u64> {
        Ok(fs::metadata(&self.file)?.len())
    }

    /// What the agent says since the last prompt.
    fn grow(&self, round: usize) -> Result<()> {
        let line = json!({
            "parentUuid": null, "isSidechain": false, "sessionId": "bench", "type": "assistant",
            "uuid": format!("later-{round}"),
            "message": { "role": "assistant", "content": [{ "type": "text", "text": "It is done." }] },
        });
        let mut file = File::options().append(true).open(&self.file)?;
        Ok(writeln!(file, "{line}")?)
    }

    fn copy(&self) -> Result<Duration> {
        let target = self.folder.join("copy");
        let start = Instant::now();
        let mut file = File::create(&target)?;
        std::io::copy(&mut File::open(&self.file)?, &mut file)?;
        file.sync_all()?;
        let taken = start.elapsed();
        fs::remove_file(target)?;
        Ok(taken)
    }

    fn prompt(&self, store: &str) -> Result<Duration> {
        self.call(store, "UserPromptSubmit")
    }

    fn before(&self, store: &str) -> Result<Duration> {
        let taken = self.call(store, "PreCompact")?;
        fs::remove_dir_all(self.folder.join(store))?;
        Ok(taken)
    }

    fn call(&self, store: &str, event: &str) -> Result<Duration> {
        let payload = json!({
            "session_id": "bench", "transcript_path": self.file, "cwd": self.folder.join("work"),
            "hook_event_name": event, "trigger": "auto",
        });
        let start = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_compactctl"))
            .args(["hook", "--agent", "claude-code"])
            .env_clear()
            .env("HOME", &self.folder)
            .env("COMPACT_STORAGE_PATH", self.folder.join(store))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut stdin = child.stdin.take().ok_or("no stdin")?;
        stdin.write_all(payload.to_string().as_bytes())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        let taken = start.elapsed();
        if !output.status.success() || (event == "PreCompact" && output.stdout.is_empty()) {
            return Err(format!("the hook failed at {event}").into());
        }
        Ok(taken)
    }
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

/// Adds the lines to the report of the other benchmarks.
fn report(hook: &Value) -> Result<()> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.into(), PathBuf::from);
    let file = target.join("bench/report.json");
    let before = fs::read(&file).unwrap_or_default();
    let mut all: Value = serde_json::from_slice(&before).unwrap_or_else(|_| json!({}));
    if let Some(all) = all.as_object_mut() {
        all.insert("hook".to_owned(), hook.clone());
    }
    fs::create_dir_all(target.join("bench"))?;
    Ok(fs::write(file, format!("{all:#}\n"))?)
}
