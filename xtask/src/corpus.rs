//! `cargo xtask corpus PATH…`: every session below the paths through every command.
//!
//! For each session: read and written back to the same bytes; to every provider's body and back;
//! inspect, plan, compact to a fifth of its history, validate for every provider, verify, and restore
//! byte for byte. The sessions are other people's: nothing of them is kept or printed, and the store
//! is a folder of its own that is removed. A file that is no session is named with the reason.

mod command;
mod conversion;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use anyhow::{Context, Result, bail};

use self::command::CommandRunner;
use crate::shell;

/// One session of a file.
struct CorpusSession {
    name: String,
    path: PathBuf,
    index: Option<usize>,
    bytes: Vec<u8>,
}

/// How a session went: a row of the table, or nothing for one that is within its budget.
type SessionOutcome = Result<Option<String>>;

/// Runs every session through every command; fails when one fails.
pub(crate) fn run(paths: &[PathBuf]) -> Result<()> {
    shell::build_command(&shell::Console::Terminal, &["--release"])?;
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files)?;
    }
    files.sort();
    let mut sessions = Vec::new();
    let mut skipped = 0;
    for file in &files {
        let found = read_sessions(file)?;
        skipped += usize::from(found.is_empty());
        sessions.extend(found);
    }
    println!(
        "{:<44} {:<13} {:>8} {:>8} {:>8} {:>6}",
        "session", "format", "history", "budget", "after", "kept"
    );
    let tally = try_all(&sessions)?;
    println!(
        "{} sessions in {} files: {} compacted, {} within their budget, {} failed; {skipped} files hold none",
        sessions.len(),
        files.len(),
        tally.compacted,
        tally.unchanged,
        tally.failed,
    );
    match tally.failed {
        0 => Ok(()),
        n => bail!("{n} sessions failed"),
    }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let found = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !found.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

/// Returns the sessions of a file; one that holds none is named with the reason.
fn read_sessions(path: &Path) -> Result<Vec<CorpusSession>> {
    let bytes = fs::read(path)?;
    let slices = match compact_formats::sessions(&bytes, None) {
        Ok(slices) => slices,
        Err(error) => {
            println!("{:<44} skipped: {error}", short_name(path));
            return Ok(Vec::new());
        }
    };
    let many = slices.len() > 1;
    let session = |slice: compact_formats::SessionSlice| CorpusSession {
        name: match many {
            true => format!("{} #{}", short_name(path), slice.index),
            false => short_name(path),
        },
        path: path.to_owned(),
        index: many.then_some(slice.index),
        bytes: bytes.get(slice.span).unwrap_or_default().to_vec(),
    };
    Ok(slices.into_iter().map(session).collect())
}

#[derive(Default)]
struct CorpusCounts {
    compacted: usize,
    unchanged: usize,
    failed: usize,
}

/// Tries the sessions on every processor, and tells of them in their order.
fn try_all(sessions: &[CorpusSession]) -> Result<CorpusCounts> {
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let benches: Vec<CommandRunner> = (0..jobs).map(CommandRunner::new).collect::<Result<_>>()?;
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let mut tally = CorpusCounts::default();
    thread::scope(|scope| {
        for bench in &benches {
            let sender = sender.clone();
            let next = &next;
            scope.spawn(move || process_sessions(bench, sessions, next, &sender));
        }
        drop(sender);
        let mut told = 0;
        let mut early: BTreeMap<usize, SessionOutcome> = BTreeMap::new();
        for (index, outcome) in receiver {
            early.insert(index, outcome);
            while let Some(outcome) = early.remove(&told) {
                let name = sessions.get(told).map_or("", |session| &session.name);
                tally.report_outcome(name, outcome);
                told += 1;
            }
        }
    });
    Ok(tally)
}

fn process_sessions(
    bench: &CommandRunner,
    sessions: &[CorpusSession],
    next: &AtomicUsize,
    sender: &Sender<(usize, SessionOutcome)>,
) {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(session) = sessions.get(index) else {
            return;
        };
        let outcome = conversion::check(&session.bytes).and_then(|()| bench.try_session(session));
        if sender.send((index, outcome)).is_err() {
            return;
        }
    }
}

impl CorpusCounts {
    fn report_outcome(&mut self, name: &str, outcome: SessionOutcome) {
        match outcome {
            Ok(Some(row)) => {
                self.compacted += 1;
                println!("{name:<44} {row}");
            }
            // A long file of short sessions would hide the rest.
            Ok(None) => self.unchanged += 1,
            Err(error) => {
                self.failed += 1;
                println!("{name:<44} FAILED: {error:#}");
            }
        }
    }
}

/// Returns the folder and the name of a file, in the width of the table.
fn short_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().and_then(Path::file_name);
    let folder = folder.unwrap_or_default().to_string_lossy();
    format!("{folder}/{name}").chars().take(38).collect()
}
