//! Rust sources as the checks see them: strings and comments taken out, functions and types listed.
//!
//! A small lexer is enough, since only names, braces and `crate::` paths are looked at, and it takes
//! milliseconds where a parser would be one more dependency. Tests are left out.

use std::path::Path;

use anyhow::{Context, Result};

/// A file of a crate without its tests.
pub(super) struct SourceFile {
    /// From the root of the repository.
    pub(super) path: String,
    /// The folder of its crate: `compact-core`.
    pub(super) package: String,
    /// What is left when strings and comments are blanked; lines stay where they were.
    pub(super) code: String,
    pub(super) comments: Vec<SourceComment>,
}

/// A comment, and the line that it begins in.
pub(super) struct SourceComment {
    pub(super) line: usize,
    pub(super) text: String,
}

/// A function with a name, and how long it is where it has a body.
pub(super) struct SourceFunction<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
    pub(super) length: Option<usize>,
}

/// A struct, an enum or a trait.
pub(super) struct SourceType<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
}

/// What the lexer tells apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Code,
    Comment,
    Literal,
}

/// Reads the sources of all crates and of the chores.
pub(super) fn read_sources(root: &Path) -> Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    let mut folders = vec![root.join("crates"), root.join("xtask")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let shown = path.strip_prefix(root).unwrap_or(&path);
            let shown = shown.to_string_lossy().replace('\\', "/");
            if path.is_dir() && !is_test_folder(&shown) {
                folders.push(path);
            } else if shown.ends_with(".rs") && !is_test_file(&shown) {
                let text = std::fs::read_to_string(&path).with_context(|| shown.clone())?;
                files.push(SourceFile::new(shown, &text));
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn is_test_folder(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    matches!(name, "tests" | "benches" | "examples" | "target")
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("/build.rs")
}

impl SourceFile {
    pub(super) fn new(path: String, text: &str) -> Self {
        let package = path.strip_prefix("crates/").unwrap_or(&path);
        let package = package.split('/').next().unwrap_or_default().to_owned();
        let mut file = SourceFile {
            path,
            package,
            code: String::with_capacity(text.len()),
            comments: Vec::new(),
        };
        file.blank_literals(text);
        file.drop_inline_tests();
        file
    }

    /// Returns the module at the top of the crate that this file belongs to; `None` for its root.
    pub(super) fn top_module(&self) -> Option<&str> {
        let (_, inside) = self.path.split_once("/src/")?;
        let first = inside.split('/').next()?;
        let module = first.strip_suffix(".rs").unwrap_or(first);
        (!matches!(module, "lib" | "main")).then_some(module)
    }

    /// Copies code, and for comments and literals as many blanks.
    fn blank_literals(&mut self, text: &str) {
        let (mut rest, mut line, mut last) = (text, 1, ' ');
        while !rest.is_empty() {
            let (kind, length) = next_token(rest, last);
            let (token, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            match kind {
                TokenKind::Code => self.code.push_str(token),
                TokenKind::Comment | TokenKind::Literal => {
                    let blank = |c| if c == '\n' { c } else { ' ' };
                    self.code.extend(token.chars().map(blank));
                }
            }
            if kind == TokenKind::Comment {
                let text = token.to_owned();
                self.comments.push(SourceComment { line, text });
            }
            line += token.matches('\n').count();
            last = token.chars().next_back().unwrap_or(last);
            rest = after;
        }
    }

    /// Cuts a module of tests off; it stands last in its file.
    fn drop_inline_tests(&mut self) {
        let inline = self.code.match_indices("#[cfg(").find(|(at, _)| {
            let rest = self.code.get(*at..).unwrap_or_default();
            let attribute = rest.lines().next().unwrap_or_default();
            let item = rest.lines().skip(1).find(|l| !l.trim().starts_with("#["));
            attribute.contains("test")
                && item.is_some_and(|l| l.contains("mod ") && l.trim_end().ends_with('{'))
        });
        if let Some((at, _)) = inline {
            let last = line_at(&self.code, at);
            self.code.truncate(at);
            self.comments.retain(|comment| comment.line < last);
        }
    }

    /// Returns the functions, in order.
    pub(super) fn functions(&self) -> Vec<SourceFunction<'_>> {
        let mut functions = Vec::new();
        for (at, _) in self.code.match_indices("fn ") {
            let before = self.code.get(..at).and_then(|b| b.chars().next_back());
            let rest = self.code.get(at + 3..).unwrap_or_default();
            let name = identifier(rest);
            if name.is_empty() || before.is_some_and(is_word) {
                continue;
            }
            functions.push(SourceFunction {
                name,
                line: line_at(&self.code, at),
                length: body_lines(rest),
            });
        }
        functions
    }

    /// Returns the types, in order.
    pub(super) fn types(&self) -> Vec<SourceType<'_>> {
        let mut types = Vec::new();
        for (line, text) in self.code.lines().enumerate() {
            let mut words = text.split_whitespace();
            let mut word = words.next().unwrap_or_default();
            if word == "pub" || word.starts_with("pub(") {
                word = words.next().unwrap_or_default();
            }
            let name = identifier(words.next().unwrap_or_default());
            if matches!(word, "struct" | "enum" | "trait") && !name.is_empty() {
                let line = line + 1;
                types.push(SourceType { name, line });
            }
        }
        types
    }
}

/// Returns the kind and the length of what a text begins with, given the character before it.
fn next_token(rest: &str, last: char) -> (TokenKind, usize) {
    let until = |end: &str| rest.find(end).map_or(rest.len(), |at| at + end.len());
    if rest.starts_with("//") {
        return (TokenKind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (TokenKind::Comment, until("*/"));
    }
    if !is_word(last)
        && let Some(length) = raw_string(rest)
    {
        return (TokenKind::Literal, length);
    }
    match rest.chars().next() {
        Some('"') => (TokenKind::Literal, quoted(rest)),
        Some('\'') => character(rest).map_or((TokenKind::Code, 1), |n| (TokenKind::Literal, n)),
        Some(other) => (TokenKind::Code, other.len_utf8()),
        None => (TokenKind::Code, 0),
    }
}

/// Returns the length of `r#"…"#`, with or without `b` or `c` before it.
fn raw_string(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    let body = body.strip_prefix('r')?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let text = body.trim_start_matches('#').strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = text.find(&end).map_or(text.len(), |at| at + end.len());
    Some(rest.len() - text.len() + length)
}

/// Returns the length of a string, from its opening quote.
fn quoted(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return at + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    rest.len()
}

/// Returns the length of a character literal; `None` where the quote begins a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        let (at, _) = chars.skip(1).find(|(_, c)| *c == '\'')?;
        return Some(at + 1);
    }
    let (at, second) = chars.next()?;
    (second == '\'').then_some(at + 1)
}

/// Returns how many lines a function has, from its name to the brace that closes its body.
fn body_lines(rest: &str) -> Option<usize> {
    let (mut braces, mut others, mut lines) = (0_usize, 0_usize, 1);
    for c in rest.chars() {
        match c {
            '\n' => lines += 1,
            '(' | '[' => others += 1,
            ')' | ']' => others = others.saturating_sub(1),
            ';' if braces == 0 && others == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 && others == 0 {
                    return Some(lines);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the identifier that a text begins with.
pub(super) fn identifier(text: &str) -> &str {
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Returns the line of a position, from 1.
pub(super) fn line_at(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.matches('\n').count() + 1
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
