use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::place::Place;

/// A chat of so many turns, from `first` on.
fn chat(turns: std::ops::Range<usize>) -> Vec<Value> {
    turns
        .flat_map(|n| {
            let words = format!("step {n} is done, see src/module_{n}.rs and ticket OPS-{n}. ");
            [
                json!({"role": "user", "content": format!("Please do step {n} of the migration.")}),
                json!({"role": "assistant", "content": words.repeat(20)}),
            ]
        })
        .collect()
}

fn body(messages: &[Value]) -> String {
    json!({"model": "gpt-4o", "messages": messages}).to_string()
}

fn session(turns: usize) -> Vec<Value> {
    let mut messages = vec![json!({"role": "system", "content": "You are Qbit."})];
    messages.extend(chat(0..turns));
    messages.push(json!({"role": "user", "content": "What is left to do?"}));
    messages
}

const COMPACT: [&str; 6] = [
    "--profile",
    "hard-reset",
    "--budget",
    "2000",
    "--session",
    "s-1",
];

fn compact(place: &Place, from: &str, to: &str) -> Value {
    place.json(&[&["compact", from, "-o", to], &COMPACT[..]].concat())
}

fn messages(place: &Place, file: &str) -> Vec<Value> {
    let body: Value = serde_json::from_slice(&place.read(file)).unwrap();
    body["messages"].as_array().unwrap().clone()
}

#[test]
fn a_reset_leaves_the_view_and_two_artifacts() {
    let place = Place::new();
    place.write("s.json", body(&session(30)));
    let made = compact(&place, "s.json", "out.json");
    let view = messages(&place, "out.json");
    assert_eq!(view.len(), 3, "{view:?}");
    assert_eq!(view[0], session(0)[0]);
    assert_eq!(view[1]["role"], "system");
    let prompt = view[1]["content"].as_str().unwrap();
    assert!(prompt.starts_with("## Continuation\n") && prompt.ends_with("</summary>"));
    assert_eq!(view[2], session(0)[1]);
    for (key, name, says) in [
        (
            "summarizer_input",
            "summarizer-input-s-1-",
            "[turn 001] USER:\nPlease do step 0",
        ),
        ("summary", "summary-s-1-", "OPS-"),
    ] {
        let path = std::path::PathBuf::from(made["artifacts"][key].as_str().unwrap());
        assert_eq!(path.parent().unwrap(), place.store().join("sessions"));
        assert!(
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with(name)
        );
        assert!(
            std::fs::read_to_string(&path).unwrap().contains(says),
            "{key}"
        );
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // The way back.
    let receipt = made["receipt_id"].as_str().unwrap();
    place.run(&["restore", receipt, "-o", "back.json"]).ok();
    assert_eq!(place.read("back.json"), place.read("s.json"));
    place.run(&["verify", receipt]).ok();
}

#[test]
fn a_further_reset_replaces_the_continuation() {
    let place = Place::new();
    place.write("s.json", body(&session(30)));
    compact(&place, "s.json", "once.json");
    let mut grown = messages(&place, "once.json");
    grown.extend(chat(30..60));
    grown.push(json!({"role": "user", "content": "And now?"}));
    place.write("grown.json", body(&grown));
    let made = compact(&place, "grown.json", "twice.json");
    assert_eq!(made["summary_version"], 2);
    let view = messages(&place, "twice.json");
    assert_eq!(view.len(), 3, "{view:?}");
    let prompt = view[1]["content"].as_str().unwrap();
    assert_eq!(prompt.matches("## Continuation").count(), 1);
    assert_eq!(view[2]["content"], "And now?");
    let input = std::fs::read_to_string(made["artifacts"]["summarizer_input"].as_str().unwrap());
    assert!(input.unwrap().starts_with("[turn 000] PREVIOUS_SUMMARY:\n"));
}

#[test]
fn vt_session_dir_takes_the_artifacts() {
    let place = Place::new();
    place.write("s.json", body(&session(30)));
    let output = place
        .command(&[&["compact", "s.json", "--json"], &COMPACT[..]].concat())
        .env("VT_SESSION_DIR", place.path("theirs"))
        .output()
        .unwrap();
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    let path = made["artifacts"]["summary"].as_str().unwrap();
    assert!(
        path.starts_with(place.path("theirs").to_str().unwrap()),
        "{path}"
    );
    let run = place
        .run(&[&["compact", "s.json"], &COMPACT[..]].concat())
        .ok();
    assert!(
        run.text().contains("summarizer-input-s-1-"),
        "{}",
        run.text()
    );
}

#[test]
fn artifacts_that_cannot_be_written_are_a_warning() {
    let place = Place::new();
    place.write("s.json", body(&session(30)));
    place.write("file", "");
    let output = place
        .command(
            &[
                &["compact", "s.json", "-o", "out.json", "--json"],
                &COMPACT[..],
            ]
            .concat(),
        )
        .env("VT_SESSION_DIR", place.path("file/sessions"))
        .output()
        .unwrap();
    assert!(output.status.success());
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        made["artifacts"],
        json!({"summarizer_input": null, "summary": null})
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.matches("warning: cannot write ").count(), 2, "{said}");
    assert_eq!(messages(&place, "out.json").len(), 3);
}

#[test]
fn other_profiles_leave_no_artifacts() {
    let place = Place::new();
    place.write("s.json", body(&session(30)));
    let made = place.json(&["compact", "s.json", "--budget", "2000"]);
    assert_eq!(made.get("artifacts"), None);
    assert!(!place.store().join("sessions").exists());
}

#[test]
fn what_cannot_be_reset_is_left_alone_and_told() {
    let place = Place::new();
    let mut messages = session(30);
    messages[1]["meta"] = json!({"protected": true});
    messages[2]["meta"] = json!({"protected": true});
    place.write("s.json", body(&messages));
    let arguments = [
        "compact",
        "s.json",
        "-o",
        "out.json",
        "--profile",
        "hard-reset",
        "--budget",
        "200",
        "--window",
        "2000",
    ];
    let run = place.run(&arguments).failed(4);
    assert!(
        run.stderr
            .contains("Context limit exceeded and compaction failed. Please start a new session."),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("what the summarizer was given is in "),
        "{}",
        run.stderr
    );
    assert!(!place.path("out.json").exists());
}

#[test]
fn a_summarizer_that_fails_changes_nothing_and_its_input_is_kept() {
    let place = Place::new();
    place.write("s.json", body(&session(30)));
    // Nobody listens on the discard port.
    let model = [
        "--summarizer",
        "openai",
        "--summarizer-url",
        "http://127.0.0.1:9/v1",
    ];
    let run = place
        .run(
            &[
                &["compact", "s.json", "-o", "out.json"],
                &model[..],
                &COMPACT[..],
            ]
            .concat(),
        )
        .failed(6);
    assert!(
        run.stderr.contains("summarizer-input-s-1-"),
        "{}",
        run.stderr
    );
    // There is room yet, so the session is not dead.
    assert!(
        !run.stderr.contains("start a new session"),
        "{}",
        run.stderr
    );
    assert!(!place.path("out.json").exists());
}

/// What a session answers and tells: one command at a time, each answered before the next.
fn drive(place: &Place, arguments: &[&str], commands: &[Value]) -> Vec<Value> {
    let asked = [
        &["reset", "--session", "chat-7", "--window", "4000"],
        arguments,
    ]
    .concat();
    let mut command = place.command(&asked);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told: Vec<Value> = Vec::new();
    for command in commands {
        writeln!(stdin, "{command}").unwrap();
        loop {
            let line = lines.next().expect("an answer").unwrap();
            told.push(serde_json::from_str(&line).unwrap());
            if told.last().unwrap().get("ok").is_some() {
                break;
            }
        }
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    told
}

fn answers(told: &[Value]) -> Vec<&Value> {
    told.iter()
        .filter(|line| line.get("ok").is_some())
        .collect()
}

fn events<'t>(told: &'t [Value], name: &str) -> Vec<&'t Value> {
    told.iter().filter(|line| line["event"] == name).collect()
}

/// Another program reads whether input is taken, sends, compacts, and begins anew.
#[test]
fn another_program_drives_a_session() {
    let place = Place::new();
    place.write(
        "base.json",
        json!([{"role": "system", "content": "You are Qbit."}]).to_string(),
    );
    let long = "step 1 is done, see src/module_1.rs and ticket OPS-1. ".repeat(300);
    let told = drive(
        &place,
        &["base.json"],
        &[
            json!({"id": 1, "do": "send", "message": "Port the parser."}),
            json!({"do": "append", "messages": [{"role": "assistant", "content": long}]}),
            json!({"id": "two", "do": "send", "message": {"role": "user", "content": "Now the lexer."}}),
            json!({"do": "messages"}),
            json!({"do": "dance"}),
            json!({"do": "new", "session_id": "chat-8"}),
            json!({"do": "status"}),
        ],
    );
    let answers = answers(&told);
    assert_eq!(answers.len(), 7, "{told:?}");
    assert_eq!(
        (&answers[0]["id"], &answers[0]["outcome"]),
        (&json!(1), &json!("unchanged"))
    );
    assert_eq!(
        (&answers[2]["id"], &answers[2]["outcome"]),
        (&json!("two"), &json!("compacted"))
    );
    let after = &answers[2]["status"];
    assert_eq!(
        (&after["input"], &after["compaction_count"]),
        (&json!("open"), &json!(1))
    );
    let sent = answers[3]["messages"].as_array().unwrap();
    assert_eq!(sent.len(), 3, "{sent:?}");
    assert!(
        sent[1]["content"]
            .as_str()
            .unwrap()
            .starts_with("## Continuation\n")
    );
    assert_eq!(sent[2]["content"], "Now the lexer.");
    assert_eq!(answers[4]["ok"], false);
    assert_eq!(answers[6]["status"]["session_id"], "chat-8");
    assert_eq!(answers[6]["status"]["compaction_count"], 0);
    // Its own events, in the order in which a page shows them, before the answer.
    let [done] = events(&told, "context_compacted")[..] else {
        panic!("{told:?}")
    };
    assert_eq!(done["session_id"], "chat-7");
    assert_eq!(done["tokens_after"], after["tokens"]);
    assert!(done["tokens_before"].as_u64() > done["tokens_after"].as_u64());
    assert_eq!(events(&told, "context_compaction_started").len(), 1);
    // The transcript stays, and the original comes back.
    assert!(
        place
            .store()
            .join("sessions/transcript-chat-7.jsonl")
            .exists()
    );
    let receipt = answers[2]["receipt_id"].as_str().unwrap();
    place.run(&["restore", receipt, "-o", "back.json"]).ok();
    assert!(
        String::from_utf8(place.read("back.json"))
            .unwrap()
            .contains("module_1")
    );
}

/// Over the limit and without its summarizer: dead, said as an error, until a new session begins.
#[test]
fn a_dead_session_refuses_input_until_a_new_one_begins() {
    let place = Place::new();
    // Nobody listens on the discard port.
    let summarizer = "summarizer: {kind: openai, url: 'http://127.0.0.1:9/v1'}\n";
    place.write("c.yaml", summarizer);
    let huge = "word ".repeat(9_000);
    let told = drive(
        &place,
        &["--config", "c.yaml"],
        &[
            json!({"do": "send", "message": "Hello?"}),
            json!({"do": "append", "messages": [{"role": "assistant", "content": huge}]}),
            json!({"do": "send", "message": "Still there?"}),
            json!({"do": "send", "message": "And now?"}),
            json!({"do": "retry"}),
            json!({"do": "new", "session_id": "chat-8"}),
            json!({"do": "send", "message": "Hello!"}),
        ],
    );
    let answers = answers(&told);
    for dead in &answers[2..5] {
        let said = (&dead["ok"], &dead["status"]["input"]);
        assert_eq!(said, (&json!(false), &json!("dead")), "{dead}");
        assert!(
            dead["error"].as_str().unwrap().contains("new session"),
            "{dead}"
        );
    }
    let failed = events(&told, "context_compaction_failed");
    assert_eq!(failed.len(), 2);
    for event in failed {
        let said = (&event["severity"], &event["context_exceeded"]);
        assert_eq!(said, (&json!("error"), &json!(true)), "{event}");
        assert_eq!(event["error"], "the summarizer openai failed", "{event}");
    }
    assert_eq!(answers[6]["outcome"], "unchanged");
    assert_eq!(answers[6]["status"]["input"], "open");
}
