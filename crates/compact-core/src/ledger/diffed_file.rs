//! What a tool's answer shows of changes that others made: a diff, file by file.
//!
//! Whoever reviews a change knows it by its diff. What a file gained and lost is kept as the lines of an edit are, so that it
//! can be told under the file's name; what the session itself edits is known from its own calls.

use serde::{Deserialize, Serialize};

use super::edit_lines::changed_lines;
use super::file::{FileAct, FileChange};

/// A file of a diff that a tool showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiffedFile {
    /// Its path as the diff has it, without the letter of its side.
    pub path: Box<str>,
    /// Whether it is new, changed or gone.
    pub act: FileAct,
    /// The call that showed it, and its changed lines; none of a file that is gone.
    pub change: FileChange,
}

/// Files that are read of one diff.
const FILES: usize = 64;
/// What opens the part of a diff that is about one file.
const OPENING: &str = "diff --git ";

/// Whether a command may show a diff.
pub(crate) fn may_show_diff(command: &str) -> bool {
    command.contains("diff") || command.contains("git show")
}

/// The files of the diff in a tool's answer; `ordinal` is that of the call.
pub(super) fn diffed_files(ordinal: u32, answer: &str) -> Vec<DiffedFile> {
    let starts = memchr::memmem::find_iter(answer.as_bytes(), OPENING);
    let starts = starts.filter(|at| *at == 0 || answer.as_bytes().get(at - 1) == Some(&b'\n'));
    let mut starts: Vec<usize> = starts.take(FILES + 1).collect();
    if starts.len() <= FILES {
        starts.push(answer.len());
    }
    let parts = starts.windows(2).filter_map(|ends| {
        let (from, to) = (ends.first()?, ends.last()?);
        answer.get(*from..*to)
    });
    parts
        .filter_map(|part| DiffedFile::from_part(ordinal, part))
        .collect()
}

impl DiffedFile {
    fn from_part(ordinal: u32, part: &str) -> Option<DiffedFile> {
        let side = |mark: &str| {
            let line = part.lines().find_map(|line| line.strip_prefix(mark))?;
            let path = line.split('\t').next().unwrap_or(line).trim_matches('"');
            Some(path)
        };
        let (before, after) = (side("--- ")?, side("+++ ")?);
        let path = |side: &str| strip_side(side).to_owned();
        let (path, act) = match (before, after) {
            (before, "/dev/null") => (path(before), FileAct::Deleted),
            ("/dev/null", after) => (path(after), FileAct::Created),
            (_, after) => (path(after), FileAct::Edited),
        };
        if path.is_empty() {
            return None;
        }
        let lines = match act {
            FileAct::Deleted => String::new(),
            _ => changed_lines(&path, part, ""),
        };
        let change = FileChange {
            ordinal,
            lines: lines.into(),
        };
        Some(DiffedFile {
            path: path.into(),
            act,
            change,
        })
    }
}

/// A path without the letter of its side, which git leaves out where it is told to.
fn strip_side(path: &str) -> &str {
    match path.split_once('/') {
        Some((side, rest)) if side.len() == 1 => rest,
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_read_file_by_file() {
        let answer = "Output:\ndiff --git a/doc/notes.md b/doc/notes.md\nindex 1..2 100644\n--- a/doc/notes.md\n+++ b/doc/notes.md\n@@ -1,2 +1,3 @@\n # Notes\n+The cache is gone since the store keeps its own.\n-The cache is warmed at start.\ndiff --git a/src/cache.rs b/src/cache.rs\ndeleted file mode 100644\n--- a/src/cache.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-fn warm() {}\ndiff --git a/src/new file.rs b/src/new file.rs\nnew file mode 100644\n--- /dev/null\n+++ \"b/src/new file.rs\"\n@@ -0,0 +1 @@\n+fn store() -> Store { todo() }\n";
        let files = diffed_files(7, answer);
        let read: Vec<(&str, FileAct, &str)> = files
            .iter()
            .map(|file| (&*file.path, file.act, &*file.change.lines))
            .collect();
        assert_eq!(
            read,
            [
                (
                    "doc/notes.md",
                    FileAct::Edited,
                    "-The cache is warmed at start.\n+The cache is gone since the store keeps its own."
                ),
                ("src/cache.rs", FileAct::Deleted, ""),
                (
                    "src/new file.rs",
                    FileAct::Created,
                    "+fn store() -> Store { todo() }"
                ),
            ]
        );
        assert_eq!(diffed_files(7, "a line about diff --git and no more"), []);
        assert_eq!(
            diffed_files(7, "diff --git a/x b/x\nBinary files differ"),
            []
        );
    }
}
