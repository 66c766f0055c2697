//! Any other agent: one process for a session, objects on stdin and stdout.
//!
//! `{"type":"prompt","text":…}` begins a turn, `{"type":"interrupt"}` asks it to end; the end of stdin
//! is the end of the session. What the agent answers is the dialect `Lines`.

use async_trait::async_trait;
use compact_formats::stream::{Activity, Dialect, Reader};
use compact_runtime::port::agent::{Agent, AgentError, AgentSession, Heard, Opening};
use serde_json::json;

use super::Launch;
use super::process::{Ask, Process};

/// An agent that speaks the small protocol.
#[derive(Clone, Debug)]
pub struct Lines(pub Launch);

#[async_trait]
impl Agent for Lines {
    fn name(&self) -> &str {
        &self.0.command
    }

    fn resumes(&self) -> bool {
        false
    }

    async fn open(
        &self,
        opening: Opening<'_>,
        prompt: &str,
    ) -> Result<Box<dyn AgentSession>, AgentError> {
        if let Opening::Resumed(id) = opening {
            return Err(AgentError::NoSession(id.to_owned()));
        }
        let arguments: Vec<&str> = self.0.arguments.iter().map(String::as_str).collect();
        let mut session = Talk::new(
            Process::spawn(&self.0, &arguments)?,
            Dialect::Lines,
            Protocol {
                prompt: |text| json!({"type": "prompt", "text": text}).to_string(),
                interrupt: || json!({"type": "interrupt"}).to_string(),
            },
        );
        session.say(prompt).await?;
        Ok(Box::new(session))
    }
}

/// How a process is spoken to.
pub(super) struct Protocol {
    /// Begins a turn.
    pub prompt: fn(&str) -> String,
    /// Ends it.
    pub interrupt: fn() -> String,
}

/// Whether a turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Something,
    Nothing,
}

/// A session that is one process, spoken to in lines.
pub(super) struct Talk {
    process: Process,
    protocol: Protocol,
    ear: Ear,
    doing: Doing,
}

impl Talk {
    pub fn new(process: Process, dialect: Dialect, protocol: Protocol) -> Talk {
        Talk {
            process,
            protocol,
            ear: Ear::new(dialect),
            doing: Doing::Nothing,
        }
    }
}

#[async_trait]
impl AgentSession for Talk {
    async fn next(&mut self) -> Result<Heard, AgentError> {
        let Some(line) = self.process.line().await? else {
            return Err(self.ear.silence(self.process.farewell().await));
        };
        let heard = self.ear.hear(line)?;
        if heard
            .told
            .iter()
            .any(|told| matches!(told, Activity::Ended(_)))
        {
            self.doing = Doing::Nothing;
        }
        Ok(heard)
    }

    async fn say(&mut self, prompt: &str) -> Result<(), AgentError> {
        self.doing = Doing::Something;
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
        self.process.hang_up();
        if self.doing == Doing::Something || !self.process.ends().await {
            self.process.end(Ask::Interrupt).await;
        }
    }
}

/// Lines that are no stream before the first that is, after which nothing else is expected.
const PATIENCE: usize = 20;

/// Reads lines, and bears a few that are none: programs print warnings where they should not.
pub(super) struct Ear {
    reader: Reader,
    strange: Vec<AgentError>,
    known: usize,
}

impl Ear {
    pub fn new(dialect: Dialect) -> Ear {
        Ear {
            reader: Reader::new(dialect),
            strange: Vec::new(),
            known: 0,
        }
    }

    pub fn hear(&mut self, line: String) -> Result<Heard, AgentError> {
        match self.reader.read(&line) {
            Ok(told) => {
                self.known += 1;
                let line = Some(line);
                Ok(Heard { line, told })
            }
            Err(error) => {
                if self.known == 0 && !line.trim().is_empty() {
                    self.strange.push(error.into());
                }
                if self.strange.len() > PATIENCE {
                    return Err(self.strange.swap_remove(0));
                }
                Ok(Heard {
                    line: Some(line),
                    told: Vec::new(),
                })
            }
        }
    }

    /// Why a stream ended: if none of it could be read, that is why.
    pub fn silence(&mut self, farewell: AgentError) -> AgentError {
        match self.known == 0 && !self.strange.is_empty() {
            true => self.strange.swap_remove(0),
            false => farewell,
        }
    }
}
