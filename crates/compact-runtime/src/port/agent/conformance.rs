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
use compact_formats::stream::{AgentActivity, TurnEnd};

use super::{AgentProgram, AgentSession, SessionOpening};

/// Far more than any turn of the suite takes.
const LONG: Duration = Duration::from_secs(60);

/// Runs every check.
pub async fn suite(agent: &dyn AgentProgram) {
    turns_follow_each_other(agent).await;
    calls_come_with_their_results(agent).await;
    a_turn_can_be_interrupted_and_the_session_goes_on(agent).await;
    a_closed_session_is_taken_up_again(agent).await;
    closing_ends_a_turn_that_runs(agent).await;
}

/// Everything that a turn tells, up to its end.
async fn collect_turn(session: &mut dyn AgentSession) -> (Vec<AgentActivity>, TurnEnd) {
    let mut all = Vec::new();
    loop {
        let heard = tokio::time::timeout(LONG, session.next()).await;
        for activity in heard.expect("a turn ends").unwrap().told {
            match activity {
                AgentActivity::Ended(end) => return (all, end),
                told => all.push(told),
            }
        }
    }
}

fn assistant_text(told: &[AgentActivity]) -> String {
    let entries = told.iter().filter_map(|activity| match activity {
        AgentActivity::Said(entry) if entry.role == Role::Assistant => Some(entry.plain_text()),
        _ => None,
    });
    entries.collect()
}

fn find_session_id(told: &[AgentActivity]) -> Option<String> {
    told.iter().find_map(|activity| match activity {
        AgentActivity::Session(about) => about.id.clone(),
        _ => None,
    })
}

async fn turns_follow_each_other(agent: &dyn AgentProgram) {
    let mut session = agent.open(SessionOpening::Fresh, "first").await.unwrap();
    let (told, end) = collect_turn(&mut *session).await;
    assert!(matches!(end, TurnEnd::Done(_)), "{end:?}");
    assert_eq!(assistant_text(&told), "FIRST");
    session.send_prompt("second").await.unwrap();
    let (told, end) = collect_turn(&mut *session).await;
    assert!(matches!(end, TurnEnd::Done(_)), "{end:?}");
    assert_eq!(assistant_text(&told), "SECOND");
    session.close().await;
}

async fn calls_come_with_their_results(agent: &dyn AgentProgram) {
    let mut session = agent.open(SessionOpening::Fresh, "work").await.unwrap();
    let (told, _) = collect_turn(&mut *session).await;
    let mut calls = Vec::new();
    let mut results = Vec::new();
    for activity in &told {
        if let AgentActivity::Said(entry) = activity {
            calls.extend(entry.call_ids().map(str::to_owned));
            results.extend(entry.result_ids().map(str::to_owned));
        }
    }
    assert_eq!(calls.len(), 1);
    assert_eq!(calls, results);
    session.close().await;
}

async fn a_turn_can_be_interrupted_and_the_session_goes_on(agent: &dyn AgentProgram) {
    let mut session = agent.open(SessionOpening::Fresh, "go on").await.unwrap();
    while !has_worked(&session.next().await.unwrap().told) {}
    session.interrupt().await.unwrap();
    collect_turn(&mut *session).await;
    session.send_prompt("and then").await.unwrap();
    assert_eq!(
        assistant_text(&collect_turn(&mut *session).await.0),
        "AND THEN"
    );
    session.close().await;
}

fn has_worked(told: &[AgentActivity]) -> bool {
    let is_result = |block: &Block| matches!(block, Block::ToolResult { .. });
    told.iter().any(|activity| match activity {
        AgentActivity::Said(entry) => entry.blocks.iter().any(is_result),
        _ => false,
    })
}

async fn a_closed_session_is_taken_up_again(agent: &dyn AgentProgram) {
    if !agent.can_resume() {
        return;
    }
    let mut session = agent.open(SessionOpening::Fresh, "first").await.unwrap();
    let known =
        find_session_id(&collect_turn(&mut *session).await.0).expect("a session has a name");
    session.close().await;
    let mut again = agent
        .open(SessionOpening::Resumed(&known), "again")
        .await
        .unwrap();
    assert_eq!(assistant_text(&collect_turn(&mut *again).await.0), "AGAIN");
    again.close().await;
}

async fn closing_ends_a_turn_that_runs(agent: &dyn AgentProgram) {
    let mut session = agent.open(SessionOpening::Fresh, "go on").await.unwrap();
    while !has_worked(&session.next().await.unwrap().told) {}
    let closed = tokio::time::timeout(LONG, session.close()).await;
    assert!(closed.is_ok(), "closing waits for nobody");
}
