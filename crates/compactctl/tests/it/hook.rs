//! `hook`: what an agent that compacts by itself sends, gets back, and finds on disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::place::{Place, Run, claude};

const RULE: &str = "Never touch the table billing_events.";

/// A place with a repository, a session in it, and what its agent would send.
struct Agent {
    place: Place,
    transcript: PathBuf,
}

impl Agent {
    fn new() -> Agent {
        let agent = Agent {
            place: Place::new(),
            transcript: PathBuf::new(),
        };
        fs::create_dir_all(agent.place.path("repo/.git")).unwrap();
        fs::create_dir_all(agent.place.path("repo/deep/down")).unwrap();
        agent.with_transcript("session.jsonl", session().as_bytes())
    }

    fn with_transcript(mut self, name: &str, bytes: &[u8]) -> Agent {
        self.place.write(name, bytes);
        self.transcript = self.place.path(name);
        self
    }

    fn payload(&self, event: &str) -> Value {
        json!({
            "session_id": "5e551040-0000-4000-8000-000000000000",
            "transcript_path": self.transcript, "cwd": self.place.path("repo/deep/down"),
            "hook_event_name": event,
        })
    }

    fn call(&self, event: &str, more: &Value) -> Run {
        let mut payload = self.payload(event);
        let more = more.as_object().unwrap().clone();
        payload.as_object_mut().unwrap().extend(more);
        self.send(payload.to_string().as_bytes())
    }

    /// Whatever is sent: exit 0, no panic.
    fn send(&self, payload: &[u8]) -> Run {
        let run = self.place.run_with_stdin(&["hook"], payload).ok();
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        run
    }

    fn before(&self) -> Run {
        self.call("PreCompact", &json!({ "trigger": "auto" }))
    }

    /// Faults are told in one line, and in nothing else.
    fn fault(&self, payload: &[u8], level: &str) -> String {
        let run = self.send(payload);
        assert_eq!(run.text(), "");
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert!(run.stderr.starts_with(level), "{}", run.stderr);
        run.stderr
    }

    fn archives(&self) -> Vec<PathBuf> {
        let folder = self.repository().join("archives");
        let found = fs::read_dir(folder).into_iter().flatten();
        let mut files: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn repository(&self) -> PathBuf {
        let hooks = self.place.store().join("hooks");
        let found = fs::read_dir(&hooks).into_iter().flatten();
        found
            .map(|entry| entry.unwrap().path())
            .find(|path| path.is_dir())
            .unwrap_or(hooks)
    }

    fn log(&self) -> String {
        let log = self.place.store().join("hooks/hook.log");
        fs::read_to_string(log).unwrap_or_default()
    }
}

fn user(nth: usize, text: &str) -> String {
    json!({
        "parentUuid": null, "isSidechain": false, "sessionId": "5e551040", "type": "user",
        "uuid": format!("told-{nth}"), "version": "2.1.325",
        "message": { "role": "user", "content": text },
    })
    .to_string()
        + "\n"
}

fn session() -> String {
    user(
        0,
        &format!("Move src/billing/tax.rs to the new API. {RULE}"),
    ) + &claude(12)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// What reaches the model.
fn context(run: &Run) -> String {
    let output = &run.json()["hookSpecificOutput"];
    output["additionalContext"].as_str().unwrap().to_owned()
}

/// Asked for or automatic, the whole
/// transcript is archived before the agent compacts, byte for byte.
#[test]
fn precompact_archives_the_transcript() {
    let agent = Agent::new();
    for trigger in ["auto", "manual"] {
        agent.call("PreCompact", &json!({ "trigger": trigger }));
    }
    let archives = agent.archives();
    assert_eq!(archives.len(), 2);
    for archive in archives {
        assert_eq!(fs::read(archive).unwrap(), session().as_bytes());
    }
}

/// Below the data directory, by repository,
/// and not in the repository.
#[test]
fn precompact_creates_the_folder_of_the_repository() {
    let agent = Agent::new();
    assert!(!agent.place.store().exists());
    agent.before();
    let [archive] = agent.archives().try_into().unwrap();
    let name = archive.file_name().unwrap().to_str().unwrap();
    let stamp = name
        .strip_prefix("5e551040-0000-4000-8000-000000000000_")
        .and_then(|rest| rest.strip_suffix("_transcript.jsonl"))
        .unwrap();
    let shape: Vec<usize> = stamp.split('_').map(str::len).collect();
    assert_eq!(shape, [8, 6, 6], "{stamp}");
    let key = agent.repository();
    let key = key.file_name().unwrap().to_str().unwrap();
    // The root of the repository, not the folder within it.
    assert!(key.contains("-repo") && !key.contains("deep"), "{key}");
    let within = fs::read_dir(agent.place.path("repo")).unwrap();
    let mut within: Vec<_> = within.map(|entry| entry.unwrap().file_name()).collect();
    within.sort();
    assert_eq!(within, [".git", "deep"]);
}

#[test]
fn precompact_handles_a_missing_transcript() {
    let agent = Agent::new();
    fs::remove_file(&agent.transcript).unwrap();
    let line = agent.fault(
        agent.payload("PreCompact").to_string().as_bytes(),
        "WARNING",
    );
    let place = agent.transcript.display();
    assert_eq!(
        line,
        format!("WARNING: PreCompact: transcript not found at {place}\n")
    );
    assert!(agent.log().ends_with(&line.replace("WARNING:", "WARNING")));
}

#[test]
fn precompact_handles_a_missing_path() {
    let agent = Agent::new();
    for path in [json!(""), json!(null), json!(7), json!(["/a"])] {
        let mut payload = agent.payload("PreCompact");
        payload["transcript_path"] = path;
        let line = agent.fault(payload.to_string().as_bytes(), "WARNING");
        assert!(
            line.contains("no transcript_path provided for 5e551040"),
            "{line}"
        );
    }
    let bare = agent.fault(br#"{"hook_event_name":"PreCompact"}"#, "WARNING");
    assert!(
        bare.contains("no transcript_path provided for unknown"),
        "{bare}"
    );
    assert_eq!(agent.archives(), Vec::<PathBuf>::new());
}

/// Neither a folder, a pipe, an archive that
/// cannot be made nor a file that may not be read keeps the agent from compacting.
#[test]
fn precompact_handles_an_io_error() {
    let agent = Agent::new();
    let mut payload = agent.payload("PreCompact");
    payload["transcript_path"] = json!(agent.place.path("repo"));
    let line = agent.fault(payload.to_string().as_bytes(), "ERROR");
    assert!(
        line.contains("PreCompact: failed to archive transcript: "),
        "{line}"
    );
    assert!(line.contains("not a regular file"), "{line}");

    let closed = Agent::new();
    closed
        .place
        .write("store", "a file where the folder should be");
    closed.fault(closed.payload("PreCompact").to_string().as_bytes(), "ERROR");

    let locked = Agent::new();
    fs::set_permissions(&locked.transcript, fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read everything; for everyone else this is the fault.
    if fs::read(&locked.transcript).is_err() {
        locked.fault(locked.payload("PreCompact").to_string().as_bytes(), "ERROR");
    }
}

/// What the system only shows as a file may never end: the kernel's log waits for its next line.
#[test]
fn a_transcript_without_a_size_is_not_waited_for() {
    let agent = Agent::new().with_transcript("empty.jsonl", b"");
    for path in [Path::new("/proc/kmsg"), &agent.transcript] {
        for event in ["PreCompact", "SessionStart", "UserPromptSubmit"] {
            let mut payload = agent.payload(event);
            payload["transcript_path"] = json!(path);
            payload["source"] = json!("compact");
            let run = agent.send(payload.to_string().as_bytes());
            let fault = format!("{} is empty", path.display());
            assert!(run.stderr.contains(&fault), "{event}: {}", run.stderr);
        }
    }
}

/// A disk with room for half of the transcript keeps none of it.
#[test]
fn a_full_disk_leaves_no_half_archive() {
    let big = vec![b'x'; 400 * 1024];
    let agent = Agent::new().with_transcript("big.jsonl", &big);
    let disk = agent.place.path("disk");
    fs::create_dir(&disk).unwrap();
    // A mount of its own needs a user namespace; where those are forbidden, a limit of the file's
    // size fails the same write.
    let script = "mount -t tmpfs -o size=256k none disk 2>/dev/null && COMPACT_STORAGE_PATH=disk/store \"$0\" hook; \
                  echo code=$?; find disk -name '*transcript*'";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_compactctl")]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 256; trap '' XFSZ; COMPACT_STORAGE_PATH=disk/store \"$0\" hook; echo code=$?; find disk -name '*transcript*'", env!("CARGO_BIN_EXE_compactctl")]);
    let can_mount = Command::new("unshare").args(["-rm", "true"]).output();
    let command = match can_mount.is_ok_and(|run| run.status.success()) {
        true => &mut command,
        false => &mut limited,
    };
    let mut child = command
        .current_dir(agent.place.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let payload = agent.payload("PreCompact").to_string();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(out, "code=0\n", "{error}");
    let reason = "ERROR: PreCompact: failed to archive transcript: ";
    assert!(
        error.lines().any(|text| text.starts_with(reason)),
        "{error}"
    );
}

#[test]
fn precompact_names_are_unique_on_rapid_calls() {
    let agent = Agent::new();
    let payload = agent.payload("PreCompact").to_string();
    let children: Vec<_> = (0..6)
        .map(|_| {
            let mut child = agent
                .place
                .command(&["hook"])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes())
                .unwrap();
            child
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(agent.archives().len(), 6);
}

/// Whatever the umask says.
#[test]
fn precompact_keeps_archives_private() {
    let agent = Agent::new();
    let store = agent.place.store();
    let mut child = Command::new("sh")
        .args([
            "-c",
            "umask 000; exec \"$0\" hook",
            env!("CARGO_BIN_EXE_compactctl"),
        ])
        .env("COMPACT_STORAGE_PATH", &store)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let payload = agent.payload("PreCompact").to_string();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    agent.call("UserPromptSubmit", &json!({ "prompt": "go on" }));
    let mut folders = vec![store];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
                files += 1;
            }
        }
    }
    assert_eq!(files, 5, "archive, sum, ledger, open compaction, log");
}

/// The format is the agent's affair.
#[test]
fn precompact_preserves_the_extension() {
    for (name, end) in [
        ("s.md", ".md"),
        ("s.jsonl", ".jsonl"),
        ("s", ".txt"),
        ("a.b.json", ".json"),
    ] {
        let agent = Agent::new().with_transcript(name, b"anything");
        agent.before();
        let [archive] = agent.archives().try_into().unwrap();
        let found = archive.to_str().unwrap();
        assert!(found.ends_with(&format!("_transcript{end}")), "{found}");
        assert_eq!(fs::read(archive).unwrap(), b"anything");
    }
}

#[test]
fn a_copy_keeps_its_times() {
    let agent = Agent::new();
    let then = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let file = fs::File::options()
        .append(true)
        .open(&agent.transcript)
        .unwrap();
    file.set_modified(then).unwrap();
    agent.before();
    let [archive] = agent.archives().try_into().unwrap();
    assert_eq!(fs::metadata(archive).unwrap().modified().unwrap(), then);
}

/// Log only, with trigger, place and size.
#[test]
fn an_archive_is_logged_with_trigger_place_and_size() {
    let agent = Agent::new();
    let run = agent.before();
    let [archive] = agent.archives().try_into().unwrap();
    let line = format!(
        "PreCompact: archived transcript (trigger=auto) to {} ({:.1} KB)\n",
        archive.display(),
        session().len() as f64 / 1024.0
    );
    assert_eq!(run.stderr, format!("INFO: {line}"));
    assert!(
        agent.log().ends_with(&format!(" INFO {line}")),
        "{}",
        agent.log()
    );
}

/// Nothing that an agent may send makes the hook fail, or print.
/// The events that a hook logs as lines of JSON.
fn events(run: &Run) -> Vec<Value> {
    let lines = run.stderr.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// What its agent's last request cost, as a transcript of Claude Code tells it.
fn counted(tokens: u64) -> String {
    json!({
        "parentUuid": null, "isSidechain": false, "sessionId": "5e551040", "type": "assistant",
        "uuid": "counted", "version": "2.1.325",
        "message": {
            "id": "msg_last", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{ "type": "text", "text": "I moved half of it." }],
            "usage": { "input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": tokens - 30 },
        },
    })
    .to_string()
        + "\n"
}

#[test]
fn a_hook_emits_events_of_the_schema_that_compactions_have() {
    let transcript = session() + &counted(150_000);
    let agent = Agent::new().with_transcript("counted.jsonl", transcript.as_bytes());
    let logged = |event: &str, more: Value| {
        let mut payload = agent.payload(event);
        let more = more.as_object().unwrap().clone();
        payload.as_object_mut().unwrap().extend(more);
        let arguments = ["hook", "--log-format", "json"];
        let payload = payload.to_string();
        events(
            &agent
                .place
                .run_with_stdin(&arguments, payload.as_bytes())
                .ok(),
        )
    };
    let before = logged("PreCompact", json!({ "trigger": "auto" }));
    let names = |events: &[Value]| -> Vec<String> {
        let names = events
            .iter()
            .map(|event| event["event"].as_str().unwrap().to_owned());
        names.collect()
    };
    assert_eq!(names(&before), ["hook_archived", "compact.call_ended"]);
    let [archived, ended] = &before[..] else {
        panic!()
    };
    assert_eq!(
        archived["session_id"],
        "5e551040-0000-4000-8000-000000000000"
    );
    assert_eq!(archived["tokens_before"], 150_000);
    assert_eq!(
        (&archived["agent"], &archived["trigger"]),
        (&json!("claude-code"), &json!("auto"))
    );
    assert_eq!(archived["path"], json!(agent.archives()[0]));
    assert_eq!(archived["span_id"], ended["span_id"]);
    assert!(archived["ts"].as_str().unwrap().ends_with('Z'));
    // The agent compacts, hands its summary out, and a person goes on.
    logged(
        "PostCompact",
        json!({ "compact_summary": "Half of src/billing/tax.rs is moved." }),
    );
    let after = logged("UserPromptSubmit", json!({ "prompt": "Go on." }));
    let compacted = after
        .iter()
        .find(|event| event["event"] == "hook_compacted")
        .unwrap();
    assert_eq!(compacted["tokens_before"], 150_000);
    assert!(
        compacted["tokens_after"].as_u64().unwrap() > 0,
        "{compacted}"
    );
    assert!(compacted["shown"].as_u64() <= compacted["anchors"].as_u64());
    // A prompt at which nothing happens is no news.
    assert_eq!(
        names(&logged("UserPromptSubmit", json!({ "prompt": "And on." }))),
        [""; 0]
    );
    let failed = logged(
        "PreCompact",
        json!({ "transcript_path": "/nowhere/s.jsonl" }),
    );
    assert_eq!(names(&failed), ["hook_failed", "compact.call_ended"]);
    assert_eq!(
        (&failed[0]["severity"], &failed[1]["outcome"]),
        (&json!("high"), &json!("failed"))
    );
}

#[test]
fn a_collector_that_never_answers_costs_an_agent_next_to_nothing() {
    let agent = Agent::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = agent.place.command(&["hook"]);
    command
        .env("COMPACT_TELEMETRY_EXPORTER", "otlp")
        .env(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            format!("http://{}", silent.local_addr().unwrap()),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let begun = std::time::Instant::now();
    let mut child = command.spawn().unwrap();
    let payload = agent.payload("PreCompact").to_string();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert_eq!(agent.archives().len(), 1);
    assert!(
        String::from_utf8(done.stdout)
            .unwrap()
            .contains("billing_events")
    );
    assert!(
        agent.log().contains("2 events were not exported"),
        "{}",
        agent.log()
    );
    // It waits 300 ms; the rest is how busy a machine may be.
    assert!(begun.elapsed() < std::time::Duration::from_secs(10));
}

#[test]
fn whatever_comes_in_lets_the_agent_go_on() {
    let agent = Agent::new();
    for payload in [
        &b""[..],
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe\x00",
        b"{\"hook_event_name\":[]}",
        b"\"text\"",
    ] {
        agent.fault(payload, "WARNING");
    }
    let deep = "[".repeat(100_000);
    agent.fault(deep.as_bytes(), "WARNING");
    for event in [
        "Stop",
        "SessionEnd",
        "SessionStart",
        "PostCompact",
        "Nonsense",
    ] {
        let run = agent.send(agent.payload(event).to_string().as_bytes());
        assert_eq!(
            (run.text().as_str(), run.stderr.as_str()),
            ("", ""),
            "{event}"
        );
    }
}

/// 2 would tell the agent not to compact, so a call never ends with it.
#[test]
fn bad_arguments_and_a_broken_configuration_do_not_block() {
    let agent = Agent::new();
    for arguments in [
        &["hook", "--bogus"][..],
        &["hook", "--agent"],
        &["hook", "--agent", "x", "y"],
    ] {
        let run = agent.place.run_with_stdin(arguments, b"{}").ok();
        assert_eq!(run.text(), "");
    }
    let payload = agent.payload("PreCompact").to_string();
    let run = agent
        .place
        .run_with_stdin(&["hook", "--agent", "unheard-of"], payload.as_bytes());
    assert!(run.ok().text().contains(RULE));
    agent.place.write("broken.yaml", "storage: [");
    let arguments = ["hook", "--config", "broken.yaml"];
    let run = agent
        .place
        .run_with_stdin(&arguments, payload.as_bytes())
        .ok();
    assert!(run.text().contains(RULE), "{}", run.stderr);
}

/// A host that closed its ears, or whose disk is full, is no reason to fail.
#[test]
fn an_answer_that_nobody_takes_is_no_failure() {
    let agent = Agent::new();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut child = agent
        .place
        .command(&["hook"])
        .stdin(Stdio::piped())
        .stdout(full)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let payload = agent.payload("PreCompact").to_string();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(agent.archives().len(), 1);
}

/// No home, no variable, or a home that cannot be written to.
#[test]
fn without_a_place_to_write_to_the_agent_goes_on() {
    let agent = Agent::new();
    let payload = agent.payload("PreCompact").to_string();
    let mut child = agent
        .place
        .command(&["hook"])
        .env_remove("COMPACT_STORAGE_PATH")
        .env("HOME", "/proc/nowhere")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), output.stdout.len()),
        (Some(0), 0),
        "{error}"
    );
    assert!(
        error.starts_with("ERROR: PreCompact: failed to archive transcript: "),
        "{error}"
    );
}

/// The agent reads what the hook prints, so it is told what to keep.
#[test]
fn the_summarizer_reads_the_rules() {
    let agent = Agent::new();
    let told = agent.before().text();
    assert!(
        told.contains(RULE) && told.contains("src/billing/tax.rs"),
        "{told}"
    );
    assert!(!told.starts_with('{'), "a brace would be read as JSON");
    assert!(told.chars().count() <= 6_000);
}

/// Prohibitions that differ in a name alone are all told.
#[test]
fn the_summarizer_reads_every_prohibition() {
    let rules = [
        "Never restart host db1.",
        "Never restart host db2.",
        "Never restart host db10.",
    ];
    let told: String = rules
        .iter()
        .enumerate()
        .map(|(nth, rule)| user(nth, rule))
        .collect();
    let agent = Agent::new().with_transcript("session.jsonl", (told + &claude(12)).as_bytes());
    let told = agent.before().text();
    assert!(rules.iter().all(|rule| told.contains(rule)), "{told}");
}

/// A text that was cut within an emoji ends in half a pair of surrogates, in the transcript or the payload.
#[test]
fn half_a_pair_of_surrogates_is_no_obstacle() {
    let half = session().replace(RULE, &format!("{RULE} \\ud83d cut."));
    let agent = Agent::new().with_transcript("session.jsonl", half.as_bytes());
    let payload = agent.payload("PreCompact").to_string();
    let payload = payload.replacen('{', r#"{"custom_instructions":"cut \ud83d","#, 1);
    let told = agent.send(payload.as_bytes()).text();
    assert!(told.contains(RULE), "{told}");
    assert_eq!(
        fs::read(agent.archives().remove(0)).unwrap(),
        half.as_bytes()
    );
    let found = agent
        .place
        .run(&["recall", "billing_events", "table", "--json"])
        .ok()
        .json();
    assert!(
        found["hits"][0]["snippet"]
            .as_str()
            .unwrap()
            .contains("billing_events"),
        "{found}"
    );

    let compacted = [
        "compact",
        "session.jsonl",
        "--budget",
        "900",
        "-o",
        "view.jsonl",
    ];
    let receipt = agent.place.json(&compacted)["receipt_id"]
        .as_str()
        .unwrap()
        .to_owned();
    agent
        .place
        .run(&["restore", &receipt, "-o", "back.jsonl"])
        .ok();
    assert_eq!(agent.place.read("back.jsonl"), half.as_bytes());
    agent.place.run(&["verify", &receipt]).ok();
}

/// The summary is not in the transcript yet when the session goes on: the record is told, and at the
/// next prompt what neither the summary nor the kept messages show.
#[test]
fn what_the_summary_lost_reaches_the_next_request() {
    let agent = Agent::new();
    agent.call("UserPromptSubmit", &json!({ "prompt": "go on" }));
    agent.before();
    let run = agent.call("SessionStart", &json!({ "source": "compact" }));
    assert!(context(&run).contains(RULE));
    let archive = agent.archives().remove(0);
    assert!(context(&run).contains(archive.to_str().unwrap()));

    let summary = "<summary>The tax module moves to the new API.</summary>";
    let after = agent.call("PostCompact", &json!({ "compact_summary": summary }));
    assert_eq!(after.text(), "");
    assert!(
        after.stderr.contains("PostCompact: the summary shows "),
        "{}",
        after.stderr
    );

    let grown = session() + &summarized(summary);
    agent.place.write("session.jsonl", &grown);
    let told = context(&agent.call("UserPromptSubmit", &json!({ "prompt": "and now?" })));
    assert!(
        told.contains(RULE) && told.contains("src/billing/tax.rs"),
        "{told}"
    );
    // Once is enough.
    let again = agent.call("UserPromptSubmit", &json!({ "prompt": "and then?" }));
    assert_eq!(again.text(), "");
}

/// The lines that Claude Code writes when it has compacted.
fn summarized(summary: &str) -> String {
    let boundary = json!({
        "parentUuid": null, "type": "system", "subtype": "compact_boundary", "uuid": "b",
        "sessionId": "5e551040", "content": "Conversation compacted",
        "compactMetadata": { "trigger": "auto", "preTokens": 9000 },
    });
    let line = json!({
        "parentUuid": "b", "type": "user", "uuid": "c", "sessionId": "5e551040",
        "isCompactSummary": true, "message": { "role": "user", "content": summary },
    });
    format!("{boundary}\n{line}\n")
}

/// What the guide promises bounds everything that is printed, and the rules are first in it.
#[test]
fn what_is_printed_stays_within_the_limits_of_the_guide() {
    let rules: Vec<String> = (0..12)
        .map(|n| format!("Never run the migration of table_{n}_of_the_ledger before anybody of team_{n} has read it."))
        .collect();
    let session = user(0, &rules.join(" ")) + &claude(120);
    let agent = Agent::new().with_transcript("session.jsonl", session.as_bytes());
    let start = || context(&agent.call("SessionStart", &json!({ "source": "compact" })));
    let kept = agent.before().text();
    let standing = start();
    agent.call(
        "PostCompact",
        &json!({ "compact_summary": "Much was looked at." }),
    );
    agent.place.write(
        "session.jsonl",
        session.clone() + &summarized("Much was looked at."),
    );
    let lost = context(&agent.call("UserPromptSubmit", &json!({ "prompt": "and now?" })));
    agent.place.write("session.jsonl", &session);
    agent.before();
    agent.place.write(
        "session.jsonl",
        session + &summarized("Much was looked at."),
    );
    let lost_at_start = start();
    for (text, most) in [
        (kept, 6_000),
        (standing, 4_000),
        (lost, 6_000),
        (lost_at_start, 4_000),
    ] {
        let length = text.chars().count();
        assert!(
            (most / 2..=most).contains(&length),
            "{length} of {most}: {text}"
        );
        let (instructions, _) = text.split_once("~~~").unwrap();
        for rule in &rules {
            assert_eq!(instructions.matches(rule).count(), 1, "{rule} in {text}");
        }
    }
}

/// The ledger that prompts keep gives the same list as reading the whole transcript.
#[test]
fn a_ledger_kept_at_prompts_tells_what_a_fresh_one_does() {
    let (warm, cold) = (Agent::new(), Agent::new());
    let text = session();
    let half: String = text.split_inclusive('\n').take(19).collect();
    warm.place.write("session.jsonl", &half);
    warm.call("UserPromptSubmit", &json!({ "prompt": "go on" }));
    warm.place.write("session.jsonl", &text);
    assert_eq!(warm.before().text(), cold.before().text());
}

/// Codex writes its summary before the session goes on, and gives its summarizer nothing to read.
#[test]
fn codex_is_told_at_once_what_its_summary_lost() {
    let place = Place::new();
    place.example("research-session.jsonl");
    let text = String::from_utf8(place.read("research-session.jsonl")).unwrap();
    let agent = Agent::new().with_transcript("rollout.jsonl", text.as_bytes());
    let codex = |event: &str, more: &Value| {
        let mut more = more.clone();
        more["turn_id"] = json!("t1");
        more["model"] = json!("gpt-5-codex");
        agent.call(event, &more)
    };
    codex("UserPromptSubmit", &json!({ "prompt": "go on" }));
    assert_eq!(
        codex("PreCompact", &json!({ "trigger": "auto" })).text(),
        ""
    );
    assert_eq!(
        fs::read(agent.archives().remove(0)).unwrap(),
        text.as_bytes()
    );
    let summary = json!({
        "timestamp": "2026-11-16T05:42:43.600Z", "type": "compacted",
        "payload": { "message": "Papers were read.", "replacement_history": [] },
    });
    agent
        .place
        .write("rollout.jsonl", format!("{text}{summary}\n"));
    let run = codex("SessionStart", &json!({ "source": "compact" }));
    let told = context(&run);
    assert!(
        told.starts_with("The conversation was compacted."),
        "{told}"
    );
    assert!((1_000..=6_000).contains(&told.chars().count()), "{told}");
    assert!(
        run.stderr.contains("SessionStart: the context shows "),
        "{}",
        run.stderr
    );
    // What was told is closed.
    assert_eq!(
        codex("UserPromptSubmit", &json!({ "prompt": "go on" })).text(),
        ""
    );
}

/// opencode keeps no file; its plugin sends what it exports.
#[test]
fn opencode_sends_its_transcript_along() {
    let agent = Agent::new();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compact-formats/corpus/opencode");
    let export = fs::read(corpus.join("export.json")).unwrap();
    let export: Value = serde_json::from_slice(&export).unwrap();
    let mut payload = agent.payload("PreCompact");
    payload["transcript_path"] = Value::Null;
    payload["transcript"] = export.clone();
    let arguments = ["hook", "--agent", "opencode"];
    let run = agent
        .place
        .run_with_stdin(&arguments, payload.to_string().as_bytes())
        .ok();
    assert!(
        run.text()
            .starts_with("Write the summary as you always do."),
        "{}",
        run.stderr
    );
    let [archive] = agent.archives().try_into().unwrap();
    assert_eq!(archive.extension().unwrap(), "json");
    let archived: Value = serde_json::from_slice(&fs::read(archive).unwrap()).unwrap();
    assert_eq!(archived, export);
}

/// No home and no data directory: nothing is written anywhere, and nowhere near somebody else's.
#[test]
fn without_a_home_the_agent_goes_on_and_nothing_is_written() {
    let agent = Agent::new();
    let payload = agent.payload("PreCompact").to_string();
    for home in [None, Some("")] {
        let mut command = agent.place.command(&["hook"]);
        command
            .env_remove("COMPACT_STORAGE_PATH")
            .env_remove("HOME");
        command.envs(home.map(|home| ("HOME", home)));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
        assert!(error.starts_with("ERROR: PreCompact: ") && error.contains("HOME is not set"));
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    assert!(!agent.place.store().exists());
}

const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

fn with_secret() -> Agent {
    let text = user(
        0,
        &format!("Deploy src/billing/tax.rs with {SECRET}. {RULE}"),
    );
    Agent::new().with_transcript("session.jsonl", (text + &claude(12)).as_bytes())
}

/// What the hook prints goes to a model: no secret is in it. The archive is exact unless told otherwise.
#[test]
fn what_is_told_is_redacted_and_archives_are_when_configured() {
    let agent = with_secret();
    let told = agent.before().text();
    assert!(told.contains(RULE) && !told.contains(SECRET), "{told}");
    let [archive] = agent.archives().try_into().unwrap();
    assert!(fs::read_to_string(archive).unwrap().contains(SECRET));

    let agent = with_secret();
    agent
        .place
        .write("redact.yaml", "redaction:\n  sinks:\n    archive: true\n");
    for event in ["UserPromptSubmit", "PreCompact"] {
        let payload = agent.payload(event).to_string();
        let arguments = ["hook", "--config", "redact.yaml"];
        agent
            .place
            .run_with_stdin(&arguments, payload.as_bytes())
            .ok();
    }
    let [archive] = agent.archives().try_into().unwrap();
    assert!(
        archive
            .to_str()
            .unwrap()
            .ends_with("_transcript-redacted.jsonl")
    );
    let mut folders = vec![agent.place.store()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                assert!(!text.contains(SECRET), "{}", path.display());
            }
        }
    }
    let archived = fs::read_to_string(archive).unwrap();
    assert!(archived.contains(RULE), "{archived}");
}

/// The copies are found by what was said in them, and the numbers that are shown lead to the original.
#[test]
fn what_a_hook_archived_is_recalled_and_expanded() {
    let agent = Agent::new();
    agent.call("UserPromptSubmit", &json!({ "prompt": "go on" }));
    agent.before();
    let told = context(&agent.call("SessionStart", &json!({ "source": "compact" })));
    // Nothing is indexed before somebody asks.
    assert!(!agent.place.store().join("recall.db").exists());

    let line = told.lines().find(|line| line.contains(RULE)).unwrap();
    let number = line
        .split("[#")
        .nth(1)
        .and_then(|rest| rest.split(']').next());
    let receipt = told
        .split("expand ")
        .nth(1)
        .and_then(|rest| rest.split('#').next());
    let pointer = format!("{}#{}", receipt.unwrap(), number.unwrap());
    let whole = agent.place.run(&["expand", &pointer]).ok().text();
    assert!(
        whole.contains(&format!("Move src/billing/tax.rs to the new API. {RULE}")),
        "{whole}"
    );

    let found = agent
        .place
        .run(&["recall", "billing_events", "table", "--json"])
        .ok()
        .json();
    let hit = &found["hits"][0];
    assert_eq!(hit["pointer"], json!(pointer), "{found}");
    assert_eq!(hit["session_id"], "5e551040-0000-4000-8000-000000000000");

    // A copy that a person removed is forgotten.
    fs::remove_file(agent.archives().remove(0)).unwrap();
    agent.place.example("coding-session.jsonl");
    agent
        .place
        .run(&[
            "compact",
            "coding-session.jsonl",
            "--budget",
            "8000",
            "--quiet",
        ])
        .ok();
    let found = agent
        .place
        .run(&["recall", "billing_events", "--json"])
        .ok()
        .json();
    let hits = found["hits"].as_array().unwrap();
    assert!(
        hits.iter()
            .all(|hit| hit["session_id"] != "5e551040-0000-4000-8000-000000000000")
    );
    assert!(!found.to_string().contains(RULE), "{found}");
}

/// A second archive of a session adds what is new in it.
#[test]
fn archives_of_one_session_are_searched_as_one() {
    let agent = Agent::new();
    agent.before();
    agent
        .place
        .run(&["recall", "billing_events", "--json"])
        .ok();
    let grown = session() + &user(77, "The retry limit of the courier is 23 attempts.");
    agent.place.write("session.jsonl", &grown);
    agent.before();
    let search = |words: &str| agent.place.run(&["recall", words, "--json"]).ok().json();
    let hits = |words: &str| search(words)["hits"].as_array().unwrap().len();
    assert_eq!(hits("courier retry limit"), 1);
    assert_eq!(hits("billing_events"), 1, "found once, not in each copy");
}

fn gemini(agent: &Agent, event: &str, more: &Value) -> Run {
    let mut payload = agent.payload(event);
    payload
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let arguments = ["hook", "--agent", "gemini-cli"];
    agent
        .place
        .run_with_stdin(&arguments, payload.to_string().as_bytes())
        .ok()
}

/// Gemini CLI calls before every request, compress it or not; and it shows stderr to the person.
#[test]
fn attempts_of_gemini_that_compress_nothing_leave_one_archive() {
    let head = json!({ "sessionId": "g", "projectHash": "h", "kind": "main" });
    let said =
        |id: usize, text: &str| json!({ "id": format!("m{id}"), "type": "user", "content": text });
    let mut text = format!("{head}\n{}\n", said(0, RULE));
    let agent = Agent::new().with_transcript("chat.jsonl", text.as_bytes());
    let before = |text: &str| {
        agent.place.write("chat.jsonl", text);
        let run = gemini(&agent, "PreCompress", &json!({ "trigger": "auto" }));
        assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", ""));
    };
    for nth in 1..4 {
        before(&text);
        text.push_str(&format!("{}\n", said(nth, "Go on.")));
    }
    let [archive] = agent.archives().try_into().unwrap();
    assert!(text.starts_with(&fs::read_to_string(&archive).unwrap()));
    // One that was followed by a compression stays.
    let snapshot = said(9, "<state_snapshot>Short.</state_snapshot>");
    text.push_str(&format!(
        "{}\n",
        json!({ "$set": { "messages": [snapshot] } })
    ));
    agent.place.write("chat.jsonl", &text);
    let told = context(&gemini(&agent, "BeforeAgent", &json!({ "prompt": "x" })));
    assert!(told.contains(RULE), "{told}");
    // Nor does the log name any other.
    let log = agent.log();
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains(archive.to_str().unwrap()), "{log}");
    before(&text);
    before(&format!("{text}{}\n", said(10, "On.")));
    assert_eq!(agent.archives().len(), 2);
    assert!(agent.archives().contains(&archive));
}

/// Between two prompts Gemini CLI asks its model many times, each time with an announcement: what an earlier one lost is
/// told all the same, with the archive that holds it.
#[test]
fn what_a_compression_lost_is_told_after_further_announcements() {
    let head = json!({ "sessionId": "g", "projectHash": "h", "kind": "main" });
    let said =
        |id: usize, text: &str| json!({ "id": format!("m{id}"), "type": "user", "content": text });
    let mut text = format!("{head}\n{}\n", said(0, RULE));
    let agent = Agent::new().with_transcript("chat.jsonl", text.as_bytes());
    let before = |text: &str| {
        agent.place.write("chat.jsonl", text);
        gemini(&agent, "PreCompress", &json!({ "trigger": "auto" }));
    };
    before(&text);
    let [original] = agent.archives().try_into().unwrap();
    let snapshot = said(9, "<state_snapshot>Short.</state_snapshot>");
    text.push_str(&format!(
        "{}\n",
        json!({ "$set": { "messages": [snapshot] } })
    ));
    for nth in 10..13 {
        before(&text);
        text.push_str(&format!("{}\n", said(nth, "Go on.")));
    }
    let told = context(&gemini(&agent, "BeforeAgent", &json!({ "prompt": "x" })));
    assert!(told.contains(RULE), "{told}");
    assert!(told.contains(original.to_str().unwrap()), "{told}");
    assert_eq!(agent.archives().len(), 2, "the original and the last");
    let again = gemini(&agent, "BeforeAgent", &json!({ "prompt": "x" }));
    assert_eq!(again.text(), "", "once");
}

/// What is remembered between prompts goes once nobody came back for a month; archives stay.
#[test]
fn what_was_remembered_of_old_sessions_is_removed() {
    let agent = Agent::new();
    agent.call("UserPromptSubmit", &json!({ "prompt": "go on" }));
    agent.before();
    let sessions = agent.repository().join("sessions");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(40 * 24 * 3600);
    for entry in fs::read_dir(&sessions)
        .unwrap()
        .chain(fs::read_dir(agent.repository().join("archives")).unwrap())
    {
        let file = fs::File::options()
            .append(true)
            .open(entry.unwrap().path())
            .unwrap();
        file.set_modified(long_ago).unwrap();
    }
    let mut other = agent.payload("PreCompact");
    other["session_id"] = json!("another");
    agent.send(other.to_string().as_bytes());
    let names: Vec<String> = fs::read_dir(&sessions)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, ["another.open.json"]);
    assert_eq!(agent.archives().len(), 2);
}

/// The agent decides when it compacts. However full a context is, there
/// is nothing for us to do, and no answer of the hook asks the agent for anything.
#[test]
fn the_agent_decides() {
    let agent = Agent::new();
    let plan = ["plan", "session.jsonl", "--window", "1000"];
    assert_ne!(agent.place.json(&plan)["verdict"], "stay");
    let native = [&plan[..], &["--profile", "native-archive"]].concat();
    let plan = agent.place.json(&native);
    assert_eq!(plan["verdict"], "stay", "{plan}");
    for run in whole_compaction(&agent) {
        let told = run.text();
        for order in ["decision", "continue", "stopReason"] {
            assert!(!told.contains(&format!("\"{order}\"")), "{told}");
        }
    }
}

/// Nothing is put before the person in the session; the log says what happened.
#[test]
fn a_person_is_not_notified() {
    let agent = Agent::new();
    for run in whole_compaction(&agent) {
        assert!(!run.text().contains("systemMessage"), "{}", run.text());
    }
    assert!(agent.log().contains("archived transcript"));
}

/// Every call that Claude Code makes around a compaction.
fn whole_compaction(agent: &Agent) -> [Run; 4] {
    [
        agent.call("UserPromptSubmit", &json!({ "prompt": "Go on." })),
        agent.before(),
        agent.call("SessionStart", &json!({ "source": "compact" })),
        agent.call("PostCompact", &json!({ "compact_summary": "All is well." })),
    ]
}

/// What the guide says about looking at archives and removing old ones, as it stands there.
#[test]
fn the_commands_of_the_guide_work() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/claude-code.md");
    let guide = fs::read_to_string(guide).unwrap();
    let agent = Agent::new();
    let home = |command: &mut Command| {
        let run = command
            .env_clear()
            .env("HOME", agent.place.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .stdin(fs::File::open(agent.place.path("payload")).unwrap())
            .output()
            .unwrap();
        assert!(run.status.success(), "{run:?}");
        String::from_utf8(run.stdout).unwrap()
    };
    let typed = |first: &str| {
        let line = guide.lines().find(|line| line.starts_with(first)).unwrap();
        home(Command::new("sh").args(["-c", line]))
    };
    agent
        .place
        .write("payload", agent.payload("PreCompact").to_string());
    let archive = || home(Command::new(env!("CARGO_BIN_EXE_compactctl")).arg("hook"));
    archive();
    let hooks = agent.place.path("home/.local/share/compact/hooks");
    let old = "find \"$0\" -name '*_transcript.jsonl' -exec touch -d '9 days ago' {} +";
    home(Command::new("sh").args(["-c", old]).arg(&hooks));
    archive();
    let listed = |text: &str| text.matches("_transcript.jsonl").count();
    assert_eq!(listed(&typed("ls -lt ")), 2);
    typed("find ");
    assert_eq!(listed(&typed("ls -lt ")), 1);
}

/// A hook's copy knows no summary, so it is not what a session remembers that was compacted before.
#[test]
fn what_was_compacted_is_remembered_after_a_hook_archived_the_session() {
    let agent = Agent::new();
    let id = "5e551040-0000-4000-8000-000000000000";
    let named = [
        "compact",
        "session.jsonl",
        "--session",
        id,
        "--budget",
        "1500",
        "-q",
    ];
    agent
        .place
        .run(&[&named[..], &["-o", "v.jsonl"]].concat())
        .ok();
    let before = agent.place.json(&["remember", id]);
    assert_eq!(before["summary_version"], 1);
    agent.before();
    assert_eq!(agent.place.json(&["remember", id]), before);
    // The copy by itself is still shown for what it is.
    let copy = agent.place.json(&["archive", "list"])["sessions"][0]["last_receipt"].clone();
    let copied = agent.place.json(&["remember", copy.as_str().unwrap()]);
    assert_eq!(copied["summary_version"], 0);
}
