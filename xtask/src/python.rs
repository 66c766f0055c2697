//! The tests under `tests/python`: the package `compact` as people install it, with the frameworks that
//! it works in.
//!
//! The wheel is built without optimisation, from what the other tests have compiled already; how large and
//! how quick it is when people build it is measured by `cargo xtask bench python`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::chore::Chore;
use crate::dist;
use crate::environment::{self, PipRequirements, PythonEnvironment, list_file};
use crate::shell::{self, Console};

/// The one that does not get along with the others.
pub(crate) const LITELLM: PythonEnvironment = PythonEnvironment {
    name: "litellm",
    lists: &[PipRequirements {
        files: &[list_file!("tests/python/litellm.txt")],
        flags: &[],
    }],
};

const TESTS: &str = "tests/python";
const LITELLM_TESTS: &str = "tests/python/test_litellm.py";

/// The least share of the package's lines and branches that its tests must run.
const COVERAGE: &str = "--cov-fail-under=90";

/// Returns the tests as a chore; without what they need there is none. The variables say where servers are.
pub(crate) fn test_chore<'a>(servers: &'a [(&'a str, String)]) -> Option<Chore<'a>> {
    let python = environment::TESTS.python_path()?;
    Some(Chore::new(
        "Python package (tests/python)",
        move |console: &Console| test_package(console, &python, servers),
    ))
}

/// Builds the wheel, installs it, and tests it: its behaviour, its coverage and its stubs.
fn test_package(console: &Console, python: &str, servers: &[(&str, String)]) -> Result<()> {
    let _held = environment::TESTS.hold()?;
    let wheel = build_wheel(console, python, &["--profile", "dev"])?;
    install_wheel(console, python, &wheel)?;
    let arguments = [
        &pytest_arguments("--cov=compact")[..],
        &["--ignore", LITELLM_TESTS, TESTS],
    ];
    run_python(console, python, &arguments.concat(), servers)?;
    let stubs = ["-m", "mypy.stubtest", "compact._native"];
    let settings = ["--mypy-config-file", "pyproject.toml"];
    run_python(console, python, &[&stubs[..], &settings].concat(), &[])?;
    run_python(console, python, &["-m", "mypy", "python/compact"], &[])?;
    test_litellm(console, &wheel)
}

/// Times the wheel as people build it; fails when a limit is exceeded.
pub(crate) fn bench_wheel(console: &Console) -> Result<()> {
    for environment in [environment::TESTS, LITELLM] {
        environment.install_missing()?;
    }
    let python = tests_python()?;
    let litellm = LITELLM
        .python_path()
        .context("the environment is not there")?;
    let wheel = dist::build_own_wheel(console, &empty_wheel_folder()?)?;
    install_wheel(console, &python, &wheel)?;
    install_wheel(console, &litellm, &wheel)?;
    run_python(
        console,
        &python,
        &["-m", "tests.python.bench", "LIMITS", &litellm],
        &[],
    )
}

/// Returns the Python that the tests run in, once it is there.
fn tests_python() -> Result<String> {
    let python = environment::TESTS.python_path();
    python.context("the environment is not there")
}

/// Builds the wheel as shipped and installs it for the tests.
pub(crate) fn install_shipped(console: &Console) -> Result<()> {
    let python = tests_python()?;
    let wheel = dist::build_own_wheel(console, &empty_wheel_folder()?)?;
    install_wheel(console, &python, &wheel)
}

/// Runs one test of the installed wheel, and keeps what it prints.
pub(crate) fn test_one(console: &Console, test: &str, variables: &[(&str, &str)]) -> Result<()> {
    let pytest = ["-m", "pytest", "--quiet", "-s", "-p", "no:cacheprovider"];
    let more: Vec<_> = variables
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    let arguments = [&pytest[..], &[test]].concat();
    run_python(console, &tests_python()?, &arguments, &more)
}

fn test_litellm(console: &Console, wheel: &Path) -> Result<()> {
    let Some(python) = LITELLM.python_path() else {
        return Ok(());
    };
    install_wheel(console, &python, wheel)?;
    let arguments = [
        &pytest_arguments("--cov=compact.integrations.litellm")[..],
        &[LITELLM_TESTS],
    ];
    run_python(console, &python, &arguments.concat(), &[])
}

fn pytest_arguments(covered: &'static str) -> [&'static str; 8] {
    [
        "-m",
        "pytest",
        "--quiet",
        "-p",
        "no:cacheprovider",
        covered,
        "--cov-report=term:skip-covered",
        COVERAGE,
    ]
}

fn run_python(
    console: &Console,
    python: &str,
    arguments: &[&str],
    more: &[(&str, String)],
) -> Result<()> {
    let place = |name: &str| shell::target_folder().join(name).display().to_string();
    let (coverage, mypy) = (place("python.coverage"), place("mypy"));
    let ours = [
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("COVERAGE_FILE", coverage.as_str()),
        ("MYPY_CACHE_DIR", mypy.as_str()),
    ];
    let more = more.iter().map(|(name, value)| (*name, value.as_str()));
    let variables: Vec<_> = ours.into_iter().chain(more).collect();
    console.run(python, arguments, &variables)
}

/// Builds the wheel for tests and returns it.
pub(crate) fn build_wheel(console: &Console, python: &str, how: &[&str]) -> Result<PathBuf> {
    let how = [&["--strip"], how].concat();
    run_maturin(console, python, &empty_wheel_folder()?, &how, &[])
}

/// Returns the folder of wheels, without what was in it.
fn empty_wheel_folder() -> Result<PathBuf> {
    let folder = shell::target_folder().join("wheels");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("could not clear the folder of wheels")?;
    }
    Ok(folder)
}

/// Builds a wheel into a folder that has none, and returns it.
pub(crate) fn run_maturin(
    console: &Console,
    python: &str,
    folder: &Path,
    how: &[&str],
    variables: &[(String, String)],
) -> Result<PathBuf> {
    let place = folder.display().to_string();
    let arguments = ["-m", "maturin", "build", "--quiet", "--out", &place];
    let variables: Vec<_> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    console.run(python, &[&arguments, how].concat(), &variables)?;
    let mut files = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let wheel = files.find(|file| file.extension().is_some_and(|e| e == "whl"));
    wheel.context("maturin built no wheel")
}

/// Installs the wheel alone: it needs nothing.
pub(crate) fn install_wheel(console: &Console, python: &str, wheel: &Path) -> Result<()> {
    let wheel = wheel.display().to_string();
    let how = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--force-reinstall",
        &wheel,
    ];
    console.run(python, &how, &[])
}
