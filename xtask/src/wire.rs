//! The tests under `tests/wire`: official SDKs and a real server judge the bodies that we make, and
//! the official client of MCP calls our tools.
//!
//! They need Python and packages of some hundred megabytes, which are kept in the user's cache, in
//! one environment for each list of requirements.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell;

const REQUIREMENTS: &str = concat!(
    include_str!("../../tests/wire/requirements.txt"),
    include_str!("../../tests/wire/server.txt"),
);

/// True when the environment is complete.
pub(crate) fn is_ready() -> bool {
    environment().is_ok_and(|folder| mark(&folder).exists())
}

/// Makes the environment and fills it.
pub(crate) fn install() -> Result<()> {
    let folder = environment()?;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("could not create {}", folder.display()))?;
    let place = folder.display().to_string();
    shell::run("python3", &["-m", "venv", &place])?;
    let pip = |more: &[&str]| {
        let arguments = [&["-m", "pip", "install", "--quiet"], more].concat();
        shell::run(&python(&folder), &arguments)
    };
    pip(&["-r", "tests/wire/requirements.txt"])?;
    pip(&["--no-deps", "-r", "tests/wire/server.txt"])?;
    std::fs::write(mark(&folder), REQUIREMENTS).context("could not mark the environment as ready")
}

/// Runs them against the command as it was built for the other tests.
pub(crate) fn run() -> Result<()> {
    shell::run("cargo", &["build", "--quiet", "-p", "compactctl"])?;
    let arguments = [
        "-m",
        "pytest",
        "--quiet",
        "-p",
        "no:cacheprovider",
        "tests/wire",
    ];
    let variables = [("PYTHONDONTWRITEBYTECODE", "1")];
    shell::run_with(&python(&environment()?), &arguments, &variables)
}

/// The Python that has a server and a model, once it is there.
pub(crate) fn python_path() -> Option<String> {
    let folder = environment().ok().filter(|folder| mark(folder).exists())?;
    Some(python(&folder))
}

fn python(folder: &Path) -> String {
    folder.join("bin/python").display().to_string()
}

/// Written last, so that an environment cut short is not taken for a complete one.
fn mark(folder: &Path) -> PathBuf {
    folder.join("complete")
}

fn environment() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = cache
        .or_else(home)
        .context("neither XDG_CACHE_HOME nor HOME is set; set one for the packages")?;
    Ok(cache.join("compact").join(format!("wire-{:x}", digest())))
}

/// Names the list of requirements: FNV-1a is enough to tell one from the next.
fn digest() -> u64 {
    REQUIREMENTS
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}
