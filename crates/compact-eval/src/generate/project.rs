//! The code base that a coding session works on: files with contents that edits really change.
//!
//! Files come into being when the session first names them, so a project is as large as it needs to
//! be. What `Read`, `Grep` and a stack trace show is what the file holds at that moment.

use super::author::{Author, AuthorFocus};

/// The files known so far.
#[derive(Default)]
pub(crate) struct Project {
    files: Vec<SourceFile>,
}

/// A file and its lines.
#[derive(Clone)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) lines: Vec<String>,
    /// What the file is about.
    pub(crate) focus: AuthorFocus,
}

/// A replacement within a file.
pub(crate) struct FileChange {
    /// The line, from 1, at which the new text begins.
    pub(crate) line: usize,
    pub(crate) old: String,
    pub(crate) new: String,
}

/// A file, by its place in the project.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId(usize);

impl Project {
    pub(crate) fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0)
    }

    pub(crate) fn path(&self, id: FileId) -> &str {
        self.get(id).map_or("", |file| &file.path)
    }

    /// Returns a file that the session has seen before, if there is one.
    pub(crate) fn pick_known(&self, author: &mut Author<'_>) -> Option<FileId> {
        (!self.files.is_empty()).then(|| FileId(author.random.index(self.files.len())))
    }

    /// Returns a module that nobody has opened yet, about something else than before.
    pub(crate) fn open_module(&mut self, author: &mut Author<'_>) -> FileId {
        author.refocus();
        self.open_file(author, "module_path", "py_module")
    }

    /// Opens a file that nobody has opened yet: a test, a migration, settings or a document.
    pub(crate) fn open_neighbour(&mut self, author: &mut Author<'_>) -> FileId {
        match author.random.between(0, 5) {
            0 => self.open_file(author, "sql_path", "sql_migration"),
            1 => self.open_file(author, "yaml_path", "yaml_config"),
            2 => self.open_file(author, "doc_path", "md_doc"),
            _ => self.open_file(author, "test_path", "py_test"),
        }
    }

    fn open_file(&mut self, author: &mut Author<'_>, path: &str, content: &str) -> FileId {
        let path = author.write(path);
        let known = self.files.iter().position(|file| file.path == path);
        let lines = author.write(content).lines().map(str::to_owned).collect();
        FileId(known.unwrap_or_else(|| {
            self.files.push(SourceFile {
                path,
                lines,
                focus: author.focus.clone(),
            });
            self.files.len() - 1
        }))
    }

    /// Replaces a statement by a longer one that keeps its indentation.
    pub(crate) fn change_statement(
        &mut self,
        id: FileId,
        author: &mut Author<'_>,
    ) -> Option<FileChange> {
        let file = self.files.get_mut(id.0)?;
        let at = file.pick_statement(author)?;
        let old = file.lines.get(at)?.clone();
        let indent = &old.get(..old.len() - old.trim_start().len())?;
        let inserted = author.write("py_stmt");
        let mut new: Vec<String> = inserted
            .lines()
            .map(|line| format!("{indent}{line}"))
            .collect();
        new.push(old.clone());
        let change = FileChange {
            line: at + 1,
            old,
            new: new.join("\n"),
        };
        file.lines.splice(at..=at, new);
        Some(change)
    }
}

impl SourceFile {
    /// Returns the index of a line that occurs once and stands inside a function.
    fn pick_statement(&self, author: &mut Author<'_>) -> Option<usize> {
        let candidates: Vec<usize> = (0..self.lines.len())
            .filter(|at| {
                self.lines.get(*at).is_some_and(|line| {
                    line.starts_with("    ")
                        && line.len() > 24
                        && self.lines.iter().filter(|other| *other == line).count() == 1
                })
            })
            .collect();
        author.random.pick(&candidates).copied()
    }

    /// Returns the file as `cat -n` shows it, from a line on, at most so many lines.
    pub(crate) fn numbered_lines(&self, from: usize, limit: usize) -> String {
        self.lines
            .iter()
            .enumerate()
            .skip(from.saturating_sub(1))
            .take(limit)
            .map(|(i, line)| format!("{:>6}→{line}\n", i + 1))
            .collect()
    }

    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// Lines that contain a word, as `grep -n` shows them.
    pub(crate) fn grep_lines(&self, word: &str) -> String {
        self.lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.contains(word))
            .map(|(i, line)| format!("{}:{}:{line}\n", self.path, i + 1))
            .collect()
    }
}
