//! Converts errors to the exceptions of `compact.exceptions`.

use compact::manager::{CompactError, RuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The classes of `compact.exceptions` that this crate raises.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ErrorClass {
    Compact,
    Config,
    Format,
    InsufficientBudget,
    NotFound,
    SessionBusy,
    Storage,
    Summary,
}

impl ErrorClass {
    fn name(self) -> &'static str {
        match self {
            ErrorClass::Compact => "CompactError",
            ErrorClass::Config => "ConfigError",
            ErrorClass::Format => "FormatError",
            ErrorClass::InsufficientBudget => "InsufficientBudget",
            ErrorClass::NotFound => "NotFound",
            ErrorClass::SessionBusy => "SessionBusy",
            ErrorClass::Storage => "StorageError",
            ErrorClass::Summary => "SummaryError",
        }
    }
}

/// Builds an exception whose message includes the whole chain of causes.
pub(crate) fn error_with_causes(class: ErrorClass, error: &dyn std::error::Error) -> PyErr {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = next.source();
    }
    error_with_message(class, &message)
}

/// Builds an exception with this message.
pub(crate) fn error_with_message(class: ErrorClass, message: &str) -> PyErr {
    Python::attach(|py| build_error(py, class, message, None).unwrap_or_else(|failed| failed))
}

fn build_error(
    py: Python<'_>,
    class: ErrorClass,
    message: &str,
    fields: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyErr> {
    let class = py.import("compact.exceptions")?.getattr(class.name())?;
    Ok(PyErr::from_value(class.call((message,), fields)?))
}

/// Converts an error of the engine.
pub(crate) fn from_error(error: &compact::Error) -> PyErr {
    use compact::Error as Front;
    match error {
        Front::Runtime(error) => from_runtime_error(error),
        Front::NothingArchived(_) => error_with_causes(ErrorClass::NotFound, error),
        Front::OtherVersion(_) | Front::Estimator(_) | Front::Emitted(_) => {
            error_with_causes(ErrorClass::Compact, error)
        }
        _ => error_with_causes(ErrorClass::Config, error),
    }
}

/// Converts an error of the runtime.
fn from_runtime_error(error: &RuntimeError) -> PyErr {
    match error {
        RuntimeError::Compact(CompactError::InsufficientBudget {
            pinned_tokens,
            needed,
            budget,
        }) => insufficient_budget(
            error,
            [
                ("pinned_tokens", pinned_tokens.0),
                ("needed", needed.0),
                ("budget", budget.0),
            ],
        ),
        RuntimeError::Compact(CompactError::InstructionsTooLarge {
            system,
            tools,
            needed,
            available,
        }) => insufficient_budget(
            error,
            [
                ("pinned_tokens", system.0),
                ("needed", (*system + *tools + *needed).0),
                ("budget", available.0),
            ],
        ),
        RuntimeError::Compact(CompactError::BadPattern { .. }) => {
            error_with_causes(ErrorClass::Config, error)
        }
        RuntimeError::Format(_) => error_with_causes(ErrorClass::Format, error),
        RuntimeError::Archive(_)
        | RuntimeError::Catalog(_)
        | RuntimeError::Index(_)
        | RuntimeError::Record { .. } => error_with_causes(ErrorClass::Storage, error),
        RuntimeError::Summary { .. } | RuntimeError::Declined(_) => {
            error_with_causes(ErrorClass::Summary, error)
        }
        RuntimeError::Compacting(_) => error_with_causes(ErrorClass::SessionBusy, error),
        RuntimeError::NotFound(_) | RuntimeError::NotArchived(_) | RuntimeError::NoSuchEntry(_) => {
            error_with_causes(ErrorClass::NotFound, error)
        }
        _ => error_with_causes(ErrorClass::Compact, error),
    }
}

fn insufficient_budget(error: &RuntimeError, numbers: [(&str, u64); 3]) -> PyErr {
    Python::attach(|py| {
        let fields = PyDict::new(py);
        for (name, number) in numbers {
            if let Err(failed) = fields.set_item(name, number) {
                return failed;
            }
        }
        let message = error.to_string();
        build_error(py, ErrorClass::InsufficientBudget, &message, Some(&fields))
            .unwrap_or_else(|failed| failed)
    })
}
