//! One compaction that runs beside its session, on a thread of its own.
//!
//! A thread, because the engine computes: on a runtime with one worker a task would hold up the very
//! calls that it must not delay. Whoever drops the handle gives the compaction up: it ends where it
//! next waits and leaves no record, unless it was writing one.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use compact_core::event::CallOutcome;
use compact_core::trigger::TriggerDecision;
use tokio::runtime::Handle;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::error::Error;
use crate::manager::Manager;
use crate::manager::emit::CallStart;
use crate::manager::gate::CommitGate;
use crate::manager::session_state::{FinishedCompaction, SessionSnapshot};

/// What came of it; `None` when there was nothing to compact.
pub(super) type BackgroundResult = Result<Option<Box<FinishedCompaction>>, Error>;

/// A compaction that was started.
pub(super) struct BackgroundCompaction {
    answer: Receiver<BackgroundResult>,
    thread: thread::JoinHandle<()>,
    gate: Arc<CommitGate>,
    /// The verdict that started it.
    pub(super) decision: TriggerDecision,
}

impl BackgroundCompaction {
    /// Starts it; `None` outside of a runtime or when the system has no thread to give.
    pub(super) fn start(
        manager: Arc<Manager>,
        snapshot: SessionSnapshot,
        decision: TriggerDecision,
    ) -> Option<BackgroundCompaction> {
        let runtime = Handle::try_current().ok()?;
        let (sender, answer) = oneshot::channel();
        let gate = Arc::new(CommitGate::default());
        let its_gate = Arc::clone(&gate);
        let thread = thread::Builder::new()
            .name("compact-background".to_owned())
            .spawn(move || runtime.block_on(run_compaction(&manager, snapshot, &its_gate, sender)))
            .ok()?;
        Some(BackgroundCompaction {
            answer,
            thread,
            gate,
            decision,
        })
    }

    /// True while it computes or stores.
    pub(super) fn is_busy(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Gives it up; when it is going on record already, its outcome.
    pub(super) async fn give_up(&mut self) -> Option<BackgroundResult> {
        if self.gate.close() {
            return None;
        }
        let outcome = (&mut self.answer).await;
        Some(outcome.unwrap_or(Err(Error::Interrupted)))
    }

    /// The outcome, if it is there within `limit`; without one it is looked for once.
    pub(super) async fn wait(&mut self, limit: Duration) -> Option<BackgroundResult> {
        if limit.is_zero() {
            return match self.answer.try_recv() {
                Ok(outcome) => Some(outcome),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Closed) => Some(Err(Error::Interrupted)),
            };
        }
        let answer = tokio::time::timeout(limit, &mut self.answer).await.ok()?;
        Some(answer.unwrap_or(Err(Error::Interrupted)))
    }
}

impl Drop for BackgroundCompaction {
    fn drop(&mut self) {
        self.gate.close();
    }
}

async fn run_compaction(
    manager: &Manager,
    snapshot: SessionSnapshot,
    gate: &CommitGate,
    sender: Sender<BackgroundResult>,
) {
    let began = CallStart::now("background_compact");
    let scope = manager.snapshot_scope(&snapshot);
    let outcome = compact_if_claimed(manager, snapshot, gate).await;
    let ended = match &outcome {
        Ok(Some(_)) => CallOutcome::Compacted,
        Ok(None) => CallOutcome::Unchanged,
        Err(_) => CallOutcome::Failed,
    };
    manager.emit_call_ended(&scope, &began, ended);
    // Nobody listens any more when the session is gone; what is on record stays true of it.
    let _ = sender.send(outcome);
}

/// Compacts unless another process does, or did: then there is nothing to do, and the next call takes
/// over what is on record.
async fn compact_if_claimed(
    manager: &Manager,
    snapshot: SessionSnapshot,
    gate: &CommitGate,
) -> BackgroundResult {
    let Some(held) = manager.claim_session(&snapshot.id, Duration::ZERO).await? else {
        return Ok(None);
    };
    if manager.is_overtaken(&snapshot).await? {
        return Ok(None);
    }
    let lease = held.lease().cloned();
    held.run_leased(manager.compact_snapshot(snapshot, gate, lease.as_ref()))
        .await
}
