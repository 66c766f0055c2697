//! Environments for tests that need what others ship: of Python, one for all that get along with each other
//! ([`TESTS`]) and one for what does not, and of [`node`].
//!
//! They are kept in the user's cache directory, so that a new clone does not fetch them again, and they
//! are named by their lists, so that a list that changes gets an environment of its own.

pub(crate) mod node;

/// A list of requirements, by its path in the repository.
macro_rules! list_file {
    ($path:literal) => {
        (
            $path,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../", $path)),
        )
    };
}
pub(crate) use list_file;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::Console;

/// Everything for Python that gets along with each other: SDKs and frameworks, an agent, a server that speaks S3, one
/// that runs a model, a collector, and the builder of wheels. A gigabyte.
pub(crate) const TESTS: PythonEnvironment = PythonEnvironment {
    name: "tests",
    lists: &[
        PipRequirements {
            files: &[
                list_file!("tests/python/requirements.txt"),
                list_file!("tests/agents/requirements.txt"),
                list_file!("tests/wire/requirements.txt"),
                list_file!("tests/storage/requirements.txt"),
            ],
            flags: &[],
        },
        PipRequirements {
            files: &[
                list_file!("tests/wire/server.txt"),
                list_file!("tests/collector/requirements.txt"),
            ],
            flags: &["--no-deps"],
        },
    ],
};

/// What an environment holds.
pub(crate) struct PythonEnvironment {
    /// The first part of its folder's name.
    pub(crate) name: &'static str,
    /// What is installed into it, in order.
    pub(crate) lists: &'static [PipRequirements],
}

/// Lists of requirements that are installed in one go, so that their versions get along.
pub(crate) struct PipRequirements {
    /// The path of each list in the repository, and its content.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// What pip is told beside them.
    pub(crate) flags: &'static [&'static str],
}

impl PythonEnvironment {
    /// Returns whether it is complete.
    pub(crate) fn is_ready(&self) -> bool {
        self.folder()
            .is_ok_and(|folder| completion_mark(&folder).exists())
    }

    /// Makes it and fills it.
    pub(crate) fn install(&self, console: &Console) -> Result<()> {
        let folder = self.folder()?;
        let _lock = lock_folder(&folder)?;
        if completion_mark(&folder).exists() {
            return Ok(());
        }
        let place = folder.display().to_string();
        console.run("python3", &["-m", "venv", &place], &[])?;
        for list in self.lists {
            let pip = ["-m", "pip", "install", "--quiet"];
            let files = list.files.iter().flat_map(|(path, _)| ["-r", path]);
            let files: Vec<&str> = files.collect();
            let arguments = [&pip, list.flags, &files].concat();
            console.run(&python_in(&folder), &arguments, &[])?;
        }
        std::fs::write(completion_mark(&folder), self.requirements_text())
            .context("could not mark the environment as ready")
    }

    /// Installs it unless it is complete.
    pub(crate) fn install_missing(&self) -> Result<()> {
        match self.is_ready() {
            true => Ok(()),
            false => self.install(&Console::Terminal),
        }
    }

    /// Waits until no other clone has a wheel of its own in it; it is free again when what is returned is dropped.
    pub(crate) fn hold(&self) -> Result<std::fs::File> {
        let path = self.folder()?.with_extension("held");
        let wanted = || format!("could not hold {}", path.display());
        let file = std::fs::File::create(&path).with_context(wanted)?;
        if file.try_lock().is_err() {
            println!("waiting for another clone, whose wheel is being tried");
            file.lock().with_context(wanted)?;
        }
        Ok(file)
    }

    /// Runs tests against the command as it was built for the other tests; `around` is a command that runs the
    /// one after it.
    pub(crate) fn run_pytest(
        &self,
        console: &Console,
        tests: &str,
        variables: &[(&str, &str)],
        around: &[&str],
    ) -> Result<()> {
        let python = python_in(&self.folder()?);
        let pytest = ["-m", "pytest", "--quiet", "-p", "no:cacheprovider", tests];
        let line = [around, &[&python], &pytest].concat();
        let variables = [&[("PYTHONDONTWRITEBYTECODE", "1")], variables].concat();
        match line.split_first() {
            Some((program, arguments)) => console.run(program, arguments, &variables),
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
        let files = self.lists.iter().flat_map(|list| list.files);
        files.map(|(_, text)| *text).collect()
    }
}

/// Makes a folder and waits until nobody else fills it: two clones may want the same one. The lock ends with the file.
fn lock_folder(folder: &Path) -> Result<std::fs::File> {
    let wanted = || format!("could not create {}", folder.display());
    std::fs::create_dir_all(folder).with_context(wanted)?;
    let lock = std::fs::File::create(folder.with_extension("lock")).with_context(wanted)?;
    lock.lock().with_context(wanted)?;
    Ok(lock)
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
