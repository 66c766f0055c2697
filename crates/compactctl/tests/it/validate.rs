use expect_test::expect;

use crate::place::{Place, claude};

const ORPHAN: &str = r#"{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[
  {"role":"user","content":"hi"},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_9","content":"x"}]}]}"#;

#[test]
fn a_broken_rule_is_told_with_its_entry_and_its_source() {
    let place = Place::new();
    place.write("request.json", ORPHAN);
    let run = place.run(&["validate", "request.json", "--provider", "anthropic"]);
    assert_eq!(run.code, 5, "{}", run.stderr);
    expect![[r#"
        invalid request.json: 1 violation of anthropic's rules
          A2 result-needs-tool-use, entry 1
            messages.1: tool_result of `toolu_9`, which the message before does not use
            "unexpected `tool_use_id` found in `tool_result` blocks": anthropics/claude-code#13460, #18947
    "#]]
    .assert_eq(&run.text());
}

#[test]
fn programs_get_rule_entry_and_message() {
    let place = Place::new();
    let arguments = [
        "validate",
        "-",
        "--provider",
        "anthropic",
        "--strict",
        "--json",
    ];
    let run = place.run_with_stdin(&arguments, ORPHAN.as_bytes());
    assert_eq!(run.code, 5);
    let json = run.json();
    assert_eq!(json["ok"], false);
    let names: Vec<&str> = json["violations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|violation| violation["rule"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["tools-declared", "result-needs-tool-use", "alternation"]
    );
    assert_eq!(json["violations"][1]["entry"], 1);
    assert!(json["violations"][0]["entry"].is_null());
}

#[test]
fn what_is_fine_is_told_in_a_line() {
    let place = Place::new();
    place.write("m.jsonl", "{\"role\":\"user\",\"content\":\"hi\"}\n");
    let run = place
        .run(&["validate", "m.jsonl", "--provider", "openai-chat"])
        .ok();
    assert!(run.text().starts_with("valid m.jsonl: "), "{}", run.text());
    let json = place.json(&["validate", "m.jsonl", "--provider", "openai-chat"]);
    assert_eq!(json["ok"], true);
    assert_eq!(json["violations"], serde_json::json!([]));
}

#[test]
fn what_cannot_be_read_is_no_violation() {
    let place = Place::new();
    place.write("broken.json", "{\"messages\": [");
    let run = place
        .run(&["validate", "broken.json", "--provider", "gemini"])
        .failed(3);
    assert!(run.stderr.contains("broken.json: line 1"), "{}", run.stderr);
    place
        .run(&["validate", "missing", "--provider", "gemini"])
        .failed(3);
    place
        .run(&["validate", "broken.json", "--provider", "gemeni"])
        .failed(2);
    place.run(&["validate", "broken.json"]).failed(2);
}

#[test]
fn an_agents_session_is_checked_too() {
    let place = Place::new();
    place.write("s.jsonl", claude(3));
    let json = place.json(&["validate", "s.jsonl", "--provider", "anthropic"]);
    assert_eq!(json["ok"], true, "{json}");
}

#[test]
fn rules_are_listed_with_what_they_cannot_see() {
    let place = Place::new();
    let all = place.json(&["validate", "--list-rules"]);
    let one = place.json(&["validate", "--list-rules", "--provider", "openai-responses"]);
    assert!(
        all.as_array().unwrap().len() > 90,
        "{}",
        all.as_array().unwrap().len()
    );
    let unchecked: Vec<&str> = one
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| rule["checked"] == false)
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    assert_eq!(unchecked, ["R4"]);
    let words = place.run(&["validate", "--list-rules"]).ok().text();
    assert!(words.contains("anthropic A1 tool-use-needs-result"));
}
