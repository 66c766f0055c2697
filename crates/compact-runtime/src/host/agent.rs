//! The agents whose hooks are understood, and the shape in which each takes an answer.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

/// An agent that compacts by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code, also behind its SDKs.
    ClaudeCode,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    GeminiCli,
    /// opencode, through a plugin that we install.
    OpenCode,
}

impl Agent {
    /// Every agent.
    pub const ALL: [Agent; 4] = [
        Agent::ClaudeCode,
        Agent::Codex,
        Agent::GeminiCli,
        Agent::OpenCode,
    ];

    /// The name that `--agent` takes.
    pub fn name(self) -> &'static str {
        match self {
            Agent::ClaudeCode => "claude-code",
            Agent::Codex => "codex",
            Agent::GeminiCli => "gemini-cli",
            Agent::OpenCode => "opencode",
        }
    }

    /// The agent that sends such a payload, by what only it sends.
    pub(super) fn of(payload: &Value, event: &str) -> Agent {
        let has = |key: &str| payload.get(key).is_some();
        match event {
            "PreCompress" | "BeforeAgent" => Agent::GeminiCli,
            _ if has("turn_id") => Agent::Codex,
            _ => Agent::ClaudeCode,
        }
    }

    /// What to print before a compaction so that the summarizer reads it; nothing where an agent
    /// gives its summarizer nothing to read.
    pub fn instructions(self, text: String) -> String {
        match self {
            Agent::ClaudeCode | Agent::OpenCode => text,
            Agent::Codex | Agent::GeminiCli => String::new(),
        }
    }

    /// What to print so that the model reads it with the next request.
    pub fn context(self, event: &str, text: String) -> String {
        match self {
            Agent::OpenCode => text,
            Agent::ClaudeCode | Agent::Codex | Agent::GeminiCli => {
                let output = json!({ "hookEventName": event, "additionalContext": text });
                json!({ "hookSpecificOutput": output }).to_string()
            }
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Agent {
    type Err = String;

    fn from_str(name: &str) -> Result<Agent, String> {
        let known = || Agent::ALL.map(Agent::name).join(", ");
        Agent::ALL
            .into_iter()
            .find(|agent| agent.name() == name)
            .ok_or_else(|| format!("expected one of {}", known()))
    }
}
