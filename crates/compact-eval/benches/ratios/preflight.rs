//! What a client pays on every call when nothing has to be compacted, and on the call that compacts.

use anyhow::Result;
use compact_core::message::{Conversation, Entry, Role};
use compact_core::wire::WireRules;
use compact_runtime::manager::{Manager, SessionState};
use tokio::runtime::Runtime;

use crate::subject::{BenchSession, WINDOW, manager, runtime};
use crate::time::{Timing, in_turns};

/// A window that the session fits into.
const ROOMY: u64 = 4_000_000;

/// The handle is kept and one turn is added.
pub(crate) fn appended(subject: &BenchSession) -> Result<Timing> {
    let (runtime, manager) = (runtime()?, manager(ROOMY, None)?);
    let mut session = warm(subject, &runtime, &manager)?;
    let mut round = 0;
    let next = || {
        round += 1;
        turn(&subject.conversation, round)
    };
    in_turns(
        || subject.count(),
        next,
        |turn| {
            session.append(turn);
            Ok(runtime.block_on(manager.preflight(&mut session))?)
        },
    )
}

/// The whole history is passed again, with one turn more.
pub(crate) fn resent(subject: &BenchSession) -> Result<Timing> {
    let (runtime, manager) = (runtime()?, manager(ROOMY, None)?);
    let mut session = warm(subject, &runtime, &manager)?;
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
            session.replace(history);
            Ok(runtime.block_on(manager.preflight(&mut session))?)
        },
    )
}

/// A live session of three quarters of its window grows past the trigger: from there to a usable view,
/// against a BPE count of the whole history.
pub(crate) fn triggered() -> Result<Timing> {
    let subject = BenchSession::of(WINDOW as usize);
    let runtime = runtime()?;
    let next = || {
        let manager = manager(WINDOW, None)?;
        let mut entries = subject.conversation.entries.clone();
        let rest = entries.split_off(entries.len() * 3 / 4);
        let mut session = SessionState::new("bench", &WireRules::LENIENT);
        session.append(entries);
        let before = runtime.block_on(manager.preflight(&mut session))?;
        anyhow::ensure!(before.receipt.is_none(), "compacted too early");
        Ok((session, manager, rest))
    };
    in_turns(
        || subject.count(),
        next,
        |live: Result<(SessionState, Manager, Vec<Entry>)>| {
            let (mut session, manager, rest) = live?;
            session.append(rest);
            let made = runtime.block_on(manager.preflight(&mut session))?;
            anyhow::ensure!(made.receipt.is_some(), "a full window was not compacted");
            Ok(made)
        },
    )
}

fn warm(subject: &BenchSession, runtime: &Runtime, manager: &Manager) -> Result<SessionState> {
    let mut session = SessionState::new("bench", &WireRules::LENIENT);
    session.replace(subject.conversation.clone());
    runtime.block_on(manager.preflight(&mut session))?;
    Ok(session)
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
