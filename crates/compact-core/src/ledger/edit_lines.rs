//! The lines that an edit changes, in short: which were taken out and which put in.
//!
//! An edit comes as the old and the new text, as a list of such pairs, as a patch, or as a whole file. What both
//! sides share is left out, so that one side is never read as the other; every line says which it is.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::defines;
use super::sentence::clip;
use crate::cue_list::{WordList, cue_file};

/// Lines of each side that are kept of one edit, those with later definitions, and characters of a line.
const LINES: usize = 60;
const MOST_LINES: usize = 96;
/// Lines of a change that leaves room for what it imports.
const IMPORTS: usize = 8;
const CHARS: usize = 140;
/// A line of a document is a paragraph.
const DOCUMENT_CHARS: usize = 280;
/// Lines of a declaration that stand in one, and characters of that line, or of a comment.
const DECLARATION_LINES: usize = 16;
const DECLARATION_CHARS: usize = 280;

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

/// How documents for people end.
const DOCUMENTS: [&str; 6] = [".md", ".mdx", ".rst", ".adoc", ".txt", ".org"];

/// Whether a file is a document: what is written there is what its writer has to say.
pub(crate) fn is_document(path: &str) -> bool {
    DOCUMENTS.iter().any(|end| path.ends_with(end))
}

/// Words of a path that say that a file tests others, or holds what tests need.
const TEST_WORDS: [&str; 8] = [
    "test", "tests", "spec", "specs", "testdata", "fixture", "fixtures", "mocks",
];

/// Whether a file tests others: the values in it are made up for its cases.
pub(crate) fn is_test_file(path: &str) -> bool {
    let mut words = path.split(|c: char| !c.is_alphanumeric());
    words.any(|word| {
        TEST_WORDS
            .iter()
            .any(|test| word.eq_ignore_ascii_case(test))
    })
}

/// Returns the changed lines of a call's edit to the file at `path`; `text` is the call as it reads.
pub(super) fn changed_lines(path: &str, text: &str, arguments: &str) -> String {
    let mut lines = EditLines {
        line_chars: if is_document(path) {
            DOCUMENT_CHARS
        } else {
            CHARS
        },
        ..EditLines::default()
    };
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
    /// Characters of a line that are kept.
    line_chars: usize,
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
        let line_chars = self.line_chars;
        let (old, new) = (join_lines(old), join_lines(new));
        let (before, after) = (trimmed_lines(&old, &new), trimmed_lines(&new, &old));
        let most_chars = |line: &Cow<'_, str>| match line {
            Cow::Borrowed(_) => line_chars,
            Cow::Owned(_) => DECLARATION_CHARS,
        };
        let changed = |side: &[Cow<'_, str>], other: &LineSet<'_>, out: &mut Vec<String>| {
            let changed = side.iter().filter(|line| !other.contains(line.trim()));
            let (imports, others) = split_imports(changed);
            for line in others {
                push_line(out, line, most_chars(line));
            }
            // What is imported says little beside what is done with it.
            for line in imports.into_iter().take(IMPORTS.saturating_sub(out.len())) {
                push_line(out, line, most_chars(line));
            }
        };
        changed(&old, &after, &mut self.removed);
        changed(&new, &before, &mut self.added);
    }

    /// Takes the part of a patch that is about one file, as the text before and the text after it.
    fn add_patch(&mut self, path: &str, patch: &str) {
        let (mut old, mut new) = (String::new(), String::new());
        let mut is_here = false;
        for line in patch.lines() {
            if let Some(head) = line
                .strip_prefix("*** ")
                .or_else(|| line.strip_prefix("+++ "))
            {
                is_here = head.trim().trim_matches('"').ends_with(path);
                continue;
            }
            if !is_here || line.starts_with("---") {
                continue;
            }
            let (mark, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
            let is_unmarked = !matches!(mark, "-" | "+" | " ");
            // What stands between two parts of a file is not known: no declaration goes on there.
            let rest = if is_unmarked { "" } else { rest };
            for side in [
                (mark != "+").then_some(&mut old),
                (mark != "-").then_some(&mut new),
            ] {
                side.into_iter().for_each(|side| {
                    side.push_str(rest);
                    side.push('\n');
                });
            }
        }
        self.add_pair(&old, &new);
    }

    fn finish(self) -> String {
        let mut out = String::new();
        for (mark, lines) in [('-', &self.removed), ('+', &self.added)] {
            for line in lines {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push(mark);
                out.push_str(line);
            }
        }
        out
    }
}

/// The lines of one side, to which those of the other are compared.
type LineSet<'t> = HashSet<&'t str, foldhash::fast::FixedState>;

fn trimmed_lines<'t>(side: &'t [Cow<'_, str>], other: &[Cow<'_, str>]) -> LineSet<'t> {
    match other.is_empty() {
        true => HashSet::default(),
        false => side.iter().map(|line| line.trim()).collect(),
    }
}

/// Returns the lines that import something, and the others.
fn split_imports<'l, 't: 'l>(
    lines: impl Iterator<Item = &'l Cow<'t, str>>,
) -> (Vec<&'l Cow<'t, str>>, Vec<&'l Cow<'t, str>>) {
    let (mut imports, mut others) = (Vec::new(), Vec::new());
    let mut is_open = false;
    for line in lines {
        let text = line.trim();
        if !is_open && !opens_import(text) {
            others.push(line);
            continue;
        }
        imports.push(line);
        is_open = match is_open {
            true => !text.starts_with([')', '}']),
            false => text.ends_with(['(', '{']),
        };
    }
    (imports, others)
}

/// Whether a line is no more than what a program takes from others.
pub(crate) fn is_import(line: &str) -> bool {
    let line = line.trim();
    let is_quoted = line.starts_with('"') && line.ends_with('"') && line.contains('/');
    opens_import(line) || is_quoted && !line.contains(' ')
}

/// Whether a line begins to say what a program takes from others.
fn opens_import(line: &str) -> bool {
    let ends = line.ends_with([';', '{', '(']);
    line.starts_with("import ")
        || line.starts_with("from ") && line.contains(" import ")
        || line.starts_with("#include ")
        || (line.starts_with("use ") || line.starts_with("using ")) && ends
}

/// Returns the lines of a text, where a declaration or a comment that goes over several is one: parameters and fields say
/// nothing without what they belong to, and a declaration with a changed parameter is another one.
fn join_lines(text: &str) -> Vec<Cow<'_, str>> {
    let mut out = Vec::new();
    let mut rest = text.lines();
    while let Some(line) = rest.next() {
        let joined = match comment_text(line) {
            Some(_) => join_comment(line, rest.clone()),
            None if is_open_declaration(line) => join_declaration(line, rest.clone()),
            None => None,
        };
        match joined {
            None => out.push(Cow::Borrowed(line)),
            Some((whole, count)) => {
                out.push(Cow::Owned(whole));
                rest.nth(count - 1);
            }
        }
    }
    out
}

/// Whether a line begins a declaration whose parameters or fields stand in the next ones.
fn is_open_declaration(line: &str) -> bool {
    let opens = line.trim_end().ends_with(['(', ',', '{']);
    opens && (open_parentheses(line) > 0 || holds_fields(line)) && defines(line.trim_start())
}

/// Whether a line opens a type whose fields follow.
fn holds_fields(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    let names_type = |word| matches!(word, "struct" | "interface" | "enum" | "type");
    line.trim_end().ends_with('{') && !line.contains('(') && words.any(names_type)
}

fn open_parentheses(line: &str) -> i32 {
    count_open(line, '(', ')')
}

fn open_brackets(line: &str) -> i32 {
    open_parentheses(line) + count_open(line, '{', '}') + count_open(line, '[', ']')
}

fn count_open(line: &str, open: char, close: char) -> i32 {
    let step = |c: char| i32::from(c == open) - i32::from(c == close);
    line.chars().map(step).sum()
}

/// What a line of nothing but a comment says.
pub(crate) fn comment_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["// ", "# ", "/// ", "//! ", "-- "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
}

/// Joins a comment with the lines that go on with it, as far as they can be read in one; returns how many those are.
fn join_comment<'t>(first: &str, rest: impl Iterator<Item = &'t str>) -> Option<(String, usize)> {
    let mut joined = first.trim().to_owned();
    let mut count = 0;
    for text in rest.map_while(comment_text) {
        if joined.len() + text.len() >= DECLARATION_CHARS {
            break;
        }
        joined.push(' ');
        joined.push_str(text.trim_end());
        count += 1;
    }
    (count > 0).then_some((joined, count))
}

/// Joins a declaration with the lines up to its end; returns how many those are. `None` where it is too long to be
/// read in one line.
fn join_declaration<'t>(
    first: &str,
    rest: impl Iterator<Item = &'t str>,
) -> Option<(String, usize)> {
    let is_type = holds_fields(first);
    let count_brackets = if is_type {
        open_brackets
    } else {
        open_parentheses
    };
    let mut joined = first.trim().to_owned();
    let mut open = count_brackets(first);
    for (line, count) in rest.take(DECLARATION_LINES).zip(1..) {
        let line = line.trim();
        open += count_brackets(line);
        if !line.is_empty() && !["//", "#", "/*"].iter().any(|mark| line.starts_with(mark)) {
            join_part(&mut joined, line, is_type);
        }
        if joined.len() > DECLARATION_CHARS || (line.is_empty() && !is_type) {
            return None;
        }
        if open <= 0 {
            return Some((joined, count));
        }
    }
    None
}

/// Puts the next line of a declaration behind what is there of it.
fn join_part(joined: &mut String, line: &str, is_type: bool) {
    let closes = line.starts_with([')', ']', '}']);
    if closes {
        joined.truncate(joined.trim_end_matches([',', ' ']).len());
    }
    let begins = joined.ends_with(['(', '[']);
    let separator = match joined.ends_with([',', ';', '{', '}']) || closes {
        _ if begins || (closes && !is_type) => "",
        true => " ",
        false if is_type => "; ",
        false => " ",
    };
    joined.push_str(separator);
    joined.push_str(line);
}

/// Keeps the first lines that say something, and further on those that define something.
fn push_line(lines: &mut Vec<String>, line: &str, chars: usize) {
    if lines.len() >= MOST_LINES {
        return;
    }
    if is_telling(line) && (lines.len() < LINES || defines(line.trim_start())) {
        lines.push(clip(line, chars));
    }
}

static CONTROL_WORDS: WordList = WordList::new(cue_file!("control_word"));

/// Words of a line that only joins others, at most.
const FEW_WORDS: usize = 4;

/// Whether a line says something: a bare bracket does not, nor do a few words that stand in every program, such as
/// `return nil`, `else:` or `if err != nil {`.
fn is_telling(line: &str) -> bool {
    let letters = line.chars().filter(|c| c.is_alphanumeric());
    letters.take(2).count() == 2 && !is_filler(line)
}

fn is_filler(line: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase();
    let is_sign = |c: char| " \t!=&|<>(){}[]:;,".contains(c);
    let text = line.trim_matches(is_sign);
    let opening = text.split(is_sign).next().unwrap_or("");
    CONTROL_WORDS.has(opening)
        && text.chars().all(|c| is_letter(c) || is_sign(c))
        && text.split(is_sign).filter(|word| !word.is_empty()).count() <= FEW_WORDS
}
