//! What an agent tells its hook.
//!
//! The payload is read key by key: anything may be missing or of another type, since agents change
//! between versions and a hook that fails is worse than one that knows less.

use std::path::PathBuf;

use serde_json::Value;

use super::HookAgent;

/// One call of a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct HookPayload {
    /// Who calls.
    pub agent: HookAgent,
    /// The agent's own name of the moment.
    pub event: String,
    /// What the moment means to us.
    pub moment: HookMoment,
    /// The session, `unknown` when it has no name.
    pub session: String,
    /// What was said so far.
    pub transcript: HookTranscript,
    /// Where the agent works.
    pub folder: Option<PathBuf>,
    /// What set the compaction off, `unknown` when nobody says.
    pub trigger: String,
    /// The agent's own summary, where it hands it out.
    pub summary: Option<String>,
}

/// When a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookMoment {
    /// The agent is about to summarize.
    BeforeCompaction,
    /// The session goes on from a summary.
    Resumed,
    /// The summary is written.
    AfterCompaction,
    /// A person wrote a prompt.
    Prompt,
    /// Nothing that concerns us.
    Other,
}

/// Where the transcript is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookTranscript {
    /// Nobody says.
    Missing,
    /// In a file.
    File(PathBuf),
    /// In the payload itself, as JSON.
    Inline(Vec<u8>),
}

/// Why a payload cannot be used at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// It is not JSON.
    #[error("the agent's input is not JSON ({0}); nothing was done")]
    NotJson(String),
    /// It is JSON, but no object.
    #[error("the agent's input is not a JSON object; nothing was done")]
    NotAnObject,
    /// It does not say what happened.
    #[error("the agent's input has no hook_event_name; nothing was done")]
    NoEvent,
}

impl HookPayload {
    /// Reads a payload; `agent` is whom a person says it comes from.
    pub fn read(payload: &[u8], agent: Option<HookAgent>) -> Result<HookPayload, PayloadError> {
        let payload: Value = serde_json::from_slice(&compact_formats::readable_json(payload))
            .map_err(|error| PayloadError::NotJson(error.to_string()))?;
        if !payload.is_object() {
            return Err(PayloadError::NotAnObject);
        }
        let text = |key: &str| {
            let value = payload.get(key).and_then(Value::as_str);
            value.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let event = text("hook_event_name").ok_or(PayloadError::NoEvent)?;
        let folder = text("cwd").map(PathBuf::from);
        let file = text("transcript_path").map(|path| match &folder {
            Some(folder) => folder.join(path),
            None => PathBuf::from(path),
        });
        let inline = payload.get("transcript").filter(|value| value.is_object());
        Ok(HookPayload {
            agent: agent.unwrap_or_else(|| HookAgent::from_payload(&payload, &event)),
            moment: HookMoment::from_event(&event, text("source").as_deref()),
            session: text("session_id").unwrap_or_else(unknown),
            transcript: match (file, inline) {
                (Some(path), _) => HookTranscript::File(path),
                (None, Some(value)) => HookTranscript::Inline(value.to_string().into_bytes()),
                (None, None) => HookTranscript::Missing,
            },
            trigger: text("trigger").unwrap_or_else(unknown),
            summary: text("compact_summary"),
            folder,
            event,
        })
    }
}

impl HookMoment {
    fn from_event(event: &str, source: Option<&str>) -> HookMoment {
        match (event, source) {
            ("PreCompact" | "PreCompress", _) => HookMoment::BeforeCompaction,
            ("SessionStart", Some("compact")) => HookMoment::Resumed,
            ("PostCompact", _) => HookMoment::AfterCompaction,
            ("UserPromptSubmit" | "BeforeAgent", _) => HookMoment::Prompt,
            _ => HookMoment::Other,
        }
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}
