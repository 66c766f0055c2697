//! An agent for tests: it does what a script says, and remembers what it was told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use compact_formats::stream::{AgentActivity, TurnEnd};

use super::{AgentError, AgentOutput, AgentProgram, AgentSession, SessionOpening};

/// One thing that a scripted agent does.
#[derive(Debug)]
pub enum AgentStep {
    /// Tells something.
    Tells(AgentActivity),
    /// Prints a line that tells nothing.
    Prints(&'static str),
    /// Works for so long before its next step.
    Works(Duration),
    /// Says nothing more until it is interrupted or closed.
    Hangs,
    /// Ends in the middle of its turn.
    Breaks(AgentError),
}

type AgentScript = dyn Fn(&ScriptedPrompt) -> Vec<AgentStep> + Send + Sync;

/// What a session was told, as its script sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedPrompt {
    /// The session, from 1.
    pub session: usize,
    /// The turn of the session, from 1.
    pub turn: usize,
    /// The session that it takes up again.
    pub resumed: Option<String>,
    /// The prompt.
    pub prompt: String,
}

/// The agent.
#[derive(Clone)]
pub struct ScriptedAgent {
    script: Arc<AgentScript>,
    heard: Arc<Mutex<Vec<ScriptedPrompt>>>,
}

impl ScriptedAgent {
    /// An agent whose turns are what `script` makes of each prompt.
    pub fn new(
        script: impl Fn(&ScriptedPrompt) -> Vec<AgentStep> + Send + Sync + 'static,
    ) -> ScriptedAgent {
        ScriptedAgent {
            script: Arc::new(script),
            heard: Arc::default(),
        }
    }

    /// Everything that it was told.
    pub fn received_prompts(&self) -> Vec<ScriptedPrompt> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.clone()
    }

    fn steps_for(&self, told: ScriptedPrompt) -> VecDeque<AgentStep> {
        let steps = (self.script)(&told);
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push(told);
        steps.into()
    }

    fn session_count(&self) -> usize {
        self.received_prompts()
            .iter()
            .map(|told| told.session)
            .max()
            .unwrap_or(0)
    }
}

#[async_trait]
impl AgentProgram for ScriptedAgent {
    fn name(&self) -> &str {
        "scripted"
    }

    fn can_resume(&self) -> bool {
        true
    }

    async fn open(
        &self,
        opening: SessionOpening<'_>,
        prompt: &str,
    ) -> Result<Box<dyn AgentSession>, AgentError> {
        let told = ScriptedPrompt {
            session: self.session_count() + 1,
            turn: 1,
            resumed: match opening {
                SessionOpening::Fresh => None,
                SessionOpening::Resumed(id) => Some(id.to_owned()),
            },
            prompt: prompt.to_owned(),
        };
        Ok(Box::new(ScriptedSession {
            agent: self.clone(),
            steps: self.steps_for(told.clone()),
            told,
        }))
    }
}

struct ScriptedSession {
    agent: ScriptedAgent,
    told: ScriptedPrompt,
    steps: VecDeque<AgentStep>,
}

#[async_trait]
impl AgentSession for ScriptedSession {
    async fn next(&mut self) -> Result<AgentOutput, AgentError> {
        let hangs = matches!(self.steps.front(), None | Some(AgentStep::Hangs));
        if hangs {
            return std::future::pending().await;
        }
        match self.steps.pop_front() {
            Some(AgentStep::Tells(activity)) => Ok(AgentOutput {
                line: Some(format!("{activity:?}")),
                told: vec![activity],
            }),
            Some(AgentStep::Prints(line)) => Ok(AgentOutput {
                line: Some(line.to_owned()),
                told: Vec::new(),
            }),
            Some(AgentStep::Breaks(error)) => Err(error),
            Some(AgentStep::Works(time)) => {
                tokio::time::sleep(time).await;
                Ok(AgentOutput::default())
            }
            None | Some(AgentStep::Hangs) => Ok(AgentOutput::default()),
        }
    }

    async fn send_prompt(&mut self, prompt: &str) -> Result<(), AgentError> {
        self.told = ScriptedPrompt {
            turn: self.told.turn + 1,
            prompt: prompt.to_owned(),
            ..self.told.clone()
        };
        self.steps = self.agent.steps_for(self.told.clone());
        Ok(())
    }

    async fn interrupt(&mut self) -> Result<(), AgentError> {
        let end = AgentActivity::Ended(TurnEnd::Failed("interrupted".to_owned()));
        self.steps = VecDeque::from([AgentStep::Tells(end)]);
        Ok(())
    }

    async fn close(&mut self) {
        self.steps.clear();
    }
}
