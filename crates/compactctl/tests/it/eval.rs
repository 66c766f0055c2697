use serde_json::{Value, json};

use crate::place::Place;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[test]
fn eval_compares_methods_on_a_transcript_and_writes_every_sheet() {
    let place = Place::new();
    place.example("coding-session.jsonl");
    let lines = place.json(&[
        "eval",
        "coding-session.jsonl",
        "--budgets",
        "0.1",
        "--cuts",
        "0.5",
        "--methods",
        "compact,keep_last,oracle",
        "--csv",
        "out.csv",
        "--html",
        "out.html",
    ]);
    let strict: Vec<(&str, f64)> = lines
        .as_array()
        .expect("one object per line")
        .iter()
        .map(|l| {
            (
                l["method"].as_str().unwrap_or_default(),
                number(&l["strict"]["mean"]),
            )
        })
        .collect();
    let [
        ("compact", compact),
        ("keep_last", tail),
        ("oracle", oracle),
    ] = strict.as_slice()
    else {
        panic!("{strict:?}")
    };
    assert!(oracle >= compact && compact > tail, "{strict:?}");
    assert_eq!(lines[0]["failed"], 0);
    assert_eq!(lines[0]["over_budget"], 0);
    let csv = String::from_utf8(place.read("out.csv")).expect("text");
    assert_eq!(csv.lines().count(), 4);
    let page = String::from_utf8(place.read("out.html")).expect("text");
    assert!(page.starts_with("<!doctype html>") && page.contains("keep_last"));
    assert!(!place.store().exists(), "measuring stores nothing");
}

#[test]
fn eval_says_what_it_cannot_read() {
    let place = Place::new();
    place.write("notes.txt", "no transcript");
    for (arguments, code) in [
        (&["eval", "notes.txt"][..], 3),
        (&["eval", "missing"], 3),
        (&["eval"], 2),
        (&["eval", ".", "--methods", "magic"], 2),
        (&["eval", ".", "--generated"], 2),
        (&["eval", "--qa", "notes.txt"], 3),
    ] {
        assert_eq!(place.run(arguments).code, code, "{arguments:?}");
    }
}

#[test]
fn eval_skips_what_is_no_transcript_in_a_folder() {
    let place = Place::new();
    place.example("support-session.json");
    place.write("notes.txt", "no transcript");
    let run = place.run(&["eval", ".", "--methods", "keep_last"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("1 file of"), "{}", run.stderr);
}

#[test]
fn generated_sessions_are_checked_against_their_keys() {
    let place = Place::new();
    let lines = place.json(&["eval", "--generated", "--seeds", "1", "--budgets", "0.3"]);
    let lines = lines.as_array().expect("lines");
    let done: Vec<&Value> = lines
        .iter()
        .filter(|l| l["check"] == "done_not_open")
        .collect();
    assert_eq!(done.len(), 3, "one line per kind of session");
    assert!(
        done.iter()
            .all(|l| number(&l["count"]) > 0.0 && number(&l["passed"]["mean"]) <= 1.0)
    );
}

#[test]
fn probes_are_looked_for_in_what_each_method_keeps() {
    let place = Place::new();
    place.example("coding-session.jsonl");
    let facts = serde_json::from_slice::<Value>(&example_key()).expect("an answer key");
    let early = facts["facts"].as_array().expect("facts").iter();
    let early = early.filter(|fact| number(&fact["depth"]) < 0.5);
    let probes: Vec<Value> = early
        .map(|fact| json!({"kind": fact["kind"], "needles": [fact["needles"]]}))
        .collect();
    place.write("s.json", json!(probes).to_string());
    let record = json!({
        "id": "s", "file": "coding-session.jsonl", "tokens": 150_000, "budget": 7_500,
        "cut": {"unit": "line", "at": 400},
    });
    place.write("sessions.json", json!([record]).to_string());
    let arguments = [
        "eval",
        "--probes",
        ".",
        "--methods",
        "compact,keep_last,whole",
        "--csv",
        "p.csv",
    ];
    let found = place.json(&arguments);
    let score = |row: usize| number(&found["means"][row]["score"]);
    assert!(score(2) >= score(0) && score(0) > score(1), "{found}");
    assert_eq!(found["sessions"][0]["allowed"], 7_500);
    assert_eq!(
        String::from_utf8(place.read("p.csv"))
            .expect("text")
            .lines()
            .count(),
        4
    );
    let shares = place.json(&[
        "eval",
        "--probes",
        ".",
        "--methods",
        "keep_last",
        "--budgets",
        "0.1,0.2",
    ]);
    assert_eq!(shares["means"][1]["budget"], json!({"share": 0.2}));
    let missing = place.run(&["eval", "--probes", ".", "--data", "elsewhere"]);
    assert_eq!(missing.code, 3, "{}", missing.stderr);
    assert!(missing.stderr.contains("elsewhere"), "{}", missing.stderr);
}

fn example_key() -> Vec<u8> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    std::fs::read(root.join("coding-session.facts.json")).expect("an answer key")
}
