//! Lines behind a transcript that its agent may be writing to at the same moment.
//!
//! Nothing of the agent's is ever moved, cut off or written over. Room is taken first, with one write at
//! the end of the file: blanks and a newline, which every reader passes over. It is filled only when it
//! is seen to stand right behind what was read, in place and with the first line last, because the
//! boundary is what makes the others count. When something came between or behind, or another file took
//! the name, the room is blanked and the caller reads anew. A process that dies leaves a blank line, or
//! lines that end.
//!
//! Agents take no locks; the lock here keeps two of us apart. What the lines say is the caller's.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::failure::{Failure, FailureCode};

/// How long a file must stay as it is before it is taken to be at rest.
const REST_TIME: Duration = Duration::from_millis(40);

/// How long to wait for that, and for another process of ours.
const REST_TIMEOUT: Duration = Duration::from_secs(3);

/// A transcript that lines are to be written behind, locked against others of our kind.
#[derive(Debug)]
pub(crate) struct SharedTranscript {
    path: PathBuf,
    /// Reads, and writes within the room that was taken.
    file: File,
    /// Writes at the end, wherever that is.
    end: File,
    identity: FileIdentity,
    /// Whether blanks of ours stand in the file.
    has_blanks: bool,
}

/// What became of lines that were to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppendOutcome {
    /// They stand at the end of the file.
    Written,
    /// The file is not the one that was read; none of them is in it.
    FileChanged,
}

impl SharedTranscript {
    /// Opens the file behind a name for reading and appending, and waits for others of our kind.
    pub(crate) fn open(path: &Path) -> Result<SharedTranscript, Failure> {
        let path = fs::canonicalize(path).map_err(|error| append_failure(path, &error))?;
        let waits_until = Instant::now() + REST_TIMEOUT;
        loop {
            let transcript = SharedTranscript::open_once(&path)
                .map_err(|error| append_failure(&path, &error))?;
            let locked = match transcript.file.try_lock() {
                Ok(()) => true,
                Err(TryLockError::WouldBlock) => false,
                // A file system without locks: nothing else can be done.
                Err(TryLockError::Error(_)) => true,
            };
            // Whoever waits may find that the name has gone to another file meanwhile.
            if locked && transcript.is_in_place().unwrap_or(false) {
                return Ok(transcript);
            }
            if Instant::now() > waits_until {
                return Err(busy_failure(&path, "another process is appending to it"));
            }
            thread::sleep(REST_TIME);
        }
    }

    fn open_once(path: &Path) -> io::Result<SharedTranscript> {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file"));
        }
        let file = File::options().read(true).write(true).open(path)?;
        let end = File::options().append(true).open(path)?;
        let identity = FileIdentity::from_metadata(&file.metadata()?);
        match FileIdentity::from_metadata(&end.metadata()?) == identity {
            true => Ok(SharedTranscript {
                path: path.to_owned(),
                file,
                end,
                identity,
                has_blanks: false,
            }),
            // Renamed over between the two.
            false => SharedTranscript::open_once(path),
        }
    }

    /// Reads the whole file once it is at rest and its last line is whole.
    pub(crate) fn read_at_rest(&mut self) -> Result<Bytes, Failure> {
        if let Some(agent) = agent_with_session_open(&self.path) {
            return Err(busy_failure(
                &self.path,
                &format!("{agent} has the session open"),
            ));
        }
        let waits_until = Instant::now() + REST_TIMEOUT;
        loop {
            let before = self
                .read_bytes()
                .map_err(|error| append_failure(&self.path, &error))?;
            thread::sleep(REST_TIME);
            let is_same = self.is_as_read(&before).unwrap_or(false);
            if is_same && ends_with_whole_line(&before) {
                return Ok(before.into());
            }
            if Instant::now() > waits_until {
                let is_cut = is_same && !ends_with_whole_line(&before);
                let why = if is_cut {
                    "its last line is not finished"
                } else {
                    "it is being written"
                };
                return Err(busy_failure(&self.path, why));
            }
        }
    }

    fn read_bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes lines behind `source`, which is what was read; see the head of this module.
    pub(crate) fn append(&mut self, source: &[u8], lines: &[u8]) -> Result<AppendOutcome, Failure> {
        self.try_append(source, lines).map_err(|error| {
            let left = match self.has_blanks {
                // They cannot be cut off: the agent may have written behind them.
                true => {
                    "a blank line now follows the transcript, which agents ignore; nothing else"
                }
                false => "nothing in the transcript",
            };
            Failure::from_error(FailureCode::Unexpected, &error)
                .with_context(&format!("cannot append to {}", self.path.display()))
                .help(format!("{left} was changed; make space, and run it again"))
        })
    }

    fn try_append(&mut self, source: &[u8], lines: &[u8]) -> io::Result<AppendOutcome> {
        if !self.is_as_read(source)? {
            return Ok(AppendOutcome::FileChanged);
        }
        let room = self.take_room(lines.len())?;
        if room.start != source.len() as u64 || !self.is_in_place()? {
            return Ok(AppendOutcome::FileChanged);
        }
        let filled = self.fill(&room, lines).and_then(|()| self.file.sync_all());
        let is_last = filled.is_ok() && self.file.metadata()?.len() == room.end;
        if is_last && self.is_in_place()? {
            return Ok(AppendOutcome::Written);
        }
        self.write_at(room.start, &blank_line(lines.len()))?;
        filled.map(|()| AppendOutcome::FileChanged)
    }

    /// Takes room for as many bytes at the end of the file, and says where it is.
    fn take_room(&mut self, length: usize) -> io::Result<Range<u64>> {
        let blanks = blank_line(length);
        let written = loop {
            // One call: nobody's line can stand within what it writes.
            match self.end.write(&blanks) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.has_blanks = written > 0;
        let end = self.end.stream_position()?;
        if written < length {
            if let Some(last) = end.checked_sub(1).filter(|_| written > 0) {
                self.write_at(last, b"\n")?;
            }
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(end.saturating_sub(written as u64)..end)
    }

    fn fill(&mut self, room: &Range<u64>, lines: &[u8]) -> io::Result<()> {
        // The first newline may only end the agent's last line.
        let ends = lines.iter().enumerate().skip(1);
        let mut ends = ends.filter_map(|(at, byte)| (*byte == b'\n').then_some(at + 1));
        let boundary = ends.next().unwrap_or(lines.len());
        let (first, others) = lines.split_at(boundary);
        self.write_at(room.start + boundary as u64, others)?;
        self.write_at(room.start, first)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)
    }

    /// Whether the name still leads to the file that was opened.
    fn is_in_place(&self) -> io::Result<bool> {
        match fs::metadata(&self.path) {
            Ok(found) => Ok(FileIdentity::from_metadata(&found) == self.identity),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the file is the same, and every byte of it.
    fn is_as_read(&mut self, source: &[u8]) -> io::Result<bool> {
        if !self.is_in_place()? || self.file.metadata()?.len() != source.len() as u64 {
            return Ok(false);
        }
        self.file.seek(SeekFrom::Start(0))?;
        let mut chunk = vec![0; 1 << 16];
        for expected in source.chunks(chunk.len()) {
            let Some(found) = chunk.get_mut(..expected.len()) else {
                return Ok(false);
            };
            match self.file.read_exact(found) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
                result => result?,
            }
            if found != expected {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Which file a name leads to, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    /// The inode, or the time of its creation where there are none.
    number: u64,
}

impl FileIdentity {
    #[cfg(unix)]
    fn from_metadata(found: &Metadata) -> FileIdentity {
        use std::os::unix::fs::MetadataExt;
        FileIdentity {
            device: found.dev(),
            number: found.ino(),
        }
    }

    #[cfg(not(unix))]
    fn from_metadata(found: &Metadata) -> FileIdentity {
        let born = found.created().ok();
        let age = born.and_then(|born| born.duration_since(std::time::UNIX_EPOCH).ok());
        FileIdentity {
            device: 0,
            number: age.map_or(0, |age| age.as_nanos() as u64),
        }
    }
}

/// Blanks that end as a line does.
fn blank_line(length: usize) -> Vec<u8> {
    let mut blanks = vec![b' '; length];
    if let Some(last) = blanks.last_mut() {
        *last = b'\n';
    }
    blanks
}

/// Whether whoever wrote the last line was done with it: an object that ends is whole without its newline.
fn ends_with_whole_line(source: &[u8]) -> bool {
    let last = source
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let last = source.get(last..).unwrap_or_default().trim_ascii();
    last.is_empty() || serde_json::from_slice::<serde::de::IgnoredAny>(last).is_ok()
}

/// The agent that is known to be writing this session. Codex numbers its lines and remembers the last
/// number, so that lines of others would make the session one that it cannot resume; it locks a file
/// beside its sessions that is named after the one at hand.
fn agent_with_session_open(path: &Path) -> Option<&'static str> {
    let home = path.ancestors().find_map(|folder| {
        let locks = folder.join("thread-writer-locks");
        locks.is_dir().then_some(locks)
    })?;
    let session = path.file_stem()?.to_str()?;
    let is_held = |entry: fs::DirEntry| {
        let lock = entry.path();
        let name = lock.file_stem().and_then(|name| name.to_str());
        name.is_some_and(|name| !name.starts_with('.') && session.ends_with(name))
            && File::open(&lock)
                .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    };
    let held = fs::read_dir(home).ok()?.flatten().any(is_held);
    held.then_some("Codex")
}

/// What is said when lines could not be written because the transcript did not rest.
pub(crate) fn busy_failure(path: &Path, why: &str) -> Failure {
    Failure::new(
        FailureCode::Busy,
        format!("{}: {why}; nothing was appended", path.display()),
    )
    .help("end the agent's session, or wait until it is idle, and run it again")
}

fn append_failure(path: &Path, error: &io::Error) -> Failure {
    let code = match error.kind() {
        ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::InvalidInput => {
            FailureCode::Input
        }
        _ => FailureCode::Unexpected,
    };
    Failure::from_error(code, error)
        .with_context(&format!("cannot append to {}", path.display()))
        .help("--append changes the transcript itself; write the view elsewhere with -o")
}

#[cfg(test)]
mod tests;
