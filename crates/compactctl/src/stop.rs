//! Ctrl-C and its like: what runs for long is asked to stop, and what asked is remembered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::watch;

use crate::failure::{Failure, FailureCode};

/// Ctrl-C, as shells report it.
const INTERRUPTED: u8 = 130;

/// Whether somebody asked to stop.
pub(crate) struct StopRequest {
    asked: watch::Receiver<bool>,
    code: Arc<AtomicU8>,
}

/// What a hangup means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hangup {
    /// That the terminal is gone, and the work with it.
    Stops,
    /// Something else: somebody else listens for it.
    #[cfg(feature = "gateway")]
    IsForOthers,
}

impl StopRequest {
    /// Listens from now on; call it within the runtime.
    pub(crate) fn listen(hangup: Hangup) -> Result<StopRequest, Failure> {
        let (sender, asked) = watch::channel(false);
        let code = Arc::new(AtomicU8::new(INTERRUPTED));
        spawn_listeners(&sender, &code, hangup).map_err(|error| {
            Failure::from_error(FailureCode::Unexpected, &error)
                .with_context("cannot catch signals")
        })?;
        Ok(StopRequest { asked, code })
    }

    /// What turns true when it is to stop.
    pub(crate) fn watch(&self) -> watch::Receiver<bool> {
        self.asked.clone()
    }

    /// What the process answers its parent.
    pub(crate) fn code(&self) -> u8 {
        self.code.load(Ordering::Relaxed)
    }
}

#[cfg(unix)]
fn spawn_listeners(
    sender: &watch::Sender<bool>,
    code: &Arc<AtomicU8>,
    hangup: Hangup,
) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let ends = [SignalKind::interrupt(), SignalKind::terminate()];
    let hangup = (hangup == Hangup::Stops).then(SignalKind::hangup);
    for kind in ends.into_iter().chain(hangup) {
        let mut signals = signal(kind)?;
        let (sender, code) = (sender.clone(), Arc::clone(code));
        let number = u8::try_from(kind.as_raw_value()).unwrap_or(0);
        tokio::spawn(async move {
            signals.recv().await;
            code.store(128 + number, Ordering::Relaxed);
            sender.send_replace(true);
        });
    }
    Ok(())
}

#[cfg(not(unix))]
fn spawn_listeners(
    sender: &watch::Sender<bool>,
    _code: &Arc<AtomicU8>,
    _hangup: Hangup,
) -> std::io::Result<()> {
    let sender = sender.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            sender.send_replace(true);
        }
    });
    Ok(())
}
