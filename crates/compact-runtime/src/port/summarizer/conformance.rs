//! What every summarizer must do. Call [`suite`] from the adapter's tests, against a server that
//! answers.

#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a conformance suite reports a violation by panicking, like any test"
)]

use std::time::Duration;

use compact_core::prompt::AnswerFinish;
use compact_core::summarize::Style;
use compact_core::token::Tokens;

use super::{ModelQuestion, Summarizer};

/// Asks, asks twice at once, and abandons a question.
pub async fn suite(summarizer: &dyn Summarizer) {
    check_description(summarizer);
    it_answers(summarizer).await;
    it_answers_two_at_once(summarizer).await;
    an_abandoned_question_harms_nothing(summarizer).await;
}

/// A question that any model can answer.
pub fn sample_question() -> ModelQuestion {
    ModelQuestion {
        style: Style::TaskState,
        messages: Vec::new(),
        system: "Summarize the conversation.".to_owned(),
        prompt: "<conversation>\n[#1] user: the port is 8080\n</conversation>".to_owned(),
        conversation: None,
        limit: Tokens(64),
        model: Some("session-model".to_owned()),
    }
}

fn check_description(summarizer: &dyn Summarizer) {
    let about = summarizer.describe();
    assert!(!about.name.is_empty(), "a summarizer has a name");
    assert!(!about.name.contains('\n'), "its name is one line");
    assert!(about.most_requests > 0, "it may be asked at least once");
    assert_eq!(about, summarizer.describe(), "it says the same twice");
}

async fn it_answers(summarizer: &dyn Summarizer) {
    let answer = summarizer
        .answer(&sample_question())
        .await
        .expect("an answer");
    assert_ne!(
        answer.finish,
        AnswerFinish::Refused,
        "a harmless question is not refused"
    );
    assert!(!answer.text.trim().is_empty(), "an answer has words");
}

async fn it_answers_two_at_once(summarizer: &dyn Summarizer) {
    let question = sample_question();
    let (a, b) = tokio::join!(summarizer.answer(&question), summarizer.answer(&question));
    assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
}

async fn an_abandoned_question_harms_nothing(summarizer: &dyn Summarizer) {
    let question = sample_question();
    let soon = Duration::from_millis(1);
    let _ = tokio::time::timeout(soon, summarizer.answer(&question)).await;
    it_answers(summarizer).await;
}
