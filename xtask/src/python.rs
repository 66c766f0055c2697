//! The tests under `tests/python`: the package `compact` as people install it, with the frameworks that
//! it works in.
//!
//! The wheel is built without optimisation, from what the other tests have compiled already; how large and
//! how quick it is when people build it is measured by `cargo xtask bench python`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::environment::{PipRequirements, PythonEnvironment};
use crate::shell;

/// The frameworks and clients, the builder of wheels and the judges: some hundred megabytes.
pub(crate) const ENVIRONMENT: PythonEnvironment = PythonEnvironment {
    name: "python",
    lists: &[PipRequirements {
        file: "tests/python/requirements.txt",
        text: include_str!("../../tests/python/requirements.txt"),
        flags: &[],
    }],
};

/// The one that does not get along with the others.
pub(crate) const LITELLM: PythonEnvironment = PythonEnvironment {
    name: "litellm",
    lists: &[PipRequirements {
        file: "tests/python/litellm.txt",
        text: include_str!("../../tests/python/litellm.txt"),
        flags: &[],
    }],
};

const TESTS: &str = "tests/python";
const LITELLM_TESTS: &str = "tests/python/test_litellm.py";

/// The least share of the package's lines and branches that its tests must run.
const COVERAGE: &str = "--cov-fail-under=90";

/// Builds the wheel, installs it, and tests it: its behaviour, its coverage and its stubs. The
/// variables say where servers are.
pub(crate) fn test_package(servers: &[(&str, String)]) -> Result<()> {
    let python = ENVIRONMENT
        .python_path()
        .context("the environment is not there")?;
    let wheel = build_wheel(&python, &["--profile", "dev"])?;
    install_wheel(&python, &wheel)?;
    let arguments = [
        &pytest_arguments("--cov=compact")[..],
        &["--ignore", LITELLM_TESTS, TESTS],
    ];
    run_python(&python, &arguments.concat(), servers)?;
    run_python(
        &python,
        &[
            "-m",
            "mypy.stubtest",
            "compact._native",
            "--mypy-config-file",
            "pyproject.toml",
        ],
        &[],
    )?;
    run_python(&python, &["-m", "mypy", "python/compact"], &[])?;
    test_litellm(&wheel)
}

/// Times the wheel as people build it; fails when a limit is exceeded.
pub(crate) fn bench_wheel() -> Result<()> {
    for environment in [ENVIRONMENT, LITELLM] {
        if !environment.is_ready() {
            environment.install()?;
        }
    }
    let missing = || "the environment is not there";
    let python = ENVIRONMENT.python_path().with_context(missing)?;
    let litellm = LITELLM.python_path().with_context(missing)?;
    let wheel = build_wheel(&python, &["--release"])?;
    install_wheel(&python, &wheel)?;
    install_wheel(&litellm, &wheel)?;
    run_python(
        &python,
        &["-m", "tests.python.bench", "LIMITS", &litellm],
        &[],
    )
}

/// Builds the wheel as people do and installs it.
pub(crate) fn install_release() -> Result<()> {
    let python = ENVIRONMENT
        .python_path()
        .context("the environment is not there")?;
    install_wheel(&python, &build_wheel(&python, &["--release"])?)
}

/// Runs one test of the installed wheel, and shows what it prints.
pub(crate) fn test_one(test: &str, variables: &[(&str, &str)]) -> Result<()> {
    let python = ENVIRONMENT
        .python_path()
        .context("the environment is not there")?;
    let pytest = ["-m", "pytest", "--quiet", "-s", "-p", "no:cacheprovider"];
    let more: Vec<_> = variables
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    run_python(&python, &[&pytest[..], &[test]].concat(), &more)
}

fn test_litellm(wheel: &Path) -> Result<()> {
    let Some(python) = LITELLM.python_path() else {
        return Ok(());
    };
    install_wheel(&python, wheel)?;
    let arguments = [
        &pytest_arguments("--cov=compact.integrations.litellm")[..],
        &[LITELLM_TESTS],
    ];
    run_python(&python, &arguments.concat(), &[])
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

fn run_python(python: &str, arguments: &[&str], more: &[(&str, String)]) -> Result<()> {
    let place = |name: &str| shell::target_folder().join(name).display().to_string();
    let (coverage, mypy) = (place("python.coverage"), place("mypy"));
    let ours = [
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("COVERAGE_FILE", coverage.as_str()),
        ("MYPY_CACHE_DIR", mypy.as_str()),
    ];
    let more = more.iter().map(|(name, value)| (*name, value.as_str()));
    let variables: Vec<_> = ours.into_iter().chain(more).collect();
    shell::run_with(python, arguments, &variables)
}

/// Returns the wheel, in a folder that holds no other.
pub(crate) fn build_wheel(python: &str, how: &[&str]) -> Result<PathBuf> {
    let folder = shell::target_folder().join("wheels");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("could not clear the folder of wheels")?;
    }
    let place = folder.display().to_string();
    let arguments = [
        "-m", "maturin", "build", "--quiet", "--strip", "--out", &place,
    ];
    shell::run(python, &[&arguments, how].concat())?;
    let mut files = std::fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let wheel = files.find(|file| file.extension().is_some_and(|e| e == "whl"));
    wheel.context("maturin built no wheel")
}

/// Installs the wheel alone: it needs nothing.
pub(crate) fn install_wheel(python: &str, wheel: &Path) -> Result<()> {
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
    shell::run(python, &how)
}
