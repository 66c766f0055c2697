use expect_test::expect;
use serde_json::Value;

use crate::place::{Place, claude, lines};

#[test]
fn a_session_is_counted_for_people() {
    let place = Place::new();
    place.write("s.jsonl", claude(6));
    let run = place.run(&["inspect", "s.jsonl", "--window", "8000"]).ok();
    expect![[r#"
        s.jsonl
          claude-code, claude-sonnet-4-5, 18 entries, 6 turns, 6 exchanges
          session 5e551040-0000-4000-8000-000000000000

          #####################.............................  42.6 %
          3,406 of 8,000 tokens (configured, counted with o200kx1.18)
          stay: 42.6 % of the window

          system                0    0.0 %  ........................
          tools                 0    0.0 %  ........................
          history           3,406  100.0 %  ########################
            tool results    3,215   94.4 %  #######################.
            summaries           0    0.0 %  ........................
            role user          71    2.1 %  #.......................
            role assistant    121    3.6 %  #.......................
            role tool       3,215   94.4 %  #######################.

          biggest entries
           #2  tool  536  0: fn handler_0() -> Result<(), Error> { todo...
           #5  tool  536  1: fn handler_1() -> Result<(), Error> { todo...
           #8  tool  536  2: fn handler_2() -> Result<(), Error> { todo...
          #11  tool  536  3: fn handler_3() -> Result<(), Error> { todo...
          #14  tool  536  4: fn handler_4() -> Result<(), Error> { todo...

          no problems found
    "#]]
    .assert_eq(&run.text());
}

#[test]
fn the_json_has_every_field_of_the_contract() {
    let place = Place::new();
    place.write("s.jsonl", claude(3));
    let json = place.json(&[
        "inspect",
        "s.jsonl",
        "--window",
        "2000",
        "--estimator",
        "chars4",
    ]);
    assert_eq!(json["format"], "claude-code");
    assert_eq!(json["session_id"], "5e551040-0000-4000-8000-000000000000");
    assert_eq!(json["entries"], 9);
    assert_eq!(json["turns"], 3);
    assert_eq!(json["exchanges"], 3);
    assert_eq!(json["window"], 2000);
    assert_eq!(json["problems"], Value::Array(vec![]));
    let tokens = &json["tokens"];
    for key in [
        "total",
        "transcript",
        "system",
        "tools",
        "history",
        "tool_results",
    ] {
        assert!(tokens[key].is_u64(), "{key}");
    }
    assert!(tokens["by_role"]["tool"].as_u64() > tokens["by_role"]["user"].as_u64());
    assert_eq!(tokens["total"], tokens["transcript"]);
    let pressure = tokens["total"].as_f64().unwrap() / 2000.0;
    assert!((json["pressure"].as_f64().unwrap() - pressure).abs() < 1e-9);
}

#[test]
fn a_model_brings_its_window() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..2));
    let window = |arguments: &[&str]| {
        place.json(&[&["inspect", "s.jsonl"], arguments].concat())["window"].clone()
    };
    assert_eq!(window(&[]), 128_000);
    assert_eq!(window(&["--model", "claude-sonnet-4-5"]), 200_000);
    assert_eq!(
        window(&["--model", "claude-sonnet-4-5", "--window", "9000"]),
        9_000
    );
}

#[test]
fn a_transcript_may_come_through_stdin_and_nothing_is_written() {
    let place = Place::new();
    let run = place.run_with_stdin(&["inspect", "-", "--json"], lines(0..2).as_bytes());
    assert_eq!(run.ok().json()["entries"], 6);
    assert!(!place.store().exists() && !place.path("home").exists());
}

#[test]
fn broken_exchanges_are_reported() {
    let place = Place::new();
    let orphan = r#"[{"role":"user","content":"go"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"user","content":"never mind"},{"role":"assistant","content":"ok"}]"#;
    place.write("s.json", orphan);
    let json = place.json(&["inspect", "s.json"]);
    assert_eq!(json["problems"].as_array().unwrap().len(), 1);
    let text = place.run(&["inspect", "s.json"]).ok().text();
    assert!(text.contains("1 problem"), "{text}");
}

#[test]
fn escape_sequences_of_a_transcript_do_not_reach_the_terminal() {
    let place = Place::new();
    place.write(
        "s.jsonl",
        r#"{"role":"user","content":"\u001b]0;owned\u0007 \u001b[31mred"}"#,
    );
    for arguments in [&["inspect", "s.jsonl"][..], &["diff", "s.jsonl", "s.jsonl"]] {
        let run = place.run(arguments).ok();
        assert!(!run.stdout.contains(&0x1b) && !run.stdout.contains(&7));
    }
}
