//! Several pieces of work side by side, each with a log of its own, and a line that says what is going on.
//!
//! What a chore prints goes to a file in `target/chores`; only of one that fails is the end of it shown. A terminal
//! has the line of progress rewritten every second, a log of a build server gets one every half minute.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::shell::{self, Console};

/// How many lines of a failed chore's log are shown.
const SHOWN_LINES: usize = 200;

/// How often the line of progress is written where it cannot be rewritten.
const LOGGED_EVERY: Duration = Duration::from_secs(30);

/// How long a program of a chore may run.
const LONGEST_RUN: Duration = Duration::from_secs(30 * 60);

/// What a chore does, printing to a console.
type ChoreWork<'a> = dyn FnOnce(&Console) -> Result<()> + Send + 'a;

/// A piece of work that can run beside others.
pub(crate) struct Chore<'a> {
    name: String,
    work: Box<ChoreWork<'a>>,
}

impl<'a> Chore<'a> {
    /// Returns work under the name that people see.
    pub(crate) fn new(
        name: impl Into<String>,
        work: impl FnOnce(&Console) -> Result<()> + Send + 'a,
    ) -> Chore<'a> {
        Chore {
            name: name.into(),
            work: Box::new(work),
        }
    }
}

/// How a chore went.
#[derive(Debug)]
pub(crate) struct ChoreOutcome {
    pub(crate) name: String,
    pub(crate) seconds: f64,
    pub(crate) result: Result<()>,
    log: PathBuf,
}

/// What happens to a chore, as its thread reports it.
enum ChoreNews {
    Started(String),
    Finished(ChoreOutcome),
}

/// Returns how many chores run at once: most of them wait for a disk, a server or an agent now and then.
pub(crate) fn usual_width() -> usize {
    thread::available_parallelism().map_or(2, usize::from) + 1
}

/// Runs chores in their order, `width` at a time; fails once all have ended if one of them failed.
pub(crate) fn run_chores(width: usize, chores: Vec<Chore<'_>>) -> Result<()> {
    let outcomes = run_and_report(width, chores)?;
    let failed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| outcome.result.is_err())
        .map(|outcome| outcome.name.as_str())
        .collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Runs chores in their order, `width` at a time, and returns how each went.
pub(crate) fn run_and_report(width: usize, chores: Vec<Chore<'_>>) -> Result<Vec<ChoreOutcome>> {
    let folder = shell::target_folder().join("chores");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let total = chores.len();
    let queue = Mutex::new(VecDeque::from(chores));
    let (sender, receiver) = mpsc::channel();
    let outcomes = thread::scope(|scope| {
        for _ in 0..width.clamp(1, total.max(1)) {
            let (sender, queue, folder) = (sender.clone(), &queue, &folder);
            scope.spawn(move || {
                while let Some(chore) = take_next(queue) {
                    // Nobody listens only when the program is ending.
                    let _ = sender.send(ChoreNews::Started(chore.name.clone()));
                    let _ = sender.send(ChoreNews::Finished(run_one(chore, folder)));
                }
            });
        }
        drop(sender);
        ProgressBoard::new(total).follow(&receiver)
    });
    Ok(outcomes)
}

fn take_next<'a>(queue: &Mutex<VecDeque<Chore<'a>>>) -> Option<Chore<'a>> {
    let mut waiting = queue.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.pop_front()
}

fn run_one(chore: Chore<'_>, folder: &Path) -> ChoreOutcome {
    let log = folder.join(format!("{}.log", file_stem(&chore.name)));
    let _ = fs::remove_file(&log);
    let start = Instant::now();
    let console = Console::File {
        path: log.clone(),
        longest: LONGEST_RUN,
    };
    let result = (chore.work)(&console);
    ChoreOutcome {
        name: chore.name,
        seconds: start.elapsed().as_secs_f64(),
        result,
        log,
    }
}

/// Returns a name as a file may have it.
fn file_stem(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    name.to_lowercase().chars().map(plain).collect()
}

/// What is known of chores that are running.
struct ProgressBoard {
    start: Instant,
    total: usize,
    running: Vec<String>,
    finished: Vec<ChoreOutcome>,
    is_terminal: bool,
    logged: Instant,
}

impl ProgressBoard {
    fn new(total: usize) -> ProgressBoard {
        let now = Instant::now();
        ProgressBoard {
            start: now,
            total,
            running: Vec::new(),
            finished: Vec::new(),
            is_terminal: std::io::stderr().is_terminal(),
            logged: now,
        }
    }

    /// Prints what happens until every chore has ended.
    fn follow(mut self, news: &Receiver<ChoreNews>) -> Vec<ChoreOutcome> {
        loop {
            match news.recv_timeout(Duration::from_secs(1)) {
                Ok(ChoreNews::Started(name)) => self.running.push(name),
                Ok(ChoreNews::Finished(outcome)) => {
                    self.clear_line();
                    print_outcome(&outcome);
                    self.running.retain(|name| *name != outcome.name);
                    self.finished.push(outcome);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.print_progress();
        }
        self.clear_line();
        self.finished
    }

    fn print_progress(&mut self) {
        if self.running.is_empty() || (!self.is_terminal && self.logged.elapsed() < LOGGED_EVERY) {
            return;
        }
        self.logged = Instant::now();
        let line = self.progress_line(self.start.elapsed());
        let mut stderr = std::io::stderr().lock();
        // A line of progress that cannot be written is not missed.
        let _ = match self.is_terminal {
            true => write!(stderr, "\r\x1b[2K{line}"),
            false => writeln!(stderr, "{line}"),
        };
        let _ = stderr.flush();
    }

    fn progress_line(&self, elapsed: Duration) -> String {
        let seconds = elapsed.as_secs();
        format!(
            "[{}:{:02}] {} of {} done; running: {}",
            seconds / 60,
            seconds % 60,
            self.finished.len(),
            self.total,
            self.running.join(", ")
        )
    }

    fn clear_line(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[2K");
        }
    }
}

fn print_outcome(outcome: &ChoreOutcome) {
    let ChoreOutcome { name, seconds, .. } = outcome;
    match &outcome.result {
        Ok(()) => println!("ok      {name} ({seconds:.0} s)"),
        Err(error) => {
            let log = fs::read_to_string(&outcome.log).unwrap_or_default();
            println!("{}", last_lines(&log, SHOWN_LINES));
            println!("FAILED  {name} ({seconds:.0} s): {error:#}");
            println!("        all of it is in {}", outcome.log.display());
        }
    }
}

/// Returns the end of a text.
fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(count);
    lines.get(first..).unwrap_or_default().join("\n")
}
