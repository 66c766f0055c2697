//! Errors as Python sees them: the classes of `compact.exceptions`.

use compact_core::error::CompactError;
use compact_runtime::Error;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The classes that this crate raises.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class {
    Compact,
    Config,
    Format,
    InsufficientBudget,
    NotFound,
    SessionBusy,
    Storage,
    Summary,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Class::Compact => "CompactError",
            Class::Config => "ConfigError",
            Class::Format => "FormatError",
            Class::InsufficientBudget => "InsufficientBudget",
            Class::NotFound => "NotFound",
            Class::SessionBusy => "SessionBusy",
            Class::Storage => "StorageError",
            Class::Summary => "SummaryError",
        }
    }
}

/// An error of a class, saying what its whole chain of causes says.
pub(crate) fn raise(class: Class, error: &dyn std::error::Error) -> PyErr {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = next.source();
    }
    told(class, &message)
}

/// An error of a class in these words.
pub(crate) fn told(class: Class, message: &str) -> PyErr {
    Python::attach(|py| build(py, class, message, None).unwrap_or_else(|failed| failed))
}

fn build(
    py: Python<'_>,
    class: Class,
    message: &str,
    fields: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyErr> {
    let class = py.import("compact.exceptions")?.getattr(class.name())?;
    Ok(PyErr::from_value(class.call((message,), fields)?))
}

/// An error of the runtime.
pub(crate) fn of(error: &Error) -> PyErr {
    match error {
        Error::Compact(CompactError::InsufficientBudget {
            pinned_tokens,
            needed,
            budget,
        }) => insufficient(
            error,
            [
                ("pinned_tokens", pinned_tokens.0),
                ("needed", needed.0),
                ("budget", budget.0),
            ],
        ),
        Error::Compact(CompactError::BadPattern { .. }) => raise(Class::Config, error),
        Error::Format(_) => raise(Class::Format, error),
        Error::Archive(_) | Error::Catalog(_) | Error::Index(_) | Error::Record { .. } => {
            raise(Class::Storage, error)
        }
        Error::Summary { .. } | Error::Declined(_) => raise(Class::Summary, error),
        Error::Compacting(_) => raise(Class::SessionBusy, error),
        Error::NotFound(_) | Error::NotArchived(_) | Error::NoSuchEntry(_) => {
            raise(Class::NotFound, error)
        }
        _ => raise(Class::Compact, error),
    }
}

fn insufficient(error: &Error, numbers: [(&str, u64); 3]) -> PyErr {
    Python::attach(|py| {
        let fields = PyDict::new(py);
        for (name, number) in numbers {
            if let Err(failed) = fields.set_item(name, number) {
                return failed;
            }
        }
        let message = error.to_string();
        build(py, Class::InsufficientBudget, &message, Some(&fields))
            .unwrap_or_else(|failed| failed)
    })
}
