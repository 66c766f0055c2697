//! Environments for tests that need what others ship: of Python, one for each list of requirements,
//! and of [`node`].
//!
//! They are kept in the user's cache directory, so that a new clone does not fetch them again, and they
//! are named by their lists, so that a list that changes gets an environment of its own.

pub(crate) mod node;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell;

/// What an environment holds.
pub(crate) struct PythonEnvironment {
    /// The first part of its folder's name.
    pub(crate) name: &'static str,
    /// What is installed into it, in order.
    pub(crate) lists: &'static [PipRequirements],
}

/// A list of requirements.
pub(crate) struct PipRequirements {
    /// The path of the list in the repository.
    pub(crate) file: &'static str,
    /// The content of the list.
    pub(crate) text: &'static str,
    /// What pip is told beside it.
    pub(crate) flags: &'static [&'static str],
}

impl PythonEnvironment {
    /// Returns whether it is complete.
    pub(crate) fn is_ready(&self) -> bool {
        self.folder()
            .is_ok_and(|folder| completion_mark(&folder).exists())
    }

    /// Makes it and fills it.
    pub(crate) fn install(&self) -> Result<()> {
        let folder = self.folder()?;
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("could not create {}", folder.display()))?;
        let place = folder.display().to_string();
        shell::run("python3", &["-m", "venv", &place])?;
        for list in self.lists {
            let pip = ["-m", "pip", "install", "--quiet"];
            let arguments = [&pip, list.flags, &["-r", list.file]].concat();
            shell::run(&python_in(&folder), &arguments)?;
        }
        std::fs::write(completion_mark(&folder), self.requirements_text())
            .context("could not mark the environment as ready")
    }

    /// Runs the tests of a folder against the command as it was built for the other tests; `around`
    /// is a command that runs the one after it.
    pub(crate) fn run_pytest(
        &self,
        tests: &str,
        variables: &[(&str, &str)],
        around: &[&str],
    ) -> Result<()> {
        shell::run("cargo", &["build", "--quiet", "-p", "compactctl"])?;
        let python = python_in(&self.folder()?);
        let pytest = ["-m", "pytest", "--quiet", "-p", "no:cacheprovider", tests];
        let line = [around, &[&python], &pytest].concat();
        let variables = [&[("PYTHONDONTWRITEBYTECODE", "1")], variables].concat();
        match line.split_first() {
            Some((program, arguments)) => shell::run_with(program, arguments, &variables),
            None => Ok(()),
        }
    }

    /// Its Python, once it is complete.
    pub(crate) fn python_path(&self) -> Option<String> {
        let folder = self
            .folder()
            .ok()
            .filter(|folder| completion_mark(folder).exists())?;
        Some(python_in(&folder))
    }

    fn folder(&self) -> Result<PathBuf> {
        cache_folder(self.name, &self.requirements_text())
    }

    fn requirements_text(&self) -> String {
        self.lists.iter().map(|list| list.text).collect()
    }
}

/// Returns where an environment of this name that holds what `text` lists is kept.
pub(crate) fn cache_folder(name: &str, text: &str) -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = cache
        .or_else(home)
        .context("neither XDG_CACHE_HOME nor HOME is set; set one for the packages")?;
    let name = format!("{name}-{:x}", digest(text));
    Ok(cache.join("compact").join(name))
}

fn python_in(folder: &Path) -> String {
    folder.join("bin/python").display().to_string()
}

/// Returns the file that is written last, so that an incomplete environment is not taken for a complete
/// one.
fn completion_mark(folder: &Path) -> PathBuf {
    folder.join("complete")
}

/// Hashes a list of requirements to a name; FNV-1a is enough to distinguish them.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
