//! Codex rollouts. What it compacts to is encrypted; the visible part is its replacement history.

use serde_json::Value;

use super::json::{first_filled, flatten_content, list_of, str_of, value_text};
use super::{call_event, text_event};
use crate::metric::{EventVoice, MetricEvent};

/// Returns a line of a rollout.
pub(super) fn read_rollout_line(line: &Value) -> Vec<MetricEvent> {
    let none = Value::Null;
    let payload = line.get("payload").unwrap_or(&none);
    match str_of(line, "type") {
        "session_meta" => vec![text_event(EventVoice::System, read_instructions(payload))],
        "compacted" => vec![
            text_event(EventVoice::Boundary, ""),
            text_event(EventVoice::Summary, read_replacement(payload)),
        ],
        "response_item" => read_item(payload).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn read_instructions(meta: &Value) -> String {
    let base = meta.get("base_instructions");
    let base = base.and_then(|b| first_filled(b, &["text"]));
    flatten_content(base.or_else(|| first_filled(meta, &["instructions"])))
}

fn read_replacement(compacted: &Value) -> String {
    let history = list_of(compacted, "replacement_history").iter();
    let texts: Vec<String> = history.map(|i| flatten_content(i.get("content"))).collect();
    format!("{}\n{}", str_of(compacted, "message"), texts.join("\n"))
}

fn read_item(item: &Value) -> Option<MetricEvent> {
    let kind = str_of(item, "type");
    match kind {
        "message" => {
            let voice = match str_of(item, "role") {
                "assistant" => EventVoice::Assistant,
                "user" => EventVoice::User,
                _ => EventVoice::System,
            };
            Some(text_event(voice, flatten_content(item.get("content"))))
        }
        "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call"
        | "web_search_call" => {
            let name = first_filled(item, &["name"]).and_then(Value::as_str);
            let arguments = first_filled(item, &["arguments", "input", "action"]);
            let arguments = arguments.map_or_else(String::new, |a| value_text(Some(a)));
            Some(call_event(name.unwrap_or(kind), &arguments))
        }
        _ if kind.ends_with("_output") => {
            let output = item.get("output");
            let text = match output {
                Some(Value::Object(_)) => value_text(output),
                _ => flatten_content(output),
            };
            Some(text_event(EventVoice::Result, text))
        }
        _ => None,
    }
}
