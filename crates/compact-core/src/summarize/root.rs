//! The directory that most paths of a session stand in: said once, then left out.
//!
//! Absolute paths are long and mostly the same at their beginning. A summary names that beginning once
//! and shows paths below it as relative ones, as a person would.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::ledger::{Ledger, NameKind};

/// The session's root directory with its final slash; empty when leaving it out would save little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RootDirectory<'l>(&'l str);

/// Characters that leaving a root out has to save.
const WORTHWHILE: usize = 200;

impl<'l> RootDirectory<'l> {
    /// The directory whose absence saves the most characters.
    pub(super) fn from_ledger(ledger: &'l Ledger) -> Self {
        let mut saved: HashMap<&str, usize, foldhash::fast::FixedState> = HashMap::default();
        let paths = ledger.entities.iter().filter(|e| e.kind == NameKind::Path);
        let paths = paths.filter(|p| p.text.starts_with('/'));
        // What only tools print may be anywhere: a cache, another machine's folder.
        for path in paths.filter(|p| p.spoken_count() > 0) {
            for (end, _) in path.text.match_indices('/').skip(2) {
                let Some((directory, rest)) = path.text.split_at_checked(end + 1) else {
                    continue;
                };
                if rest.contains('/') {
                    *saved.entry(directory).or_default() += directory.len();
                }
            }
        }
        let best = saved
            .into_iter()
            .max_by_key(|(root, saved)| (*saved, *root));
        let best = best.filter(|(_, saved)| *saved >= WORTHWHILE);
        RootDirectory(best.map_or("", |(root, _)| working_directory(ledger, root)))
    }

    /// The directory, if it is left out.
    pub(super) fn name(&self) -> Option<&'l str> {
        (!self.0.is_empty()).then_some(self.0)
    }

    /// Whether a path is the directory itself.
    pub(super) fn is_it(&self, path: &str) -> bool {
        self.name()
            .is_some_and(|root| root.trim_end_matches('/') == path.trim_end_matches('/'))
    }

    /// How many bytes of `text` at `at` are the root of a path that needs it no longer.
    pub(super) fn hides(&self, text: &str, at: usize) -> usize {
        let Some((before, here)) = text.split_at_checked(at) else {
            return 0;
        };
        let opens = !before.ends_with(|c: char| c.is_alphanumeric() || "/._-~".contains(c));
        match here.strip_prefix(self.0) {
            Some(rest) if opens && !self.0.is_empty() && has_directory(rest) => self.0.len(),
            _ => 0,
        }
    }

    /// A command with its paths made relative, unless it goes to a directory: from there they would lead elsewhere.
    pub(super) fn shorten_command<'t>(&self, command: &'t str) -> Cow<'t, str> {
        match command.contains("cd ") {
            true => Cow::Borrowed(command),
            false => self.shorten(command),
        }
    }

    /// Whether a text holds the directory. Most texts are short and hold no slash that could open it.
    fn is_in(&self, text: &str) -> bool {
        let (text, root) = (text.as_bytes(), self.0.as_bytes());
        let opens = |at: usize| text.get(at..).is_some_and(|rest| rest.starts_with(root));
        match root.first() {
            Some(first) => memchr::memchr_iter(*first, text).any(opens),
            None => true,
        }
    }

    /// The text with its paths made relative.
    pub(super) fn shorten<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.0.is_empty() || !self.is_in(text) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut told = 0;
        for (at, _) in text.match_indices(self.0) {
            let hidden = self.hides(text, at);
            if hidden > 0 {
                out.push_str(text.get(told..at).unwrap_or(""));
                told = at + hidden;
            }
        }
        out.push_str(text.get(told..).unwrap_or(""));
        Cow::Owned(out)
    }
}

/// The directory that relative paths of the session start from, where that is the root or above it: else one file would
/// stand under two names.
fn working_directory<'l>(ledger: &'l Ledger, root: &'l str) -> &'l str {
    let paths = || ledger.entities.iter().filter(|e| e.kind == NameKind::Path);
    let below = paths().filter_map(|path| path.text.strip_prefix('/'));
    let absolute: HashSet<&str, foldhash::fast::FixedState> = below.collect();
    let is_start = |end: &usize| {
        let (above, name) = root.split_at_checked(*end).unwrap_or((root, ""));
        let name = name.split_inclusive('/').next().unwrap_or("");
        let above = above.trim_start_matches('/');
        let mut relative = paths().filter(|path| !name.is_empty() && path.text.starts_with(name));
        relative.any(|path| absolute.contains(format!("{above}{}", path.text).as_str()))
    };
    let ends = root.match_indices('/').map(|(at, _)| at + 1).skip(1);
    let start = ends.into_iter().find(is_start);
    start.and_then(|end| root.get(..end)).unwrap_or(root)
}

/// Whether a path goes on through a directory: a bare file name says too little.
fn has_directory(rest: &str) -> bool {
    let end = rest
        .find(|c: char| !(c.is_alphanumeric() || "/._-@+".contains(c)))
        .unwrap_or(rest.len());
    rest.get(..end)
        .is_some_and(|path| path.trim_end_matches('/').contains('/'))
}
