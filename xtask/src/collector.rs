//! A collector of OpenTelemetry that is not ours, for the tests of the exporter: ten megabytes from
//! PyPI, of which only the program is used.

use std::path::PathBuf;

use crate::environment;

/// Returns the program, once it is there.
pub(crate) fn find_program() -> Option<String> {
    let python = PathBuf::from(environment::TESTS.python_path()?);
    let library = python.parent()?.parent()?.join("lib");
    let versions = std::fs::read_dir(library).ok()?.flatten();
    let mut programs = versions.map(|v| v.path().join("site-packages/rotel/rotel-agent"));
    let program = programs.find(|program| program.exists())?;
    Some(program.display().to_string())
}
