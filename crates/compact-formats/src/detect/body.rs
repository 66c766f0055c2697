//! Tells the request bodies of one provider from those of another.
//!
//! Two wires call their list `messages` and look alike until tools are used, so their own words
//! decide: the names of members and of blocks that only one of them has.

use super::{Clues, calls_tools};
use crate::Format;

/// Strings that only Anthropic's bodies hold as a whole.
const ANTHROPIC: [&str; 5] = [
    "\"tool_use_id\"",
    "\"tool_use\"",
    "\"input_schema\"",
    "\"redacted_thinking\"",
    "\"anthropic_version\"",
];

/// Strings that only items of OpenAI's Responses hold as a whole.
const RESPONSES: [&str; 5] = [
    "\"call_id\"",
    "\"input_text\"",
    "\"output_text\"",
    "\"summary_text\"",
    "\"encrypted_content\"",
];

/// The format of an object whose members name a provider's request.
pub(super) fn of_request(clues: &Clues) -> Option<Format> {
    let is_request = clues.kind.is_empty() && !clues.has("role") && !clues.has("messages");
    let named = [
        ("contents", Format::Gemini),
        ("input", Format::OpenAiResponses),
    ];
    let mut known = named.into_iter().filter(|(key, _)| clues.has(key));
    known
        .next()
        .filter(|_| is_request)
        .map(|(_, format)| format)
}

/// The format of a body with `messages`.
pub(super) fn of_messages(body: &[u8]) -> Format {
    if calls_tools(body) {
        return Format::OpenAiChat;
    }
    // Members after the messages tell, too, so the whole body is looked at.
    let is_anthropic = || {
        let clues = Clues::of(body).0;
        clues.has("system") || clues.has("stop_sequences")
    };
    if holds(body, &ANTHROPIC) || is_anthropic() {
        return Format::Anthropic;
    }
    Format::OpenAiChat
}

/// The format of a list whose first element has these clues.
pub(super) fn of_list(first: &Clues, body: &[u8]) -> Format {
    if first.has("parts") {
        return Format::Gemini;
    }
    let is_item = !first.kind.is_empty() && !first.has("content") || first.kind == "message";
    if is_item || holds(body, &RESPONSES) {
        return Format::OpenAiResponses;
    }
    if calls_tools(body) {
        return Format::OpenAiChat;
    }
    if holds(body, &ANTHROPIC) {
        return Format::Anthropic;
    }
    Format::Messages
}

/// Only a JSON string, never the inside of one, has these bytes between two bare quotes.
fn holds(body: &[u8], words: &[&str]) -> bool {
    words
        .iter()
        .any(|word| memchr::memmem::find(body, word.as_bytes()).is_some())
}
