//! The one thread that writes transcripts.
//!
//! A line goes to its file in one call, so a process that is killed leaves whole lines or a torn
//! last one. A file that ends in a torn line, from a crash or a full disk, is continued on a new
//! one: nothing is merged. What could not be written is counted, told by the next flush and, once
//! writing works again, by a line of its own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use compact_runtime::port::transcript::GAP;
use serde_json::json;

use super::queue::{MissingEvents, WriterJob, WriterQueue};
use super::{name, private_options};
use crate::private;

/// Files kept open at most; beyond it all are closed and opened again when they are needed.
const MOST_OPEN: usize = 64;

/// Starts the thread. If the system has none to give, every event counts as lost.
pub(super) fn start_writer(dir: PathBuf) -> Arc<WriterQueue> {
    let queue = Arc::new(WriterQueue::default());
    let worker = WriterEndGuard(Arc::clone(&queue));
    let spawned = thread::Builder::new()
        .name("compact-transcript".to_owned())
        .spawn(move || {
            let mut writer = TranscriptWriter {
                dir,
                files: HashMap::new(),
                missing: HashMap::new(),
            };
            while let Some(job) = worker.0.next() {
                writer.run_job(job);
            }
        });
    if spawned.is_err() {
        queue.mark_ended();
    }
    queue
}

/// Says that the writer has ended, also when it panics.
struct WriterEndGuard(Arc<WriterQueue>);

impl Drop for WriterEndGuard {
    fn drop(&mut self) {
        self.0.mark_ended();
    }
}

struct TranscriptWriter {
    dir: PathBuf,
    files: HashMap<String, TranscriptFile>,
    missing: HashMap<String, UnwrittenEvents>,
}

/// The events that a session's transcript lacks.
#[derive(Default)]
struct UnwrittenEvents {
    /// Events that no line of the transcript speaks of yet.
    unmarked: u64,
    /// Events that no flush has told of yet.
    untold: u64,
    reason: String,
}

impl TranscriptWriter {
    fn run_job(&mut self, job: WriterJob) {
        match job {
            WriterJob::Line { session, line } => {
                let written = self.write_line(&session, &line);
                if let Err(error) = written {
                    self.count_missing(&session, 1, &error.to_string());
                }
            }
            WriterJob::Gap { session, events } => {
                self.count_missing(&session, events, "the writer could not keep up");
            }
            WriterJob::Flush { session, reply } => {
                // Who asked may have stopped waiting.
                let _ = reply.send(self.flush(&session));
            }
        }
    }

    fn count_missing(&mut self, session: &str, events: u64, reason: &str) {
        let absent = self.missing.entry(session.to_owned()).or_default();
        absent.unmarked += events;
        absent.untold += events;
        absent.reason = reason.to_owned();
    }

    /// Appends a line, after a word on those that are missing before it.
    fn write_line(&mut self, session: &str, line: &[u8]) -> io::Result<()> {
        let unmarked = self.missing.get(session).map_or(0, |a| a.unmarked);
        if unmarked > 0 {
            let gap = json!({"type": GAP, "events": unmarked});
            self.open_transcript(session)?
                .append(format!("{gap}\n").as_bytes())?;
            if let Some(absent) = self.missing.get_mut(session) {
                absent.unmarked = 0;
            }
        }
        self.open_transcript(session)?.append(line)
    }

    fn open_transcript(&mut self, session: &str) -> io::Result<&mut TranscriptFile> {
        if !self.files.contains_key(session) && self.files.len() >= MOST_OPEN {
            self.close_all();
        }
        match self.files.entry(session.to_owned()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(TranscriptFile::open(&self.dir, session)?)),
        }
    }

    /// Syncs and closes all files, since a later flush can no longer sync a closed one.
    fn close_all(&mut self) {
        for (session, lines) in std::mem::take(&mut self.files) {
            if let Err(error) = lines.sync() {
                self.count_missing(&session, 0, &error.to_string());
            }
        }
    }

    fn flush(&mut self, session: &str) -> Option<MissingEvents> {
        let synced = self.files.get(session).map_or(Ok(()), TranscriptFile::sync);
        if let Err(error) = synced {
            self.count_missing(session, 0, &error.to_string());
        }
        let absent = self.missing.get_mut(session)?;
        let told = (absent.untold > 0 || !absent.reason.is_empty()).then(|| MissingEvents {
            events: absent.untold,
            reason: std::mem::take(&mut absent.reason),
        });
        absent.untold = 0;
        if absent.unmarked == 0 {
            self.missing.remove(session);
        }
        told
    }
}

/// A transcript open for appending.
struct TranscriptFile {
    file: File,
    /// Whether the last line has no end.
    torn: bool,
}

impl TranscriptFile {
    fn open(dir: &Path, session: &str) -> io::Result<TranscriptFile> {
        private::create_dir(dir)?;
        let path = dir.join(name::transcript_file_name(session));
        let is_new = !path.exists();
        let mut file = private_options()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)?;
        lock_for_process(&file)?;
        if is_new {
            private::sync_dir(dir)?;
        }
        let torn = is_torn(&mut file)?;
        Ok(TranscriptFile { file, torn })
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.torn {
            self.file.write_all(b"\n")?;
        }
        let written = self.file.write_all(line);
        self.torn = written.is_err();
        written
    }

    fn sync(&self) -> io::Result<()> {
        match self.file.sync_data() {
            // A pipe or a device has nothing to sync.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            other => other,
        }
    }
}

/// Takes the file for this process; the system gives it back when the process ends, however it does.
fn lock_for_process(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another process is writing this transcript",
        )),
        // Some file systems have no locks; there, one writer is the host's to ensure.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

fn is_torn(file: &mut File) -> io::Result<bool> {
    if !file.metadata()?.is_file() || file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
