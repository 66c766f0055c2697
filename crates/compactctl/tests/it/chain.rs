use serde_json::{Value, json};

use crate::place::{Place, claude, lines};

/// Each round compacts what the round before wrote, with new messages at its end.
#[test]
fn three_compactions_of_passed_files_are_one_session() {
    let place = Place::new();
    let rounds = [lines(0..20), lines(20..40), lines(40..60)];
    let mut context = Vec::new();
    let mut session = String::new();
    for (i, new) in rounds.iter().enumerate() {
        context.extend_from_slice(new.as_bytes());
        place.write("in.jsonl", &context);
        let json = place.json(&["compact", "in.jsonl", "--budget", "1500", "-o", "out.jsonl"]);
        assert_eq!(json["summary_version"], i + 1);
        session = json["session_id"].as_str().unwrap().to_owned();
        let id = json["receipt_id"].as_str().unwrap();
        assert_eq!(place.run(&["restore", id]).ok().stdout, context);
        assert_eq!(place.json(&["verify", id])["ok"], true, "round {i}");
        context = place.read("out.jsonl");
    }
    let shown = place.json(&["archive", "show", &session]);
    assert_eq!(shown["compactions"].as_array().unwrap().len(), 3);
    let restored = place.run(&["restore", &session]).ok().text();
    assert_eq!(restored, rounds.concat());
}

#[test]
fn another_budget_for_the_same_file_does_not_double_the_session() {
    let place = Place::new();
    place.write("s.jsonl", lines(0..30));
    for budget in ["1500", "1200", "1800"] {
        place
            .run(&[
                "compact",
                "s.jsonl",
                "--budget",
                budget,
                "--session",
                "mine",
                "-q",
            ])
            .ok();
    }
    assert_eq!(place.run(&["restore", "mine"]).ok().text(), lines(0..30));
}

#[test]
fn a_growing_transcript_is_restored_whole() {
    let place = Place::new();
    for turns in [20, 30, 40] {
        place.write("s.jsonl", claude(turns));
        place
            .run(&["compact", "s.jsonl", "--budget", "2000", "-q"])
            .ok();
    }
    let session = "5e551040-0000-4000-8000-000000000000";
    assert_eq!(place.run(&["restore", session]).ok().text(), claude(40));
}

#[test]
fn appended_compactions_chain_in_one_file() {
    let place = Place::new();
    place.write("s.jsonl", claude(20));
    for version in 1..=3 {
        let json = place.json(&["compact", "s.jsonl", "--budget", "1500", "--append"]);
        assert_eq!(json["summary_version"], version);
        let mut file = place.read("s.jsonl");
        let turn = file.len();
        let line = serde_json::json!({
            "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": "/src",
            "sessionId": "5e551040-0000-4000-8000-000000000000", "version": "2.1.7", "type": "user",
            "message": { "role": "user", "content": format!("Go on with {turn}. ").repeat(900) },
            "uuid": format!("10000000-0000-4000-8000-{turn:012}"),
            "timestamp": "2026-03-02T09:00:00.000Z",
        });
        file.extend_from_slice(format!("{line}\n").as_bytes());
        place.write("s.jsonl", file);
    }
}

/// Calls of an Anthropic body, whose arguments are objects.
fn messages(turns: std::ops::Range<usize>) -> Vec<Value> {
    let exchange = |turn: usize| {
        let id = format!("toolu_{turn}");
        let path = format!("café/note {turn}.md");
        let lines = format!("Zeile {turn}: Größe \u{2264} {turn} \n").repeat(20);
        [
            json!({ "role": "user", "content": format!("Write note {turn}.") }),
            json!({ "role": "assistant", "content": [{
                "type": "tool_use", "id": id, "name": "write",
                "input": { "path": path, "lines": lines, "mode": [1, 2.50] },
            }] }),
            json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": id, "content": format!("wrote {turn}") },
            ] }),
            json!({ "role": "assistant", "content": format!("Note {turn} is there.") }),
        ]
    };
    turns.flat_map(exchange).collect()
}

/// A body with blanks between its tokens and everything escaped that may be, as many clients write it.
fn respelt(body: &Value) -> String {
    let mut units = [0; 2];
    let pretty = serde_json::to_string_pretty(body).unwrap();
    let escaped = pretty.chars().map(|c| match c.is_ascii() {
        true => c.to_string(),
        false => {
            let units = c.encode_utf16(&mut units).iter();
            units.map(|unit| format!("\\u{unit:04x}")).collect()
        }
    });
    escaped.collect()
}

/// A client reads the view, adds to it and writes all of it in its own way.
#[test]
fn a_client_that_spells_json_otherwise_stays_in_its_session() {
    let place = Place::new();
    let mut body =
        json!({ "model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages(0..20) });
    let (mut numbered, mut entries) = (0, 0);
    for round in 1..=3 {
        let all = body["messages"].as_array().unwrap().len();
        place.write("in.json", respelt(&body));
        let made = place.json(&["compact", "in.json", "--budget", "1500", "-o", "out.json"]);
        assert_eq!(made["summary_version"], round);
        // Only what is new has got a number; the summary has the one that comes next.
        let last = |spans: &Value| {
            spans
                .as_array()
                .unwrap()
                .iter()
                .map(|s| s[1].as_u64().unwrap())
                .max()
        };
        let highest = last(&made["view_spans"])
            .max(last(&made["summarized_spans"]))
            .unwrap() as usize;
        assert_eq!(highest, numbered + all - entries, "round {round}");
        body = serde_json::from_slice(&place.read("out.json")).unwrap();
        let view = body["messages"].as_array_mut().unwrap();
        (numbered, entries) = (highest, view.len());
        view.extend(messages(20 * round..20 * round + 20));
    }
}
