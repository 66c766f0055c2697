use expect_test::expect;

use crate::place::{Place, claude};

#[test]
fn a_session_is_written_in_another_format_and_its_losses_are_told() {
    let place = Place::new();
    place.write("session.jsonl", claude(3));
    let arguments = [
        "convert",
        "session.jsonl",
        "--to",
        "anthropic",
        "-o",
        "body.json",
    ];
    let run = place.run(&arguments).ok();
    assert!(
        run.text()
            .starts_with("converted session.jsonl: claude-code to anthropic"),
        "{}",
        run.text()
    );
    let valid = ["validate", "body.json", "--provider", "anthropic"];
    place.run(&valid).ok();
    let json = place
        .run(&[&arguments[..], &["--json"]].concat())
        .ok()
        .json();
    assert_eq!(json["from"], "claude-code");
    assert_eq!(json["to"], "anthropic");
    assert!(json["losses"].is_array());
}

#[test]
fn the_document_goes_to_stdout_unless_it_is_told_where_to() {
    let place = Place::new();
    place.write("m.json", "[{\"role\":\"user\",\"content\":\"hi\"}]");
    let run = place
        .run(&["convert", "m.json", "--to", "messages-jsonl"])
        .ok();
    assert_eq!(run.text(), "{\"role\":\"user\",\"content\":\"hi\"}\n");
    expect![[r#"
        converted m.json: messages to messages-jsonl, nothing lost
    "#]]
    .assert_eq(&run.stderr);
    let both = place.run(&["convert", "m.json", "--to", "anthropic", "--json"]);
    assert_eq!(both.code, 2, "{}", both.stderr);
}

/// A view of ours keeps its pins for the next compaction; its provider would refuse them.
#[test]
fn a_body_for_its_own_provider_loses_what_no_provider_knows() {
    let image = r#"{"type":"image_url","image_url":{"url":"https://x/y.png"}}"#;
    let body = |meta: &str| {
        format!(r#"{{"model":"m", "messages": [ {{"role":"user","content":[{image}]{meta}}} ]}}"#)
    };
    let place = Place::new();
    place.write("body.json", body(r#","meta":{"protected":true}"#));
    let check = ["validate", "body.json", "--provider", "openai-chat"];
    let refused = place.run(&check);
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    let run = place
        .run(&["convert", "body.json", "--to", "openai-chat"])
        .ok();
    assert_eq!(run.text(), body(""));
    expect![[r#"
        converted body.json: openai-chat to openai-chat; 1 thing that openai-chat cannot carry:
          entry #0: flags: protected
    "#]]
    .assert_eq(&run.stderr);
}

const RUN: &str = r#"{"task_id":1,"traj":[{"role":"user","content":"first"},{"role":"assistant","content":"yes"}]}"#;

#[test]
fn a_file_of_many_sessions_asks_for_one_and_gives_it_back_by_itself() {
    let place = Place::new();
    let long = RUN.replace("yes", &"a long answer about file-7.rs. ".repeat(400));
    place.write("runs.json", format!("[{RUN},\n{long}]"));
    let asked = place.run(&["inspect", "runs.json"]);
    assert_eq!(asked.code, 2);
    expect![[r#"
        error: runs.json: the file holds 2 sessions
        help: choose one with --session-index 0 to 1
    "#]]
    .assert_eq(&asked.stderr);
    let beyond = place.run(&["inspect", "runs.json", "--session-index", "2"]);
    assert_eq!(beyond.code, 2);
    let found = place.json(&["inspect", "runs.json", "--session-index", "0"]);
    assert_eq!(
        (&found["format"], &found["entries"]),
        (&"tau-bench".into(), &2.into())
    );
    let compact = [
        "compact",
        "runs.json",
        "--session-index",
        "1",
        "--budget",
        "400",
        "-o",
    ];
    let over = place.run(&[&compact[..], &["runs.json"]].concat());
    assert_eq!(over.code, 2, "one session must not replace many");
    let receipt = place.json(&[&compact[..], &["one.json"]].concat());
    let id = receipt["receipt_id"].as_str().unwrap();
    assert_eq!(place.run(&["restore", id]).ok().stdout, long.as_bytes());
    assert!(place.read("one.json").starts_with(b"{\"task_id\":1"));
    place.run(&["verify", id]).ok();
}
