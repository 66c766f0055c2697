//! The wheel for Python, with the command in it as a script: `pip install` gives people both.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::Release;
use super::binary::{self, BuiltCommand};
use crate::environment;
use crate::shell::{self, Console};

/// Builds the wheel and puts the command into it.
pub(super) fn make(release: &Release, command: &BuiltCommand) -> Result<PathBuf> {
    environment::TESTS.install_missing()?;
    let python = environment::TESTS.python_path();
    let python = python.context("the environment with maturin is not there")?;
    let folder = release.folder.display().to_string();
    let variables = binary::reproducible_variables(release);
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let arguments = [
        "-m",
        "maturin",
        "build",
        "--quiet",
        "--locked",
        "--profile",
        "dist",
        "--target",
        release.target.rust,
        "--out",
        &folder,
    ];
    Console::Terminal.run(&python, &arguments, &variables)?;
    let mut files =
        std::fs::read_dir(&release.folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let wheel = files.find(|file| file.extension().is_some_and(|e| e == "whl"));
    let wheel = wheel.context("maturin built no wheel")?;
    let (path, script) = (
        wheel.display().to_string(),
        command.path.display().to_string(),
    );
    shell::run_with(
        &python,
        &["xtask/python/add_script.py", &path, &script],
        &[("SOURCE_DATE_EPOCH", &release.date.to_string())],
    )?;
    Ok(wheel)
}
