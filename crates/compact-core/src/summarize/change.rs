//! What edits and diffs changed, as pieces: lines that were put in and still stand, declarations that went.
//!
//! Each stands under its file. Lines of code by themselves are worth next to nothing; what they declare, the words that they
//! hold for people, the values that they set and what a document says are worth telling.

use std::collections::HashSet;

use super::piece::{Piece, PieceForm};
use super::select::ShownLevel;
use super::trace::{
    ANY_LINE, COMMENT, LINE, SIGNATURE, TraceBuilder, declared_name, declares, gives_value,
    is_comment,
};
use crate::ledger::{
    DiffedFile, FileAct, FileChange, FileFact, Ledger, Voice, clip, is_document, is_test_file,
};

/// What a file is worth that the session changed, and one of a diff that it was shown.
const CHANGED_FILE: f64 = 0.25;
const DIFFED_FILE: f64 = 0.15;
/// A line that a change put in, and a declaration.
const CHANGED_LINE: f64 = 0.05;
const CHANGED_SIGNATURE: f64 = 0.3;
/// A declaration in a test: its name says what is tested.
const CHANGED_TEST: f64 = 0.1;
/// A line that a change put in and that holds words for somebody to read: a message, a reason, a label; and one of a document,
/// which is what its writer has to say.
const CHANGED_MESSAGE: f64 = 0.13;
const CHANGED_PROSE: f64 = 0.2;
/// A line of a change of a few: there it is the change.
const SMALL_CHANGE: usize = 4;
const SMALL_CHANGE_LINE: f64 = 0.10;
/// And one that sets a value: what it is set to is how things stand.
const CHANGED_VALUE: f64 = 0.2;
/// A declaration that a change took out for good.
const REMOVED_SIGNATURE: f64 = 0.10;
/// Lines of one change that say what it is about, and those among which its signatures do; of what later ones are worth.
const FIRST_LINES: usize = 16;
const LAST_SIGNATURES: usize = 40;
const LATE: f64 = 0.2;
/// How much a line that was put in tells of the names in it, and a short one that gives one of them a value.
const CHANGE: f64 = 0.8;
const VALUE_PUT_IN: f64 = 4.0;
/// Characters of a declaration that is gone: enough to know it by.
const REMOVED_CHARS: usize = 60;

/// How many times what others are worth the lines of the newest change are, from where whoever goes on works on; and what each
/// one before it has of that.
const NEWEST_CHANGE: f64 = 3.0;
const CHANGE_BEFORE: f64 = 0.2;

/// The file that lines belong to.
#[derive(Clone, Copy)]
struct ChangedPlace<'p> {
    path: &'p str,
    head: usize,
}

impl<'l> TraceBuilder<'_, 'l> {
    pub(super) fn push_files(&mut self) {
        let ledger = self.ledger;
        self.newest_changes = newest_changes(ledger, self.whole);
        for file in ledger.facts.files.iter().filter(|file| file.is_changed()) {
            let head = self.file_head(&file.path, file.ordinal);
            self.push_file_name(head, file.ordinal, CHANGED_FILE);
            self.push_changes(file, head);
        }
    }

    /// Files of diffs: what others changed, as far as the session did not go on to change it.
    pub(super) fn push_diffs(&mut self) {
        let diffs: Vec<&'l DiffedFile> = self.diffs.newest().collect();
        for diffed in diffs {
            let head = self.file_head(&diffed.path, diffed.change.ordinal);
            self.push_file_name(head, diffed.change.ordinal, DIFFED_FILE);
            let place = ChangedPlace {
                path: &diffed.path,
                head,
            };
            let change = &diffed.change;
            self.push_removals(std::slice::from_ref(change), change, head);
            self.push_change(change, place);
        }
    }

    fn push_file_name(&mut self, head: usize, ordinal: u32, worth: f64) {
        let weight = self.template.weight(Voice::Call);
        self.table.push(Piece {
            head,
            ordinal,
            place: 0,
            text: String::new(),
            worth: weight * worth,
            tells: 1.0,
            shows: ShownLevel::Bare,
            about: None,
            form: PieceForm::Text,
        });
    }

    /// What each edit put in and no later one took out, and the declarations that it took out.
    fn push_changes(&mut self, file: &'l FileFact, head: usize) {
        let place = ChangedPlace {
            path: &file.path,
            head,
        };
        for (change, nth) in file.changes.iter().zip(0..) {
            if file.act != FileAct::Deleted {
                let later = file.changes.get(nth..).unwrap_or_default();
                self.push_removals(later, change, head);
            }
            if !self.whole.contains(&u64::from(change.ordinal)) {
                self.push_change(change, place);
            }
        }
    }

    /// The lines that a change put in. Those that it took out are one side of it, and would be read as what is there.
    fn push_change(&mut self, change: &'l FileChange, place: ChangedPlace<'_>) {
        let weight = self.template.weight(Voice::Call);
        let state = self.files.state_of(&self.root.shorten(place.path));
        let is_test = is_test_file(place.path);
        let put_in = |line: &'l str| line.strip_prefix('+');
        let is_small = change.lines.lines().filter_map(put_in).count() <= SMALL_CHANGE;
        let mut nth = 0;
        for (line, at) in change.lines.lines().zip(1..) {
            let is_gone = |line| state.is_some_and(|s| s.is_stale(line, change.ordinal));
            let Some(put_in) = put_in(line).filter(|line| !is_gone(line)) else {
                continue;
            };
            if !self.series.admits(place.head, put_in) || !self.offered.insert((place.head, put_in))
            {
                continue;
            }
            nth += 1;
            let signs = nth <= LAST_SIGNATURES && declares(put_in.trim_start());
            let is_late = nth > FIRST_LINES && !signs && !gives_value(line);
            let worth = line_worth(put_in, place.path, signs, is_small);
            let worth = if is_late { worth * LATE } else { worth };
            let worth = worth * self.freshness(change.ordinal);
            self.table.push(Piece {
                head: place.head,
                ordinal: change.ordinal,
                place: at,
                text: self.root.shorten(line).into_owned(),
                worth: worth * weight,
                tells: match (gives_value(line), signs) {
                    _ if is_late => ANY_LINE,
                    (true, _) if !is_test => VALUE_PUT_IN,
                    (_, true) => SIGNATURE,
                    (_, false) => CHANGE,
                },
                shows: ShownLevel::InContext,
                about: None,
                form: PieceForm::Text,
            });
        }
    }

    /// How many times what others are worth the lines of a change are.
    fn freshness(&self, ordinal: u32) -> f64 {
        let newer = self.newest_changes.iter().position(|n| *n == ordinal);
        let more = |newer: usize| (NEWEST_CHANGE - 1.0) * CHANGE_BEFORE.powi(newer as i32);
        1.0 + newer.map_or(0.0, more)
    }

    /// The declarations that a change took out and that neither it nor a later one put back.
    fn push_removals(&mut self, later: &'l [FileChange], change: &'l FileChange, head: usize) {
        let weight = self.template.weight(Voice::Call);
        let put_in: Vec<&str> = later
            .iter()
            .filter(|later| later.ordinal >= change.ordinal)
            .flat_map(|change| change.lines.lines())
            .filter_map(|line| line.strip_prefix('+'))
            .collect();
        for (line, place) in change.lines.lines().zip(1..) {
            let Some(name) = line.strip_prefix('-').and_then(declared_name) else {
                continue;
            };
            if put_in.iter().any(|line| line.contains(name)) {
                continue;
            }
            self.table.push(Piece {
                head,
                ordinal: change.ordinal,
                place,
                text: clip(line, REMOVED_CHARS),
                worth: REMOVED_SIGNATURE * weight,
                tells: 0.0,
                shows: ShownLevel::Bare,
                about: None,
                form: PieceForm::Text,
            });
        }
    }
}

/// So many changes are what the session is at.
const AT_HAND: usize = 3;

/// The newest changes that the view does not show whole, from the newest back.
fn newest_changes(ledger: &Ledger, whole: &HashSet<u64>) -> Vec<u32> {
    let files = ledger.facts.files.iter();
    let changes = files.flat_map(|file| file.changes.iter().map(|change| change.ordinal));
    let mut newest: Vec<u32> = changes
        .filter(|n| !whole.contains(&u64::from(*n)))
        .collect();
    newest.sort_unstable_by(|a, b| b.cmp(a));
    newest.dedup();
    newest.truncate(AT_HAND);
    newest
}

/// What a line is worth that a change put in.
fn line_worth(line: &str, path: &str, signs: bool, is_small: bool) -> f64 {
    let is_test = is_test_file(path);
    match (is_document(path), signs) {
        (true, _) if line.ends_with(':') => LINE,
        (true, _) if has_words(line) || is_heading(line) => CHANGED_PROSE * share_of_prose(line),
        (_, true) if is_test => CHANGED_TEST,
        (_, true) => CHANGED_SIGNATURE,
        _ if is_comment(line) => COMMENT,
        _ if quotes_words(line) => CHANGED_MESSAGE,
        _ if is_small && gives_value(line) && !is_test => CHANGED_VALUE,
        _ if is_small => SMALL_CHANGE_LINE * share_of_line(line),
        _ => CHANGED_LINE * share_of_line(line),
    }
}

/// Characters of a usual line of code.
const USUAL_LINE: f64 = 40.0;

/// What a line of code is worth beside a usual one: a longer one does more, and would lose against two short ones
/// that do next to nothing.
fn share_of_line(line: &str) -> f64 {
    (line.len() as f64 / USUAL_LINE).clamp(0.5, 2.5)
}

/// Characters of a usual line of a document.
const USUAL_PROSE: f64 = 80.0;

/// What a line of a document is worth beside a usual one: a sentence says more than a heading.
fn share_of_prose(line: &str) -> f64 {
    (line.len() as f64 / USUAL_PROSE).clamp(0.3, 1.5)
}

/// Words of a line of a document that says something.
const LINE_WORDS: usize = 3;

/// Whether a line of a document is words and no row of a table.
fn has_words(line: &str) -> bool {
    if line.trim_start().starts_with('|') {
        return false;
    }
    let is_word = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).count() > 1;
    let words = line.split_whitespace().filter(is_word);
    words.take(LINE_WORDS).count() == LINE_WORDS
}

/// Whether a line of a document is a heading: headings tell what it is about.
fn is_heading(line: &str) -> bool {
    line.starts_with('#') && line.trim_start_matches('#').starts_with(' ')
}

/// Words in quotation marks that are a text for people.
const QUOTED_WORDS: usize = 3;

/// Whether a line of code quotes a few words.
fn quotes_words(line: &str) -> bool {
    ['"', '\'', '`'].into_iter().any(|mark| {
        let quoted = line.split(mark).skip(1).step_by(2);
        quoted.into_iter().any(|text| {
            let is_word = |word: &&str| {
                word.len() > 1
                    && word
                        .chars()
                        .all(|c| c.is_alphabetic() || ",.:;-%".contains(c))
            };
            text.split_whitespace()
                .filter(is_word)
                .nth(QUOTED_WORDS - 1)
                .is_some()
        })
    })
}
