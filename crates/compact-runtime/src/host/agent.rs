//! The agents whose hooks are understood, and the shape in which each takes an answer.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

/// An agent that compacts by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookAgent {
    /// Claude Code, also behind its SDKs.
    ClaudeCode,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    GeminiCli,
    /// opencode, through a plugin that we install.
    OpenCode,
}

impl HookAgent {
    /// Every agent.
    pub const ALL: [HookAgent; 4] = [
        HookAgent::ClaudeCode,
        HookAgent::Codex,
        HookAgent::GeminiCli,
        HookAgent::OpenCode,
    ];

    /// The name that `--agent` takes.
    pub fn name(self) -> &'static str {
        match self {
            HookAgent::ClaudeCode => "claude-code",
            HookAgent::Codex => "codex",
            HookAgent::GeminiCli => "gemini-cli",
            HookAgent::OpenCode => "opencode",
        }
    }

    /// The agent that sends such a payload, by what only it sends.
    pub(super) fn from_payload(payload: &Value, event: &str) -> HookAgent {
        let has = |key: &str| payload.get(key).is_some();
        match event {
            "PreCompress" | "BeforeAgent" => HookAgent::GeminiCli,
            _ if has("turn_id") => HookAgent::Codex,
            _ => HookAgent::ClaudeCode,
        }
    }

    /// What to print before a compaction so that the summarizer reads it; nothing where an agent
    /// gives its summarizer nothing to read.
    pub fn format_instructions(self, text: String) -> String {
        match self {
            HookAgent::ClaudeCode | HookAgent::OpenCode => text,
            HookAgent::Codex | HookAgent::GeminiCli => String::new(),
        }
    }

    /// What to print so that the model reads it with the next request.
    pub fn format_context(self, event: &str, text: String) -> String {
        match self {
            HookAgent::OpenCode => text,
            HookAgent::ClaudeCode | HookAgent::Codex | HookAgent::GeminiCli => {
                let output = json!({ "hookEventName": event, "additionalContext": text });
                json!({ "hookSpecificOutput": output }).to_string()
            }
        }
    }
}

impl fmt::Display for HookAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for HookAgent {
    type Err = String;

    fn from_str(name: &str) -> Result<HookAgent, String> {
        let known = || HookAgent::ALL.map(HookAgent::name).join(", ");
        HookAgent::ALL
            .into_iter()
            .find(|agent| agent.name() == name)
            .ok_or_else(|| format!("expected one of {}", known()))
    }
}
