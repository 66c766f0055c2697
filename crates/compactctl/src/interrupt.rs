//! Ctrl-C while a command waits: for another process, a database, a bucket, a model.
//!
//! What it does is given up, which gives a lease back, and said. What cannot be given up, because it
//! computes and does not wait, ends with the process a moment later. `run` and `mcp` go their own ways.

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::watch;

use crate::failure::{Failure, FailureCode};

/// How long a lease may take to be given back.
const LEASE_RELEASE_TIME: Duration = Duration::from_millis(200);

/// How long a command may take to end by itself.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Work that ends when a person interrupts it.
pub(crate) async fn until_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let Some(mut interrupted) = interrupt_receiver() else {
        return work.await;
    };
    let done = {
        let work = std::pin::pin!(work);
        tokio::select! {
            biased;
            Ok(_) = interrupted.wait_for(|was| *was) => None,
            done = work => Some(done),
        }
    };
    match done {
        Some(done) => done,
        None => {
            tokio::time::sleep(LEASE_RELEASE_TIME).await;
            Err(interrupted_failure())
        }
    }
}

fn interrupted_failure() -> Failure {
    Failure::new(FailureCode::Interrupted, "interrupted before it was done")
        .help("run it again; nothing was left half done")
}

/// Tells when a person interrupts the program, from the first time that it is asked for; `None` where
/// that cannot be known.
fn interrupt_receiver() -> Option<watch::Receiver<bool>> {
    static HEARD: OnceLock<Option<watch::Receiver<bool>>> = OnceLock::new();
    HEARD.get_or_init(listen_for_interrupt).clone()
}

fn listen_for_interrupt() -> Option<watch::Receiver<bool>> {
    let (tell, heard) = watch::channel(false);
    let wait = move || {
        // Made on the thread that uses it: where the system has none to give, there is no runtime to drop in another.
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            if tokio::signal::ctrl_c().await.is_err() {
                return;
            }
            let _ = tell.send(true);
            tokio::time::sleep(EXIT_TIMEOUT).await;
            interrupted_failure().show(false);
            std::process::exit(FailureCode::Interrupted as i32);
        });
    };
    let name = "compact-interrupt".to_owned();
    thread::Builder::new().name(name).spawn(wait).ok()?;
    Some(heard)
}
