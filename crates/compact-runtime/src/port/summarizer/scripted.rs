//! A summarizer that follows a script: for tests, and for trying what a failure does.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use compact_core::prompt::{Answer, Finish};
use compact_core::token::Tokens;

use super::{About, Question, Summarizer, SummarizerError};

/// What it does with one question.
#[derive(Debug)]
pub enum Turn {
    /// Says this.
    Says(String),
    /// Answers just so.
    Answers(Answer),
    /// Fails.
    Fails(SummarizerError),
    /// Never answers.
    Hangs,
}

/// Follows its script turn by turn, the last turn for ever, and remembers what it was asked.
#[derive(Debug)]
pub struct Scripted {
    about: About,
    script: Mutex<VecDeque<Turn>>,
    asked: Mutex<Vec<Question>>,
}

impl Scripted {
    /// A summarizer with this script.
    pub fn new(script: impl IntoIterator<Item = Turn>) -> Scripted {
        Scripted {
            about: About {
                name: "scripted".to_owned(),
                window: None,
                continues: None,
                most_requests: 8,
            },
            script: Mutex::new(script.into_iter().collect()),
            asked: Mutex::default(),
        }
    }

    /// The same with a window.
    pub fn with_window(mut self, window: Tokens) -> Scripted {
        self.about.window = Some(window);
        self
    }

    /// The same, able to go on from conversations of this format.
    pub fn continuing(mut self, format: &'static str) -> Scripted {
        self.about.continues = Some(format);
        self
    }

    /// Everything it was asked.
    pub fn asked(&self) -> Vec<Question> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }

    fn remember(&self, question: &Question) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(question.clone());
    }

    fn next(&self) -> Option<Turn> {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let next = script.pop_front()?;
        if script.is_empty()
            && let Some(again) = repeated(&next)
        {
            script.push_back(again);
        }
        Some(next)
    }
}

fn repeated(turn: &Turn) -> Option<Turn> {
    match turn {
        Turn::Says(text) => Some(Turn::Says(text.clone())),
        Turn::Answers(answer) => Some(Turn::Answers(answer.clone())),
        Turn::Hangs => Some(Turn::Hangs),
        Turn::Fails(_) => None,
    }
}

#[async_trait]
impl Summarizer for Scripted {
    fn about(&self) -> About {
        self.about.clone()
    }

    async fn answer(&self, question: &Question) -> Result<Answer, SummarizerError> {
        self.remember(question);
        match self.next() {
            Some(Turn::Says(text)) => Ok(Answer {
                text,
                finish: Finish::Complete,
                ..Answer::default()
            }),
            Some(Turn::Answers(answer)) => Ok(answer),
            Some(Turn::Fails(error)) => Err(error),
            Some(Turn::Hangs) => std::future::pending().await,
            None => Err(SummarizerError::Setup("the script has ended".to_owned())),
        }
    }
}
