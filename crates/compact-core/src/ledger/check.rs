//! Whether two commands are the same check: a failure is over when any later run of the same test passes.
//!
//! What wraps a command does not count (a directory, an environment, what its output is piped to), nor do flags that
//! only say how much is printed. A later run that covers what the earlier one did, or more, closes it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};

use super::fact::{Facts, ToolRun, ToolRunOutcome};
use super::task::BackgroundTask;
use crate::cue_list::{PhraseList, WordList, cue_file};

static CHECK_OUTCOME: PhraseList = PhraseList::anywhere(cue_file!("check_outcome"));
static LOOKUPS: WordList = WordList::new(cue_file!("lookup_program"));
static CHECK_PROGRAMS: WordList = WordList::new(cue_file!("check_program"));
static WRAPPERS: WordList = WordList::new(cue_file!("command_wrapper"));

/// What a command checks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CheckedTarget<'r> {
    /// The tool, the program and its subcommand.
    subject: Vec<&'r str>,
    /// What it is told to check; everything when empty.
    targets: BTreeSet<&'r str>,
}

/// A call that failed, and the run by which that is over.
#[derive(Clone, Copy, Debug)]
pub struct FailedRun<'f> {
    /// The call.
    pub run: &'f ToolRun,
    /// Why it failed.
    pub why: &'f str,
    /// A later run of the same check that passed.
    pub closed_by: Option<&'f ToolRun>,
}

impl Facts {
    /// Returns the calls that failed, the newest first, each with the run that closed it.
    pub fn failed_runs(&self) -> Vec<FailedRun<'_>> {
        let mut passed: HashMap<Vec<&str>, Vec<(&ToolRun, BTreeSet<&str>)>> = HashMap::new();
        let mut failed = Vec::new();
        for run in self.runs.iter().rev() {
            let check = CheckedTarget::from_run(run);
            match &run.outcome {
                ToolRunOutcome::Ok => {
                    let later = passed.entry(check.subject).or_default();
                    if later.len() < PASSES {
                        later.push((run, check.targets));
                    }
                }
                ToolRunOutcome::Failed(why) => {
                    let later = passed
                        .get(&check.subject)
                        .map(Vec::as_slice)
                        .unwrap_or_default();
                    let closing = later.iter().rev().find(|(_, t)| check.is_within(t));
                    failed.push(FailedRun {
                        run,
                        why,
                        closed_by: closing.map(|(run, _)| *run),
                    });
                }
                ToolRunOutcome::Pending | ToolRunOutcome::Refused(_) => {}
            }
        }
        failed
    }
}

impl Facts {
    /// Whether what a task in the background does was begun again later, and came to an end.
    pub(super) fn is_run_again(&self, task: &BackgroundTask) -> bool {
        let check = CheckedTarget::from_command(&task.text);
        let later = self.runs.iter().rev();
        let mut later = later.take_while(|run| run.ordinal > task.ordinal);
        later.any(|run| {
            let again = CheckedTarget::from_run(run);
            let goes_on = self.tasks.iter().any(|other| other.ordinal == run.ordinal);
            run.outcome.is_known()
                && !goes_on
                && again.subject == check.subject
                && check.is_within(&again.targets)
        })
    }

    /// Returns the newest run of each check, the newest first. A check is what says at some time that something passes
    /// or fails; how a command that only looks something up ended is no state of the work.
    pub fn newest_checks(&self) -> Vec<&ToolRun> {
        let mut newest: Vec<(&ToolRun, bool)> = Vec::new();
        let mut places: HashMap<Vec<&str>, usize> = HashMap::new();
        let ended = self.runs.iter().rev().filter(|run| run.path.is_none());
        for run in ended.filter(|run| run.outcome.is_known()) {
            let subject = CheckedTarget::from_run(run).subject;
            if !is_checkable(&subject) {
                continue;
            }
            let place = *places.entry(subject).or_insert_with(|| {
                newest.push((run, false));
                newest.len() - 1
            });
            if let Some((_, is_check)) = newest.get_mut(place) {
                *is_check |= run.shows_outcome();
            }
        }
        let checks = newest.into_iter().filter(|(_, is_check)| *is_check);
        checks.map(|(run, _)| run).collect()
    }
}

impl ToolRun {
    /// Whether it says that something passes or fails.
    fn shows_outcome(&self) -> bool {
        match &self.outcome {
            ToolRunOutcome::Failed(why) => CHECK_OUTCOME.is_in(why),
            ToolRunOutcome::Ok => self.end.as_deref().is_some_and(|e| CHECK_OUTCOME.is_in(e)),
            ToolRunOutcome::Pending | ToolRunOutcome::Refused(_) => false,
        }
    }
}

impl ToolRunOutcome {
    /// Whether it ran to an end.
    fn is_known(&self) -> bool {
        matches!(self, ToolRunOutcome::Ok | ToolRunOutcome::Failed(_))
    }
}

/// Whether a command may be a check: it has a program, and one that does more than look something up.
fn is_checkable(subject: &[&str]) -> bool {
    match subject {
        [_, program, ..] => !LOOKUPS.has(program) && !program.ends_with(':'),
        _ => false,
    }
}

impl Facts {
    /// Returns the commands of a shell that went through and did more than look something up or check, the newest first
    /// and each once: what need not be done again.
    pub fn executed_commands(&self) -> Vec<&ToolRun> {
        let mut seen: HashSet<&str> = HashSet::new();
        let is_check = |run: &ToolRun| {
            let end = run.end.as_deref();
            end.is_some_and(|end| CHECK_OUTCOME.is_in(end))
        };
        let passed = self.runs.iter().rev().filter(|run| {
            run.path.is_none() && run.outcome == ToolRunOutcome::Ok && !is_check(run)
        });
        let deeds = passed.filter(|run| shell_command(&run.text).is_some_and(does_something));
        deeds.filter(|run| seen.insert(&run.text)).collect()
    }
}

/// Programs that change the state of a machine, and what others are told to do that changes it.
const DEED_PROGRAMS: [&str; 4] = ["rm", "mv", "kill", "pkill"];
const DEED_VERBS: [&str; 12] = [
    "add",
    "apply",
    "delete",
    "deploy",
    "install",
    "migrate",
    "publish",
    "remove",
    "restart",
    "rollback",
    "uninstall",
    "upgrade",
];

impl ToolRun {
    /// Whether it is a command of a shell that changes what the rest of the work stands on: a branch, a commit, what is
    /// installed. Who goes on must know of it more than of anything that was looked up.
    pub fn changes_state(&self) -> bool {
        let changes = |part: &str| {
            let words = part.split_whitespace();
            let mut words = words.skip_while(|word| WRAPPERS.has(word) || word.contains('='));
            match (words.next(), words.find(|word| !word.starts_with('-'))) {
                (Some("git"), Some(verb)) => GIT_DEEDS.contains(&verb),
                (Some(program), _) if DEED_PROGRAMS.contains(&program) => true,
                (Some(_), Some(verb)) => DEED_VERBS.contains(&verb),
                _ => false,
            }
        };
        shell_command(&self.text).is_some_and(|command| split_commands(command).any(changes))
    }

    /// Whether it is a check whose failure its shell does not report: it is piped to another program, or one that cannot
    /// fail comes behind it.
    pub(super) fn hides_failure(&self) -> bool {
        self.text.contains(['|', ';']) && self.is_check()
    }

    /// Whether it is a check that found nothing wrong.
    pub fn is_passed_check(&self) -> bool {
        self.outcome == ToolRunOutcome::Ok && self.is_check()
    }

    /// Whether it tests, checks or builds something.
    fn is_check(&self) -> bool {
        let names_check = |command: &str| {
            let mut words = command.split(|c: char| c.is_whitespace() || ":/;&|".contains(c));
            words.any(|word| CHECK_PROGRAMS.has(word))
        };
        shell_command(&self.text).is_some_and(names_check) && !self.only_looks()
    }

    /// Whether it only looks something up: all its programs do, or its tool by its name.
    pub fn only_looks(&self) -> bool {
        match shell_command(&self.text) {
            Some(command) => !does_something(command),
            None => is_looking_tool(&self.text),
        }
    }
}

/// The command of `tool: command`; `None` for a call with named arguments.
fn shell_command(text: &str) -> Option<&str> {
    let (_, command) = text.split_once(": ")?;
    let first = command.split_whitespace().next()?;
    (!first.ends_with(':')).then_some(command)
}

/// What git does that changes something.
const GIT_DEEDS: [&str; 18] = [
    "checkout",
    "clean",
    "commit",
    "init",
    "pull",
    "reset",
    "restore",
    "stash",
    "switch",
    "push",
    "merge",
    "rebase",
    "tag",
    "apply",
    "revert",
    "mv",
    "rm",
    "cherry-pick",
];

/// The commands that stand on one line: what joins them stands outside of quotation marks.
fn split_commands(line: &str) -> impl Iterator<Item = &str> {
    let mut quoted_by = None;
    line.split(move |c: char| match (quoted_by, c) {
        (None, '"' | '\'') => {
            quoted_by = Some(c);
            false
        }
        (Some(mark), _) => {
            quoted_by = Some(mark).filter(|mark| *mark != c);
            false
        }
        (None, _) => matches!(c, '|' | ';' | '&'),
    })
}

/// Whether one of the programs of a command is none that only looks something up.
fn does_something(command: &str) -> bool {
    split_commands(command).any(|part| {
        let words = part.split_whitespace();
        let words = words.map(|word| word.trim_matches(['"', '\'']));
        let mut words = words.skip_while(|word| WRAPPERS.has(word) || word.contains('='));
        match words.next() {
            None | Some("cd" | "set" | "export" | "true") => false,
            Some("git") => words.next().is_some_and(|verb| GIT_DEEDS.contains(&verb)),
            Some(program) => !LOOKUPS.has(program) && !is_redirection(program),
        }
    })
}

/// Words in the names of tools that only look something up.
const LOOKING: [&str; 9] = [
    "get", "list", "find", "search", "read", "grep", "glob", "view", "fetch",
];

fn is_looking_tool(text: &str) -> bool {
    let tool = text.split(':').next().unwrap_or("").to_lowercase();
    let mut words = tool.split(['_', '-', '.', ' ']);
    words.any(|word| {
        let looks = |looking: &&str| word.starts_with(*looking) || word.ends_with(*looking);
        LOOKING.iter().any(looks)
    })
}

/// How many of the newest passes of one subject are looked at: bounds the work.
const PASSES: usize = 32;

impl<'r> CheckedTarget<'r> {
    /// What a call is about: of a shell's, what its command checks; of any other, the file or the first thing that it names.
    fn from_run(run: &'r ToolRun) -> CheckedTarget<'r> {
        let (tool, arguments) = run.text.split_once(": ").unwrap_or((&run.text, ""));
        // An editor that views a file says nothing of an edit that failed.
        let mut words = arguments.split_whitespace();
        let verb = words
            .next()
            .filter(|key| *key == "command:")
            .and_then(|_| words.next());
        let targets: BTreeSet<&str> = match &run.path {
            Some(path) => BTreeSet::from([&**path]),
            None if shell_command(&run.text).is_some() => {
                return CheckedTarget::from_command(&run.text);
            }
            None => first_value(arguments).collect(),
        };
        CheckedTarget {
            subject: [Some(tool), verb].into_iter().flatten().collect(),
            targets,
        }
    }

    /// Reads a command as the ledger has it: `tool: command`.
    fn from_command(text: &'r str) -> CheckedTarget<'r> {
        let (tool, command) = text.split_once(": ").unwrap_or((text, ""));
        let command = last_command(command);
        let mut words = command
            .split_whitespace()
            .skip_while(|word| WRAPPERS.has(word) || word.contains('='))
            .filter(|word| !is_redirection(word));
        let program = words.next();
        let mut subject: Vec<&str> = [Some(tool), program].into_iter().flatten().collect();
        let rest: Vec<&str> = words
            .filter(|word| !is_verbosity(word) && !means_everything(word))
            .collect();
        let (verb, targets) = match rest.split_first() {
            Some((verb, targets)) if is_verb(verb) => (Some(*verb), targets),
            _ => (None, rest.as_slice()),
        };
        subject.extend(verb);
        CheckedTarget {
            subject,
            targets: targets.iter().copied().collect(),
        }
    }

    /// Whether a run with these targets checks all of this one: the same targets, fewer of them, or none.
    fn is_within(&self, later: &BTreeSet<&str>) -> bool {
        later.is_subset(&self.targets)
    }
}

/// The words of the first argument that says which thing is meant.
fn first_value(arguments: &str) -> impl Iterator<Item = &str> {
    let is_key = |word: &&str| word.ends_with(':');
    let is_switch = |word: &&str| matches!(*word, "true" | "false" | "null");
    let words = arguments.split_whitespace();
    let value = words.skip_while(move |word| is_key(word) || is_switch(word));
    value.take_while(move |word| !is_key(word))
}

/// The command itself, without a change of directory before it and what reads its output.
fn last_command(command: &str) -> &str {
    let command = command.split(" | ").next().unwrap_or(command);
    let parts = command.split(" && ").flat_map(|part| part.split("; "));
    parts
        .filter(|part| !part.trim().is_empty())
        .last()
        .unwrap_or(command)
}

/// A subcommand: `test` of `cargo test`. Paths, flags and names with signs are targets.
fn is_verb(word: &str) -> bool {
    word.bytes()
        .all(|b| b.is_ascii_lowercase() || b == b'-' || b == b':')
        && !word.starts_with('-')
}

fn is_redirection(word: &str) -> bool {
    word.contains('>') || word == "2"
}

/// What says that everything is checked, as no target at all does.
fn means_everything(word: &str) -> bool {
    matches!(
        word,
        "--workspace" | "--all" | "--all-targets" | "./..." | "."
    )
}

/// A flag that only says how much is printed.
fn is_verbosity(word: &str) -> bool {
    matches!(
        word,
        "-v" | "-vv"
            | "-q"
            | "-x"
            | "-s"
            | "--verbose"
            | "--quiet"
            | "--nocapture"
            | "--"
            | "--no-fail-fast"
    ) || word.starts_with("--tb=")
        || word.starts_with("--color")
        || word.starts_with("-count=")
}
