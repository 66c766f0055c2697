//! The queue between those who append and the one thread that writes.
//!
//! It is bounded in bytes. Who finds it full waits a moment; if the writer does not move in that
//! time it is stuck, and until it moves again events are counted as lost instead of waited for. A
//! gap is queued in their place, so that the transcript says what it lacks.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// How many bytes wait at most; one event may be larger.
const CAPACITY: usize = 32 << 20;

/// What an event costs beside its bytes.
const OVERHEAD: usize = 128;

/// How long the first one who finds the queue full waits.
const FULL_QUEUE_WAIT: Duration = Duration::from_millis(500);

/// How long a store that is dropped waits for its writer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Events that are not in the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissingEvents {
    pub(super) events: u64,
    pub(super) reason: String,
}

/// One thing for the writer to do.
#[derive(Debug)]
pub(super) enum WriterJob {
    /// Append a line to a session's transcript.
    Line { session: String, line: Vec<u8> },
    /// Say that so many events are missing here.
    Gap { session: String, events: u64 },
    /// Make what was appended durable, and say what is missing.
    Flush {
        session: String,
        reply: oneshot::Sender<Option<MissingEvents>>,
    },
}

#[derive(Debug, Default)]
pub(super) struct WriterQueue {
    state: Mutex<QueueState>,
    /// There is something to do.
    work: Condvar,
    /// There is room, or the writer is done.
    room: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    jobs: VecDeque<WriterJob>,
    bytes: usize,
    stuck: bool,
    closed: bool,
    /// No writer will take anything any more.
    ended: bool,
    lost: HashMap<String, u64>,
}

impl QueueState {
    fn is_full(&self, line: &[u8]) -> bool {
        self.bytes > 0 && self.bytes + line.len() + OVERHEAD > CAPACITY
    }

    fn count_lost(&mut self, session: &str) {
        *self.lost.entry(session.to_owned()).or_default() += 1;
    }

    fn queue_gap(&mut self, session: &str) {
        if let Some(events) = self.lost.remove(session) {
            let session = session.to_owned();
            self.jobs.push_back(WriterJob::Gap { session, events });
        }
    }
}

impl WriterQueue {
    fn lock_state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a line, or counts it as lost.
    pub(super) fn push(&self, session: &str, line: Vec<u8>) {
        let mut state = self.lock_state();
        if state.is_full(&line) && !state.stuck && !state.ended {
            let waited = self
                .room
                .wait_timeout_while(state, FULL_QUEUE_WAIT, |s| s.is_full(&line) && !s.ended);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.stuck = state.is_full(&line);
        }
        if state.is_full(&line) || state.ended {
            state.count_lost(session);
            return;
        }
        state.queue_gap(session);
        state.bytes += line.len() + OVERHEAD;
        let session = session.to_owned();
        state.jobs.push_back(WriterJob::Line { session, line });
        self.work.notify_one();
    }

    /// Waits until the writer has come this far.
    pub(super) async fn flush(&self, session: &str) -> Option<MissingEvents> {
        let (reply, answer) = oneshot::channel();
        self.request_flush(session, reply);
        answer
            .await
            .unwrap_or_else(|_| Some(self.take_lost(session)))
    }

    fn request_flush(&self, session: &str, reply: oneshot::Sender<Option<MissingEvents>>) {
        let mut state = self.lock_state();
        if state.ended {
            return;
        }
        state.queue_gap(session);
        let session = session.to_owned();
        state.jobs.push_back(WriterJob::Flush { session, reply });
        self.work.notify_one();
    }

    /// Returns what a session lost for want of a writer.
    fn take_lost(&self, session: &str) -> MissingEvents {
        MissingEvents {
            events: self.lock_state().lost.remove(session).unwrap_or(0),
            reason: "the writer is not running".to_owned(),
        }
    }

    /// Returns the next job; `None` once the store is closed and everything done.
    pub(super) fn next(&self) -> Option<WriterJob> {
        let waiting = |state: &mut QueueState| state.jobs.is_empty() && !state.closed;
        let state = self.work.wait_while(self.lock_state(), waiting);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let job = state.jobs.pop_front();
        if let Some(WriterJob::Line { line, .. }) = &job {
            state.bytes = state.bytes.saturating_sub(line.len() + OVERHEAD);
        }
        state.stuck = false;
        self.room.notify_all();
        job
    }

    /// Marks the writer as ended: whoever waits for it gets an error, and queued events are lost.
    pub(super) fn mark_ended(&self) {
        let mut state = self.lock_state();
        state.ended = true;
        for job in std::mem::take(&mut state.jobs) {
            if let WriterJob::Line { session, .. } = job {
                state.count_lost(&session);
            }
        }
        self.room.notify_all();
    }

    /// Closes the queue, lets the writer finish, and waits for it a little.
    pub(super) fn close(&self) {
        let mut state = self.lock_state();
        state.closed = true;
        self.work.notify_all();
        drop(
            self.room
                .wait_timeout_while(state, CLOSE_TIMEOUT, |s| !s.ended),
        );
    }
}
