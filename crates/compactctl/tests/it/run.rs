//! `run`: a task across sessions of an agent that speaks the small protocol, and everything that can
//! be wrong with one.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::place::{Place, Run};

/// Says that it is full until its fourth session, and leaves a line for each.
const TIRING: &str = r#"#!/bin/sh
echo "$COMPACT_RUN_ID $PWD $*" >> sessions
count=$(wc -l < sessions | tr -d ' ')
while read -r line; do
  case "$line" in
    *'"interrupt"'*) continue ;;
    *'CHECKPOINT REQUIRED'*)
      printf '%s\n' '{"type":"text","text":"<checkpoint>\n## Remaining Tasks\nthe rest of {it}\n</checkpoint>"}' ;;
    *)
      printf '%s\n' "$line" >> prompts
      printf '%s\n' '{"type":"tool_call","id":"c","name":"Bash","arguments":{"command":"make parser"}}'
      printf '%s\n' '{"type":"tool_result","id":"c","content":"ok"}'
      if [ "$count" -ge 4 ]; then
        printf '%s\n' '{"type":"text","text":"All of it is READY."}'
      else
        printf '%s\n' '{"type":"usage","input_tokens":950,"output_tokens":10}'
      fi ;;
  esac
  printf '%s\n' '{"type":"result"}'
done
"#;

const TASK: &str = "Fix the parser. Never touch the table billing_events.";

/// A place with a task and an agent that does what the script says.
fn place(script: &str) -> Place {
    let place = Place::new();
    place.write("task.md", TASK);
    place.write("agent", script);
    executable(&place, 0o755);
    place
}

fn executable(place: &Place, mode: u32) {
    let mode = PermissionsExt::from_mode(mode);
    std::fs::set_permissions(place.path("agent"), mode).unwrap();
}

const RUN: [&str; 7] = [
    "run",
    "--session",
    "r1",
    "--agent",
    "./agent",
    "--prompt",
    "task.md",
];

fn run(place: &Place, more: &[&str]) -> Run {
    place.run(&[&RUN, more].concat())
}

/// The story comes first, the error last.
trait Fails {
    fn fails(self, code: i32) -> Run;
}

impl Fails for Run {
    fn fails(self, code: i32) -> Run {
        assert_eq!(self.code, code, "{}", self.stderr);
        assert!(self.stderr.contains("error: "), "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }
}

fn events(run: &Run) -> Vec<Value> {
    let text = run.text();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["event"] == kind).count()
}

const SMALL: [&str; 4] = ["--window", "1000", "--until", "READY"];

#[test]
fn a_small_window_restarts_and_the_work_goes_on() {
    let place = place(TIRING);
    let more = [&SMALL[..], &["--json", "--", "--model", "m"]].concat();
    let run = run(&place, &more).ok();
    let told = events(&run);
    assert_eq!(count(&told, "context_restart"), 3);
    assert_eq!(told.last().unwrap()["event"], "run_finished");
    assert_eq!(told.last().unwrap()["text"], "All of it is READY.");
    assert_eq!(told.last().unwrap()["continuation_count"], 3);
    // The same holder of locks, folder and arguments in every session.
    let here = place.path("").canonicalize().unwrap();
    let line = format!(
        "r1 {} --model m\n",
        here.display().to_string().trim_end_matches('/')
    );
    assert_eq!(
        String::from_utf8(place.read("sessions")).unwrap(),
        line.repeat(4)
    );
    let prompts = String::from_utf8(place.read("prompts")).unwrap();
    let prompts: Vec<&str> = prompts.lines().collect();
    assert_eq!(prompts.len(), 4);
    for prompt in &prompts[1..] {
        assert!(
            prompt.contains("CONTINUING FROM PREVIOUS SESSION"),
            "{prompt}"
        );
        assert!(prompt.contains("the rest of {it}") && prompt.contains("billing_events"));
        assert!(!prompt.contains("<checkpoint>"));
    }
    // Everything is kept, and its owner's alone.
    let kept = place.store().join("runs/r1");
    for name in [
        "state.json",
        "events.jsonl",
        "session-001.jsonl",
        "session-004.jsonl",
    ] {
        let found = std::fs::metadata(kept.join(name)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_run_is_exported_without_a_word_of_its_agent() {
    let place = place(TIRING);
    let more = [&SMALL[..], &["--quiet", "--log-format", "json"]].concat();
    let run = run(&place, &more).ok();
    let exported: Vec<Value> = run
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(count(&exported, "context_restart"), 3);
    assert_eq!(
        count(&exported, "message") + count(&exported, "tool_called"),
        0
    );
    assert!(
        !run.stderr.contains("make parser") && !run.stderr.contains("READY"),
        "{}",
        run.stderr
    );
    let finished = exported
        .iter()
        .find(|event| event["event"] == "run_finished")
        .unwrap();
    // Three sessions that report 960 tokens each, as totals of theirs.
    let usage = &finished["counters"]["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"]),
        (&2850.into(), &30.into())
    );
    for event in &exported {
        for field in ["ts", "session_id", "severity", "trace_id", "span_id"] {
            assert!(
                event[field].as_str().is_some_and(|value| !value.is_empty()),
                "{field}: {event}"
            );
        }
    }
    assert_eq!(exported.last().unwrap()["event"], "compact.call_ended");
}

#[test]
fn people_get_the_answer_and_beside_it_the_story() {
    let place = place(TIRING);
    let run = run(&place, &SMALL).ok();
    assert_eq!(run.text(), "All of it is READY.\n");
    assert!(
        run.stderr
            .contains("Session r1: context restart #3 at 96.0%"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("Checkpoint written by the agent: "),
        "{}",
        run.stderr
    );
    let quiet = self::place(TIRING);
    let quiet = super::run::run(&quiet, &[&SMALL[..], &["--quiet"]].concat()).ok();
    assert_eq!(
        (quiet.text().as_str(), quiet.stderr.as_str()),
        ("All of it is READY.\n", "")
    );
}

#[test]
fn limits_are_told_with_how_to_go_on() {
    let place = place(TIRING);
    place.write("compact.yaml", "redaction: {sinks: {archive: false}}\n");
    let bounds = ["--max-restarts", "1", "--config", "compact.yaml"];
    let stopped = run(&place, &[&SMALL[..], &bounds].concat()).fails(5);
    assert!(
        stopped.stderr.contains("took all of its 1 restarts"),
        "{}",
        stopped.stderr
    );
    let help = "raise the limit and continue: compactctl run --resume r1 --config compact.yaml --max-restarts N\n";
    assert!(stopped.stderr.ends_with(help), "{}", stopped.stderr);
    // The window is that of the run.
    let resumed = place
        .run(&["run", "--resume", "r1", "--max-restarts", "5", "--json"])
        .ok();
    assert_eq!(count(&events(&resumed), "context_restart"), 2);
    let again = place.run(&["run", "--resume", "r1"]).fails(2);
    assert!(
        again.stderr.contains("run 'r1' is finished"),
        "{}",
        again.stderr
    );
    let taken = run(&place, &[]).fails(2);
    assert!(
        taken.stderr.contains("run 'r1' already exists"),
        "{}",
        taken.stderr
    );
    let missing = place.run(&["run", "--resume", "r2"]).fails(3);
    assert!(
        missing.stderr.contains("the latest are r1"),
        "{}",
        missing.stderr
    );
}

#[test]
fn ctrl_c_ends_the_agent_and_not_the_run() {
    let hangs = "#!/bin/sh\nread -r line\necho $$ > pid\n\
        printf '%s\\n' '{\"type\":\"tool_call\",\"id\":\"c\",\"name\":\"Bash\",\"arguments\":{\"command\":\"make parser\"}}'\nsleep 300\n";
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let place = place(hangs);
        let mut command = place.command(&[&RUN[..], &["--json"]].concat());
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !place.path("pid").exists() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(200));
        let pid = child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("continue with: compactctl run --resume r1"),
            "{said}"
        );
        let agent = String::from_utf8(place.read("pid")).unwrap();
        assert!(
            !Command::new("kill")
                .args(["-0", agent.trim()])
                .stderr(Stdio::null())
                .status()
                .unwrap()
                .success()
        );
        // This agent cannot take a session up again: the next one is told what was begun.
        place.write("agent", "#!/bin/sh\nread -r line\nprintf '%s' \"$line\" > told\necho '{\"type\":\"result\",\"text\":\"ok\"}'\n");
        assert_eq!(place.run(&["run", "--resume", "r1"]).ok().text(), "ok\n");
        let told = String::from_utf8(place.read("told")).unwrap();
        assert!(told.contains("make parser → no answer yet"), "{told}");
        assert!(told.contains("billing_events"), "{told}");
    }
}

#[test]
fn a_run_has_one_driver() {
    let place = place("#!/bin/sh\nread -r line\ntouch started\nsleep 300\n");
    let mut first = place
        .command(&RUN)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !place.path("started").exists() && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let second = place.run(&["run", "--resume", "r1"]).fails(2);
    assert!(
        second.stderr.contains("in use by another process"),
        "{}",
        second.stderr
    );
    let pid = first.id().to_string();
    Command::new("kill").arg(&pid).status().unwrap();
    first.wait().unwrap();
}

#[test]
fn agents_that_do_not_work_are_told_with_what_to_do() {
    let said = |script: &str, more: &[&str], code: i32, words: &[&str]| {
        let place = place(script);
        let run = run(&place, more).fails(code);
        for word in words {
            assert!(run.stderr.contains(word), "{word}: {}", run.stderr);
        }
    };
    let resume = "compactctl run --resume r1";
    said(
        "#!/bin/sh\necho 'no key' >&2; exit 7\n",
        &[],
        1,
        &["exit status: 7", "no key", resume],
    );
    said(
        "#!/bin/sh\necho Welcome to the agent!\n",
        &[],
        3,
        &["Welcome to the agent!", "docs/run.md"],
    );
    said(
        "#!/bin/sh\nread -r line\nsleep 60\n",
        &["--max-silence", "1s"],
        1,
        &["said nothing for 1 s", resume],
    );
    said(
        "#!/bin/sh\nread -r line\nsleep 60\n",
        &["--timeout", "1s"],
        5,
        &["took all of its 1 s", resume],
    );
    said(
        "#!/bin/sh\nread -r line\necho '{\"type\":\"result\",\"is_error\":true,\"message\":\"quota\"}'\n",
        &[],
        1,
        &["the agent failed: quota", resume],
    );
    said(
        "#!/bin/sh\nread -r line\necho '{\"type\":\"result\",\"is_error\":true,\"message\":\"prompt is too long\"}'\n",
        &[],
        4,
        &["already fills its window", "--window"],
    );
    let idle = "#!/bin/sh\nwhile read -r line; do echo '{\"type\":\"result\",\"text\":\"I wait.\"}'; done\n";
    said(
        idle,
        &["--until", "READY"],
        1,
        &["3 turns in a row", resume],
    );
    // It calls the same tool in every session, to the same end, and is full.
    let treadmill = TIRING.replace("-ge 4", "-ge 40");
    said(
        &treadmill,
        &SMALL,
        5,
        &[
            "3 sessions in a row filled up without doing anything",
            resume,
        ],
    );
    let place = place("not a program");
    executable(&place, 0o644);
    assert!(
        run(&place, &[])
            .fails(2)
            .stderr
            .contains("'./agent' cannot be executed")
    );
    std::fs::remove_file(place.path("agent")).unwrap();
    let other = place
        .run(&["run", "--agent", "./agent", "--prompt", "task.md"])
        .fails(2);
    assert!(
        other.stderr.contains("there is no program './agent'"),
        "{}",
        other.stderr
    );
    // What could never begin leaves nothing to go on with.
    let runs = std::fs::read_dir(place.store().join("runs")).unwrap();
    assert_eq!(runs.count(), 0);
}

#[test]
fn tasks_and_arguments_that_cannot_be_read_are_refused() {
    let place = place(TIRING);
    place.write("empty.md", " \n");
    place.write("binary.md", [0xff, 0xfe]);
    for (arguments, code) in [
        (
            vec!["run", "--agent", "./agent", "--prompt", "nowhere.md"],
            3,
        ),
        (vec!["run", "--agent", "./agent", "--prompt", "empty.md"], 3),
        (
            vec!["run", "--agent", "./agent", "--prompt", "binary.md"],
            3,
        ),
        (vec!["run", "--agent", "./agent"], 2),
        (vec!["run", "--resume", "r1", "--agent", "./agent"], 2),
        (
            vec![
                "run",
                "--agent",
                "./agent",
                "--prompt",
                "task.md",
                "--timeout",
                "soon",
            ],
            2,
        ),
        (
            vec![
                "run",
                "--agent",
                "./agent",
                "--prompt",
                "task.md",
                "--threshold",
                "0",
            ],
            2,
        ),
    ] {
        place.run(&arguments).fails(code);
    }
    assert!(!place.store().join("runs").exists(), "nothing was begun");
    let missing = ["run", "--agent", "./agent", "--prompt", "nowhere.md"];
    let missing = place.run(&missing).fails(3).stderr;
    assert!(missing.contains("cannot read nowhere.md"), "{missing}");
    assert!(
        missing.contains("help: write the task into a file, or pass - for stdin"),
        "{missing}"
    );
    let piped = place.run_with_stdin(
        &[&["run", "--agent", "./agent", "--prompt", "-"][..], &SMALL].concat(),
        TASK.as_bytes(),
    );
    assert_eq!(piped.ok().text(), "All of it is READY.\n");
}

/// What the sessions of a run said is found like everything else that was archived.
#[test]
fn what_a_run_kept_is_recalled_and_expanded() {
    let place = place(&TIRING.replace("\"content\":\"ok\"", "\"content\":\"parser_v7 built\""));
    run(&place, &SMALL).ok();
    let search = |words: &str| place.json(&["recall", words])["hits"].clone();
    let hits = search("billing_events table");
    assert_eq!(hits[0]["session_id"], "r1", "{hits}");
    let pointer = hits[0]["pointer"].as_str().unwrap();
    assert_eq!(place.json(&["expand", pointer])["text"], TASK);
    let hits = search("parser_v7 built");
    let pointer = hits[0]["pointer"].as_str().unwrap();
    assert_eq!(place.json(&["expand", pointer])["text"], "parser_v7 built");
    let last = search("all of it is READY");
    assert!(
        last[0]["snippet"].as_str().unwrap().contains("READY"),
        "{last}"
    );
    // What a person removed is forgotten.
    std::fs::remove_dir_all(place.store().join("runs")).unwrap();
    place.example("coding-session.jsonl");
    place
        .run(&[
            "compact",
            "coding-session.jsonl",
            "--budget",
            "8000",
            "--quiet",
        ])
        .ok();
    let hits = search("parser_v7 built");
    let sessions = hits
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| &hit["session_id"]);
    assert!(sessions.clone().all(|session| session != "r1"), "{hits}");
}

/// A session that goes on is searched again.
#[test]
fn a_run_that_goes_on_is_searched_as_far_as_it_is() {
    let place = place(TIRING);
    run(&place, &[&SMALL[..], &["--max-restarts", "1"]].concat()).fails(5);
    let search = |words: &str| place.json(&["recall", words])["hits"].clone();
    assert_eq!(search("all of it is READY"), serde_json::json!([]));
    let resume = [
        "run",
        "--resume",
        "r1",
        "--window",
        "1000",
        "--max-restarts",
        "5",
    ];
    place.run(&resume).ok();
    assert_eq!(search("all of it is READY").as_array().unwrap().len(), 1);
}

#[test]
fn a_folder_that_is_gone_and_a_broken_state_are_named() {
    let place = place(TIRING);
    run(&place, &[&SMALL[..], &["--max-restarts", "0"]].concat()).fails(5);
    let file = place.store().join("runs/r1/state.json");
    let state = std::fs::read_to_string(&file).unwrap();
    let here = place.path("").canonicalize().unwrap();
    let here = here.display().to_string();
    std::fs::write(&file, state.replace(here.trim_end_matches('/'), "/nowhere")).unwrap();
    assert!(
        place
            .run(&["run", "--resume", "r1"])
            .fails(3)
            .stderr
            .contains("/nowhere")
    );
    std::fs::write(&file, "{\"state\":3}").unwrap();
    assert!(
        place
            .run(&["run", "--resume", "r1"])
            .fails(3)
            .stderr
            .contains("state.json")
    );
}

const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// The files of the run that hold the secret.
fn with_secret(place: &Place) -> Vec<String> {
    let files = std::fs::read_dir(place.store().join("runs/r1")).unwrap();
    let mut names: Vec<String> = files
        .map(Result::unwrap)
        .filter(|file| {
            std::fs::read_to_string(file.path())
                .unwrap()
                .contains(SECRET)
        })
        .map(|file| file.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A session's lines are the original. What the next session is told, what the run goes on from and
/// its story are drawn from them, and know a secret by its placeholder only.
#[test]
fn secrets_stay_in_the_sessions_that_printed_them() {
    let printed = TIRING
        .replace(
            "\"content\":\"ok\"",
            &format!("\"content\":\"key {SECRET}\""),
        )
        .replace("the rest of {it}", &format!("push src/it.rs with {SECRET}"))
        .replace("All of it is READY.", &format!("READY with {SECRET}"));
    let exact = place(&printed);
    let answer = run(&exact, &SMALL).ok().text();
    assert_eq!(answer, format!("READY with {SECRET}\n"));
    let prompts = String::from_utf8(exact.read("prompts")).unwrap();
    assert!(
        prompts.contains("src/it.rs") && !prompts.contains(SECRET),
        "{prompts}"
    );
    let sessions = [1, 2, 3, 4].map(|n| format!("session-00{n}.jsonl"));
    assert_eq!(with_secret(&exact), sessions);

    let redacted = place(&printed);
    redacted.write("redact.yaml", "redaction:\n  sinks:\n    archive: true\n");
    run(
        &redacted,
        &[&SMALL[..], &["--config", "redact.yaml"]].concat(),
    )
    .ok();
    assert_eq!(with_secret(&redacted), Vec::<String>::new());
}

/// A line that is no JSON is redacted as the text that it is, by the user's patterns too.
#[test]
fn noise_of_a_redacted_archive_is_redacted() {
    let printed = TIRING.replacen(
        "#!/bin/sh\n",
        "#!/bin/sh\necho 'npm warn password=hunter2-x9'\n",
        1,
    );
    let place = place(&printed);
    place.write("redact.yaml", "redaction:\n  sinks:\n    archive: true\n");
    run(&place, &[&SMALL[..], &["--config", "redact.yaml"]].concat()).ok();
    let first = String::from_utf8(place.read("store/runs/r1/session-001.jsonl")).unwrap();
    assert!(
        first.contains("npm warn") && !first.contains("hunter2"),
        "{first}"
    );
}

#[test]
fn a_run_whose_program_vanished_is_kept() {
    let place = place(&TIRING.replacen("#!/bin/sh\n", "#!/bin/sh\nrm -f \"$0\"\n", 1));
    let told = run(&place, &SMALL).fails(2).stderr;
    assert!(told.contains("compactctl run --resume r1"), "{told}");
    assert!(place.store().join("runs/r1/session-001.jsonl").exists());
    place.write("agent", TIRING);
    executable(&place, 0o755);
    place.run(&["run", "--resume", "r1"]).ok();
}
