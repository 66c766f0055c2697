//! What can be wrong with a configuration. Every problem is reported, not only the first.

use std::fmt;
use std::path::{Path, PathBuf};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{} cannot be read: name another one with --config, or make it readable", path.display())]
    Unreadable {
        /// The file that cannot be read.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not written in the language that its name says.
    #[error("{}{} is not valid {}: {message}", path.display(), line.map(|n| format!(":{n}")).unwrap_or_default(), language_of(path))]
    Syntax {
        /// The file that is not valid.
        path: PathBuf,
        /// The line at fault, if the parser knows it.
        line: Option<u64>,
        /// What the parser said.
        message: String,
    },
    /// Keys or values that do not fit.
    #[error("{}", .0.iter().map(ConfigProblem::to_string).collect::<Vec<_>>().join("\n"))]
    Invalid(Vec<ConfigProblem>),
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The key, as a dotted path.
    pub path: String,
    /// What is wrong, as a sentence for people.
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Returns the languages that a file of this name may be written in.
fn language_of(path: &Path) -> &'static str {
    match path.extension().is_some_and(|name| name == "toml") {
        true => "TOML",
        false => "YAML or JSON",
    }
}
