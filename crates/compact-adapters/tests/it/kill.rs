//! A process that is killed while it compacts beside its session and writes its transcript.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use compact_core::message::Entry;
use compact_core::wire::WireRules;
use compact_runtime::Session;
use compact_runtime::port::transcript::TranscriptStore;

use crate::place;

/// Two families of processes, one for each core, each killed so often.
const KILLS: usize = 100;
/// Starts of one session before another begins: long ones would only cost time.
const STARTS: usize = 5;
const STORE: &str = "COMPACT_KILL_STORE";
const SESSION: &str = "COMPACT_KILL_SESSION";

/// Where a process writes: in a test run of its own it stops by itself.
fn task() -> (std::path::PathBuf, String, usize, Option<tempfile::TempDir>) {
    match (std::env::var_os(STORE), std::env::var(SESSION)) {
        (Some(dir), Ok(session)) => (dir.into(), session, usize::MAX, None),
        _ => {
            let dir = tempfile::tempdir().unwrap();
            (dir.path().to_owned(), "alone".into(), 120, Some(dir))
        }
    }
}

/// The process that is killed: goes on where the transcript ends, and says what is acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_process_goes_on_where_its_transcript_ends() {
    let (dir, session, most, _kept) = task();
    let transcripts = place::transcripts(&dir);
    let mut live = Session::new(place::manager(&dir), &session, &WireRules::LENIENT);
    let said = transcripts.read(&session).await.unwrap().events;
    let entries = said.into_iter().map(|e| serde_json::from_value(e).unwrap());
    live.append(entries.collect::<Vec<Entry>>()).unwrap();
    let mut compacted = false;
    for n in live.state().history().entries.len()..most {
        let entry = place::entry(n);
        transcripts.append(&session, &serde_json::to_value(&entry).unwrap());
        transcripts.flush(&session).await.unwrap();
        live.append([entry]).unwrap();
        compacted |= live.preflight().await.unwrap().receipt.is_some();
        let doing = if live.is_compacting() {
            "compacting"
        } else {
            "waiting"
        };
        println!("acknowledged {} {doing}", n + 1);
    }
    compacted |= live
        .wait_for_background(Duration::from_secs(60))
        .await
        .is_some();
    assert!(compacted);
}

fn start(dir: &Path, session: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "kill::a_process_goes_on_where_its_transcript_ends",
            "--nocapture",
        ])
        .env(STORE, dir)
        .env(SESSION, session)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a process said before it was killed.
struct Killed {
    acknowledged: usize,
    was_compacting: bool,
}

/// Kills a process some time after it said its first word.
fn kill(mut child: Child, after: Duration) -> Killed {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = next(&mut lines);
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut last = first.unwrap_or((0, false));
    while let Some(line) = next(&mut lines) {
        last = line;
    }
    Killed {
        acknowledged: last.0,
        was_compacting: last.1,
    }
}

/// The next whole word of a process.
fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> Option<(usize, bool)> {
    lines.find_map(|line| {
        let line = line.ok()?;
        let (_, said) = line.split_once("acknowledged ")?;
        let (count, doing) = said.split_once(' ')?;
        Some((count.parse().ok()?, doing == "compacting"))
    })
}

/// Everything acknowledged is there, everything there is whole, and what is on record is true.
async fn inspect(dir: &Path, session: &str, acknowledged: usize) -> usize {
    let said = place::transcripts(dir).read(session).await.unwrap();
    assert!(
        said.events.len() >= acknowledged,
        "{session}: {} < {acknowledged}",
        said.events.len()
    );
    let expected: Vec<Entry> = (0..said.events.len()).map(place::entry).collect();
    let events = said
        .events
        .into_iter()
        .map(|e| serde_json::from_value(e).unwrap());
    assert_eq!(events.collect::<Vec<Entry>>(), expected);
    let manager = place::manager(dir);
    let chain = manager.catalog().session_records(session).await.unwrap();
    if let Some(last) = chain.last() {
        let verified = manager.verify_receipt(&last.receipt_id).await.unwrap();
        assert_eq!(verified.mismatches, []);
        let whole = manager.restore(session).await.unwrap();
        let lines = whole
            .bytes
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty());
        let restored: Vec<Entry> = lines.map(|l| serde_json::from_slice(l).unwrap()).collect();
        assert_eq!(restored, expected[..restored.len()]);
    }
    chain.len()
}

/// Kills and inspects; returns how many were killed while they compacted, and what is on record.
fn family(seed: u64) -> (usize, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut random = seed;
    let (mut compacting, mut records) = (0, 0);
    for round in 0..KILLS {
        let session = format!("session-{}", round / STARTS);
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(seed);
        let after = Duration::from_micros((random >> 33) % 60_000);
        let killed = kill(start(dir.path(), &session), after);
        compacting += usize::from(killed.was_compacting);
        let on_record = runtime.block_on(inspect(dir.path(), &session, killed.acknowledged));
        if round % STARTS == STARTS - 1 {
            records += on_record;
        }
    }
    (compacting, records)
}

#[test]
fn killed_at_any_moment_nothing_is_lost_or_torn_and_the_next_start_goes_on() {
    let families = [7, 11].map(|seed| thread::spawn(move || family(seed)));
    let outcomes = families.map(|family| family.join().unwrap());
    let (compacting, records) = outcomes
        .iter()
        .fold((0, 0), |sum, o| (sum.0 + o.0, sum.1 + o.1));
    // The moments must be those that matter.
    assert!(
        compacting >= KILLS / 5,
        "{compacting} of {} kills",
        2 * KILLS
    );
    assert!(records >= KILLS / STARTS, "{records} records");
}
