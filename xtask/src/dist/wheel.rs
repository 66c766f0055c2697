//! The wheel for Python, with the command in it as a script: `pip install` gives people both.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Release;
use super::binary::{self, BuiltCommand};
use crate::environment;
use crate::python;
use crate::shell::{self, Console};

/// Builds the wheel and puts the command into it.
pub(super) fn make(release: &Release, command: &BuiltCommand) -> Result<PathBuf> {
    let wheel = build(&Console::Terminal, release, &release.folder)?;
    let (path, script) = (
        wheel.display().to_string(),
        command.path.display().to_string(),
    );
    shell::run_with(
        &tests_python()?,
        &["xtask/python/add_script.py", &path, &script],
        &[("SOURCE_DATE_EPOCH", &release.date.to_string())],
    )?;
    Ok(wheel)
}

/// Builds the wheel of the package alone.
pub(super) fn build(console: &Console, release: &Release, folder: &Path) -> Result<PathBuf> {
    let variables = binary::reproducible_variables(release);
    let how = [
        "--locked",
        "--profile",
        "dist",
        "--target",
        release.target.rust,
    ];
    python::run_maturin(console, &tests_python()?, folder, &how, &variables)
}

fn tests_python() -> Result<String> {
    environment::TESTS.install_missing()?;
    let python = environment::TESTS.python_path();
    python.context("the environment with maturin is not there")
}
