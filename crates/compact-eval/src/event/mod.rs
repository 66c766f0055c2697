//! Transcripts as the metric reads them: one event per text, call and result.
//!
//! The readers of `compact-formats` keep everything a resumed session needs; the metric wants only
//! what the model was shown, and the same of every agent: no reasoning, no sub-agents' lines, calls
//! as `name arguments`. So the known agents' files are read here again, each by a small function of
//! its JSON; every other format goes through the conversation that `compact-formats` makes of it.

mod agent;
mod chat;
mod codex;
mod conversation;
mod json;
mod run;

use compact_formats::{Format, FormatError, Scope, SessionSlice, sessions};

use crate::metric::{Event, Voice};

/// The sessions of a file as events. A session that cannot be read is an error of the whole file.
pub fn read(bytes: &[u8]) -> Result<Vec<Vec<Event>>, FormatError> {
    let slices = sessions(bytes, None)?;
    slices.iter().map(|slice| of_slice(bytes, slice)).collect()
}

fn of_slice(bytes: &[u8], slice: &SessionSlice) -> Result<Vec<Event>, FormatError> {
    let session = bytes.get(slice.span.clone()).unwrap_or_default();
    let mut events = match slice.format {
        Format::ClaudeCode => json::lines(session)
            .iter()
            .flat_map(agent::claude_code)
            .collect(),
        Format::Pi => json::lines(session).iter().flat_map(agent::pi).collect(),
        Format::Copilot => json::lines(session)
            .iter()
            .flat_map(agent::copilot)
            .collect(),
        Format::CodexRollout => json::lines(session).iter().flat_map(codex::line).collect(),
        Format::GeminiCli => json::document(session).map_or_else(Vec::new, |d| run::gemini_cli(&d)),
        Format::OpenCode => json::document(session).map_or_else(Vec::new, |d| run::opencode(&d)),
        Format::SweAgent => json::document(session).map_or_else(Vec::new, |d| run::swe_agent(&d)),
        Format::OpenHands => json::document(session).map_or_else(Vec::new, |d| run::openhands(&d)),
        Format::OpenAiChat | Format::TauBench => match json::document(session) {
            Some(document) => chat::messages(&document),
            None => json::lines(session)
                .iter()
                .flat_map(chat::message)
                .collect(),
        },
        format => conversation::events(session, format, Scope::Whole)?,
    };
    events.shrink_to_fit();
    Ok(events)
}

/// A text event.
fn said(voice: Voice, text: impl Into<String>) -> Event {
    Event::new(voice, text)
}

/// A call: its name and arguments.
fn called(name: &str, arguments: &str) -> Event {
    Event::new(Voice::Call, format!("{name} {arguments}"))
}
