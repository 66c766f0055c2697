//! Work that waits for a disk or computes for long: it has a thread of its own, unless the thread that asks may wait.
//!
//! Threads that serve many at a time must not wait. One that was taken out of their number to work for a single request
//! may, and handing its work to another one would only cost the way there and back.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static MAY_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// The work panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work was given up")]
pub(crate) struct WorkGivenUp;

/// Runs something on a thread that nobody else waits for: stores that it asks do their work right here.
pub fn with_waiting<T>(run: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            MAY_WAIT.set(self.0);
        }
    }
    let _restore = Restore(MAY_WAIT.replace(true));
    run()
}

/// Runs work that waits or computes.
pub(crate) async fn run_waiting<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WorkGivenUp> {
    if MAY_WAIT.get() {
        return catch_unwind(AssertUnwindSafe(work)).map_err(|_| WorkGivenUp);
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| WorkGivenUp)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn work_stays_on_a_thread_that_may_wait_and_leaves_any_other() {
        let asked = thread::current().id();
        let worked = || thread::current().id();
        assert_ne!(run_waiting(worked).await, Ok(asked));
        let handle = tokio::runtime::Handle::current();
        let alone = tokio::task::spawn_blocking(move || {
            let own = thread::current().id();
            let inside = with_waiting(|| handle.block_on(run_waiting(worked)));
            let outside = handle.block_on(run_waiting(worked));
            (own, inside, outside)
        });
        let (own, inside, outside) = alone.await.unwrap();
        assert_eq!(inside, Ok(own));
        assert_ne!(outside, Ok(own));
    }

    #[tokio::test]
    async fn work_that_panics_is_given_up_wherever_it_ran() {
        let panics = || panic!("broken");
        assert_eq!(run_waiting::<()>(panics).await, Err(WorkGivenUp));
        let handle = tokio::runtime::Handle::current();
        let alone = move || with_waiting(|| handle.block_on(run_waiting::<()>(panics)));
        let alone = tokio::task::spawn_blocking(alone).await;
        assert_eq!(alone.unwrap(), Err(WorkGivenUp));
    }
}
