//! The engine behind the Python package `compact`: the module `compact._native`.
//!
//! A door: it translates between Python's values and the manager, and decides nothing. JSON crosses
//! the border as text, so that no type of Python's is wrong until it matters; what stays as it was
//! is told by its index, so that the caller hands out its very own objects. The interpreter is let go
//! of while the engine works, and taken again to call what the user wrote in Python.

mod callback;
mod collector;
mod engine;
mod exchange;
mod failure;
mod function;
mod hook_store;
mod manager;
mod objects;
mod restart;
mod runtime;
mod session;
mod transcript;

use std::sync::OnceLock;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The interpreter that has imported the module, told by its `sys`.
static INTERPRETER: OnceLock<usize> = OnceLock::new();

/// Refuses a second interpreter: objects of one must not be seen by another.
fn refuse_sub_interpreters(py: Python<'_>) -> PyResult<()> {
    let here = py.import("sys")?.as_ptr() as usize;
    if *INTERPRETER.get_or_init(|| here) == here {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "compact does not support subinterpreters: another interpreter of this process uses it",
    ))
}

/// What `compact` is built on; not a public interface.
#[pymodule]
mod _native {
    use super::{Bound, PyModule, PyResult, refuse_sub_interpreters};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        refuse_sub_interpreters(module.py())
    }

    #[pymodule_export]
    use super::collector::Collector;
    #[pymodule_export]
    use super::engine::Engine;
    #[pymodule_export]
    use super::function::{
        account, console_line, count, detect, load_config, usage, validate, window,
    };
    #[pymodule_export]
    use super::hook_store::{shelf_archive, shelf_folder};

    #[pymodule_export]
    use super::restart::{Carried, checkpoint_request, continuation_prompt, extract_checkpoint};
}
