//! What was done, as pieces: commands with how they ended, and the lines of files and answers that were seen.
//!
//! A command stands in the story; what it printed stands below it. What was read in a file or changed in it stands
//! under the file. A command that ran often is told once, where it ran last.

use std::collections::HashMap;

use super::form::NameForms;
use super::piece::{HeadForm, Piece, PieceHead, PieceTable};
use super::root::RootDirectory;
use super::select::ShownLevel;
use super::template::{SectionTopic, StyleTemplate};
use crate::ledger::{
    BlockPlace, Excerpt, FileAct, FileFact, Ledger, ToolRun, ToolRunOutcome, Voice, clip, defines,
    scan_names,
};

/// What pieces are worth by themselves: a command, one that failed, and what each further run of it adds.
const RUN: f64 = 0.10;
const FAILED: f64 = 0.25;
const AGAIN: f64 = 0.06;
/// A file that was changed; a line that a change put in; one that defines something; any other line.
const CHANGED_FILE: f64 = 0.25;
const CHANGED_LINE: f64 = 0.05;
const DEFINITION: f64 = 0.05;
const LINE: f64 = 0.0;
/// How much a line tells of the names in it, beside a sentence: a signature, a
/// line that an edit put in, and any other line of code or output.
const SIGNATURE: f64 = 0.9;
const CHANGE: f64 = 0.8;
const ANY_LINE: f64 = 0.5;

/// Characters of a command that are told, and of a line.
const COMMAND: usize = 160;
const LINE_CHARS: usize = 240;

/// Adds what the session did.
pub(super) struct TraceBuilder<'t, 'l> {
    pub table: &'t mut PieceTable,
    pub ledger: &'l Ledger,
    pub template: &'t StyleTemplate,
    pub root: &'t RootDirectory<'l>,
    /// The names that are worth a line.
    pub forms: &'t NameForms<'t>,
}

impl TraceBuilder<'_, '_> {
    /// Adds commands, changed files and the lines that hold a name worth telling.
    pub(super) fn push_all(&mut self) {
        self.push_runs();
        self.push_files();
        self.push_lines();
    }

    fn push_runs(&mut self) {
        let mut counts: HashMap<&str, u32, foldhash::fast::FixedState> = HashMap::default();
        for run in &self.ledger.facts.runs {
            *counts.entry(&run.text).or_default() += 1;
        }
        let weight = self.template.weight(Voice::Call);
        for run in self.ledger.facts.runs.iter().rev() {
            let failed = matches!(run.outcome, ToolRunOutcome::Failed(_));
            let Some(count) = counts.get_mut(&*run.text).map(std::mem::take) else {
                continue;
            };
            if run.path.is_some() && !failed {
                continue;
            }
            if count == 0 && !failed {
                continue;
            }
            let head = self.run_head(run, count);
            let often = AGAIN * f64::from(count.saturating_sub(1).min(4));
            self.table.push(Piece {
                head,
                ordinal: run.ordinal,
                place: 0,
                text: outcome_text(run),
                worth: weight * if failed { FAILED } else { RUN + often },
                tells: 1.0,
                shows: ShownLevel::InContext,
                about: None,
            });
        }
    }

    fn run_head(&mut self, run: &ToolRun, count: u32) -> usize {
        let times = match count {
            0 | 1 => String::new(),
            n => format!(" (×{n})"),
        };
        let command = clip(&self.root.shorten(&run.text), COMMAND);
        self.table.open_named(
            &format!("{} {}", run.ordinal, run.text),
            PieceHead {
                topic: SectionTopic::Story,
                ordinal: run.ordinal,
                label: format!("> {command}{times}"),
                form: HeadForm::Log,
            },
        )
    }

    fn push_files(&mut self) {
        let weight = self.template.weight(Voice::Call);
        for file in &self.ledger.facts.files {
            if file.act == FileAct::Read {
                continue;
            }
            let head = self.file_head(&file.path, file.ordinal);
            self.table.push(Piece {
                head,
                ordinal: file.ordinal,
                place: 0,
                text: String::new(),
                worth: weight * CHANGED_FILE,
                tells: 1.0,
                shows: ShownLevel::Bare,
                about: None,
            });
            self.push_changes(file, head);
        }
    }

    /// What each edit put in and took out.
    fn push_changes(&mut self, file: &FileFact, head: usize) {
        let weight = self.template.weight(Voice::Call);
        for change in &file.changes {
            for (line, place) in change.lines.lines().zip(1..) {
                let worth = match line.starts_with('+') {
                    true => CHANGED_LINE,
                    false => LINE,
                };
                let signs = line.get(1..).is_some_and(|line| defines(line.trim_start()));
                self.table.push(Piece {
                    head,
                    ordinal: change.ordinal,
                    place,
                    text: self.root.shorten(line).into_owned(),
                    worth: worth * weight,
                    tells: if signs { SIGNATURE } else { CHANGE },
                    shows: ShownLevel::InContext,
                    about: None,
                });
            }
        }
    }

    fn file_head(&mut self, path: &str, ordinal: u32) -> usize {
        let short = self.root.shorten(path);
        let known = self.ledger.facts.files.iter().find(|f| &*f.path == path);
        let act = known.map_or("", |file| match file.act {
            FileAct::Read => "",
            FileAct::Edited => " (edited)",
            FileAct::Created => " (created)",
            FileAct::Deleted => " (deleted)",
        });
        let topic = match act.is_empty() {
            true => SectionTopic::Code,
            false => SectionTopic::Files,
        };
        self.table.open_named(
            path,
            PieceHead {
                topic,
                ordinal: known.map_or(ordinal, |file| file.ordinal),
                label: format!("{short}{act}"),
                form: HeadForm::Lines,
            },
        )
    }

    /// Lines of calls and answers.
    fn push_lines(&mut self) {
        let sources = Sources::from_ledger(self.ledger);
        let excerpts = &self.ledger.excerpts;
        for excerpt in excerpts.iter().filter(|e| e.voice == Voice::Tool) {
            if let Some(run) = sources.run_of(excerpt) {
                self.push_excerpt(excerpt, run);
            }
        }
    }

    fn push_excerpt(&mut self, excerpt: &Excerpt, run: &ToolRun) {
        let weight = self.template.weight(Voice::Tool);
        let mut head = None;
        for (line, place) in excerpt_lines(excerpt, self.root) {
            if !self.names_something(&line) {
                continue;
            }
            let head = *head.get_or_insert_with(|| match &run.path {
                Some(path) => self.file_head(path, run.ordinal),
                None => self.run_head(run, 1),
            });
            let (worth, tells) = match defines(&line) {
                true => (DEFINITION, SIGNATURE),
                false => (LINE, ANY_LINE),
            };
            self.table.push(Piece {
                head,
                ordinal: excerpt.ordinal,
                place: place + 1,
                text: line,
                worth: worth * weight,
                tells,
                shows: ShownLevel::InContext,
                about: None,
            });
        }
    }

    fn names_something(&self, line: &str) -> bool {
        let mut found = false;
        scan_names(line, &mut |kind, _, name| {
            found |= !self.forms.groups_named(kind, name).is_empty();
        });
        found
    }
}

/// How a command ended, behind it.
fn outcome_text(run: &ToolRun) -> String {
    match &run.outcome {
        ToolRunOutcome::Pending => "→ no answer yet".to_owned(),
        ToolRunOutcome::Ok => match &run.end {
            Some(end) => format!("→ {end}"),
            None => String::new(),
        },
        ToolRunOutcome::Failed(why) => format!("→ failed: {why}"),
        ToolRunOutcome::Refused(why) => format!("→ refused by the user: {why}"),
    }
}

/// Which call a block answers.
struct Sources<'l>(HashMap<BlockPlace, &'l ToolRun, foldhash::fast::FixedState>);

impl<'l> Sources<'l> {
    fn from_ledger(ledger: &'l Ledger) -> Self {
        let runs = ledger.facts.runs.iter();
        Sources(runs.filter_map(|run| Some((run.answer?, run))).collect())
    }

    fn run_of(&self, excerpt: &Excerpt) -> Option<&'l ToolRun> {
        let place = BlockPlace {
            ordinal: excerpt.ordinal,
            part: excerpt.part,
        };
        self.0.get(&place).copied()
    }
}

/// The lines of an excerpt that are whole, without the numbers that a tool put before them, and where
/// each begins.
fn excerpt_lines(excerpt: &Excerpt, root: &RootDirectory<'_>) -> Vec<(String, u32)> {
    let mut at = excerpt.start;
    let mut out = Vec::new();
    for line in excerpt.text.split_inclusive('\n') {
        let plain = clip(&root.shorten(without_line_number(line)), LINE_CHARS);
        if plain.chars().filter(|c| c.is_alphanumeric()).count() >= 4 {
            out.push((plain, at));
        }
        at += line.len() as u32;
    }
    out
}

/// A line without its number.
fn without_line_number(line: &str) -> &str {
    let number = line.trim_start_matches([' ', '\t']);
    let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = number.len() - rest.len();
    match rest.chars().next() {
        Some(c @ (':' | '→' | '\t' | '|')) if (1..=6).contains(&digits) => {
            rest.get(c.len_utf8()..).unwrap_or(rest)
        }
        _ => line,
    }
}
