//! What a client pays on every call when nothing has to be compacted, and on the call that compacts.

use std::sync::Arc;

use anyhow::Result;
use compact_core::message::{Conversation, Entry, Role};
use compact_core::wire::WireRules;
use compact_runtime::Session;
use tokio::runtime::Runtime;

use crate::subject::{BenchSession, WINDOW, manager, runtime};
use crate::time::{Timing, in_turns};

/// A window that the session fits into.
const ROOMY: u64 = 4_000_000;

/// The handle is kept and one turn is added.
pub(crate) fn appended(subject: &BenchSession) -> Result<Timing> {
    let runtime = runtime()?;
    let mut session = warm(subject, &runtime)?;
    let mut round = 0;
    let next = || {
        round += 1;
        turn(&subject.conversation, round)
    };
    in_turns(
        || subject.count(),
        next,
        |turn| {
            session.append(turn)?;
            Ok(runtime.block_on(session.preflight())?)
        },
    )
}

/// The whole history is passed again, with one turn more.
pub(crate) fn resent(subject: &BenchSession) -> Result<Timing> {
    let runtime = runtime()?;
    let mut session = warm(subject, &runtime)?;
    let mut history = subject.conversation.clone();
    let mut round = 0;
    let next = || {
        round += 1;
        history.entries.extend(turn(&subject.conversation, round));
        history.clone()
    };
    in_turns(
        || subject.count(),
        next,
        |history| {
            session.replace(history)?;
            Ok(runtime.block_on(session.preflight())?)
        },
    )
}

/// A live session of three quarters of its window grows past the trigger: from there to a usable view,
/// against a BPE count of the whole history.
pub(crate) fn triggered(_: &BenchSession) -> Result<Timing> {
    let subject = BenchSession::of(WINDOW as usize);
    let runtime = runtime()?;
    let next = || {
        let mut entries = subject.conversation.entries.clone();
        let rest = entries.split_off(entries.len() * 3 / 4);
        let mut session = session(WINDOW)?;
        session.append(entries)?;
        let before = runtime.block_on(session.preflight())?;
        anyhow::ensure!(before.receipt.is_none(), "compacted too early");
        Ok((session, rest))
    };
    in_turns(
        || subject.count(),
        next,
        |live: Result<(Session, Vec<Entry>)>| {
            let (mut session, rest) = live?;
            session.append(rest)?;
            let made = runtime.block_on(session.preflight())?;
            anyhow::ensure!(made.receipt.is_some(), "a full window was not compacted");
            Ok(made)
        },
    )
}

/// A session that has been counted once.
fn warm(subject: &BenchSession, runtime: &Runtime) -> Result<Session> {
    let mut session = session(ROOMY)?;
    session.replace(subject.conversation.clone())?;
    runtime.block_on(session.preflight())?;
    Ok(session)
}

/// A session whose calls alone are timed.
fn session(window: u64) -> Result<Session> {
    let manager = Arc::new(manager(window, None)?);
    Ok(Session::new(manager, "bench", &WireRules::LENIENT).without_background())
}

/// A question and a handful of exchanges that have not been counted before.
fn turn(conversation: &Conversation, round: usize) -> Vec<Entry> {
    let question = format!("And now the part that round {round} left out?");
    let mut entries = vec![Entry::from_text(
        format!("ask-{round}"),
        Role::User,
        question,
    )];
    entries.extend(conversation.entries.iter().skip(40).take(12).cloned());
    for entry in &mut entries {
        let note = format!("seen in round {round}");
        entry.blocks.push(compact_core::message::Block::Text(note));
    }
    entries
}
