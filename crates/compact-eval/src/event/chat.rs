//! Chat messages as OpenAI shapes them, under whatever name their document has them.

use serde_json::Value;

use super::json::{dump, first_filled, flat, list_of, str_of};
use super::{called, said};
use crate::metric::{Event, Voice};

/// The messages of a body, of a run, or of a list.
pub(super) fn messages(document: &Value) -> Vec<Event> {
    let named = ["messages", "traj"]
        .iter()
        .find_map(|key| document.get(key));
    let list = named.unwrap_or(document).as_array();
    list.into_iter().flatten().flat_map(message).collect()
}

/// One message.
pub(super) fn message(message: &Value) -> Vec<Event> {
    let content = flat(message.get("content"));
    let voice = match str_of(message, "role") {
        "tool" => Voice::Result,
        "assistant" | "ai" => Voice::Assistant,
        "system" | "developer" => Voice::System,
        _ => Voice::User,
    };
    let mut events = vec![said(voice, content)];
    if voice == Voice::Assistant {
        events.extend(list_of(message, "tool_calls").iter().map(call));
    }
    events
}

fn call(call: &Value) -> Event {
    let function = first_filled(call, &["function"]).unwrap_or(call);
    called(str_of(function, "name"), &dump(function.get("arguments")))
}
