//! Where a configuration comes from, and finding it when nobody says.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde_json::Value;

/// The variables, files and flags that make a configuration.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// Environment variables; those that neither begin with `COMPACT_` nor are borrowed are ignored.
    pub env: Vec<(String, String)>,
    /// What the command line sets.
    pub flags: Vec<Flag>,
}

/// A key set on the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Flag {
    /// The flag as people type it, e.g. `--window`.
    pub name: String,
    /// The key that it sets.
    pub path: String,
    /// The value; text is read as the key's kind.
    pub value: Value,
}

impl Flag {
    /// A flag that sets a key.
    pub fn new(name: impl Into<String>, path: impl Into<String>, value: impl Into<Value>) -> Flag {
        Flag {
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

/// Variables of other programs that mean a key of ours; our own name for it wins (S1-21).
pub(super) const BORROWED: [(&str, &str); 1] = [("VT_SESSION_DIR", "storage.transcripts")];

/// Variables that are no keys.
pub(super) const RESERVED: [&str; 2] = [CONFIG_VARIABLE, RUN_VARIABLE];

impl Sources {
    /// The environment of this process and the file that applies: the given one, the one that
    /// `COMPACT_CONFIG` names, `./compact.{yaml,yml,json}`, or `compact/config.{…}` in the user's
    /// configuration directory. None is fine.
    pub fn discover(file: Option<PathBuf>) -> Sources {
        let named = file.or_else(|| std::env::var_os(CONFIG_VARIABLE).map(PathBuf::from));
        let user = || {
            etcetera::choose_base_strategy()
                .ok()
                .map(|dirs| dirs.config_dir().join("compact"))
        };
        let file = named
            .or_else(|| existing(Path::new(""), "compact"))
            .or_else(|| existing(&user()?, "config"));
        let text = |s: std::ffi::OsString| s.into_string().ok();
        let env = std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        Sources {
            file,
            env: env.collect(),
            flags: Vec::new(),
        }
    }

    /// Adds what the command line sets.
    #[must_use]
    pub fn with_flags(mut self, flags: impl IntoIterator<Item = Flag>) -> Sources {
        self.flags.extend(flags);
        self
    }
}

pub(super) fn existing(folder: &Path, stem: &str) -> Option<PathBuf> {
    let candidates = ["yaml", "yml", "json"].map(|ext| folder.join(format!("{stem}.{ext}")));
    candidates.into_iter().find(|path| path.is_file())
}
