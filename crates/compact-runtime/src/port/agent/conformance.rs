//! What every agent's adapter must do. Call [`suite`] with an agent that answers each prompt with
//! that prompt in upper case, calls a tool once when told `work`, and then goes on until it is
//! interrupted when told `go on`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a conformance suite reports a violation by panicking, like any test"
)]

use std::time::Duration;

use compact_core::message::{Block, Role};
use compact_formats::stream::{Activity, End};

use super::{Agent, AgentSession, Opening};

/// Far more than any turn of the suite takes.
const LONG: Duration = Duration::from_secs(60);

/// Runs every check.
pub async fn suite(agent: &dyn Agent) {
    turns_follow_each_other(agent).await;
    calls_come_with_their_results(agent).await;
    a_turn_can_be_interrupted_and_the_session_goes_on(agent).await;
    a_closed_session_is_taken_up_again(agent).await;
    closing_ends_a_turn_that_runs(agent).await;
}

/// Everything that a turn tells, up to its end.
async fn turn(session: &mut dyn AgentSession) -> (Vec<Activity>, End) {
    let mut all = Vec::new();
    loop {
        let heard = tokio::time::timeout(LONG, session.next()).await;
        for activity in heard.expect("a turn ends").unwrap().told {
            match activity {
                Activity::Ended(end) => return (all, end),
                told => all.push(told),
            }
        }
    }
}

fn words(told: &[Activity]) -> String {
    let entries = told.iter().filter_map(|activity| match activity {
        Activity::Said(entry) if entry.role == Role::Assistant => Some(entry.plain_text()),
        _ => None,
    });
    entries.collect()
}

fn id(told: &[Activity]) -> Option<String> {
    told.iter().find_map(|activity| match activity {
        Activity::Session(about) => about.id.clone(),
        _ => None,
    })
}

async fn turns_follow_each_other(agent: &dyn Agent) {
    let mut session = agent.open(Opening::Fresh, "first").await.unwrap();
    let (told, end) = turn(&mut *session).await;
    assert!(matches!(end, End::Done(_)), "{end:?}");
    assert_eq!(words(&told), "FIRST");
    session.say("second").await.unwrap();
    let (told, end) = turn(&mut *session).await;
    assert!(matches!(end, End::Done(_)), "{end:?}");
    assert_eq!(words(&told), "SECOND");
    session.close().await;
}

async fn calls_come_with_their_results(agent: &dyn Agent) {
    let mut session = agent.open(Opening::Fresh, "work").await.unwrap();
    let (told, _) = turn(&mut *session).await;
    let mut calls = Vec::new();
    let mut results = Vec::new();
    for activity in &told {
        if let Activity::Said(entry) = activity {
            calls.extend(entry.calls().map(str::to_owned));
            results.extend(entry.results().map(str::to_owned));
        }
    }
    assert_eq!(calls.len(), 1);
    assert_eq!(calls, results);
    session.close().await;
}

async fn a_turn_can_be_interrupted_and_the_session_goes_on(agent: &dyn Agent) {
    let mut session = agent.open(Opening::Fresh, "go on").await.unwrap();
    while !has_worked(&session.next().await.unwrap().told) {}
    session.interrupt().await.unwrap();
    turn(&mut *session).await;
    session.say("and then").await.unwrap();
    assert_eq!(words(&turn(&mut *session).await.0), "AND THEN");
    session.close().await;
}

fn has_worked(told: &[Activity]) -> bool {
    let is_result = |block: &Block| matches!(block, Block::ToolResult { .. });
    told.iter().any(|activity| match activity {
        Activity::Said(entry) => entry.blocks.iter().any(is_result),
        _ => false,
    })
}

async fn a_closed_session_is_taken_up_again(agent: &dyn Agent) {
    if !agent.resumes() {
        return;
    }
    let mut session = agent.open(Opening::Fresh, "first").await.unwrap();
    let known = id(&turn(&mut *session).await.0).expect("a session has a name");
    session.close().await;
    let mut again = agent.open(Opening::Resumed(&known), "again").await.unwrap();
    assert_eq!(words(&turn(&mut *again).await.0), "AGAIN");
    again.close().await;
}

async fn closing_ends_a_turn_that_runs(agent: &dyn Agent) {
    let mut session = agent.open(Opening::Fresh, "go on").await.unwrap();
    while !has_worked(&session.next().await.unwrap().told) {}
    let closed = tokio::time::timeout(LONG, session.close()).await;
    assert!(closed.is_ok(), "closing waits for nobody");
}
