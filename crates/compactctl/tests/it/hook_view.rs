//! `hook view`: what takes the place of a conversation that an agent's plugin hands over.

use serde_json::{Value, json};

use super::place::Place;

const ASK: [&str; 4] = ["hook", "view", "--agent", "claude-code"];

const RULE: &str = "Never drop the column ledger_rows.amount_legacy.";

/// Turns of a question, thinking, a call with its result, and an answer.
fn rows(turns: usize) -> Vec<Value> {
    let turn = |n: usize| {
        let id = format!("toolu_{n}");
        let text = format!("line {n} of src/case_{n}.rs reads the field\n").repeat(60);
        let rule = if n == 0 { RULE } else { "" };
        [
            json!({"role": "user", "text": format!("Handle case {n}. {rule}"), "toolUses": []}),
            json!({"role": "assistant", "text": "", "toolUses": []}),
            json!({"role": "assistant", "text": "I read it.", "toolUses": [
                {"tool_use_id": id, "tool": "Read", "input": {"file_path": format!("src/case_{n}.rs")}},
            ]}),
            json!({"role": "user", "text": "", "toolUses": [], "toolResults": [
                {"tool_use_id": id, "text": text, "isError": false},
            ]}),
            json!({"role": "assistant", "text": format!("Case {n} is done."), "toolUses": []}),
        ]
    };
    (0..turns).flat_map(turn).collect()
}

fn event(messages: &[Value]) -> Vec<u8> {
    let event = json!({
        "session_id": "s1", "model": "claude-sonnet-4-5", "instructions": "keep it short",
        "messages": messages,
    });
    event.to_string().into_bytes()
}

fn view(place: &Place, messages: &[Value]) -> Vec<Value> {
    let run = place.run_with_stdin(&ASK, &event(messages)).ok();
    run.json()["messages"].as_array().unwrap().clone()
}

/// The rows as the agent has them afterwards.
fn resolve(view: &[Value], messages: &[Value]) -> Vec<Value> {
    let row = |row: &Value| match row["kept"].as_u64() {
        Some(place) => messages[place as usize].clone(),
        None => row.clone(),
    };
    view.iter().map(row).collect()
}

#[test]
fn a_view_has_a_summary_and_the_newest_rows_and_what_it_left_out_is_archived() {
    let place = Place::new();
    let messages = rows(120);
    let view = view(&place, &messages);
    let size = |rows: &[Value]| rows.iter().map(|row| row.to_string().len()).sum::<usize>();
    let left = size(&resolve(&view, &messages));
    assert!(left < size(&messages) * 3 / 4, "{left} bytes are left");
    // The row may be written anew where an answer of several rows was joined; what it says stays.
    let words = |rows: &[Value]| {
        rows.last()
            .map(|row| [&row["role"], &row["text"]].map(Value::clone))
    };
    assert_eq!(words(&resolve(&view, &messages)), words(&messages));
    let shown = resolve(&view, &messages);
    let says = |text: &str| {
        shown
            .iter()
            .any(|row| row["text"].to_string().contains(text))
    };
    assert!(says("<COMPACT-SUMMARY v1>") && says(RULE), "{shown:?}");
    let found = place.json(&["recall", "amount_legacy"]);
    assert!(found["hits"][0]["snippet"].as_str().unwrap().contains(RULE));
}

/// Calls and results stay together, and the next compaction goes on from this one.
#[test]
fn the_next_view_goes_on_from_the_last_one() {
    let place = Place::new();
    let messages = rows(120);
    let mut history = resolve(&view(&place, &messages), &messages);
    history.extend(rows(120).into_iter().skip(5));
    let second = resolve(&view(&place, &history), &history);
    let is_summary = |row: &&Value| row["text"].as_str().unwrap_or_default().contains(RULE);
    assert_eq!(second.iter().filter(is_summary).count(), 1);
    let ids = |rows: &[Value], list: &str| -> Vec<String> {
        let calls = rows
            .iter()
            .flat_map(|row| row[list].as_array().cloned().unwrap_or_default());
        calls.map(|call| call["tool_use_id"].to_string()).collect()
    };
    assert_eq!(ids(&second, "toolUses"), ids(&second, "toolResults"));
    let record = place.json(&["archive", "show", "s1"]);
    let made = record["compactions"].as_array().expect("a list").iter();
    let latest = made
        .filter_map(|made| made["summary_version"].as_u64())
        .max();
    assert_eq!(latest, Some(2), "{record}");
}

/// A person who asks for less gets less, also of a conversation that is small.
#[test]
fn a_small_conversation_is_made_smaller_when_a_person_asks() {
    let place = Place::new();
    let messages = rows(12);
    assert!(view(&place, &messages).len() < messages.len());
}

/// The plugin then lets the agent write its own summary.
#[test]
fn what_cannot_be_read_or_made_smaller_is_refused() {
    let place = Place::new();
    place.run_with_stdin(&ASK, b"not json").failed(3);
    let one = [json!({"role": "user", "text": "Hello.", "toolUses": []})];
    place.run_with_stdin(&ASK, &event(&one)).failed(4);
    let other = ["hook", "view", "--agent", "codex"];
    place.run_with_stdin(&other, b"{}").failed(2);
}
