//! Any other agent: one process for a session, objects on stdin and stdout.
//!
//! `{"type":"prompt","text":…}` begins a turn, `{"type":"interrupt"}` asks it to end; the end of stdin
//! is the end of the session. What the agent answers is the dialect `Lines`.

use async_trait::async_trait;
use compact_formats::stream::{AgentActivity, StreamDialect, StreamReader};
use compact_runtime::port::agent::{
    AgentError, AgentOutput, AgentProgram, AgentSession, SessionOpening,
};
use serde_json::json;

use super::Launch;
use super::process::{AgentProcess, ProcessSignal};

/// An agent that speaks the small protocol.
#[derive(Clone, Debug)]
pub struct LineAgent(pub Launch);

#[async_trait]
impl AgentProgram for LineAgent {
    fn name(&self) -> &str {
        &self.0.command
    }

    fn can_resume(&self) -> bool {
        false
    }

    async fn open(
        &self,
        opening: SessionOpening<'_>,
        prompt: &str,
    ) -> Result<Box<dyn AgentSession>, AgentError> {
        if let SessionOpening::Resumed(id) = opening {
            return Err(AgentError::NoSession(id.to_owned()));
        }
        let arguments: Vec<&str> = self.0.arguments.iter().map(String::as_str).collect();
        let mut session = LineSession::new(
            AgentProcess::spawn(&self.0, &arguments)?,
            StreamDialect::Lines,
            LineProtocol {
                prompt: |text| json!({"type": "prompt", "text": text}).to_string(),
                interrupt: || json!({"type": "interrupt"}).to_string(),
            },
        );
        session.send_prompt(prompt).await?;
        Ok(Box::new(session))
    }
}

/// The lines that begin and end a turn of a process.
pub(super) struct LineProtocol {
    /// Formats the line that begins a turn.
    pub prompt: fn(&str) -> String,
    /// Formats the line that ends a turn early.
    pub interrupt: fn() -> String,
}

/// Whether a turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnActivity {
    Running,
    Idle,
}

/// A session that is one process, spoken to in lines.
pub(super) struct LineSession {
    process: AgentProcess,
    protocol: LineProtocol,
    ear: TolerantReader,
    doing: TurnActivity,
}

impl LineSession {
    pub(super) fn new(
        process: AgentProcess,
        dialect: StreamDialect,
        protocol: LineProtocol,
    ) -> LineSession {
        LineSession {
            process,
            protocol,
            ear: TolerantReader::new(dialect),
            doing: TurnActivity::Idle,
        }
    }
}

#[async_trait]
impl AgentSession for LineSession {
    async fn next(&mut self) -> Result<AgentOutput, AgentError> {
        let Some(line) = self.process.next_line().await? else {
            return Err(self.ear.explain_end(self.process.exit_error().await));
        };
        let heard = self.ear.read_line(line)?;
        if heard
            .told
            .iter()
            .any(|told| matches!(told, AgentActivity::Ended(_)))
        {
            self.doing = TurnActivity::Idle;
        }
        Ok(heard)
    }

    async fn send_prompt(&mut self, prompt: &str) -> Result<(), AgentError> {
        self.doing = TurnActivity::Running;
        let line = (self.protocol.prompt)(prompt);
        // One that is gone already says why when it is heard.
        match self.process.send(&line).await {
            Err(AgentError::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent,
        }
    }

    async fn interrupt(&mut self) -> Result<(), AgentError> {
        let line = (self.protocol.interrupt)();
        self.process.send(&line).await
    }

    async fn close(&mut self) {
        self.process.close_stdin();
        if self.doing == TurnActivity::Running || !self.process.wait_for_exit().await {
            self.process.stop_group(ProcessSignal::Interrupt).await;
        }
    }
}

/// Lines that are no stream before the first that is, after which nothing else is expected.
const MAX_STRANGE_LINES: usize = 20;

/// Reads lines, and bears a few that are none: programs print warnings where they should not.
pub(super) struct TolerantReader {
    reader: StreamReader,
    strange: Vec<AgentError>,
    known: usize,
}

impl TolerantReader {
    pub(super) fn new(dialect: StreamDialect) -> TolerantReader {
        TolerantReader {
            reader: StreamReader::new(dialect),
            strange: Vec::new(),
            known: 0,
        }
    }

    pub(super) fn read_line(&mut self, line: String) -> Result<AgentOutput, AgentError> {
        match self.reader.read_line(&line) {
            Ok(told) => {
                self.known += 1;
                let line = Some(line);
                Ok(AgentOutput { line, told })
            }
            Err(error) => {
                if self.known == 0 && !line.trim().is_empty() {
                    self.strange.push(error.into());
                }
                if self.strange.len() > MAX_STRANGE_LINES {
                    return Err(self.strange.swap_remove(0));
                }
                Ok(AgentOutput {
                    line: Some(line),
                    told: Vec::new(),
                })
            }
        }
    }

    /// Why a stream ended: if none of it could be read, that is why.
    pub(super) fn explain_end(&mut self, farewell: AgentError) -> AgentError {
        match self.known == 0 && !self.strange.is_empty() {
            true => self.strange.swap_remove(0),
            false => farewell,
        }
    }
}
