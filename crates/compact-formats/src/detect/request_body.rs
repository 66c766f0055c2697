//! Tells the request bodies of one provider from those of another.
//!
//! Two wires call their list `messages` and look alike until tools are used, so their own words
//! decide: the names of members and of blocks that only one of them has.

use super::{FormatClues, calls_tools};
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

/// Returns the format of a body with `messages`.
pub(super) fn format_of_messages(body: &[u8]) -> Format {
    if calls_tools(body) {
        return Format::OpenAiChat;
    }
    // Members after the messages tell, too, so the whole body is looked at.
    let is_anthropic = || {
        let clues = FormatClues::from_object(body).0;
        clues.has_member("system") || clues.has_member("stop_sequences")
    };
    if contains_any(body, &ANTHROPIC) || is_anthropic() {
        return Format::Anthropic;
    }
    Format::OpenAiChat
}

/// Returns the format of a list whose first element has these clues.
pub(super) fn format_of_message_list(first: &FormatClues, body: &[u8]) -> Format {
    if first.has_member("parts") {
        return Format::Gemini;
    }
    let is_item = !first.kind.is_empty() && !first.has_member("content") || first.kind == "message";
    if is_item || contains_any(body, &RESPONSES) {
        return Format::OpenAiResponses;
    }
    if calls_tools(body) {
        return Format::OpenAiChat;
    }
    if contains_any(body, &ANTHROPIC) {
        return Format::Anthropic;
    }
    Format::Messages
}

/// Returns whether a body contains one of these quoted words. Only a whole JSON string, never part of one,
/// stands between two bare quotes.
fn contains_any(body: &[u8], words: &[&str]) -> bool {
    words
        .iter()
        .any(|word| memchr::memmem::find(body, word.as_bytes()).is_some())
}
