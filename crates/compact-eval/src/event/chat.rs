//! Chat messages as OpenAI shapes them, under whatever name their document has them.

use serde_json::Value;

use super::json::{first_filled, flatten_content, list_of, str_of, value_text};
use super::{call_event, text_event};
use crate::metric::{EventVoice, MetricEvent};

/// Returns the messages of a body, of a run, or of a list.
pub(super) fn read_messages(document: &Value) -> Vec<MetricEvent> {
    let named = ["messages", "traj"]
        .iter()
        .find_map(|key| document.get(key));
    let list = named.unwrap_or(document).as_array();
    list.into_iter().flatten().flat_map(read_message).collect()
}

/// Reads the events of one message.
pub(super) fn read_message(message: &Value) -> Vec<MetricEvent> {
    let content = flatten_content(message.get("content"));
    let voice = match str_of(message, "role") {
        "tool" => EventVoice::Result,
        "assistant" | "ai" => EventVoice::Assistant,
        "system" | "developer" => EventVoice::System,
        _ => EventVoice::User,
    };
    let mut events = vec![text_event(voice, content)];
    if voice == EventVoice::Assistant {
        events.extend(list_of(message, "tool_calls").iter().map(read_tool_call));
    }
    events
}

fn read_tool_call(call: &Value) -> MetricEvent {
    let function = first_filled(call, &["function"]).unwrap_or(call);
    call_event(
        str_of(function, "name"),
        &value_text(function.get("arguments")),
    )
}
