//! Claude Code: one process for a session, `stream-json` both ways.

use async_trait::async_trait;
use compact_formats::stream::Dialect;
use compact_runtime::port::agent::{Agent, AgentError, AgentSession, Opening};
use serde_json::json;

use super::Launch;
use super::lines::{Protocol, Talk};
use super::process::Process;

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

/// Claude Code.
#[derive(Clone, Debug)]
pub struct ClaudeCode(pub Launch);

#[async_trait]
impl Agent for ClaudeCode {
    fn name(&self) -> &str {
        &self.0.command
    }

    fn resumes(&self) -> bool {
        true
    }

    async fn open(
        &self,
        opening: Opening<'_>,
        prompt: &str,
    ) -> Result<Box<dyn AgentSession>, AgentError> {
        let mut arguments = STREAM.to_vec();
        if let Opening::Resumed(id) = opening {
            arguments.extend(["--resume", id]);
        }
        arguments.extend(self.0.arguments.iter().map(String::as_str));
        let mut launch = self.0.clone();
        let (key, value) = NO_COMPACTION;
        launch.environment.push((key.to_owned(), value.to_owned()));
        let process = Process::spawn(&launch, &arguments)?;
        let protocol = Protocol {
            prompt: said,
            interrupt,
        };
        let mut session = Talk::new(process, Dialect::ClaudeCode, protocol);
        session.say(prompt).await?;
        Ok(Box::new(session))
    }
}

fn said(text: &str) -> String {
    json!({"type": "user", "message": {"role": "user", "content": text}}).to_string()
}

fn interrupt() -> String {
    let request = json!({"subtype": "interrupt"});
    json!({"type": "control_request", "request_id": "compact", "request": request}).to_string()
}
