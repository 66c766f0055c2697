//! The lines that an edit changes, in short: which were taken out and which put in.
//!
//! An edit comes as the old and the new text, as a list of such pairs, as a patch, or as a whole file. What both
//! sides share is left out, so that one side is never read as the other; every line says which it is.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde_json::Value;

use super::defines;
use super::sentence::clip;

/// Lines of each side that are kept of one edit, those with later definitions, and characters of a line.
const LINES: usize = 40;
const MOST_LINES: usize = 64;
const CHARS: usize = 140;

/// Names of the texts that are replaced.
const OLD_KEYS: [&str; 7] = [
    "old_string",
    "old_str",
    "oldText",
    "oldString",
    "old_text",
    "search",
    "old",
];
/// Names of the texts in their place, and of whole files.
const NEW_KEYS: [&str; 12] = [
    "new_string",
    "new_str",
    "newText",
    "newString",
    "new_text",
    "replace",
    "new",
    "content",
    "file_text",
    "insert_text",
    "new_source",
    "contents",
];

/// Returns the changed lines of a call's edit to the file at `path`; `text` is the call as it reads.
pub(super) fn changed_lines(path: &str, text: &str, arguments: &str) -> String {
    let mut lines = EditLines::default();
    if text.contains("*** ") || text.contains("+++ ") || text.contains("@@") {
        lines.add_patch(path, text);
    }
    if lines.is_empty()
        && let Ok(value) = serde_json::from_str::<Value>(arguments)
    {
        lines.add_value(&value);
    }
    lines.finish()
}

#[derive(Default)]
struct EditLines {
    removed: Vec<String>,
    added: Vec<String>,
}

impl EditLines {
    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }

    /// Takes the pairs of texts in a call's arguments, also those in lists of edits.
    fn add_value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                let text = |keys: &[&str]| keys.iter().find_map(|key| members.get(*key)?.as_str());
                let (old, new) = (text(&OLD_KEYS), text(&NEW_KEYS));
                if old.is_some() || new.is_some() {
                    self.add_pair(old.unwrap_or(""), new.unwrap_or(""));
                }
                let nested = members.values().filter(|v| v.is_array());
                nested.for_each(|list| self.add_value(list));
            }
            Value::Array(items) => items.iter().for_each(|item| self.add_value(item)),
            _ => {}
        }
    }

    fn add_pair(&mut self, old: &str, new: &str) {
        let (before, after) = (trimmed_lines(old, new), trimmed_lines(new, old));
        for line in old.lines().filter(|line| !after.contains(line.trim())) {
            push_line(&mut self.removed, line);
        }
        for line in new.lines().filter(|line| !before.contains(line.trim())) {
            push_line(&mut self.added, line);
        }
    }

    /// Takes the part of a patch that is about one file.
    fn add_patch(&mut self, path: &str, patch: &str) {
        let mut is_here = false;
        for line in patch.lines() {
            if let Some(head) = line
                .strip_prefix("*** ")
                .or_else(|| line.strip_prefix("+++ "))
            {
                is_here = head.trim().ends_with(path);
            } else if is_here && !line.starts_with("---") {
                match line.split_at_checked(1) {
                    Some(("-", rest)) => push_line(&mut self.removed, rest),
                    Some(("+", rest)) => push_line(&mut self.added, rest),
                    _ => {}
                }
            }
        }
    }

    fn finish(self) -> String {
        let removed = self.removed.iter().map(|line| format!("-{line}"));
        let added = self.added.iter().map(|line| format!("+{line}"));
        removed.chain(added).collect::<Vec<_>>().join("\n")
    }
}

/// The lines of one side, to which those of the other are compared.
fn trimmed_lines<'t>(side: &'t str, other: &str) -> HashSet<&'t str, foldhash::fast::FixedState> {
    match other.is_empty() {
        true => HashSet::default(),
        false => side.lines().map(str::trim).collect(),
    }
}

/// Keeps the first lines that say something, a bare bracket does not, and further on those that define something.
fn push_line(lines: &mut Vec<String>, line: &str) {
    if lines.len() >= MOST_LINES {
        return;
    }
    let says = line
        .chars()
        .filter(|c| c.is_alphanumeric())
        .nth(1)
        .is_some();
    if says && (lines.len() < LINES || defines(line.trim_start())) {
        lines.push(clip(line, CHARS));
    }
}
