//! `compact --append` beside an agent that goes on writing, and killed at any moment.
//!
//! Both are tried as often as `COMPACT_TRIALS` says.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::place::{Place, claude};

const SESSION: &str = "agent/s.jsonl";
const APPEND: [&str; 5] = ["compact", SESSION, "--append", "--budget", "2000"];

/// How often to try; a few times where nobody says.
fn trials(few: usize) -> usize {
    let given = std::env::var("COMPACT_TRIALS").ok();
    given.and_then(|given| given.parse().ok()).unwrap_or(few)
}

/// Numbers that look like chance and are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

fn place() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("agent")).unwrap();
    place.write(SESSION, claude(12));
    place
}

fn text(place: &Place) -> String {
    String::from_utf8(place.read(SESSION)).unwrap()
}

fn said(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .collect()
}

fn is_agents(line: &str) -> bool {
    line.contains("\"uuid\":\"aaaaaaaa-")
}

/// How an agent writes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Through a handle that it keeps.
    Handle,
    /// The whole file anew, which then takes the name.
    Rename,
}

const LINES: usize = 1000;

/// Writes lines in bursts, with moments of rest between them.
fn write_as_agent(file: &Path, way: Way, chance: &mut Chance) {
    let mut handle = OpenOptions::new().append(true).open(file).unwrap();
    let mut next = 0;
    while next < LINES {
        for _ in 0..=chance.below(180).min((LINES - next - 1) as u64) {
            let line = json!({
                "type": "user", "uuid": format!("aaaaaaaa-0000-4000-8000-{next:012}"), "parentUuid": null,
                "sessionId": "s", "timestamp": "2026-11-16T12:00:00.000Z", "isSidechain": false,
                "message": { "role": "user", "content": format!("MARK-{next:04} {}", "x".repeat(300)) },
            });
            let line = format!("{line}\n");
            match way {
                Way::Handle => handle.write_all(line.as_bytes()).unwrap(),
                Way::Rename => write_anew(file, &line),
            }
            next += 1;
            thread::sleep(Duration::from_micros(chance.below(800)));
        }
        thread::sleep(Duration::from_millis(chance.below(900)));
    }
}

fn write_anew(file: &Path, line: &str) {
    let other = file.with_extension("agents-own");
    let old = fs::read(file).unwrap();
    fs::write(&other, [&old, line.as_bytes()].concat()).unwrap();
    fs::rename(&other, file).unwrap();
}

/// The lines behind the boundary of a receipt that are ours.
fn ours<'t>(text: &'t str, receipt: &str) -> Option<Vec<&'t str>> {
    let lines = said(text);
    let boundary = lines
        .iter()
        .position(|line| line.contains("\"compact_boundary\"") && line.contains(receipt))?;
    let ours = lines[boundary..].iter().take_while(|line| !is_agents(line));
    Some(ours.copied().collect())
}

/// Runs `--append` over and over until the agent is done; what each that succeeded left, by receipt.
fn append_until(place: &Place, done: &AtomicBool) -> Vec<(String, Vec<String>)> {
    let mut appended = Vec::new();
    let mut refused = 0;
    while !done.load(Ordering::SeqCst) {
        let run = place.run(&[&APPEND[..], &["--json"]].concat());
        assert!(matches!(run.code, 0 | 7), "{}", run.stderr);
        refused += usize::from(run.code == 7);
        let receipt = run.json()["receipt_id"].as_str().map(str::to_owned);
        if let (0, Some(receipt)) = (run.code, receipt) {
            let text = text(place);
            let lines = ours(&text, &receipt).unwrap_or_default();
            appended.push((receipt, lines.into_iter().map(str::to_owned).collect()));
        }
    }
    println!(
        "  appended {} times, refused {refused} times",
        appended.len()
    );
    appended
}

/// The append race.
#[test]
fn no_line_of_an_agent_is_lost_or_torn() {
    let mut views = 0;
    for trial in 0..trials(1) {
        for way in [Way::Handle, Way::Rename] {
            println!("trial {trial}, {way:?}");
            let place = place();
            let file = place.path(SESSION);
            let done = AtomicBool::new(false);
            let appended = thread::scope(|scope| {
                scope.spawn(|| {
                    write_as_agent(&file, way, &mut Chance(trial as u64));
                    done.store(true, Ordering::SeqCst);
                });
                append_until(&place, &done)
            });
            views += appended.len();
            check(&place, &appended);
        }
    }
    assert!(
        views > 0,
        "the agent rested now and then, and nothing was ever appended"
    );
    println!("{views} views were appended beside {} lines each", LINES);
}

fn check(place: &Place, appended: &[(String, Vec<String>)]) {
    let text = text(place);
    assert!(
        text.starts_with(&claude(12)),
        "what was there before is there"
    );
    for line in said(&text) {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "torn: {line}");
    }
    let agents = said(&text).into_iter().filter(|line| is_agents(line));
    let agents: Vec<&str> = agents.collect();
    assert_eq!(agents.len(), LINES, "every line of the agent, once");
    for (n, line) in agents.iter().enumerate() {
        assert!(
            line.contains(&format!("MARK-{n:04}")),
            "line {n} in its place: {line}"
        );
    }
    for (receipt, lines) in appended {
        if let Some(now) = ours(&text, receipt) {
            assert_eq!(&now, lines, "ours are whole where they are");
        }
    }
    // What came meanwhile is in the next view's archive.
    let last = place.json(&APPEND);
    if let Some(receipt) = last["receipt_id"].as_str() {
        assert_eq!(
            place.run(&["restore", receipt]).ok().stdout,
            text.as_bytes()
        );
    }
}

#[test]
fn a_process_that_is_killed_leaves_the_old_transcript_or_the_whole_view() {
    let place = place();
    let start = Instant::now();
    place
        .run(&[&APPEND[..], &["--session", "whole"]].concat())
        .ok();
    let longest = start.elapsed().as_micros() as u64;
    let count = said(&text(&place)).len();
    let before = said(&claude(12)).len();
    let mut chance = Chance(7);
    let mut finished = 0;
    let trials = trials(8);
    for trial in 0..trials {
        place.write(SESSION, claude(12));
        let session = format!("killed-{trial}");
        let arguments = [&APPEND[..], &["--session", &session]].concat();
        let mut command = place.command(&arguments);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_micros(chance.below(longest)));
        child.kill().unwrap();
        child.wait().unwrap();
        let text = text(&place);
        assert!(text.starts_with(&claude(12)), "trial {trial}");
        let lines = said(&text);
        assert!(
            [before, count].contains(&lines.len()),
            "trial {trial}: {} lines",
            lines.len()
        );
        assert!(
            lines
                .iter()
                .all(|line| serde_json::from_str::<Value>(line).is_ok())
        );
        finished += usize::from(lines.len() == count);
        let left = fs::read_dir(place.path("agent")).unwrap().flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["s.jsonl"], "trial {trial}");
        check_archive(&place, &arguments, &text, lines.len() == before);
    }
    println!("{trials} kills, {finished} of them after the view was written");
}

/// What a killed process archived is whole, and the next one archives and appends as if nothing had been.
fn check_archive(place: &Place, append: &[&str], before: &str, is_old: bool) {
    place.run(&["archive", "verify"]).ok();
    let next = place.json(append);
    match next["receipt_id"].as_str() {
        Some(receipt) => {
            let restored = place.run(&["restore", receipt]).ok().stdout;
            assert_eq!(restored, before.as_bytes());
        }
        None => assert!(!is_old, "{next}"),
    }
}

#[test]
fn a_file_that_rests_in_the_middle_of_a_line_is_left_alone() {
    let place = place();
    let torn = claude(12) + "{\"type\":\"user\",\"mess";
    place.write(SESSION, &torn);
    let run = place.run(&[&APPEND[..], &["--json"]].concat()).failed(7);
    assert_eq!(run.json()["error"]["kind"], "busy");
    assert!(
        run.stderr
            .contains("its last line is not finished; nothing was appended"),
        "{}",
        run.stderr
    );
    assert_eq!(text(&place), torn);
    assert!(!place.store().exists(), "nothing is recorded either");
}

#[test]
fn an_output_that_is_the_input_is_appended_to_and_not_replaced() {
    use std::os::unix::fs::MetadataExt;
    let place = place();
    let file = || fs::metadata(place.path(SESSION)).unwrap().ino();
    let before = file();
    place.run(&[&APPEND[..], &["-o", SESSION]].concat()).ok();
    assert_eq!(file(), before);
    assert!(text(&place).contains("\"compact_boundary\""));
}

#[test]
fn two_processes_append_one_after_the_other() {
    let place = place();
    let spawn = || {
        place
            .command(&APPEND)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let both = [spawn(), spawn()];
    for mut child in both {
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(0 | 7)), "{code:?}");
    }
    let text = text(&place);
    assert_eq!(text.matches("\"compact_boundary\"").count(), 1);
    assert!(
        said(&text)
            .iter()
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
}

/// A limit on the size of files cuts a write off as a full disk does.
#[test]
fn a_write_that_is_cut_off_leaves_a_blank_line() {
    let place = place();
    let session = claude(200);
    place.write(SESSION, &session);
    let blocks = session.len() / 512 + 2;
    let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    let mut command = Command::new("sh");
    command
        .args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_compactctl")])
        .args(APPEND)
        .current_dir(place.path(""))
        .env_clear()
        .env("HOME", place.path("home"))
        .env("COMPACT_STORAGE_PATH", place.store());
    let output = command.output().unwrap();
    let said_why = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said_why}");
    assert!(said_why.contains("cannot append to"), "{said_why}");
    let left = "a blank line now follows the transcript";
    assert!(said_why.contains(left), "{said_why}");
    let text = text(&place);
    let rest = text.strip_prefix(&session).unwrap();
    assert!(rest.ends_with('\n') && rest.trim().is_empty(), "{rest:?}");
    place.run(&APPEND).ok();
}
