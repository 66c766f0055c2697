//! A summarizer that follows a script: for tests, and for trying what a failure does.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use compact_core::prompt::{AnswerFinish, SummarizerAnswer};
use compact_core::token::Tokens;

use super::{ModelQuestion, QuestionForm, Summarizer, SummarizerError, SummarizerInfo};

/// What it does with one question.
#[derive(Debug)]
pub enum ScriptedAnswer {
    /// Says this.
    Says(String),
    /// Answers just so.
    Answers(SummarizerAnswer),
    /// Fails.
    Fails(SummarizerError),
    /// Never answers.
    Hangs,
}

/// Follows its script turn by turn, the last turn for ever, and remembers what it was asked.
#[derive(Debug)]
pub struct ScriptedSummarizer {
    about: SummarizerInfo,
    script: Mutex<VecDeque<ScriptedAnswer>>,
    asked: Mutex<Vec<ModelQuestion>>,
}

impl ScriptedSummarizer {
    /// A summarizer with this script.
    pub fn new(script: impl IntoIterator<Item = ScriptedAnswer>) -> ScriptedSummarizer {
        ScriptedSummarizer {
            about: SummarizerInfo {
                name: "scripted".to_owned(),
                window: None,
                continues: None,
                most_requests: 8,
                reads: QuestionForm::Prompt,
            },
            script: Mutex::new(script.into_iter().collect()),
            asked: Mutex::default(),
        }
    }

    /// The same with a window.
    pub fn with_window(mut self, window: Tokens) -> ScriptedSummarizer {
        self.about.window = Some(window);
        self
    }

    /// The same, able to go on from conversations of this format.
    pub fn with_conversation_format(mut self, format: &'static str) -> ScriptedSummarizer {
        self.about.continues = Some(format);
        self
    }

    /// Everything it was asked.
    pub fn asked_questions(&self) -> Vec<ModelQuestion> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }

    fn note_question(&self, question: &ModelQuestion) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(question.clone());
    }

    fn next_answer(&self) -> Option<ScriptedAnswer> {
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

fn repeated(turn: &ScriptedAnswer) -> Option<ScriptedAnswer> {
    match turn {
        ScriptedAnswer::Says(text) => Some(ScriptedAnswer::Says(text.clone())),
        ScriptedAnswer::Answers(answer) => Some(ScriptedAnswer::Answers(answer.clone())),
        ScriptedAnswer::Hangs => Some(ScriptedAnswer::Hangs),
        ScriptedAnswer::Fails(_) => None,
    }
}

#[async_trait]
impl Summarizer for ScriptedSummarizer {
    fn describe(&self) -> SummarizerInfo {
        self.about.clone()
    }

    async fn answer(&self, question: &ModelQuestion) -> Result<SummarizerAnswer, SummarizerError> {
        self.note_question(question);
        match self.next_answer() {
            Some(ScriptedAnswer::Says(text)) => Ok(SummarizerAnswer {
                text,
                finish: AnswerFinish::Complete,
                ..SummarizerAnswer::default()
            }),
            Some(ScriptedAnswer::Answers(answer)) => Ok(answer),
            Some(ScriptedAnswer::Fails(error)) => Err(error),
            Some(ScriptedAnswer::Hangs) => std::future::pending().await,
            None => Err(SummarizerError::Setup("the script has ended".to_owned())),
        }
    }
}
