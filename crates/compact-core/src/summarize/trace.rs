//! What was done, as pieces: commands with how they ended, and the lines of files and answers that were seen.
//!
//! A command stands in the story; what it printed stands below it. What was read in a file stands under the file, as does what
//! was changed in it (`change`). A command that ran often is told once, where it ran last.

use std::collections::{HashMap, HashSet};

use super::diff_table::DiffTable;
use super::fact_line::refusal_text;
use super::file_state::FileStates;
use super::form::NameForms;
use super::name_line::{is_argument_name, is_taken_out, line_of_mention};
use super::piece::{HeadForm, Piece, PieceForm, PieceHead, PieceTable};
use super::root::RootDirectory;
use super::select::ShownLevel;
use super::series::SeriesTable;
use super::template::{SectionTopic, StyleTemplate};
use super::weigh::WeighedName;
use crate::cue_list::{WordList, cue_file};
use crate::halves::map_in_halves;
use crate::ledger::{
    BlockPlace, Entity, Excerpt, FailedRun, FileAct, FileFact, Ledger, Mention, NameKind, ToolRun,
    ToolRunOutcome, Voice, clip, comment_text, defines, is_import, is_test_file, may_show_diff,
    reports_pass, scan_names,
};

/// What pieces are worth by themselves: a command, one that failed, and what each further run of it adds.
const RUN: f64 = 0.10;
/// One that only looks something up: what it found is told below it, or nothing is.
const LOOK: f64 = 0.04;
const FAILED: f64 = 0.25;
/// One that changes what the work stands on.
const DEED: f64 = 0.25;
const AGAIN: f64 = 0.06;
/// A comment that a change put in, and one that was read: there people write why.
pub(super) const COMMENT: f64 = 0.2;
const COMMENT_READ: f64 = 0.06;
/// A line that defines something, and any other line.
const DEFINITION: f64 = 0.05;
pub(super) const LINE: f64 = 0.0;
/// How much a line tells of the names in it, beside a sentence: a signature, and any other line of code or output.
pub(super) const SIGNATURE: f64 = 0.9;
pub(super) const ANY_LINE: f64 = 0.5;

/// How much a name tells that stands in the list of its file or command: it costs a fraction of a line, and readers find
/// by it what a file is about and what to ask for. Behind so many names each further one tells half as much, and so on: a heap
/// of sixty says no more than its first twenty. In a summary of more characters there is room for one more for so many.
const NAMED: f64 = 4.0;
const FEW_NAMES: f64 = 24.0;
const CHARS_A_NAME: f64 = 400.0;

/// Characters of a command that are told, and of a line.
const COMMAND: usize = 160;
const LINE_CHARS: usize = 240;

/// How much a short line tells of its names that was read and gives one of them a value.
const VALUE_READ: f64 = 4.0;

/// How often a command ran, and how often it failed.
#[derive(Clone, Copy, Default)]
struct RunCount {
    all: u32,
    failed: u32,
}

impl RunCount {
    fn add(&mut self, run: &ToolRun) {
        self.all += 1;
        self.failed += u32::from(matches!(run.outcome, ToolRunOutcome::Failed(_)));
    }
}

/// Adds what the session did.
pub(super) struct TraceBuilder<'t, 'l> {
    pub table: &'t mut PieceTable,
    pub ledger: &'l Ledger,
    pub template: &'t StyleTemplate,
    pub root: &'t RootDirectory<'l>,
    /// What became of the files.
    pub files: &'t FileStates<'l>,
    /// What diffs showed of files.
    pub diffs: &'t DiffTable<'l>,
    pub names: &'t [WeighedName<'t>],
    /// The heads that were opened, by the address of the run or of the path that they are for.
    pub opened: HashMap<usize, usize, foldhash::fast::FixedState>,
    /// Names in one list behind which further ones tell half as much.
    pub few_names: f64,
    /// Runs that are told in a section of their own.
    pub stated: HashSet<u32>,
    /// Failed runs, and those that passed since.
    pub closings: HashMap<u32, u32, foldhash::fast::FixedState>,
    /// What was offered of each kind.
    pub series: SeriesTable,
    /// The entries that stand whole in the view.
    pub whole: &'t HashSet<u64>,
    /// The newest changes that do not, from the newest back.
    pub newest_changes: Vec<u32>,
    /// Lines of changes that were offered under each head: many that are alike say what one does.
    pub offered: HashSet<(usize, &'l str), foldhash::fast::FixedState>,
}

/// The place in the table of series where commands stand.
const RUNS_PLACE: usize = usize::MAX;

/// The names in one list that a summary of so many characters has room for.
pub(super) fn count_few_names(chars: f64) -> f64 {
    FEW_NAMES.max(chars / CHARS_A_NAME)
}

impl<'l> TraceBuilder<'_, 'l> {
    /// Adds commands, changed files and the lines that hold a name worth telling.
    pub(super) fn push_all(mut self, answers: Vec<AnswerLine<'l>>) {
        self.push_runs();
        self.push_files();
        self.push_diffs();
        self.push_lines(answers);
        self.push_names();
    }

    /// Names that tools were given or answered, each under the file or the command where it was seen last.
    fn push_names(&mut self) {
        let sources = Sources::from_ledger(self.ledger);
        let mut listed: HashMap<usize, u32, foldhash::fast::FixedState> = HashMap::default();
        let passed = self.passed_checks();
        for group in self.names {
            let Some(entity) = self.ledger.entities.get(group.nth as usize) else {
                continue;
            };
            let newest = sources.newest_mention(entity);
            let newest = newest.filter(|(mention, _)| {
                let is_call = entity.heard.is_empty();
                let is_setting = || is_round_number(&entity.text);
                let is_argument = || is_argument_name(self.ledger, mention, &entity.text);
                let is_given = is_call && (is_setting() || is_argument());
                !is_given && !is_uninformative(entity) && !is_taken_out(self.ledger, mention)
            });
            // What a check printed on the way of what passed is no part of what it found, and what a file imports is none of
            // what it is about.
            let newest = newest.filter(|(mention, run)| {
                let is_aside = |line: &str| {
                    let line = without_line_number(line);
                    reports_pass(line) || is_import(line)
                };
                let line = || line_of_mention(self.ledger, mention);
                let is_passed = || passed.contains(&std::ptr::from_ref::<ToolRun>(run).addr());
                let is_noise = || is_passed() || line().is_some_and(is_aside);
                let is_known = || self.root.is_it(&entity.text);
                tool_of(run) != &*entity.text && (is_said(entity) || !is_noise()) && !is_known()
            });
            let Some((mention, run)) = newest else {
                continue;
            };
            let head = self.source_head(run);
            let name = self.root.shorten(&entity.text);
            let label = self.table.heads.get(head).map(|head| head.label.as_str());
            // A file or a command that is named for itself needs no more than its own line.
            let is_own = label.is_some_and(|label| label.contains(&*name));
            let (text, place, form) = match is_own {
                true => (String::new(), 0, PieceForm::Text),
                false => (name.into_owned(), mention.start + 1, PieceForm::Name),
            };
            let place_of_kind = match is_own {
                true => RUNS_PLACE,
                false => head,
            };
            let is_file = is_own && run.path.is_some();
            // What was looked for says nothing without what was found.
            if is_own && !is_file && run.only_looks() {
                continue;
            }
            // What somebody named is told, however many are alike.
            let is_named = is_file || !entity.spoken.is_empty();
            if !is_named && !self.series.admits(place_of_kind, &entity.text) {
                continue;
            }
            let tells = match is_own {
                true => NAMED,
                false => {
                    let before = listed.entry(head).or_default();
                    *before += 1;
                    // A number without what it counts comes behind names.
                    let before = match is_counted(entity) {
                        true => FEW_NAMES * 2.0,
                        false => f64::from(*before - 1),
                    };
                    NAMED * 0.5f64.powf(before / self.few_names)
                }
            };
            self.table.push(Piece {
                head,
                ordinal: mention.place.ordinal,
                place,
                text,
                worth: 0.0,
                tells,
                shows: ShownLevel::Bare,
                about: None,
                form,
            });
        }
    }

    /// The checks that passed, by their addresses: names ask again and again.
    fn passed_checks(&self) -> HashSet<usize, foldhash::fast::FixedState> {
        let passed = self
            .ledger
            .facts
            .runs
            .iter()
            .filter(|run| run.is_passed_check());
        passed.map(|run| std::ptr::from_ref(run).addr()).collect()
    }

    fn push_runs(&mut self) {
        let mut counts: HashMap<&str, RunCount, foldhash::fast::FixedState> = HashMap::default();
        for run in &self.ledger.facts.runs {
            counts.entry(&run.text).or_default().add(run);
        }
        let weight = self.template.weight(Voice::Call);
        for run in self.ledger.facts.runs.iter().rev() {
            let failed = matches!(run.outcome, ToolRunOutcome::Failed(_));
            let is_closed = self.closings.contains_key(&run.ordinal);
            let Some(count) = counts.get_mut(&*run.text).map(std::mem::take) else {
                continue;
            };
            let is_told = self.stated.contains(&run.ordinal);
            let text = outcome_text(run);
            let is_bare = text.is_empty() && run.only_looks();
            if (count.all == 0 || run.path.is_some()) && !failed
                || is_told
                || is_bare && !self.series.admits(RUNS_PLACE, &run.text)
            {
                continue;
            }
            let head = self.run_head(run, count);
            let often = AGAIN * f64::from(count.all.saturating_sub(1).min(4));
            self.table.push(Piece {
                head,
                ordinal: run.ordinal,
                place: 0,
                text,
                worth: weight
                    * match (failed, is_closed) {
                        (true, false) => FAILED,
                        _ if run.changes_state() => DEED + often,
                        _ if run.only_looks() => LOOK,
                        _ => RUN + often,
                    },
                tells: 1.0,
                shows: ShownLevel::InContext,
                about: None,
                form: PieceForm::Text,
            });
        }
    }

    /// The head of what a run showed: its file, or the run itself where it named none or did not get it.
    fn source_head(&mut self, run: &ToolRun) -> usize {
        let is_failed = matches!(run.outcome, ToolRunOutcome::Failed(_));
        match run.path.as_deref().filter(|_| !is_failed) {
            Some(path) => self.file_head(path, run.ordinal),
            None => self.run_head(run, RunCount::default()),
        }
    }

    fn run_head(&mut self, run: &ToolRun, count: RunCount) -> usize {
        let address = std::ptr::from_ref(run).addr();
        if let Some(head) = self.opened.get(&address) {
            return *head;
        }
        let head = self.open_run(run, count);
        self.opened.insert(address, head);
        head
    }

    fn open_run(&mut self, run: &ToolRun, count: RunCount) -> usize {
        let times = match (count.all, count.failed) {
            (0 | 1, _) => String::new(),
            (all, 0) => format!(" (×{all})"),
            (all, failed) if failed == all => format!(" (×{all})"),
            (all, failed) => format!(" (×{all}, {failed} failed)"),
        };
        let command = clip(&self.root.shorten_command(&run.text), COMMAND);
        let failed = self.failure_mark(run);
        self.table.open_named(
            &format!("{} {}", run.ordinal, run.text),
            PieceHead {
                topic: SectionTopic::Story,
                ordinal: run.ordinal,
                label: format!("> {command}{times}{failed}"),
                form: HeadForm::Log,
            },
        )
    }

    /// Says that a command failed, and which run passed since: whatever else is told of it stands behind that.
    fn failure_mark(&self, run: &ToolRun) -> String {
        match (&run.outcome, self.closings.get(&run.ordinal)) {
            // A search that found nothing did what it was asked for.
            (ToolRunOutcome::Failed(_), _) if run.only_looks() => String::new(),
            (ToolRunOutcome::Failed(_), Some(pass)) => {
                format!(" → failed (passed since, #{pass}):")
            }
            (ToolRunOutcome::Failed(_), None) => " → failed:".to_owned(),
            _ => String::new(),
        }
    }

    pub(super) fn file_head(&mut self, path: &str, ordinal: u32) -> usize {
        let address = path.as_ptr().addr();
        if let Some(head) = self.opened.get(&address) {
            return *head;
        }
        let head = self.open_file(path, ordinal);
        self.opened.insert(address, head);
        head
    }

    fn open_file(&mut self, path: &str, ordinal: u32) -> usize {
        let short = self.root.shorten(path);
        let known = self.files.state_of(&short).map(|state| state.fact);
        let shown = self.diffs.label_of(&short);
        let act = known.map_or(shown.clone(), |file| match file.act {
            FileAct::Read => shown,
            FileAct::Edited => format!(" (edited{})", earlier_edits(file)),
            FileAct::Created => format!(" (created{})", earlier_edits(file)),
            FileAct::Deleted => " (deleted)".to_owned(),
            FileAct::Restored => " (put back as it was)".to_owned(),
        });
        let topic = match known.is_some_and(FileFact::is_changed) {
            true => SectionTopic::Files,
            false => SectionTopic::Code,
        };
        self.table.open_named(
            &short,
            PieceHead {
                topic,
                ordinal: known.map_or(ordinal, |file| file.ordinal),
                label: format!("{short}{act}"),
                form: HeadForm::Lines,
            },
        )
    }

    /// Lines of answers.
    fn push_lines(&mut self, lines: Vec<AnswerLine<'l>>) {
        let weight = self.template.weight(Voice::Tool);
        for line in lines {
            let head = self.source_head(line.run);
            if !self.series.admits(head, &line.text) {
                continue;
            }
            self.table.push(Piece {
                head,
                ordinal: line.ordinal,
                place: line.place,
                text: line.text,
                worth: line.worth * weight,
                tells: line.tells,
                shows: ShownLevel::InContext,
                about: None,
                form: PieceForm::Text,
            });
        }
    }
}

/// A line of an answer that says something.
pub(super) struct AnswerLine<'l> {
    /// The call that was answered.
    run: &'l ToolRun,
    ordinal: u32,
    place: u32,
    text: String,
    /// What it is worth, whatever tools are.
    worth: f64,
    tells: f64,
}

/// What is looked at to see which lines of answers say something.
pub(super) struct AnswerReader<'t, 'l> {
    pub ledger: &'l Ledger,
    pub root: &'t RootDirectory<'l>,
    pub files: &'t FileStates<'l>,
    pub diffs: &'t DiffTable<'l>,
    pub forms: &'t NameForms<'t>,
}

/// Fewer answers are read before a second thread has begun.
const WORTH_A_THREAD: usize = 512;

impl<'l> AnswerReader<'_, 'l> {
    /// The lines of all answers that say something, in order.
    pub(super) fn read_lines(&self) -> Vec<AnswerLine<'l>> {
        let sources = Sources::from_ledger(self.ledger);
        let excerpts = self.ledger.excerpts.iter();
        let answers = excerpts.filter(|excerpt| excerpt.voice == Voice::Tool);
        let answers: Vec<(&Excerpt, &ToolRun)> = answers
            .filter_map(|excerpt| Some((excerpt, sources.run_of(excerpt)?)))
            .collect();
        let read = |(excerpt, run): &(&Excerpt, &'l ToolRun)| self.read_answer(excerpt, run);
        let lines = map_in_halves(&answers, WORTH_A_THREAD, read);
        lines.into_iter().flatten().collect()
    }

    fn read_answer(&self, excerpt: &Excerpt, run: &'l ToolRun) -> Vec<AnswerLine<'l>> {
        let mut lines = Vec::new();
        let path = run.path.as_deref().map(|path| self.root.shorten(path));
        let state = path.and_then(|path| self.files.state_of(&path));
        // What a diff changed is told file by file, and what it shows around that is not what it is about.
        if self.diffs.has_run(run.ordinal) {
            return lines;
        }
        let shows_diff = may_show_diff(&run.text) && is_patch(&excerpt.text);
        let is_test = run.path.as_deref().is_some_and(is_test_file);
        for (line, place) in excerpt_lines(excerpt, self.root) {
            let is_comment = is_comment(&line) && !line.starts_with('-');
            // What a diff shows around its changes is not what it is about.
            let is_around = shows_diff && !line.starts_with(['+', '-']);
            let is_removed = shows_diff && line.starts_with('-');
            if is_around
                || is_removed && declared_name(line.trim_start_matches('-')).is_none()
                || reports_pass(&line)
                || is_import(&line)
                || !is_comment && !self.names_something(&line)
                || state.is_some_and(|state| state.is_stale(&line, excerpt.ordinal))
            {
                continue;
            }
            let (worth, tells) = match (is_comment, defines(&line)) {
                (true, _) => (COMMENT_READ, SIGNATURE),
                (false, true) => (DEFINITION, SIGNATURE),
                (false, false) if gives_value(&line) && !is_test => (LINE, VALUE_READ),
                (false, false) => (LINE, ANY_LINE),
            };
            lines.push(AnswerLine {
                run,
                ordinal: excerpt.ordinal,
                place: place + 1,
                text: line,
                worth,
                tells,
            });
        }
        lines
    }

    fn names_something(&self, line: &str) -> bool {
        let mut found = false;
        scan_names(line, &mut |kind, _, name| {
            found |= !self.forms.groups_named(kind, name).is_empty();
        });
        found
    }
}

static LIBRARY_HEADS: WordList = WordList::new(cue_file!("library_head"));

/// Whether a name is one that every reader of code knows, such as `filepath.Join` or a mode of a file: it tells nothing of
/// the file that it was seen in.
fn is_library_name(name: &str) -> bool {
    let head = name.split(['.', ':']).next().unwrap_or("");
    (head.len() < name.len() && LIBRARY_HEADS.has(head)) || name.starts_with("0o")
}

/// Whether a name says nothing in a list: every reader knows it, or tools alone said it and it is a plain word with hyphens
/// or a number of a few digits without what it counts.
fn is_uninformative(entity: &Entity) -> bool {
    let is_word = || matches!(entity.kind, NameKind::Slug | NameKind::Flag);
    let is_number = || entity.text.len() < 4 && entity.text.bytes().all(|b| b.is_ascii_digit());
    let is_noise = || entity.spoken.is_empty() && (is_word() || is_number());
    is_library_name(&entity.text) || is_noise()
}

/// Whether a name is a number that nobody but calls and tools said.
fn is_counted(entity: &Entity) -> bool {
    !is_said(entity) && is_bare_number(&entity.text)
}

/// Whether the user or the model said a name.
fn is_said(entity: &Entity) -> bool {
    entity.voice_count(Voice::User) + entity.voice_count(Voice::Model) > 0
}

/// Letters of a number that is more than its digits: `4xx`, `1235p`, `2026-04-29T08`.
const NUMBER_LETTERS: usize = 1;

/// Whether a name is a small number, a place in a file that a command was given (`120p`), or a part of a date.
fn is_bare_number(name: &str) -> bool {
    let letters = name.bytes().filter(u8::is_ascii_alphabetic).count();
    let is_marked = name.bytes().any(|b| !b.is_ascii_alphanumeric());
    let is_long = name.len() > if is_marked { 16 } else { 5 };
    let opens = name.starts_with(|c: char| c.is_ascii_digit());
    opens && letters <= NUMBER_LETTERS && !is_long && !name.contains('.')
}

/// The tool of a run.
fn tool_of(run: &ToolRun) -> &str {
    run.text.split(':').next().unwrap_or("")
}

/// Whether a name is a number such as agents give tools for a limit: 120000.
pub(crate) fn is_round_number(name: &str) -> bool {
    name.ends_with("000") && name.bytes().all(|b| b.is_ascii_digit())
}

/// Words of a comment that say something: fewer are a label.
const COMMENT_WORDS: usize = 5;

/// Whether a line of code, of a change or of a diff is a comment in words: there people write why.
pub(super) fn is_comment(line: &str) -> bool {
    let line = line.trim_start_matches(['+', '-', ' ', '\t']);
    let marks = [
        "// ", "# ", "/// ", "//! ", "* ", "-- ", "/* ", "<!-- ", "; ",
    ];
    let text = marks.iter().find_map(|mark| line.strip_prefix(mark));
    text.is_some_and(|text| {
        let words = text.split_whitespace();
        let is_word = |word: &&str| {
            word.chars()
                .all(|c| c.is_alphabetic() || ".,;:'-()".contains(c))
        };
        words.filter(is_word).count() >= COMMENT_WORDS
    })
}

/// A line of so many characters that gives a value tells as much as the bare name, and what it is set to.
const VALUE_LINE: usize = 60;

/// Whether a short line sets something to a number or a quoted text: `timeout_ms: 800`, `MODE = "fast"`.
pub(super) fn gives_value(line: &str) -> bool {
    let Some((name, value)) = line.split_once([':', '=']) else {
        return false;
    };
    let value = value.trim_start_matches(['=', ' ']);
    line.len() <= VALUE_LINE
        && name.split_whitespace().count() <= 4
        // What stands in quotation marks before it is no name: `json:"id"` is a label of a field.
        && !name.contains('`')
        && value.starts_with(|c: char| c.is_ascii_digit() || "\"'`-#".contains(c))
        && value.chars().any(char::is_alphanumeric)
}

/// Whether a line declares something that others can use: a function, a type, a constant.
pub(super) fn declares(line: &str) -> bool {
    let constant = line.strip_prefix("export ").map_or(line, str::trim_start);
    let name = ["const ", "static ", "pub const ", "pub static "]
        .iter()
        .find_map(|word| constant.strip_prefix(word));
    let is_upper = |name: &str| {
        let name = name
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next();
        name.is_some_and(|name| name.len() > 2 && !name.contains(|c: char| c.is_lowercase()))
    };
    let is_exported = constant.len() < line.len();
    name.is_some_and(|name| is_exported || is_upper(name)) || defines(line)
}

/// What a line declares, if it does.
pub(super) fn declared_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mut name = None;
    if declares(line) {
        scan_names(line, &mut |_, _, found| {
            name.get_or_insert(found);
        });
    }
    name
}

/// Whether a text is the body of a patch, in which every line says whether it was put in, taken out or left.
fn is_patch(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| line.starts_with("@@ ") || line.starts_with("diff --git "))
}

/// Earlier edits of a file that are pointed at.
const EARLIER_EDITS: usize = 6;

/// Where a file was changed before its last change, so that each can be looked up.
fn earlier_edits(file: &FileFact) -> String {
    let mut earlier: Vec<u32> = file.changes.iter().map(|change| change.ordinal).collect();
    earlier.retain(|ordinal| *ordinal != file.ordinal);
    earlier.dedup();
    let skipped = earlier.len().saturating_sub(EARLIER_EDITS);
    let told = earlier
        .iter()
        .skip(skipped)
        .map(|ordinal| format!(" #{ordinal}"));
    match earlier.is_empty() {
        true => String::new(),
        false => format!(", before:{}", told.collect::<String>()),
    }
}

/// The ordinals of failed calls, and of the runs that passed since.
pub(super) fn closing_ordinals(ledger: &Ledger) -> HashMap<u32, u32, foldhash::fast::FixedState> {
    let closed = |failed: FailedRun<'_>| Some((failed.run.ordinal, failed.closed_by?.ordinal));
    let failed = ledger.facts.failed_runs().into_iter();
    failed.filter_map(closed).collect()
}

/// How a command ended, behind it.
fn outcome_text(run: &ToolRun) -> String {
    match &run.outcome {
        ToolRunOutcome::Pending => "→ no answer yet".to_owned(),
        ToolRunOutcome::Ok => match &run.end {
            Some(end) => format!("→ {end}"),
            None => String::new(),
        },
        ToolRunOutcome::Failed(why) if run.only_looks() => format!("→ {why}"),
        ToolRunOutcome::Failed(why) => why.to_string(),
        ToolRunOutcome::Refused(why) => format!("→ {}", refusal_text(why)),
    }
}

/// Which call a block answers.
struct Sources<'l> {
    answers: HashMap<BlockPlace, &'l ToolRun, foldhash::fast::FixedState>,
    calls: HashMap<u32, &'l ToolRun, foldhash::fast::FixedState>,
}

impl<'l> Sources<'l> {
    fn from_ledger(ledger: &'l Ledger) -> Self {
        let runs = ledger.facts.runs.iter();
        Sources {
            answers: runs
                .clone()
                .filter_map(|run| Some((run.answer?, run)))
                .collect(),
            calls: runs.map(|run| (run.ordinal, run)).collect(),
        }
    }

    /// The newest mention of a name in a call or an answer, and the run that it belongs to.
    fn newest_mention<'e>(&self, entity: &'e Entity) -> Option<(&'e Mention, &'l ToolRun)> {
        let heard = entity.heard.iter().rev();
        let mut heard = heard.filter_map(|m| Some((m, *self.answers.get(&m.place)?)));
        let spoken = entity.spoken.iter().rev();
        let mut spoken = spoken.filter_map(|m| Some((m, *self.calls.get(&m.place.ordinal)?)));
        heard.next().or_else(|| spoken.next())
    }

    fn run_of(&self, excerpt: &Excerpt) -> Option<&'l ToolRun> {
        let place = BlockPlace {
            ordinal: excerpt.ordinal,
            part: excerpt.part,
        };
        self.answers.get(&place).copied()
    }
}

/// The lines of an excerpt that are whole, without the numbers that a tool put before them, and where
/// each begins. A comment over several lines is one.
fn excerpt_lines(excerpt: &Excerpt, root: &RootDirectory<'_>) -> Vec<(String, u32)> {
    let mut at = excerpt.start;
    let mut out: Vec<(String, u32)> = Vec::new();
    let mut goes_on = false;
    for line in excerpt.text.split_inclusive('\n') {
        let plain = clip(&root.shorten(without_line_number(line)), LINE_CHARS);
        let comment = comment_text(&plain);
        match (comment, out.last_mut().filter(|_| goes_on)) {
            (Some(text), Some((before, _))) if before.len() + text.len() < LINE_CHARS => {
                before.push(' ');
                before.push_str(text);
            }
            _ if plain
                .chars()
                .filter(|c| c.is_alphanumeric())
                .nth(3)
                .is_some() =>
            {
                goes_on = comment.is_some();
                out.push((plain, at));
            }
            _ => goes_on = false,
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
