//! Whatever comes in: an error with the file and the line, exit 3, never a panic.

use crate::place::{Place, Run, claude, lines};

fn refused(content: &[u8]) -> String {
    let place = Place::new();
    place.write("bad", content);
    let mut told = String::new();
    for command in ["inspect", "plan", "compact"] {
        let run = place.run(&[command, "bad", "--json"]).failed(3);
        let message = run.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("bad"), "{message}");
        told = message;
    }
    assert!(!place.store().exists());
    told
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let place = Place::new();
    for (file, words) in [("missing.jsonl", "No such file"), (".", "directory")] {
        let run = place.run(&["compact", file]).failed(3);
        assert!(
            run.stderr.contains(file) && run.stderr.contains(words),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("help: "));
    }
}

#[test]
fn bytes_that_are_no_transcript_are_refused() {
    refused(b"");
    refused(b" \n\n ");
    refused(&[0xff, 0xfe, 0, 1, 2, 3, 0x80, 0x81]);
    refused(b"\x7fELF\x02\x01\x01\0\0\0");
    refused(b"just words");
    refused(b"[1, 2, 3]");
    refused(b"{\"role\": 7, \"content\": \"x\"}\n");
    refused(b"42");
}

#[test]
fn a_truncated_line_is_named() {
    let message = refused(lines(0..3).replacen("case 1.", "case 1.\n", 1).as_bytes());
    assert!(message.contains("line 5"), "{message}");
}

/// A process that died while writing leaves half a line: the rest is as good as before.
#[test]
fn a_torn_last_line_is_a_problem_and_no_failure() {
    let place = Place::new();
    let whole = lines(0..3);
    place.write("s.jsonl", &whole.as_bytes()[..whole.len() - 20]);
    let json = place.json(&["inspect", "s.jsonl"]);
    assert_eq!(
        (
            json["entries"].as_u64(),
            json["problems"][0]["line"].as_u64()
        ),
        (Some(8), Some(9))
    );
}

#[test]
fn invalid_utf8_is_named_with_its_line() {
    let mut bytes = lines(0..1).into_bytes();
    bytes.extend_from_slice(b"{\"role\":\"user\",\"content\":\"\xff\xfe\"}\n");
    let message = refused(&bytes);
    assert!(message.contains("line 4"), "{message}");
}

#[test]
fn wrong_types_are_named_with_their_field() {
    let message = refused(b"{\"messages\": [{\"role\": \"user\", \"content\": 42}]}");
    assert!(message.contains("content"), "{message}");
}

#[test]
fn deep_nesting_neither_panics_nor_overflows() {
    let deep = format!("[{}{}]", "[".repeat(100_000), "]".repeat(100_000));
    refused(deep.as_bytes());
    let deep = format!(
        "{{\"role\":\"user\",\"content\":{}1{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    refused(deep.as_bytes());
    refused("{\"messages\":".repeat(100_000).as_bytes());
}

#[test]
fn lone_surrogates_and_long_lines_end_in_an_answer_or_an_error() {
    let place = Place::new();
    place.write(
        "surrogate",
        "{\"role\":\"user\",\"content\":\"\\ud800 alone\"}\n",
    );
    place.write(
        "long",
        format!(
            "{{\"role\":\"user\",\"content\":\"{}\"}}\n",
            "word ".repeat(2_000_000)
        ),
    );
    for file in ["surrogate", "long"] {
        let run = place.run(&[
            "compact",
            file,
            "--budget",
            "300",
            "--estimator",
            "chars4",
            "--json",
        ]);
        assert!(
            [0, 3].contains(&run.code),
            "{file}: {} {}",
            run.code,
            run.stderr
        );
        assert!(run.json().is_object());
    }
}

#[test]
fn a_session_with_every_line_cut_somewhere_never_panics() {
    let place = Place::new();
    let whole = claude(4);
    for cut in (1..whole.len()).step_by(whole.len() / 40) {
        place.write("cut.jsonl", &whole.as_bytes()[..cut]);
        let run = place.run(&["inspect", "cut.jsonl", "--json", "--estimator", "chars4"]);
        assert!([0, 3].contains(&run.code), "cut at {cut}: {}", run.stderr);
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    use std::process::Stdio;
    let place = Place::new();
    place.write("s.jsonl", lines(0..3000));
    let json = place.json(&[
        "compact",
        "s.jsonl",
        "--budget",
        "3000",
        "--estimator",
        "chars4",
    ]);
    let id = json["receipt_id"].as_str().unwrap();
    let mut child = place
        .command(&["restore", id])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
}

#[test]
fn output_that_cannot_be_written_changes_nothing() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    let run = place
        .run(&[
            "compact",
            "s.jsonl",
            "--budget",
            "1500",
            "-o",
            "no/such/dir/out.jsonl",
        ])
        .failed(1);
    assert!(
        run.stderr.contains("no/such/dir/out.jsonl"),
        "{}",
        run.stderr
    );
    assert!(!place.store().exists());
    place
        .run(&["compact", "s.jsonl", "--budget", "1500", "-o", "."])
        .failed(2);
}

/// Scripts go by these; the contract has no others.
#[test]
fn the_help_names_every_exit_code() {
    let help = Place::new().run(&["--help"]).ok().text();
    let (_, codes) = help.split_once("Exit codes: ").unwrap();
    let (codes, _) = codes.split_once('.').unwrap();
    let codes: Vec<u8> = codes
        .split(',')
        .filter_map(|code| code.split_whitespace().next()?.parse().ok())
        .collect();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 130]);
}

/// A system that has no thread to give gets the same plan, only later.
#[test]
fn a_system_without_threads_plans_the_same() {
    let place = Place::new();
    place.example("coding-session.jsonl");
    let plan = |stack: Option<&str>| {
        let mut command = place.command(&[
            "plan",
            "coding-session.jsonl",
            "--budget",
            "20000",
            "--json",
        ]);
        // No thread gets a stack of this size.
        stack.map(|size| command.env("RUST_MIN_STACK", size));
        Run::of(&mut command).ok().json()
    };
    assert_eq!(plan(None), plan(Some("70368744177664")));
}
