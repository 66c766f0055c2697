//! Agents that write one JSON document per session: Gemini CLI, opencode, SWE-agent, OpenHands.

use serde_json::{Map, Value};

use super::json::{dump, first_filled, flat, is_filled, list_of, str_of};
use super::{called, said};
use crate::metric::{Event, Voice};

/// A chat of Gemini CLI.
pub(super) fn gemini_cli(chat: &Value) -> Vec<Event> {
    let mut events = Vec::new();
    for message in list_of(chat, "messages") {
        let content = flat(message.get("content"));
        if str_of(message, "type") != "gemini" {
            events.push(said(Voice::User, content));
            continue;
        }
        events.push(said(Voice::Assistant, content));
        for call in list_of(message, "toolCalls") {
            events.push(called(str_of(call, "name"), &dump(call.get("args"))));
            let result = filled(call, &["result", "resultDisplay"]);
            events.push(said(Voice::Result, result));
        }
    }
    events
}

/// The first filled member as text, or nothing.
fn filled(value: &Value, keys: &[&str]) -> String {
    first_filled(value, keys).map_or_else(String::new, |member| dump(Some(member)))
}

/// An export of opencode.
pub(super) fn opencode(export: &Value) -> Vec<Event> {
    let mut events = Vec::new();
    for message in list_of(export, "messages") {
        let role = message.get("info").map_or("", |info| str_of(info, "role"));
        for part in list_of(message, "parts") {
            opencode_part(part, role, &mut events);
        }
    }
    events
}

fn opencode_part(part: &Value, role: &str, events: &mut Vec<Event>) {
    match (str_of(part, "type"), role) {
        ("text", "user") => events.push(said(Voice::User, str_of(part, "text"))),
        ("text", "assistant") => events.push(said(Voice::Assistant, str_of(part, "text"))),
        ("text", "system") => events.push(said(Voice::System, str_of(part, "text"))),
        ("subtask", _) => events.push(said(Voice::User, filled(part, &["prompt"]))),
        ("compaction", _) => events.push(said(Voice::Boundary, "")),
        ("tool", _) => {
            let none = Value::Null;
            let state = part.get("state").unwrap_or(&none);
            events.push(called(str_of(part, "tool"), &dump(state.get("input"))));
            let output = flat(state.get("output"));
            let text = if output.is_empty() {
                filled(state, &["error"])
            } else {
                output
            };
            events.push(said(Voice::Result, text));
        }
        _ => {}
    }
}

/// A trajectory of SWE-agent.
pub(super) fn swe_agent(run: &Value) -> Vec<Event> {
    let head = list_of(run, "history").iter().take(2).map(|message| {
        let voice = match str_of(message, "role") {
            "system" => Voice::System,
            _ => Voice::User,
        };
        said(voice, flat(message.get("content")))
    });
    let steps = list_of(run, "trajectory").iter().flat_map(|step| {
        [
            said(Voice::Assistant, filled(step, &["response", "thought"])),
            said(Voice::Call, filled(step, &["action"])),
            said(Voice::Result, filled(step, &["observation"])),
        ]
    });
    head.chain(steps).collect()
}

/// The events of OpenHands: a list, or the `history` of a run, of events or of pairs of them.
pub(super) fn openhands(document: &Value) -> Vec<Event> {
    let history = document.get("history").unwrap_or(document).as_array();
    let mut events = Vec::new();
    for element in history.into_iter().flatten() {
        let pair = element.as_array().map(Vec::as_slice);
        for event in pair.unwrap_or(std::slice::from_ref(element)) {
            openhands_event(event, &mut events);
        }
    }
    events
}

/// Arguments of an action that the model wrote.
const WRITTEN: [&str; 10] = [
    "command",
    "path",
    "code",
    "content",
    "file_text",
    "old_str",
    "new_str",
    "url",
    "browser_actions",
    "inputs",
];

fn openhands_event(event: &Value, events: &mut Vec<Event>) {
    let observation = first_filled(event, &["observation"]);
    if observation.is_some_and(|o| o.as_str() != Some("null")) {
        events.push(said(Voice::Result, filled(event, &["content"])));
        return;
    }
    let Some(action) = first_filled(event, &["action"]).and_then(Value::as_str) else {
        return;
    };
    let none = Value::Null;
    let arguments = event.get("args").filter(|a| is_filled(a)).unwrap_or(&none);
    let voice = match (action, str_of(event, "source")) {
        ("message", "user") => Voice::User,
        ("message", _) => Voice::Assistant,
        ("system", _) => Voice::System,
        _ => {
            if let Some(thought) = first_filled(arguments, &["thought"]) {
                events.push(said(Voice::Assistant, dump(Some(thought))));
            }
            events.push(called(action, &dump(Some(&written(arguments)))));
            return;
        }
    };
    events.push(said(voice, filled(arguments, &["content"])));
}

fn written(arguments: &Value) -> Value {
    let members = arguments.as_object().into_iter().flatten();
    let own = members.filter(|(key, _)| WRITTEN.contains(&key.as_str()));
    Value::Object(
        own.map(|(k, v)| (k.clone(), v.clone()))
            .collect::<Map<_, _>>(),
    )
}
