//! The files of the diffs that a session was shown, each as the newest diff has it.
//!
//! A file that the session changed itself is told by its own edits, and a diff of it would say the same again.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::file_state::FileStates;
use super::root::RootDirectory;
use crate::ledger::{DiffedFile, FileAct, FileFact, Ledger};

/// Diffs by the paths of their files below the root directory.
pub(super) struct DiffTable<'l> {
    files: HashMap<String, &'l DiffedFile, FixedState>,
    /// The calls that showed a diff.
    runs: HashSet<u32, FixedState>,
}

impl<'l> DiffTable<'l> {
    pub(super) fn from_ledger(
        ledger: &'l Ledger,
        root: &RootDirectory<'_>,
        states: &FileStates<'_>,
    ) -> Self {
        let diffs = &ledger.facts.diffs;
        let mut files: HashMap<String, &'l DiffedFile, FixedState> = HashMap::default();
        for diffed in diffs {
            let path = root.shorten(&diffed.path).into_owned();
            let known = states.state_of(&path).map(|state| state.fact);
            if !known.is_some_and(FileFact::is_changed) {
                files.insert(path, diffed);
            }
        }
        DiffTable {
            files,
            runs: diffs.iter().map(|diffed| diffed.change.ordinal).collect(),
        }
    }

    /// The files in the order in which they were shown.
    pub(super) fn newest(&self) -> impl Iterator<Item = &'l DiffedFile> {
        let mut files: Vec<&'l DiffedFile> = self.files.values().copied().collect();
        files.sort_by(|a, b| (a.change.ordinal, &a.path).cmp(&(b.change.ordinal, &b.path)));
        files.into_iter()
    }

    /// Whether a call showed a diff that is told file by file.
    pub(super) fn has_run(&self, ordinal: u32) -> bool {
        self.runs.contains(&ordinal)
    }

    /// What a diff did to the file at a path, behind its name.
    pub(super) fn label_of(&self, path: &str) -> String {
        let Some(diffed) = self.files.get(path) else {
            return String::new();
        };
        let act = match diffed.act {
            FileAct::Created => "new",
            FileAct::Deleted => "deleted",
            _ => "changed",
        };
        format!(" ({act} in the diff of #{})", diffed.change.ordinal)
    }
}
