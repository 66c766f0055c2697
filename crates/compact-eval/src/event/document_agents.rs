//! Agents that write one JSON document per session: Gemini CLI, opencode, SWE-agent, OpenHands.

use serde_json::{Map, Value};

use super::json::{first_filled, flatten_content, is_filled, list_of, str_of, value_text};
use super::{call_event, text_event};
use crate::metric::{EventVoice, MetricEvent};

/// Returns a chat of Gemini CLI.
pub(super) fn read_gemini_cli(chat: &Value) -> Vec<MetricEvent> {
    let mut events = Vec::new();
    for message in list_of(chat, "messages") {
        let content = flatten_content(message.get("content"));
        if str_of(message, "type") != "gemini" {
            events.push(text_event(EventVoice::User, content));
            continue;
        }
        events.push(text_event(EventVoice::Assistant, content));
        for call in list_of(message, "toolCalls") {
            events.push(call_event(
                str_of(call, "name"),
                &value_text(call.get("args")),
            ));
            let result = filled_text(call, &["result", "resultDisplay"]);
            events.push(text_event(EventVoice::Result, result));
        }
    }
    events
}

/// Returns the first filled member as text, or nothing.
fn filled_text(value: &Value, keys: &[&str]) -> String {
    first_filled(value, keys).map_or_else(String::new, |member| value_text(Some(member)))
}

/// Returns an export of opencode.
pub(super) fn read_opencode(export: &Value) -> Vec<MetricEvent> {
    let mut events = Vec::new();
    for message in list_of(export, "messages") {
        let role = message.get("info").map_or("", |info| str_of(info, "role"));
        for part in list_of(message, "parts") {
            opencode_part(part, role, &mut events);
        }
    }
    events
}

fn opencode_part(part: &Value, role: &str, events: &mut Vec<MetricEvent>) {
    match (str_of(part, "type"), role) {
        ("text", "user") => events.push(text_event(EventVoice::User, str_of(part, "text"))),
        ("text", "assistant") => {
            events.push(text_event(EventVoice::Assistant, str_of(part, "text")))
        }
        ("text", "system") => events.push(text_event(EventVoice::System, str_of(part, "text"))),
        ("subtask", _) => events.push(text_event(EventVoice::User, filled_text(part, &["prompt"]))),
        ("compaction", _) => events.push(text_event(EventVoice::Boundary, "")),
        ("tool", _) => {
            let none = Value::Null;
            let state = part.get("state").unwrap_or(&none);
            events.push(call_event(
                str_of(part, "tool"),
                &value_text(state.get("input")),
            ));
            let output = flatten_content(state.get("output"));
            let text = if output.is_empty() {
                filled_text(state, &["error"])
            } else {
                output
            };
            events.push(text_event(EventVoice::Result, text));
        }
        _ => {}
    }
}

/// Returns a trajectory of SWE-agent.
pub(super) fn read_swe_agent(run: &Value) -> Vec<MetricEvent> {
    let head = list_of(run, "history").iter().take(2).map(|message| {
        let voice = match str_of(message, "role") {
            "system" => EventVoice::System,
            _ => EventVoice::User,
        };
        text_event(voice, flatten_content(message.get("content")))
    });
    let steps = list_of(run, "trajectory").iter().flat_map(|step| {
        [
            text_event(
                EventVoice::Assistant,
                filled_text(step, &["response", "thought"]),
            ),
            text_event(EventVoice::Call, filled_text(step, &["action"])),
            text_event(EventVoice::Result, filled_text(step, &["observation"])),
        ]
    });
    head.chain(steps).collect()
}

/// Returns the events of OpenHands: a list, or the `history` of a run, of events or of pairs of them.
pub(super) fn read_openhands(document: &Value) -> Vec<MetricEvent> {
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

fn openhands_event(event: &Value, events: &mut Vec<MetricEvent>) {
    let observation = first_filled(event, &["observation"]);
    if observation.is_some_and(|o| o.as_str() != Some("null")) {
        events.push(text_event(
            EventVoice::Result,
            filled_text(event, &["content"]),
        ));
        return;
    }
    let Some(action) = first_filled(event, &["action"]).and_then(Value::as_str) else {
        return;
    };
    let none = Value::Null;
    let arguments = event.get("args").filter(|a| is_filled(a)).unwrap_or(&none);
    let voice = match (action, str_of(event, "source")) {
        ("message", "user") => EventVoice::User,
        ("message", _) => EventVoice::Assistant,
        ("system", _) => EventVoice::System,
        _ => {
            if let Some(thought) = first_filled(arguments, &["thought"]) {
                events.push(text_event(EventVoice::Assistant, value_text(Some(thought))));
            }
            events.push(call_event(
                action,
                &value_text(Some(&written_arguments(arguments))),
            ));
            return;
        }
    };
    events.push(text_event(voice, filled_text(arguments, &["content"])));
}

fn written_arguments(arguments: &Value) -> Value {
    let members = arguments.as_object().into_iter().flatten();
    let own = members.filter(|(key, _)| WRITTEN.contains(&key.as_str()));
    Value::Object(
        own.map(|(k, v)| (k.clone(), v.clone()))
            .collect::<Map<_, _>>(),
    )
}
