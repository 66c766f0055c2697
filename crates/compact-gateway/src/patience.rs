//! How long a request waits for what is ours: a database or a bucket that does not answer must not hold it.
//!
//! Only silence counts. Work that computes, or that hears from its store now and then, may take what it takes.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// What wakes work, and notes that it did: a timer that fires is no sign of life.
struct LifeSign {
    is_seen: Arc<AtomicBool>,
    waker: Waker,
}

impl Wake for LifeSign {
    fn wake(self: Arc<Self>) {
        self.is_seen.store(true, Ordering::Release);
        self.waker.wake_by_ref();
    }
}

/// Waits for work; `None` once it has heard nothing for so long.
pub(crate) async fn wait_for<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    // On the heap: what the engine does is more than a thread's stack should hold twice.
    let mut work = Box::pin(work);
    let mut silence = pin!(sleep(limit));
    let is_seen = Arc::new(AtomicBool::new(true));
    poll_fn(move |context| {
        if is_seen.swap(false, Ordering::Acquire) {
            let waker = Waker::from(Arc::new(LifeSign {
                is_seen: Arc::clone(&is_seen),
                waker: context.waker().clone(),
            }));
            if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(Some(done));
            }
            silence.as_mut().reset(Instant::now() + limit);
        }
        silence.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// Does work that needs a place while it computes. It has none while it waits, so that requests that wait for a store
/// keep no other from being computed.
pub(crate) async fn compute_in_place<T>(
    places: Arc<Semaphore>,
    mut place: Option<OwnedSemaphorePermit>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = Box::pin(work);
    loop {
        let polled = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
        if let Poll::Ready(done) = polled {
            return done;
        }
        drop(place.take());
        wait_for_wake().await;
        place = Arc::clone(&places).acquire_owned().await.ok();
    }
}

/// Waits until whatever was polled before has woken this task.
async fn wait_for_wake() {
    let mut is_woken = false;
    poll_fn(|_| match std::mem::replace(&mut is_woken, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn silence_ends_the_wait_and_a_life_sign_renews_it() {
        let began = Instant::now();
        assert_eq!(wait_for(LIMIT, pending::<()>()).await, None);
        assert_eq!(began.elapsed(), LIMIT);
        let slow = async {
            for _ in 0..10 {
                sleep(LIMIT / 2).await;
            }
            7
        };
        assert_eq!(wait_for(LIMIT, slow).await, Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_waits_leaves_its_place_to_others() {
        let places = Arc::new(Semaphore::new(1));
        let place = Arc::clone(&places).acquire_owned().await.ok();
        let slow = compute_in_place(Arc::clone(&places), place, sleep(LIMIT));
        let other = async { places.acquire().await.is_ok() };
        let began = Instant::now();
        let (took, ()) = tokio::join!(
            async {
                assert!(other.await);
                began.elapsed()
            },
            slow
        );
        assert_eq!((took, places.available_permits()), (Duration::ZERO, 1));
    }
}
