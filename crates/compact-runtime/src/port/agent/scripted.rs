//! An agent for tests: it does what a script says, and remembers what it was told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use compact_formats::stream::{Activity, End};

use super::{Agent, AgentError, AgentSession, Heard, Opening};

/// One thing that a scripted agent does.
#[derive(Debug)]
pub enum Step {
    /// Tells something.
    Tells(Activity),
    /// Prints a line that tells nothing.
    Prints(&'static str),
    /// Says nothing more until it is interrupted or closed.
    Hangs,
    /// Ends in the middle of its turn.
    Breaks(AgentError),
}

type Script = dyn Fn(&Told) -> Vec<Step> + Send + Sync;

/// What a session was told, as its script sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
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
pub struct Scripted {
    script: Arc<Script>,
    heard: Arc<Mutex<Vec<Told>>>,
}

impl Scripted {
    /// An agent whose turns are what `script` makes of each prompt.
    pub fn new(script: impl Fn(&Told) -> Vec<Step> + Send + Sync + 'static) -> Scripted {
        Scripted {
            script: Arc::new(script),
            heard: Arc::default(),
        }
    }

    /// Everything that it was told.
    pub fn heard(&self) -> Vec<Told> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.clone()
    }

    fn tell(&self, told: Told) -> VecDeque<Step> {
        let steps = (self.script)(&told);
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push(told);
        steps.into()
    }

    fn sessions(&self) -> usize {
        self.heard()
            .iter()
            .map(|told| told.session)
            .max()
            .unwrap_or(0)
    }
}

#[async_trait]
impl Agent for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn resumes(&self) -> bool {
        true
    }

    async fn open(
        &self,
        opening: Opening<'_>,
        prompt: &str,
    ) -> Result<Box<dyn AgentSession>, AgentError> {
        let told = Told {
            session: self.sessions() + 1,
            turn: 1,
            resumed: match opening {
                Opening::Fresh => None,
                Opening::Resumed(id) => Some(id.to_owned()),
            },
            prompt: prompt.to_owned(),
        };
        Ok(Box::new(Running {
            agent: self.clone(),
            steps: self.tell(told.clone()),
            told,
        }))
    }
}

struct Running {
    agent: Scripted,
    told: Told,
    steps: VecDeque<Step>,
}

#[async_trait]
impl AgentSession for Running {
    async fn next(&mut self) -> Result<Heard, AgentError> {
        let hangs = matches!(self.steps.front(), None | Some(Step::Hangs));
        if hangs {
            return std::future::pending().await;
        }
        match self.steps.pop_front() {
            Some(Step::Tells(activity)) => Ok(Heard {
                line: Some(format!("{activity:?}")),
                told: vec![activity],
            }),
            Some(Step::Prints(line)) => Ok(Heard {
                line: Some(line.to_owned()),
                told: Vec::new(),
            }),
            Some(Step::Breaks(error)) => Err(error),
            None | Some(Step::Hangs) => Ok(Heard::default()),
        }
    }

    async fn say(&mut self, prompt: &str) -> Result<(), AgentError> {
        self.told = Told {
            turn: self.told.turn + 1,
            prompt: prompt.to_owned(),
            ..self.told.clone()
        };
        self.steps = self.agent.tell(self.told.clone());
        Ok(())
    }

    async fn interrupt(&mut self) -> Result<(), AgentError> {
        let end = Activity::Ended(End::Failed("interrupted".to_owned()));
        self.steps = VecDeque::from([Step::Tells(end)]);
        Ok(())
    }

    async fn close(&mut self) {
        self.steps.clear();
    }
}
