//! Documents with nothing said in them yet.

use compact_core::message::Conversation;
use serde_json::{Value, json};

use super::Circumstances;
use crate::error::FormatError;
use crate::source::SourceLayout;
use crate::{Document, Format, TranscriptScope, fresh};

/// Returns a document of a format that names the session and the model and holds no entry.
pub(super) fn document(
    circumstances: &Circumstances,
    conversation: &Conversation,
    format: Format,
) -> Result<Document, FormatError> {
    let (source, is_head) = source(circumstances, conversation, format);
    let layout = if is_head {
        (format.wire().read)(source.as_bytes(), TranscriptScope::Whole)?.layout
    } else {
        SourceLayout::Lines {
            lines: Vec::new(),
            live_from: 0,
        }
    };
    Ok(Document::blank(format, source, layout))
}

/// Returns the bytes, and whether they are the head of the document or only tell how its lines look.
fn source(
    circumstances: &Circumstances,
    conversation: &Conversation,
    format: Format,
) -> (String, bool) {
    let model = conversation.model.as_deref().unwrap_or_default();
    let named = conversation.session_id.clone();
    let session =
        named.unwrap_or_else(|| fresh::stable_uuid("session", conversation.entries.len()));
    let moment = circumstances.first_moment().unwrap_or(fresh::EPOCH);
    let (moment, folder) = (moment.trim_matches('"'), circumstances.folder());
    let line = |value: Value| (format!("{value}\n"), true);
    let document = |value: Value| (value.to_string(), true);
    match format {
        Format::OpenAiChat => document(chat_body(conversation, model)),
        Format::Anthropic => document(json!({"model": model, "max_tokens": 4096, "messages": []})),
        Format::OpenAiResponses => document(json!({"model": model, "input": []})),
        Format::Gemini => document(json!({"model": model, "contents": []})),
        Format::TauBench => document(json!({"traj": []})),
        Format::SweAgent => document(json!({"trajectory": [], "history": [], "info": {}})),
        Format::Messages | Format::OpenHands => ("[]".to_owned(), true),
        Format::MessagesJsonl => ("\n".to_owned(), false),
        Format::ClaudeCode => (
            format!(
                "{}\n",
                json!({"uuid": "", "sessionId": session, "timestamp": moment, "cwd": folder})
            ),
            false,
        ),
        Format::CodexRollout => line(json!({
            "timestamp": moment, "type": "session_meta",
            "payload": {"id": session, "timestamp": moment, "cwd": folder},
        })),
        Format::GeminiCli => document(json!({
            "sessionId": session, "projectHash": "", "startTime": moment, "lastUpdated": moment,
            "messages": [],
        })),
        Format::OpenCode => document(json!({
            "info": {"id": session, "title": "", "version": "", "time": {"created": 0, "updated": 0}},
            "messages": [],
        })),
        Format::Pi => line(json!({
            "type": "session", "version": 3, "id": session, "timestamp": moment, "cwd": folder,
        })),
        Format::Copilot => line(json!({
            "type": "session.start", "data": {"sessionId": session, "version": 1}, "id": session,
            "timestamp": moment, "parentId": null,
        })),
    }
}

/// Returns a request body; tool schemas go along when they are of this provider's shape.
fn chat_body(conversation: &Conversation, model: &str) -> Value {
    let mut body = json!({"model": model, "messages": []});
    let tools = conversation.tools.as_deref();
    let tools = tools.and_then(|tools| serde_json::from_str::<Value>(tools).ok());
    if let Some(tools) = tools.filter(|tools| tools.pointer("/0/function").is_some())
        && let Some(members) = body.as_object_mut()
    {
        members.insert("tools".to_owned(), tools);
    }
    body
}
