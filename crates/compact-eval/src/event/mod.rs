//! Transcripts as the metric reads them: one event per text, call and result.
//!
//! The readers of `compact-formats` keep everything a resumed session needs; the metric wants only
//! what the model was shown, and the same of every agent: no reasoning, no sub-agents' lines, calls
//! as `name arguments`. So the known agents' files are read here again, each by a small function of
//! its JSON; every other format goes through the conversation that `compact-formats` makes of it.

mod chat;
mod codex;
mod conversation;
mod document_agents;
mod json;
mod line_agents;

use compact_formats::{Format, FormatError, SessionSlice, TranscriptScope, sessions};

use crate::metric::{EventVoice, MetricEvent};

/// Returns the sessions of a file as events. A session that cannot be read is an error of the whole file.
pub fn read_transcript(bytes: &[u8]) -> Result<Vec<Vec<MetricEvent>>, FormatError> {
    let slices = sessions(bytes, None)?;
    slices
        .iter()
        .map(|slice| read_slice(bytes, slice))
        .collect()
}

fn read_slice(bytes: &[u8], slice: &SessionSlice) -> Result<Vec<MetricEvent>, FormatError> {
    let session = bytes.get(slice.span.clone()).unwrap_or_default();
    let mut events = match slice.format {
        Format::ClaudeCode => json::parse_lines(session)
            .iter()
            .flat_map(line_agents::read_claude_code)
            .collect(),
        Format::Pi => json::parse_lines(session)
            .iter()
            .flat_map(line_agents::read_pi)
            .collect(),
        Format::Copilot => json::parse_lines(session)
            .iter()
            .flat_map(line_agents::read_copilot)
            .collect(),
        Format::CodexRollout => json::parse_lines(session)
            .iter()
            .flat_map(codex::read_rollout_line)
            .collect(),
        Format::GeminiCli => json::parse_document(session)
            .map_or_else(Vec::new, |d| document_agents::read_gemini_cli(&d)),
        Format::OpenCode => json::parse_document(session)
            .map_or_else(Vec::new, |d| document_agents::read_opencode(&d)),
        Format::SweAgent => json::parse_document(session)
            .map_or_else(Vec::new, |d| document_agents::read_swe_agent(&d)),
        Format::OpenHands => json::parse_document(session)
            .map_or_else(Vec::new, |d| document_agents::read_openhands(&d)),
        Format::OpenAiChat | Format::TauBench => match json::parse_document(session) {
            Some(document) => chat::read_messages(&document),
            None => json::parse_lines(session)
                .iter()
                .flat_map(chat::read_message)
                .collect(),
        },
        format => conversation::read_entries(session, format, TranscriptScope::Whole)?,
    };
    events.shrink_to_fit();
    Ok(events)
}

/// Returns a text event.
fn text_event(voice: EventVoice, text: impl Into<String>) -> MetricEvent {
    MetricEvent::new(voice, text)
}

/// Returns a call: its name and arguments.
fn call_event(name: &str, arguments: &str) -> MetricEvent {
    MetricEvent::new(EventVoice::Call, format!("{name} {arguments}"))
}
