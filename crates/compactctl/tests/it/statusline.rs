//! `statusline`: one line, or none, and never an error.

use std::time::Instant;

use serde_json::{Value, json};

use super::place::Place;

fn answer(tokens: u64) -> Value {
    json!({
        "type": "assistant", "timestamp": jiff_now(), "message": {
            "model": "claude-sonnet-4-5",
            "usage": {"input_tokens": 10, "cache_read_input_tokens": tokens, "output_tokens": 90},
        },
    })
}

fn jiff_now() -> String {
    let now = std::time::SystemTime::now();
    let seconds = now.duration_since(std::time::UNIX_EPOCH).expect("a clock");
    jiff::Timestamp::from_second(seconds.as_secs() as i64)
        .expect("a time")
        .to_string()
}

#[test]
fn what_claude_code_says_becomes_one_line() {
    let place = Place::new();
    place.write("t.jsonl", format!("{}\n{}\n", answer(10), answer(99_900)));
    let said =
        json!({"transcript_path": place.path("t.jsonl"), "model": {"id": "claude-sonnet-4-5"}});
    let run = place
        .run_with_stdin(&["statusline"], said.to_string().as_bytes())
        .ok();
    let line = run.text();
    assert!(
        line.starts_with("50 % of 200k · next $0.03 · cache "),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1);
    assert_eq!(run.stderr, "");
    let status = place.json(&["statusline", "t.jsonl"]);
    assert_eq!(
        (&status["tokens"], &status["window"]),
        (&100_000.into(), &200_000.into())
    );
}

#[test]
fn a_shell_sees_the_newest_session_of_its_directory() {
    let place = Place::new();
    let work = place.path("work");
    std::fs::create_dir_all(&work).unwrap();
    let work = work.canonicalize().unwrap();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let slug: String = work.display().to_string().chars().map(plain).collect();
    let folder = place.path("home/.claude/projects").join(slug);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("s.jsonl"), answer(19_900).to_string()).unwrap();
    let mut command = place.command(&["statusline"]);
    let run = super::place::Run::of(command.current_dir(&work)).ok();
    assert!(run.text().starts_with("10 % of 200k"), "{}", run.text());
}

/// A status line that complains would be drawn again and again.
#[test]
fn whatever_comes_in_nothing_is_said_of_it() {
    let place = Place::new();
    place.write("broken.jsonl", "{\"usage\"\n\u{0}\n");
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(2 << 20));
    let inputs = [
        "",
        "not json",
        "[]",
        "{\"transcript_path\": \"/nowhere\"}",
        &long,
    ];
    for said in inputs {
        let run = place.run_with_stdin(&["statusline"], said.as_bytes()).ok();
        assert_eq!(
            (run.text().as_str(), run.stderr.as_str()),
            ("", ""),
            "{said:.40}"
        );
    }
    for file in ["broken.jsonl", "missing.jsonl", "."] {
        let run = place.run(&["statusline", file]).ok();
        assert_eq!(
            (run.text().as_str(), run.stderr.as_str()),
            ("", ""),
            "{file}"
        );
    }
}

/// The end of a long transcript is read, not all of it.
#[test]
fn a_long_transcript_costs_no_time() {
    let place = Place::new();
    let filler = json!({"type": "user", "message": {"content": "x".repeat(1 << 20)}});
    let mut text = format!("{filler}\n").repeat(60);
    text.push_str(&format!("{}\n", answer(50_000)));
    place.write("long.jsonl", text);
    let time = |file: &str| {
        let took = (0..5).map(|_| {
            let started = Instant::now();
            place.run(&["statusline", file]).ok();
            started.elapsed()
        });
        took.min().expect("some runs")
    };
    place.write("short.jsonl", format!("{}\n", answer(50_000)));
    let (long, short) = (time("long.jsonl"), time("short.jsonl"));
    assert!(long < short * 3, "{long:?} against {short:?}");
}
