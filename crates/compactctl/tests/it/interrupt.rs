//! Ctrl-C while another process has the session.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use compact_adapters::catalog::SqliteCatalog;
use compact_runtime::port::catalog::SessionCatalog;

use crate::place::{Place, lines};

/// Longer than anybody would wait for this test.
const LONG: Duration = Duration::from_secs(600);

/// A session that somebody else is compacting.
fn place() -> Place {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    std::fs::create_dir(place.store()).unwrap();
    let catalog = SqliteCatalog::open(&place.store().join("catalog.db")).unwrap();
    let catalog = catalog.with_lease_time(LONG);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let lease = runtime.block_on(catalog.claim("s")).unwrap();
    assert!(lease.is_some());
    place
}

/// True once the process does something about SIGINT.
fn listens(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 0b10 != 0)
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: never");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interrupted_wait_for_another_process_ends_at_once_and_says_so() {
    let place = place();
    let seconds = LONG.as_secs().to_string();
    let arguments = ["compact", "s.jsonl", "--budget", "1500", "--session", "s"];
    let mut child = place
        .command(&arguments)
        .env("COMPACT_POLICY_WAIT_SECONDS", seconds)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("it listens", || listens(&child));
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let asked = Instant::now();
    let status = child.wait().unwrap();
    assert!(
        asked.elapsed() < Duration::from_secs(30),
        "{:?}",
        asked.elapsed()
    );
    assert_eq!(status.code(), Some(130));
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(said.starts_with("error: interrupted"), "{said}");
}
