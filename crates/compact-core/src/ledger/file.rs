//! Files that calls name: what was done to each, and what every edit changed.
//!
//! The most recently touched file stands last. A table finds a file by its path, so that a session with a hundred
//! thousand of them costs no more for each. Contents are not kept, only the lines that an edit took out and put in.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::call_field::CallFields;
use super::cue;
use super::edit_lines::changed_lines;
use super::fact::COMMAND_KEYS;

/// What was done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAct {
    /// Looked at.
    Read,
    /// Changed.
    Edited,
    /// Written whole.
    Created,
    /// Removed.
    Deleted,
    /// Put back as it was before it was changed.
    Restored,
}

impl FileAct {
    /// Whether nothing is left of what was changed before.
    pub fn undoes_changes(self) -> bool {
        matches!(self, FileAct::Deleted | FileAct::Restored)
    }
}

/// A file that a tool call named, with what was done to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileFact {
    /// The path as the newest call gave it.
    pub path: Box<str>,
    /// How often it was read.
    pub reads: u32,
    /// How often it was changed or written.
    pub edits: u32,
    /// The newest act other than reading, or reading when there was no other.
    pub act: FileAct,
    /// The ordinal of that act.
    pub ordinal: u32,
    /// Names defined in the changes, newest last.
    pub symbols: Vec<Box<str>>,
    /// What the newest edits changed, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
}

/// What one call changed in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileChange {
    /// The ordinal of the call.
    pub ordinal: u32,
    /// The changed lines, `-` before those taken out and `+` before those put in; only the first ones of a
    /// large change.
    pub lines: Box<str>,
}

impl FileChange {
    fn from_call(ordinal: u32, path: &str, text: &str, arguments: &str) -> Option<FileChange> {
        let lines = changed_lines(path, text, arguments);
        (!lines.is_empty()).then(|| FileChange {
            ordinal,
            lines: lines.into(),
        })
    }
}

/// Files of one patch whose changes are read: each costs a walk through all of it.
const FILES_OF_A_CALL: usize = 32;

/// Names and changes that are kept of a file.
const SYMBOLS: usize = 8;
const CHANGES: usize = 16;

impl FileFact {
    /// What one call does to files.
    pub(super) fn from_call(
        ordinal: u32,
        name: &str,
        call: &CallFields<'_>,
        arguments: &str,
    ) -> Vec<FileFact> {
        let (files, text) = (touched_files(name, call), call.text);
        let changes = |act| matches!(act, FileAct::Edited | FileAct::Created);
        let symbols = match files.iter().any(|(_, act)| changes(*act)) {
            true => cue::definitions(text, SYMBOLS),
            false => Vec::new(),
        };
        let fact = |(nth, (path, act)): (usize, (&str, FileAct))| FileFact {
            path: path.into(),
            reads: u32::from(act == FileAct::Read),
            edits: u32::from(changes(act)),
            act,
            ordinal,
            symbols: if changes(act) {
                symbols.clone()
            } else {
                Vec::new()
            },
            changes: match changes(act) && nth < FILES_OF_A_CALL {
                true => FileChange::from_call(ordinal, path, text, arguments),
                false => None,
            }
            .into_iter()
            .collect(),
        };
        files.into_iter().enumerate().map(fact).collect()
    }

    /// Whether the session left the file otherwise than it was; what is removed from a folder for scratch was made for it.
    pub fn is_changed(&self) -> bool {
        match self.act {
            FileAct::Read => false,
            FileAct::Edited | FileAct::Created => true,
            FileAct::Deleted => self.edits > 0 || !self.path.starts_with("/tmp/"),
            FileAct::Restored => self.edits > 0,
        }
    }

    /// What a command of a shell removes or puts back.
    pub(super) fn from_shell(ordinal: u32, call: &CallFields<'_>) -> Vec<FileFact> {
        let command = call.value(&COMMAND_KEYS).unwrap_or("");
        let fact = |(path, act): (&str, FileAct)| FileFact {
            path: path.into(),
            reads: 0,
            edits: 0,
            act,
            ordinal,
            symbols: Vec::new(),
            changes: Vec::new(),
        };
        undone_files(command).into_iter().map(fact).collect()
    }

    /// Adds what was done to the same file later.
    fn absorb(&mut self, later: FileFact) {
        self.reads += later.reads;
        self.edits += later.edits;
        if later.act != FileAct::Read || self.act == FileAct::Read {
            self.act = later.act;
            self.ordinal = later.ordinal;
        }
        if later.act.undoes_changes() {
            self.symbols.clear();
            self.changes.clear();
        }
        for symbol in later.symbols {
            self.symbols.retain(|s| *s != symbol);
            self.symbols.push(symbol);
        }
        let surplus = self.symbols.len().saturating_sub(SYMBOLS);
        self.symbols.drain(..surplus);
        self.changes.extend(later.changes);
        let surplus = self.changes.len().saturating_sub(CHANGES);
        self.changes.drain(..surplus);
    }
}

/// Files by their path, in the order of their newest touch.
#[derive(Default)]
pub(super) struct FileTable {
    /// What moved to the end left its place empty.
    slots: Vec<Option<FileFact>>,
    places: HashMap<Box<str>, usize, foldhash::fast::FixedState>,
}

impl FileTable {
    pub(super) fn from_files(files: Vec<FileFact>) -> FileTable {
        let places = files
            .iter()
            .enumerate()
            .map(|(at, file)| (file.path.clone(), at));
        FileTable {
            places: places.collect(),
            slots: files.into_iter().map(Some).collect(),
        }
    }

    /// Notes what was done to a file, which then stands last.
    pub(super) fn touch(&mut self, file: FileFact) {
        let end = self.slots.len();
        let known = match self.places.get_mut(&file.path) {
            Some(at) => self.slots.get_mut(std::mem::replace(at, end)),
            None => {
                self.places.insert(file.path.clone(), end);
                None
            }
        };
        let touched = match known.and_then(Option::take) {
            Some(mut known) => {
                known.absorb(file);
                known
            }
            None => file,
        };
        self.slots.push(Some(touched));
    }

    /// The files, the most recently touched last.
    pub(super) fn into_files(self) -> Vec<FileFact> {
        self.slots.into_iter().flatten().collect()
    }
}

const PATH_KEYS: [&str; 9] = [
    "file_path",
    "path",
    "filename",
    "file",
    "filePath",
    "target_file",
    "notebook_path",
    "file_name",
    "absolute_path",
];

/// The files a call names and what it does to them.
fn touched_files<'t>(name: &str, call: &CallFields<'t>) -> Vec<(&'t str, FileAct)> {
    let (text, mut out) = (call.text, Vec::new());
    let first_line = |keys: &[&str]| call.value(keys)?.lines().next();
    if let Some(path) = first_line(&PATH_KEYS) {
        let how = first_line(&["command"]).unwrap_or("");
        if path.contains(['/', '.']) && !path.contains(' ') && !is_search(name) {
            out.push((path, act(name, how)));
        }
    }
    let marks = |mark: &str| memchr::memmem::find(text.as_bytes(), mark.as_bytes()).is_some();
    if marks("*** ") || marks("+++ ") {
        out.extend(text.lines().filter_map(patched));
    }
    if out.is_empty() {
        let command = call.value(&COMMAND_KEYS);
        let read = command.and_then(|v| printed_file(shell_line(v)?));
        out.extend(read.map(|path| (path, FileAct::Read)));
    }
    out
}

/// The line that a shell is given, also where the shell is named before it.
fn shell_line(command: &str) -> Option<&str> {
    let is_shell = |word: &str| matches!(word, "bash" | "sh" | "zsh" | "-lc" | "-c");
    command.lines().find(|line| !is_shell(line))
}

/// Programs that print a file, and the longest command of such a kind.
const PRINTERS: [&str; 7] = ["cat", "sed", "head", "tail", "nl", "bat", "less"];
const PRINTING: usize = 240;

/// The one file that a shell command prints, all of it or in part, if it does nothing else.
fn printed_file(command: &str) -> Option<&str> {
    if command.len() > PRINTING || command.contains(['>', '<', '$', '`', '*']) {
        return None;
    }
    let mut path = None;
    for part in command.split(['|', ';', '&']).map(str::trim) {
        let mut words = part.split_whitespace();
        match words.next() {
            None | Some("cd") => continue,
            Some(program) if PRINTERS.contains(&program) => {}
            Some(_) => return None,
        }
        for word in words.filter(|word| !word.starts_with(['-', '\'', '"']) && is_path(word)) {
            if path.is_some_and(|known| known != word) || part.contains(" -i") {
                return None;
            }
            path = Some(word);
        }
    }
    path
}

/// Bytes of the longest command in which files are looked for that it removes or puts back.
const UNDOING: usize = 2_000;

/// The files that a command of a shell removes or puts back. What a pattern or a variable stands for is not known.
fn undone_files(command: &str) -> Vec<(&str, FileAct)> {
    let may_undo = ["rm ", "git checkout ", "git restore "];
    let is_told = command.len() <= UNDOING && !command.contains("<<");
    if !is_told || !may_undo.iter().any(|start| command.contains(start)) {
        return Vec::new();
    }
    let parts = command.split(['\n', ';', '&', '|']);
    parts.flat_map(undone_by).collect()
}

/// The files that one command removes or puts back.
fn undone_by(command: &str) -> Vec<(&str, FileAct)> {
    let mut words = command.split_whitespace();
    let act = match (words.next(), words.clone().next()) {
        (Some("rm"), _) => FileAct::Deleted,
        (Some("git"), Some("rm")) => FileAct::Deleted,
        (Some("git"), Some("checkout" | "restore")) => FileAct::Restored,
        _ => return Vec::new(),
    };
    // The name of a branch may hold a slash, that of a file has an ending.
    let is_file = |word: &&str| {
        let (_, name) = word.rsplit_once('/').unwrap_or(("", word));
        let is_plain = !word.contains(['*', '$', '`', '"', '\'', '{', '?', '=']);
        let ends = name
            .rsplit_once('.')
            .is_some_and(|(stem, ending)| !stem.is_empty() && (1..=8).contains(&ending.len()));
        is_plain && ends && !word.starts_with('-')
    };
    words.filter(is_file).map(|path| (path, act)).collect()
}

/// Whether a word of a command is a path: a number or `1,20p` is none.
fn is_path(word: &str) -> bool {
    word.contains(['/', '.']) && word.contains(char::is_alphabetic)
}

/// Whether a tool looks through a directory: the path that it is given is no file that it reads.
fn is_search(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let searches = ["grep", "glob", "search", "find", "list", "tree"];
    name == "ls" || searches.iter().any(|word| name.contains(word))
}

fn patched(line: &str) -> Option<(&str, FileAct)> {
    let (path, act) = if let Some(path) = line.strip_prefix("*** Update File: ") {
        (path, FileAct::Edited)
    } else if let Some(path) = line.strip_prefix("*** Add File: ") {
        (path, FileAct::Created)
    } else if let Some(path) = line.strip_prefix("*** Delete File: ") {
        (path, FileAct::Deleted)
    } else {
        (line.strip_prefix("+++ b/")?, FileAct::Edited)
    };
    Some((path.trim(), act))
}

fn act(name: &str, how: &str) -> FileAct {
    let name = name.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| name.contains(w) || how.starts_with(w));
    if says(&["delete", "remove", "unlink"]) {
        FileAct::Deleted
    } else if how.starts_with("view") {
        FileAct::Read
    } else if says(&["write", "create"]) {
        FileAct::Created
    } else if says(&["edit", "replace", "patch", "insert", "update", "modify"]) {
        FileAct::Edited
    } else {
        FileAct::Read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_shell_removes_or_puts_back() {
        let rows = [
            ("rm -f docs/adr.md", vec![("docs/adr.md", FileAct::Deleted)]),
            (
                "cd /repo && git rm old.go new.go",
                vec![("old.go", FileAct::Deleted), ("new.go", FileAct::Deleted)],
            ),
            (
                "git checkout -- src/a.rs && cargo test",
                vec![("src/a.rs", FileAct::Restored)],
            ),
            (
                "git restore --staged --source=HEAD~1 src/a.rs",
                vec![("src/a.rs", FileAct::Restored)],
            ),
            ("git checkout feature/login", vec![]),
            ("rm -rf target/*.log \"$TMP/a.txt\"", vec![]),
            ("cat <<EOF > run.sh\nrm a.txt\nEOF", vec![]),
            ("npm run rm a.txt", vec![]),
        ];
        let made: Vec<_> = rows
            .iter()
            .map(|(command, _)| undone_files(command))
            .collect();
        let expected: Vec<_> = rows.iter().map(|(_, files)| files.clone()).collect();
        assert_eq!(made, expected);
    }
}
