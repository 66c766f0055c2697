//! What is told beside the answer: a log on stderr, a collector; and what is never told.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::place::{Place, lines};

const COMPACT: [&str; 4] = ["compact", "s.jsonl", "--budget", "1500"];

fn place() -> Place {
    let place = Place::new();
    place.write("s.jsonl", lines(0..60));
    place
}

/// What a command logs with a variable set.
fn logged(place: &Place, arguments: &[&str], filter: Option<&str>) -> String {
    let mut command = place.command(arguments);
    if let Some(filter) = filter {
        command.env("RUST_LOG", filter);
    }
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    String::from_utf8(done.stderr).unwrap()
}

#[test]
fn events_are_logged_as_lines_of_json() {
    let place = place();
    let arguments = [&COMPACT[..], &["--json", "--log-format", "json"]].concat();
    let log = logged(&place, &arguments, None);
    let events: Vec<Value> = log
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let names: Vec<&str> = events.iter().filter_map(|e| e["event"].as_str()).collect();
    assert_eq!(names.first(), Some(&"compact.token_estimate"));
    assert!(names.contains(&"compact.completed"));
    assert_eq!(names.last(), Some(&"compact.call_ended"));
    assert_eq!(events[0]["span_id"], events[names.len() - 1]["span_id"]);
}

#[test]
fn the_log_is_as_loud_as_it_is_asked_to_be() {
    let place = place();
    let quiet = [&COMPACT[..], &["--quiet"]].concat();
    assert_eq!(logged(&place, &quiet, None), "");
    assert_eq!(logged(&place, &quiet, Some("off")), "");
    assert_eq!(logged(&place, &quiet, Some("hyper=debug")), "");
    assert_eq!(logged(&place, &quiet, Some("warn")), "");
    assert!(logged(&place, &quiet, Some("info")).contains(" compact.completed session="));
}

#[test]
fn disabled_redaction_is_logged_first_and_loudest() {
    let place = place();
    place.write("c.yaml", "redaction:\n  enabled: false\n");
    let arguments = [
        &COMPACT[..],
        &["--config", "c.yaml", "--log-format", "json"],
    ]
    .concat();
    let log = logged(&place, &arguments, Some("error"));
    let events: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    assert!(!events.is_empty());
    for event in &events {
        assert_eq!(event["event"], "compact.redaction_disabled", "{log}");
        assert_eq!(event["severity"], "high");
    }
}

/// Whichever boundary it is: said before anything else is.
#[test]
fn disabled_redaction_is_the_first_that_is_said() {
    for (rules, boundary) in [
        ("enabled: false", "export"),
        ("sinks: {summary_prompt: false}", "summary"),
        ("sinks: {export: false}", "export"),
    ] {
        let place = place();
        place.write("c.yaml", format!("redaction:\n  {rules}\n"));
        let own = ["--config", "c.yaml", "--log-format", "json", "--json"];
        let log = logged(&place, &[&COMPACT[..], &own].concat(), Some("info"));
        let mut events = log.lines().filter_map(|l| serde_json::from_str(l).ok());
        let first: Value = events.next().unwrap();
        let told = ["event", "severity", "boundary"].map(|field| first[field].as_str());
        let expected = ["compact.redaction_disabled", "high", boundary];
        assert_eq!(told, expected.map(Some), "{rules}");
    }
}

/// A span of ours is part of the trace that the program was called in.
#[test]
fn a_caller_names_its_span() {
    let place = place();
    let own = ["--log-format", "json", "--json"];
    let mut command = place.command(&[&COMPACT[..], &own].concat());
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    command.env("TRACEPARENT", format!("00-{trace}-{span}-01"));
    let log = String::from_utf8(command.output().unwrap().stderr).unwrap();
    let events: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(events.len() > 5, "{log}");
    for event in &events {
        let ids = ["trace_id", "parent_span_id"].map(|field| event[field].as_str());
        assert_eq!(ids, [Some(trace), Some(span)], "{event}");
    }
    let odd = [&COMPACT[..], &own].concat();
    let mut command = place.command(&odd);
    command.env("TRACEPARENT", "nonsense");
    assert_eq!(command.output().unwrap().status.code(), Some(0));
}

#[test]
fn a_dead_collector_costs_a_warning_and_little_time() {
    let place = place();
    let dead = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut command = place.command(&COMPACT);
    command
        .env("COMPACT_TELEMETRY_EXPORTER", "otlp")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{dead}"));
    let start = Instant::now();
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(
        said.contains("events were not exported; check where `telemetry` sends them"),
        "{said}"
    );
    assert!(start.elapsed() < Duration::from_secs(20));
}

/// A raw archive has it all; what is found in it goes to a model, and its owner gets it whole.
#[test]
fn what_recall_and_its_tools_give_holds_no_secret() {
    let place = Place::new();
    let token = ["gh", "p_", "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3d"].concat();
    let body: Vec<String> = (0..6).map(|n| format!("{n}Qx7zKd9").repeat(8)).collect();
    let frame = |word: &str| format!("-----{word} RSA {} KEY-----", "PRIVATE");
    let key = format!("{}\n{}\n{}", frame("BEGIN"), body.join("\n"), frame("END"));
    let say = |text: &str| json!({"role": "user", "content": text}).to_string() + "\n";
    let mut session = say(&format!("The zebra token is {token}, keep it safe."));
    session += &say(&format!(
        "The giraffe key, one Qx7zKd9 line of many:\n{key}\nThat was it."
    ));
    place.write("s.jsonl", session + &lines(0..40));
    place
        .run(&["compact", "s.jsonl", "--budget", "1500", "--session", "s"])
        .ok();
    let zebra = place.json(&["recall", "zebra token", "-n", "1"]);
    let giraffe = place.json(&["recall", "giraffe key line", "-n", "3"]);
    let pointer = zebra["hits"][0]["pointer"].as_str().unwrap().to_owned();
    let mut client = crate::mcp::Client::start(&place, &[]);
    let told = [
        zebra,
        giraffe,
        client.call("recall", &json!({"query": "zebra token"})),
        client.call("expand", &json!({"pointer": pointer})),
        client.call("expand", &json!({"pointer": pointer, "raw": true})),
        client.call("remember", &json!({"session": "s"})),
    ];
    for answer in told {
        let text = answer.to_string();
        assert!(!text.contains(&token) && !text.contains(&body[3]), "{text}");
        assert!(text.contains("REDACTED") || text.contains("giraffe") || text.contains("summary"));
    }
    client.end();
    let shown = place.run(&["expand", &pointer]).ok().text();
    assert!(!shown.contains(&token), "{shown}");
    assert!(shown.contains("secrets were redacted"), "{shown}");
    let questions = [&["expand", &pointer][..], &["recall", "zebra", "token"]];
    for question in questions {
        for form in [&[][..], &["--json"], &["--raw"]] {
            let asked = [question, form].concat();
            if question.contains(&"recall") && form.contains(&"--raw") {
                continue;
            }
            let shown = place.run(&asked).ok().text();
            assert!(!shown.contains(&token), "{asked:?}: {shown}");
            let own = place.run(&[&asked[..], &["--unredacted"]].concat()).ok();
            let own = own.text();
            assert!(own.contains(&token), "{asked:?}: its owner gets it: {own}");
        }
    }
}

#[test]
fn a_recall_is_told_of_without_its_words() {
    let place = place();
    place
        .run(&[&COMPACT[..], &["--session", "s"]].concat())
        .ok();
    let log = logged(
        &place,
        &["recall", "handler", "--log-format", "json", "--quiet"],
        None,
    );
    let event: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(event["event"], "compact.recalled");
    assert!(event["hits"].as_u64().is_some() && event["duration_ms"].as_f64().is_some());
    assert!(!log.contains("handler"), "{log}");
}
