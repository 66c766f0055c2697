//! What of a file's lines still stands there.
//!
//! A line that was read, or that an edit put in, is stale once a later edit took it out, a later call wrote the whole
//! file anew or put it back as it was, or the file was deleted. A summary that shows such a line shows an old value as if it were the present
//! one, so it is left out. Changes that were made by other means than edits are not known here.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::root::RootDirectory;
use crate::ledger::{FileAct, FileFact, Ledger};

/// The files of a session by their paths below its root directory.
pub(super) struct FileStates<'l> {
    states: HashMap<String, FileState<'l>, FixedState>,
}

/// One file: what was done to it, and which of its lines went.
pub(super) struct FileState<'l> {
    pub fact: &'l FileFact,
    /// Lines that an edit took out, and the last edit that did.
    removed: HashMap<String, u32, FixedState>,
}

/// Characters by which a line is recognised: edits are kept with cut lines.
const LINE_KEY: usize = 120;

/// What two quotations of one line have in common.
fn line_key(line: &str) -> String {
    let line = line.trim().trim_end_matches([',', '…']);
    line.chars().take(LINE_KEY).collect()
}

impl<'l> FileStates<'l> {
    pub(super) fn from_ledger(ledger: &'l Ledger, root: &RootDirectory<'_>) -> Self {
        let mut states: HashMap<String, FileState<'l>, FixedState> = HashMap::default();
        for fact in &ledger.facts.files {
            let path = root.shorten(&fact.path).into_owned();
            let state = states.entry(path).or_insert_with(|| FileState {
                fact,
                removed: HashMap::default(),
            });
            // One file under two paths: what was changed last is what counts.
            let is_later = fact.act != FileAct::Read && fact.ordinal > state.fact.ordinal;
            if state.fact.act == FileAct::Read || is_later {
                state.fact = fact;
            }
            for change in &fact.changes {
                let removed = change.lines.lines().filter_map(|l| l.strip_prefix('-'));
                for line in removed {
                    let last = state.removed.entry(line_key(&root.shorten(line)));
                    let last = last.or_default();
                    *last = change.ordinal.max(*last);
                }
            }
        }
        FileStates { states }
    }

    /// The file at a path that was made relative.
    pub(super) fn state_of(&self, path: &str) -> Option<&FileState<'l>> {
        self.states.get(path)
    }
}

impl FileState<'_> {
    /// Whether a line that was seen at `ordinal` is there no longer.
    pub(super) fn is_stale(&self, line: &str, ordinal: u32) -> bool {
        let is_replaced = match self.fact.act {
            FileAct::Deleted => true,
            FileAct::Created | FileAct::Restored => self.fact.ordinal > ordinal,
            FileAct::Read | FileAct::Edited => false,
        };
        let last_removal = || self.removed.get(&line_key(line));
        is_replaced
            || (!self.removed.is_empty() && last_removal().is_some_and(|last| *last > ordinal))
    }
}
