//! The one asynchronous runtime of a process.
//!
//! A fork copies the memory but not the threads, so a child gets its own runtime. The parent's runtime is
//! never dropped there, because that would wait for ever for threads that do not exist.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::PyErr;
use tokio::runtime::{Builder, Runtime};

use crate::failure::{ErrorClass, error_with_causes};

static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

fn current_runtime() -> Result<Arc<Runtime>, PyErr> {
    let mut slot = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, runtime)) = slot.as_ref().filter(|(owner, _)| *owner == process) {
        return Ok(Arc::clone(runtime));
    }
    let built = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("compact")
        .enable_all()
        .build()
        .map_err(|error| error_with_causes(ErrorClass::Compact, &error))?;
    let runtime = Arc::new(built);
    std::mem::forget(slot.replace((process, Arc::clone(&runtime))));
    Ok(runtime)
}

/// Runs a future to its end on the calling thread, which must have detached from the interpreter.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, PyErr> {
    Ok(current_runtime()?.block_on(work))
}
