//! Claude Code: one process for a session, `stream-json` both ways.

use async_trait::async_trait;
use compact_formats::stream::StreamDialect;
use compact_runtime::port::agent::{AgentError, AgentProgram, AgentSession, SessionOpening};
use serde_json::json;

use super::Launch;
use super::line_agent::{LineProtocol, LineSession};
use super::process::AgentProcess;

const STREAM: [&str; 6] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
];

/// Keeps it from compacting by itself.
const NO_COMPACTION: (&str, &str) = ("DISABLE_AUTO_COMPACT", "1");

/// Runs Claude Code as a program that reads and prints JSON lines.
#[derive(Clone, Debug)]
pub struct ClaudeCodeAgent(pub Launch);

#[async_trait]
impl AgentProgram for ClaudeCodeAgent {
    fn name(&self) -> &str {
        &self.0.command
    }

    fn can_resume(&self) -> bool {
        true
    }

    async fn open(
        &self,
        opening: SessionOpening<'_>,
        prompt: &str,
    ) -> Result<Box<dyn AgentSession>, AgentError> {
        let mut arguments = STREAM.to_vec();
        if let SessionOpening::Resumed(id) = opening {
            arguments.extend(["--resume", id]);
        }
        arguments.extend(self.0.arguments.iter().map(String::as_str));
        let mut launch = self.0.clone();
        let (key, value) = NO_COMPACTION;
        launch.environment.push((key.to_owned(), value.to_owned()));
        let process = AgentProcess::spawn(&launch, &arguments)?;
        let protocol = LineProtocol {
            prompt: prompt_message,
            interrupt: interrupt_message,
        };
        let mut session = LineSession::new(process, StreamDialect::ClaudeCode, protocol);
        session.send_prompt(prompt).await?;
        Ok(Box::new(session))
    }
}

fn prompt_message(text: &str) -> String {
    json!({"type": "user", "message": {"role": "user", "content": text}}).to_string()
}

fn interrupt_message() -> String {
    let request = json!({"subtype": "interrupt"});
    json!({"type": "control_request", "request_id": "compact", "request": request}).to_string()
}
