//! A folder of packages from npm, in the versions of a lock file.
//!
//! Their install scripts do not run: the programs that we start come built.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::{cache_folder, completion_mark, lock_folder};
use crate::shell::{self, Console};

/// The oldest Node that every package runs on.
const OLDEST: u32 = 20;

/// What a folder holds.
pub(crate) struct NodePackages {
    /// The first part of its name.
    pub(crate) name: &'static str,
    /// The content of `package.json`.
    pub(crate) manifest: &'static str,
    /// The content of `package-lock.json`.
    pub(crate) lock: &'static str,
}

impl NodePackages {
    /// Returns the folder, once it is complete.
    pub(crate) fn complete_folder(&self) -> Option<PathBuf> {
        let folder = self.folder().ok()?;
        (completion_mark(&folder).exists() && has_node()).then_some(folder)
    }

    /// Makes the folder and fills it; gets Node first where it is missing.
    pub(crate) fn install(&self, console: &Console) -> Result<()> {
        if !has_node() {
            get_node(console)?;
        }
        let folder = self.folder()?;
        let _lock = lock_folder(&folder)?;
        if completion_mark(&folder).exists() {
            return Ok(());
        }
        let files = [
            ("package.json", self.manifest),
            ("package-lock.json", self.lock),
        ];
        for (name, text) in files {
            std::fs::write(folder.join(name), text)
                .with_context(|| format!("could not write {name}"))?;
        }
        let place = folder.display().to_string();
        // It refuses a lock without the packages of every other platform, so ours names them.
        let npm = ["ci", "--prefix", &place, "--ignore-scripts"];
        let quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
        console.run("npm", &[&npm[..], &quiet].concat(), &[])?;
        std::fs::write(completion_mark(&folder), self.lock)
            .context("could not mark the packages as complete")
    }

    fn folder(&self) -> Result<PathBuf> {
        cache_folder(self.name, &format!("{}{}", self.manifest, self.lock))
    }
}

fn has_node() -> bool {
    let version = shell::quiet_output("node", &["--version"]).unwrap_or_default();
    let major = version.trim().trim_start_matches('v').split('.').next();
    let is_new = major.and_then(|major| major.parse().ok()) >= Some(OLDEST);
    is_new && shell::run_succeeds("npm", &["--version"])
}

fn get_node(console: &Console) -> Result<()> {
    if !shell::is_root() {
        bail!("Node {OLDEST} or newer with npm is not there, and only root may install it");
    }
    shell::install_debian_packages(console, &["nodejs", "npm"])?;
    if !has_node() {
        bail!("apt has no Node {OLDEST} or newer; install it by hand");
    }
    Ok(())
}
