//! Where a configuration comes from, and finding it when nobody says.
//!
//! Files are found in two places only: the user's configuration directory and the working directory.
//! Folders above the working directory are not searched, so that nobody's file applies to whatever
//! lies below it. What a file may decide is for others to say.

use std::path::{Path, PathBuf};

use compact_core::profile::Profile;
use etcetera::BaseStrategy;
use serde::Serialize;
use serde_json::Value;

use super::trust::TrustStore;

/// The variables, files and flags that make a configuration.
#[derive(Clone, Debug, Default)]
pub struct ConfigSources {
    /// The files, the weakest first.
    pub files: Vec<ConfigFile>,
    /// Environment variables; those that neither begin with `COMPACT_` nor are borrowed are ignored.
    pub env: Vec<(String, String)>,
    /// What the command line sets.
    pub flags: Vec<ConfigFlag>,
    /// The profile where nobody names one.
    pub fallback_profile: Profile,
    /// Which files of projects are trusted; without it, none is.
    pub trust: Option<TrustStore>,
    /// What was found and is not read.
    pub notes: Vec<String>,
}

/// A file of settings, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// The path of the file.
    pub path: PathBuf,
    /// Whether it is the user's, the project's or a named file.
    pub role: FileRole,
}

/// The owner of a file of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRole {
    /// The user's own, in the configuration directory.
    User,
    /// The one that was found in the working directory.
    Project,
    /// The one that somebody named.
    Named,
}

impl FileRole {
    /// Returns the word for it in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            FileRole::User => "user",
            FileRole::Project => "project",
            FileRole::Named => "named",
        }
    }
}

/// A key set on the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigFlag {
    /// The flag as people type it, e.g. `--window`.
    pub name: String,
    /// The key that it sets.
    pub path: String,
    /// The value; text is read as the key's kind.
    pub value: Value,
}

impl ConfigFlag {
    /// Returns a flag that sets a key.
    pub fn new(
        name: impl Into<String>,
        path: impl Into<String>,
        value: impl Into<Value>,
    ) -> ConfigFlag {
        ConfigFlag {
            name: name.into(),
            path: path.into(),
            value: value.into(),
        }
    }
}

/// Names the file, like `--config`.
const CONFIG_VARIABLE: &str = "COMPACT_CONFIG";

/// Names the run that an agent works for; the same in all of its sessions.
pub const RUN_VARIABLE: &str = "COMPACT_RUN_ID";

/// The beginning of every variable that this program reads.
pub(super) const PREFIX: &str = "COMPACT_";

/// Variables of other programs that mean a key of ours; our own name for it wins.
pub(super) const BORROWED: [(&str, &str); 1] = [("VT_SESSION_DIR", "storage.transcripts")];

/// Variables that are no keys.
pub(super) const RESERVED: [&str; 2] = [CONFIG_VARIABLE, RUN_VARIABLE];

impl ConfigSources {
    /// Returns the environment of this process and the files that apply: the user's,
    /// `compact/config.{yaml,yml,json}` in the configuration directory, and above it the given one, the
    /// one that `COMPACT_CONFIG` names, or `./compact.{…}`. None is fine.
    pub fn discover(file: Option<PathBuf>) -> ConfigSources {
        let mut sources = ConfigSources {
            trust: TrustStore::of_user(),
            ..ConfigSources::default()
        };
        if let Some(folder) = user_folder() {
            sources.search_folder(&folder, "config", FileRole::User);
        }
        let variable = std::env::var_os(CONFIG_VARIABLE).filter(|value| !value.is_empty());
        match file
            .map(named_file)
            .or_else(|| Some(file_from_variable(variable?.into())))
        {
            Some(file) => sources.files.push(file),
            None => sources.search_folder(Path::new(""), "compact", FileRole::Project),
        }
        let text = |s: std::ffi::OsString| s.into_string().ok();
        let env = std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        sources.env = env.collect();
        sources
    }

    /// Returns one file that somebody named, and nothing else.
    pub fn from_file(path: impl Into<PathBuf>) -> ConfigSources {
        ConfigSources {
            files: vec![named_file(path.into())],
            ..ConfigSources::default()
        }
    }

    /// Adds what the command line sets.
    #[must_use]
    pub fn with_flags(mut self, flags: impl IntoIterator<Item = ConfigFlag>) -> ConfigSources {
        self.flags.extend(flags);
        self
    }

    /// Sets the profile that applies if nobody names one.
    #[must_use]
    pub fn with_fallback_profile(mut self, profile: Profile) -> ConfigSources {
        self.fallback_profile = profile;
        self
    }

    /// Returns the sources without the file that was found in the working directory.
    #[must_use]
    pub fn without_project(mut self) -> ConfigSources {
        self.files.retain(|file| file.role != FileRole::Project);
        self
    }

    /// Returns the sources without any file.
    #[must_use]
    pub fn without_files(mut self) -> ConfigSources {
        self.files.clear();
        self
    }

    /// Returns the file that was found in the working directory.
    pub fn project_file(&self) -> Option<&Path> {
        let mut files = self.files.iter();
        let found = files.find(|file| file.role == FileRole::Project)?;
        Some(&found.path)
    }

    /// Takes the first file of a name in a folder; what else there is by that name is told.
    pub(super) fn search_folder(&mut self, folder: &Path, stem: &str, role: FileRole) {
        let candidates = ["yaml", "yml", "json"].map(|ext| folder.join(format!("{stem}.{ext}")));
        let mut taken: Option<PathBuf> = None;
        for path in candidates {
            let shown = path.display();
            match (std::fs::metadata(&path), &taken) {
                (Err(_), _) => {}
                (Ok(found), _) if !found.is_file() => {
                    self.notes
                        .push(format!("{shown} is not a regular file and is ignored"));
                }
                (Ok(_), Some(first)) => self.notes.push(format!(
                    "{shown} is ignored: {} takes precedence",
                    first.display()
                )),
                (Ok(_), None) => taken = Some(path),
            }
        }
        self.files
            .extend(taken.map(|path| ConfigFile { path, role }));
    }
}

/// Returns the folder `compact` in the user's configuration directory.
pub(super) fn user_folder() -> Option<PathBuf> {
    let directories = etcetera::choose_base_strategy().ok()?;
    Some(directories.config_dir().join("compact"))
}

fn named_file(path: PathBuf) -> ConfigFile {
    ConfigFile {
        path,
        role: FileRole::Named,
    }
}

/// Returns the file that a variable names; a relative path, which means another file in every folder,
/// counts as the project's.
fn file_from_variable(path: PathBuf) -> ConfigFile {
    let role = match path.is_absolute() {
        true => FileRole::Named,
        false => FileRole::Project,
    };
    ConfigFile { path, role }
}
