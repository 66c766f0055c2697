//! Codex rollouts. What it compacts to is encrypted; the visible part is its replacement history.

use serde_json::Value;

use super::json::{dump, first_filled, flat, list_of, str_of};
use super::{called, said};
use crate::metric::{Event, Voice};

/// A line of a rollout.
pub(super) fn line(line: &Value) -> Vec<Event> {
    let none = Value::Null;
    let payload = line.get("payload").unwrap_or(&none);
    match str_of(line, "type") {
        "session_meta" => vec![said(Voice::System, instructions(payload))],
        "compacted" => vec![
            said(Voice::Boundary, ""),
            said(Voice::Summary, replacement(payload)),
        ],
        "response_item" => item(payload).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn instructions(meta: &Value) -> String {
    let base = meta.get("base_instructions");
    let base = base.and_then(|b| first_filled(b, &["text"]));
    flat(base.or_else(|| first_filled(meta, &["instructions"])))
}

fn replacement(compacted: &Value) -> String {
    let history = list_of(compacted, "replacement_history").iter();
    let texts: Vec<String> = history.map(|i| flat(i.get("content"))).collect();
    format!("{}\n{}", str_of(compacted, "message"), texts.join("\n"))
}

fn item(item: &Value) -> Option<Event> {
    let kind = str_of(item, "type");
    match kind {
        "message" => {
            let voice = match str_of(item, "role") {
                "assistant" => Voice::Assistant,
                "user" => Voice::User,
                _ => Voice::System,
            };
            Some(said(voice, flat(item.get("content"))))
        }
        "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call"
        | "web_search_call" => {
            let name = first_filled(item, &["name"]).and_then(Value::as_str);
            let arguments = first_filled(item, &["arguments", "input", "action"]);
            let arguments = arguments.map_or_else(String::new, |a| dump(Some(a)));
            Some(called(name.unwrap_or(kind), &arguments))
        }
        _ if kind.ends_with("_output") => {
            let output = item.get("output");
            let text = match output {
                Some(Value::Object(_)) => dump(output),
                _ => flat(output),
            };
            Some(said(Voice::Result, text))
        }
        _ => None,
    }
}
