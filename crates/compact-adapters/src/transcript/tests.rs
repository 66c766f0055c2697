use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use compact_runtime::port::transcript::{GAP, conformance};
use serde_json::json;
use tempfile::TempDir;

use super::*;

struct Fixture {
    dir: TempDir,
    files: TranscriptFiles,
}

impl Fixture {
    fn new() -> Fixture {
        let dir = TempDir::new().unwrap();
        let files = TranscriptFiles::new(dir.path().join("data/sessions"));
        Fixture { dir, files }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("data/sessions")
    }

    fn names(&self) -> BTreeSet<String> {
        let found = fs::read_dir(self.root()).unwrap();
        found
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

fn moment() -> Timestamp {
    "2026-11-16T03:39:21.123456Z".parse().unwrap()
}

#[tokio::test]
async fn files_conform() {
    conformance::suite(&Fixture::new().files).await;
}

#[tokio::test]
async fn a_transcript_is_a_file_of_one_event_per_line() {
    let f = Fixture::new();
    f.files
        .append("s-1", &json!({"type": "user_message", "content": "a\nb"}));
    f.files
        .append("s-1", &json!({"type": "tool_denied", "request_id": "r"}));
    f.files.flush("s-1").await.unwrap();
    let path = f.root().join("transcript-s-1.jsonl");
    assert_eq!(f.files.location("s-1"), path.display().to_string());
    assert_eq!(
        fs::read_to_string(path).unwrap(),
        "{\"type\":\"user_message\",\"content\":\"a\\nb\"}\n{\"type\":\"tool_denied\",\"request_id\":\"r\"}\n"
    );
}

#[tokio::test]
async fn artifacts_are_named_by_session_and_moment() {
    let f = Fixture::new();
    for artifact in [
        Artifact::SummarizerInput,
        Artifact::Summary,
        Artifact::Summary,
    ] {
        f.files
            .keep_artifact("s-1", artifact, moment(), "text")
            .await
            .unwrap();
    }
    let names: Vec<String> = f.names().into_iter().collect();
    assert_eq!(
        names,
        [
            "summarizer-input-s-1-20261116T033921.123456Z.md",
            "summary-s-1-20261116T033921.123456Z-2.md",
            "summary-s-1-20261116T033921.123456Z.md",
        ]
    );
}

#[tokio::test]
async fn no_session_id_leads_out_of_the_directory() {
    let f = Fixture::new();
    let long = "x".repeat(5_000);
    let odd = conformance::ODD_SESSIONS.into_iter().chain([long.as_str()]);
    for session in odd.clone() {
        f.files.append(session, &json!({}));
        f.files.flush(session).await.unwrap();
        f.files
            .keep_artifact(session, Artifact::Summary, moment(), "")
            .await
            .unwrap();
    }
    assert_eq!(f.names().len(), 2 * odd.count());
    let top: Vec<_> = fs::read_dir(f.dir.path()).unwrap().collect();
    assert_eq!(top.len(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn transcripts_and_artifacts_are_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let f = Fixture::new();
    f.files.append("s", &json!({}));
    f.files.flush("s").await.unwrap();
    f.files
        .keep_artifact("s", Artifact::Summary, moment(), "")
        .await
        .unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&f.root()), 0o700);
    assert_eq!(mode(f.root().parent().unwrap()), 0o700);
    for name in f.names() {
        assert_eq!(mode(&f.root().join(&name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_torn_line_stays_alone() {
    let f = Fixture::new();
    let path = f.root().join("transcript-s.jsonl");
    fs::create_dir_all(f.root()).unwrap();
    fs::write(&path, "{\"n\":1}\n{\"n\":2,\"text\":\"half of a").unwrap();
    let read = f.files.read("s").await.unwrap();
    assert_eq!((read.events, read.damaged), (vec![json!({"n": 1})], 1));
    f.files.append("s", &json!({"n": 3}));
    f.files.append("s", &json!({"n": 4}));
    f.files.flush("s").await.unwrap();
    let read = f.files.read("s").await.unwrap();
    assert_eq!(
        read.events,
        [json!({"n": 1}), json!({"n": 3}), json!({"n": 4})]
    );
    assert_eq!(read.damaged, 1);
}

#[tokio::test]
async fn lines_that_are_no_events_are_counted_and_left() {
    let f = Fixture::new();
    fs::create_dir_all(f.root()).unwrap();
    let content = b"{\"n\":1}\r\n\n\xff\xfe\n[1]\n\"x\"\n{\"n\":2}".as_slice();
    fs::write(f.root().join("transcript-s.jsonl"), content).unwrap();
    let read = f.files.read("s").await.unwrap();
    assert_eq!(
        (read.events, read.damaged),
        (vec![json!({"n": 1}), json!({"n": 2})], 3)
    );
}

#[tokio::test]
async fn a_file_has_one_writing_process() {
    let f = Fixture::new();
    f.files.append("s", &json!({"n": 1}));
    f.files.flush("s").await.unwrap();
    let other = TranscriptFiles::new(f.root());
    other.append("s", &json!({"n": 2}));
    let error = other.flush("s").await.unwrap_err().to_string();
    assert!(
        error.contains("another process is writing this transcript"),
        "{error}"
    );
    drop(f.files);
    other.append("s", &json!({"n": 3}));
    other.flush("s").await.unwrap();
    assert_eq!(
        other.read("s").await.unwrap().events,
        [
            json!({"n": 1}),
            json!({"type": GAP, "events": 1}),
            json!({"n": 3})
        ]
    );
}

#[tokio::test]
async fn more_sessions_than_open_files_are_all_written() {
    let f = Fixture::new();
    for n in 0..3 {
        for session in 0..100 {
            f.files.append(&format!("s{session}"), &json!({ "n": n }));
        }
    }
    for session in 0..100 {
        let session = format!("s{session}");
        f.files.flush(&session).await.unwrap();
        assert_eq!(f.files.read(&session).await.unwrap().events.len(), 3);
    }
}

#[tokio::test]
async fn a_directory_that_cannot_be_is_told_by_the_flush() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let files = TranscriptFiles::new(dir.path().join("file/sessions"));
    files.append("s", &json!({"n": 1}));
    files.append("s", &json!({"n": 2}));
    let error = files.flush("s").await.unwrap_err().to_string();
    assert!(
        error.starts_with("2 events of session 's' are not in its transcript "),
        "{error}"
    );
    // Told once; nothing new has been lost since.
    files.flush("s").await.unwrap();
    assert!(
        files
            .keep_artifact("s", Artifact::Summary, moment(), "x")
            .await
            .is_err()
    );
    // Once there is a place, the transcript says what it lacks.
    fs::remove_file(dir.path().join("file")).unwrap();
    files.append("s", &json!({"n": 3}));
    files.flush("s").await.unwrap();
    let read = files.read("s").await.unwrap();
    assert_eq!(
        read.events,
        [json!({"type": GAP, "events": 2}), json!({"n": 3})]
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_told_by_the_flush_and_holds_nobody_up() {
    let f = Fixture::new();
    fs::create_dir_all(f.root()).unwrap();
    std::os::unix::fs::symlink("/dev/full", f.root().join("transcript-s.jsonl")).unwrap();
    for n in 0..100 {
        f.files.append("s", &json!({ "n": n }));
    }
    let error = f.files.flush("s").await.unwrap_err().to_string();
    assert!(error.starts_with("100 events of session 's'"), "{error}");
    assert!(error.contains("No space left"), "{error}");
    // Another session's file is on another disk, so to speak.
    f.files.append("t", &json!({"n": 1}));
    f.files.flush("t").await.unwrap();
}

#[test]
fn a_stuck_writer_costs_one_moment_and_a_gap() {
    let queue = WriterQueue::default();
    let big = vec![b'x'; 20 << 20];
    let start = std::time::Instant::now();
    for _ in 0..50 {
        queue.push("s", big.clone());
    }
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
    assert!(matches!(queue.next(), Some(queue::WriterJob::Line { .. })));
    queue.push("s", b"{}\n".to_vec());
    let Some(queue::WriterJob::Gap { events, .. }) = queue.next() else {
        panic!("no gap");
    };
    assert_eq!(events, 49);
    assert!(matches!(queue.next(), Some(queue::WriterJob::Line { line, .. }) if line == b"{}\n"));
}

/// The process that is killed: appends numbers from `TRANSCRIPT_FROM` on and says which ones are
/// acknowledged.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(dir) = std::env::var("TRANSCRIPT_DIR") else {
        return;
    };
    let from: u64 = std::env::var("TRANSCRIPT_FROM").unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let files = TranscriptFiles::new(dir);
    for n in from.. {
        let text = "y".repeat((n % 97 * n % 89 * 40) as usize);
        files.append("s", &json!({"n": n, "text": text}));
        if n % 7 == 0 {
            runtime.block_on(files.flush("s")).unwrap();
            println!("acknowledged {n}");
        }
    }
}

fn spawn_child(dir: &Path, from: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "transcript::tests::child_that_writes_until_it_is_killed",
            "--nocapture",
        ])
        .env("TRANSCRIPT_DIR", dir)
        .env("TRANSCRIPT_FROM", from.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// From when on a child's days are counted.
#[derive(Clone, Copy)]
enum From {
    Start,
    /// The first number that it says is acknowledged, however long a busy machine takes.
    Work,
}

/// Kills the child after a while; the last number that it said was acknowledged.
fn killed(mut child: Child, from: From, after: Duration) -> Option<u64> {
    // A torn last line of the pipe is no acknowledgement.
    let mut numbers = BufReader::new(child.stdout.take().unwrap())
        .split(b'\n')
        .filter_map(|line| String::from_utf8(line.unwrap()).ok())
        .filter_map(|line| line.rsplit_once("acknowledged ")?.1.parse().ok());
    let first = match from {
        From::Start => None,
        From::Work => numbers.next(),
    };
    std::thread::sleep(after);
    child.kill().unwrap();
    let last = numbers.last().or(first);
    child.wait().unwrap();
    last
}

#[test]
fn killed_at_any_moment_no_acknowledged_event_is_lost_and_the_next_start_goes_on() {
    const ROUNDS: u64 = 120;
    let dir = TempDir::new().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let mut next = 0;
    let mut progressed = 0;
    for round in 0..ROUNDS {
        let child = spawn_child(dir.path(), next);
        // Spread over start-up, the first lines and the middle of the work.
        let after = Duration::from_micros(1_000 + (round * 7_919) % 40_000);
        let from = if round % 2 == 0 {
            From::Start
        } else {
            From::Work
        };
        let acknowledged = killed(child, from, after);
        let read = runtime
            .block_on(TranscriptFiles::new(dir.path()).read("s"))
            .unwrap();
        let numbers: Vec<u64> = read
            .events
            .iter()
            .map(|e| e["n"].as_u64().unwrap())
            .collect();
        // Nothing missing in the middle, nothing twice, nothing out of order.
        assert!(
            numbers.iter().copied().eq(0..numbers.len() as u64),
            "round {round}"
        );
        assert!(
            read.damaged <= round + 1,
            "round {round}: {} torn",
            read.damaged
        );
        if let Some(last) = acknowledged {
            assert!(numbers.len() as u64 > last, "round {round}: {last} is lost");
            progressed += 1;
        }
        next = numbers.len() as u64;
    }
    assert!(
        progressed >= ROUNDS / 2,
        "only {progressed} children came to write"
    );
}
