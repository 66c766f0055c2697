//! The engine behind the Python package `compact`: the module `compact._native`.
//!
//! It only translates between Python's values and the manager, and decides nothing. JSON crosses the border
//! as text. An unchanged message is returned as its index, so that the caller gets its own objects back. The
//! interpreter is detached while the engine works, and attached again to call what the user wrote in Python.

mod callback;
mod collector;
mod engine;
mod exchange;
mod failure;
mod function;
mod hook_store;
mod indexer;
mod lookup;
mod manager;
mod objects;
mod reset;
mod restart;
mod runtime;
mod session;
mod transcript;

use std::sync::OnceLock;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The interpreter that has imported the module, identified by the address of its `sys`.
static INTERPRETER: OnceLock<usize> = OnceLock::new();

/// Refuses to load into a second interpreter, since interpreters must not share objects.
fn refuse_sub_interpreters(py: Python<'_>) -> PyResult<()> {
    let here = py.import("sys")?.as_ptr() as usize;
    if *INTERPRETER.get_or_init(|| here) == here {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "compact does not support subinterpreters: another interpreter of this process uses it",
    ))
}

/// The native part of the package `compact`; it is not a public interface.
#[pymodule]
mod _native {
    use super::{Bound, PyModule, PyModuleMethods, PyResult, refuse_sub_interpreters};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        refuse_sub_interpreters(module.py())?;
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }

    #[pymodule_export]
    use super::collector::Collector;
    #[pymodule_export]
    use super::engine::Engine;
    #[pymodule_export]
    use super::function::{
        count_conversation, count_text, detect_format, format_event, load_config, read_usage,
        validate_body,
    };
    #[pymodule_export]
    use super::hook_store::{archive_transcript, hook_folder};

    #[pymodule_export]
    use super::reset::ResetSession;
    #[pymodule_export]
    use super::restart::{
        CarriedTask, checkpoint_request, continuation_prompt, extract_checkpoint,
    };
}
