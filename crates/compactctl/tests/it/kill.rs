//! Processes that are killed at any moment: whatever is there afterwards is whole, listed and restored.
//!
//! `COMPACT_TRIALS` says how many are killed; `cargo xtask prove kill` asks for hundreds.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::place::{Place, Run, claude};

fn trials() -> usize {
    let asked = std::env::var("COMPACT_TRIALS").ok();
    asked.and_then(|trials| trials.parse().ok()).unwrap_or(6)
}

/// Moments to kill at, spread over the time that a whole run takes.
struct Moments {
    /// As it was last seen: a busy machine takes longer.
    whole: Duration,
    random: u64,
}

impl Moments {
    fn next(&mut self) -> Duration {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(11);
        let share = (self.random >> 40) as f64 / (1u64 << 24) as f64;
        // Files are written in the second half, so most kills fall there.
        let share = match self.random % 3 {
            0 => share,
            _ => 0.4 + share * 1.1,
        };
        self.whole.mul_f64(share)
    }
}

/// What became of the processes.
#[derive(Debug, Default)]
struct Tally {
    killed: usize,
    finished: usize,
}

impl Tally {
    /// Kills a process after a while; true when it was faster.
    fn kill(&mut self, mut child: Child, after: Duration) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < after && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        let status = child.wait().unwrap();
        let was_killed = status.signal() == Some(9);
        assert!(was_killed || status.success(), "{status}");
        match was_killed {
            true => self.killed += 1,
            false => self.finished += 1,
        }
        !was_killed
    }
}

/// Where compactions are killed, and what they were given.
struct Compactions {
    place: Place,
    variables: Vec<(&'static str, String)>,
    sources: BTreeMap<String, String>,
    /// Sessions whose process said that it was done.
    done: Vec<String>,
}

impl Compactions {
    fn new(variables: Vec<(&'static str, String)>) -> Compactions {
        Compactions {
            place: Place::new(),
            variables,
            sources: BTreeMap::new(),
            done: Vec::new(),
        }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        Run::of(self.place.command(arguments).envs(variables))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let run = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(run.code, 0, "{arguments:?}: {} {}", run.text(), run.stderr);
        run.json()
    }

    fn start(&mut self, session: &str, turns: usize) -> Child {
        let source = claude(turns);
        self.place.write("s.jsonl", &source);
        self.sources.insert(session.to_owned(), source);
        let arguments = [
            "compact",
            "s.jsonl",
            "--session",
            session,
            "--budget",
            "2000",
        ];
        let mut command = self
            .place
            .command(&[&arguments[..], &["-o", "out.jsonl"]].concat());
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        let command = command
            .envs(variables)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// Kills so many, and looks at what is left after each.
    fn storm(&mut self, trials: usize) -> Tally {
        let begin = Instant::now();
        assert!(self.start("whole", 60).wait().unwrap().success());
        let mut moments = Moments {
            whole: begin.elapsed(),
            random: 7,
        };
        self.done.push("whole".to_owned());
        let mut tally = Tally::default();
        while tally.killed < trials && tally.finished < 10 * trials {
            let trial = tally.killed + tally.finished;
            let session = format!("s{}", trial % 40);
            let child = self.start(&session, 60 + trial / 8);
            let (begin, after) = (Instant::now(), moments.next());
            if tally.kill(child, after) {
                self.done.push(session.clone());
                moments.whole = begin.elapsed();
            } else {
                moments.whole = moments.whole.max(after);
            }
            match trial % 10 {
                9 => self.look(|_| true),
                _ => self.look(|name| name == session),
            }
        }
        tally
    }

    /// Everything is whole; what is listed and chosen is restored as it was given, and what was done is
    /// listed.
    fn look(&self, is_chosen: impl Fn(&str) -> bool) {
        assert_eq!(self.json(&["archive", "verify"])["ok"], true);
        let listed = self.json(&["archive", "list"]);
        let mut names = Vec::new();
        for session in listed["sessions"].as_array().unwrap() {
            let name = session["session_id"].as_str().unwrap();
            if session["compactions"] == 0 {
                continue;
            }
            if is_chosen(name) {
                self.restores(name, self.sources.get(name).unwrap());
            }
            names.push(name);
        }
        for done in &self.done {
            assert!(names.contains(&&**done), "{done} is not listed");
        }
    }

    /// A session that was given again and killed has what it was given before.
    fn restores(&self, name: &str, given: &str) {
        let restored = self.run(&["restore", name]).ok().text();
        assert!(
            !restored.is_empty() && given.starts_with(&restored),
            "{name}: {} of {} bytes",
            restored.len(),
            given.len()
        );
        if !self.done.iter().any(|done| done == name) {
            return;
        }
        let verified = self.json(&["verify", name]);
        assert_eq!(verified["ok"], true, "{verified}");
    }
}

#[test]
fn a_killed_compact_leaves_nothing_torn_or_unlisted() {
    let mut compactions = Compactions::new(Vec::new());
    let tally = compactions.storm(trials());
    println!("compact: {tally:?}");
    assert_eq!(tally.killed, trials(), "{tally:?}");
    // All that was done is in the archive, whatever becomes of the catalog.
    fs::remove_file(compactions.place.store().join("catalog.db")).unwrap();
    // Packs that nothing refers to, which killed processes left, are told as a problem.
    let rebuilt = compactions.place.run(&["archive", "rebuild", "--json"]);
    assert_eq!(rebuilt.json()["unreadable"], json!([]));
    compactions.look(|_| true);
}

#[test]
fn a_killed_compact_leaves_postgresql_whole() {
    let Ok(server) = std::env::var("COMPACT_TEST_POSTGRES") else {
        return;
    };
    let catalog = ("COMPACT_STORAGE_CATALOG", database(&server));
    let mut compactions = Compactions::new(vec![catalog]);
    compactions.json(&["catalog", "migrate"]);
    let tally = compactions.storm(trials());
    println!("postgres: {tally:?}");
    assert_eq!(tally.killed, trials(), "{tally:?}");
}

/// A database of its own on a server.
fn database(server: &str) -> String {
    let name = format!("kill_{}", std::process::id());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let config = format!("{server}/postgres");
        let connected = tokio_postgres::connect(&config, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        let create = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
        client.batch_execute(&create).await.unwrap();
    });
    format!("{server}/{name}")
}

#[test]
fn a_killed_hook_leaves_no_part_of_a_transcript() {
    let place = Place::new();
    let transcript = claude(60).repeat(10);
    place.write("t.jsonl", &transcript);
    let call = |event: &str| {
        let payload = json!({
            "session_id": "hooked", "transcript_path": place.path("t.jsonl"),
            "cwd": place.path(""), "hook_event_name": event, "trigger": "auto",
        });
        place.write("payload.json", payload.to_string());
        let stdin = fs::File::open(place.path("payload.json")).unwrap();
        let mut command = place.command(&["hook", "--agent", "claude-code"]);
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        quiet.stdin(stdin).spawn().unwrap()
    };
    let (begin, mut first) = (Instant::now(), call("PreCompact"));
    while archives(&place).is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The transcript is copied first: what comes after it is of less interest.
    let mut moments = Moments {
        whole: begin.elapsed(),
        random: 5,
    };
    assert!(first.wait().unwrap().success());
    let (mut tally, mut done) = (Tally::default(), 1);
    while tally.killed < trials() && tally.finished < 10 * trials() {
        let trial = tally.killed + tally.finished;
        let event = ["PreCompact", "PreCompact", "UserPromptSubmit"][trial % 3];
        let finished = tally.kill(call(event), moments.next());
        done += usize::from(finished && event == "PreCompact");
        assert!(archives(&place).len() >= done, "{done} are done");
        // It reads every archive, and there is one more after each call.
        if trial % 10 == 9 {
            verify_hook_archives(&place, done);
        }
        let restored = place.run(&["restore", "hooked"]).ok().text();
        assert!(restored == transcript, "{} bytes", restored.len());
    }
    println!("hook: {tally:?}");
    assert_eq!(tally.killed, trials(), "{tally:?}");
    verify_hook_archives(&place, done);
    for file in archives(&place) {
        assert_eq!(
            fs::metadata(&file).unwrap().len(),
            transcript.len() as u64,
            "{file:?}"
        );
    }
}

/// All that hooks archived is whole, and it is no less than what they said was done.
fn verify_hook_archives(place: &Place, done: usize) {
    let verified = place.json(&["archive", "verify"]);
    let archived = verified["hook_archives"].as_u64().unwrap() as usize;
    assert!(archived >= done, "{verified}");
}

/// Every file under the name of an archive.
fn archives(place: &Place) -> Vec<std::path::PathBuf> {
    let repositories = fs::read_dir(place.store().join("hooks")).into_iter();
    let repositories = repositories.flatten().flatten();
    let folders = repositories.flat_map(|found| fs::read_dir(found.path().join("archives")));
    let files = folders.flatten().flatten().map(|entry| entry.path());
    let is_named =
        |file: &std::path::PathBuf| !file.file_name().unwrap().to_string_lossy().starts_with('.');
    files.filter(is_named).collect()
}
