//! The shelf of the hooks in the data directory: archived transcripts, and what is remembered between
//! two calls, by repository and session. Everything on it is its owner's alone.
//!
//! ```text
//! hooks/hook.log
//! hooks/-home-ann-shop/archives/{session}_{YYYYMMDD_HHMMSS_micros}_transcript.jsonl
//! hooks/-home-ann-shop/sessions/{session}.ledger.sealed   where the ledger was left at the last prompt
//! hooks/-home-ann-shop/sessions/{session}.open.json       a compaction whose losses are not told yet
//! ```
//!
//! A ledger is megabytes and is read while a person waits, so it is kept as MessagePack behind its
//! hash; what is not whole is drawn again from the transcript.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use compact_adapters::transcript::plain;
use compact_core::redact::{Counts, Redactor};
use compact_runtime::host::{Call, MARK, Memory, Transcript};
use compact_runtime::port::archive::PackId;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// What follows `transcript` in the name of an archive that was redacted.
pub const REDACTED: &str = "-redacted";

/// What lies on disk for one session of one repository.
#[derive(Debug)]
pub struct Shelf {
    folder: PathBuf,
    session: String,
}

/// A compaction whose losses are not told yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Open {
    /// The archived transcript.
    pub archive: PathBuf,
    /// How many summaries the transcript held before.
    pub summaries: u64,
    /// The agent's own summary, once it handed it out.
    pub summary: Option<String>,
}

/// Why there is no archive.
#[derive(Debug, thiserror::Error)]
pub enum NotArchived {
    /// The agent did not say where its transcript is.
    #[error("no transcript_path provided for {0}")]
    NoPath(String),
    /// There is no such file.
    #[error("transcript not found at {}", .0.display())]
    NotFound(PathBuf),
    /// It could not be read or written.
    #[error("failed to archive transcript: {0}")]
    Failed(#[from] io::Error),
}

/// A new file, with its size.
#[derive(Debug, PartialEq, Eq)]
pub struct Archived {
    /// Where it is.
    pub path: PathBuf,
    /// How many bytes it has.
    pub bytes: u64,
}

impl Shelf {
    /// The shelf of a call, below the folder of all hooks.
    pub fn of(hooks: &Path, call: &Call) -> Shelf {
        let repository = call.folder.as_deref().map(repository);
        let key = repository.map_or_else(|| "unknown".to_owned(), |path| repository_key(&path));
        Shelf {
            folder: hooks.join(key),
            session: plain(&call.session),
        }
    }

    /// Copies a transcript, byte for byte unless it is to be redacted, under a name of its own.
    pub fn archive(
        &self,
        call: &Call,
        at: Timestamp,
        redactor: &Redactor,
    ) -> Result<Archived, NotArchived> {
        let mut source = match &call.transcript {
            Transcript::Missing => return Err(NotArchived::NoPath(call.session.clone())),
            Transcript::Inline(bytes) => Source::Bytes(bytes),
            Transcript::File(path) => Source::open(path)?,
        };
        let folder = self.folder.join("archives");
        create_dir(&folder)?;
        restrict(&folder, 0o700)?;
        let kind = if redactor.is_off() { "" } else { REDACTED };
        let stem = format!("{}_{}_transcript{kind}", self.session, stamp(at));
        let (path, mut file) = create_new(&folder, &stem, &source.extension())?;
        match source.copy_to(&mut file, redactor) {
            Ok(bytes) => Ok(Archived { path, bytes }),
            Err(error) => {
                // Half a transcript would pass for a whole one.
                let _ = fs::remove_file(&path);
                Err(error.into())
            }
        }
    }

    /// The latest archive of the session.
    pub fn last(&self) -> Option<PathBuf> {
        let start = format!("{}_", self.session);
        let files = fs::read_dir(self.folder.join("archives")).ok()?.flatten();
        let is_ours = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(&start);
        let names = files.map(|file| file.file_name()).filter(is_ours);
        Some(self.folder.join("archives").join(names.max()?))
    }

    /// The ledger of a file, carried on from the last prompt where the file goes on from there.
    pub fn follow(&self, file: &Path, redactor: &Redactor) -> io::Result<Memory> {
        let mut source = regular(file)?;
        let known = self.kept();
        if let Some(memory) = known.and_then(|known| carry_on(known, &mut source, redactor)) {
            return Ok(memory);
        }
        source.rewind()?;
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes)?;
        let mut memory = Memory::default();
        let read = memory.follow(&bytes, redactor);
        read.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        Ok(memory)
    }

    /// Keeps a ledger for the next call.
    pub fn keep(&self, memory: &Memory) -> io::Result<()> {
        let packed = rmp_serde::to_vec(memory);
        let packed = packed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        let hash = blake3::hash(&packed);
        save(&self.file("ledger.sealed"), &[hash.as_bytes(), &*packed])
    }

    /// The ledger as it was kept, if all of it is there.
    fn kept(&self) -> Option<Memory> {
        let bytes = fs::read(self.file("ledger.sealed")).ok()?;
        let (hash, packed) = bytes.split_first_chunk::<{ blake3::OUT_LEN }>()?;
        let is_whole = blake3::hash(packed) == *hash;
        is_whole
            .then(|| rmp_serde::from_slice(packed).ok())
            .flatten()
    }

    /// The compaction that is not closed yet.
    pub fn open(&self) -> Option<Open> {
        let bytes = fs::read(self.file("open.json")).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Opens a compaction, or says more about it.
    pub fn set_open(&self, open: &Open) -> io::Result<()> {
        save(&self.file("open.json"), &[&serde_json::to_vec(open)?])
    }

    /// Closes it.
    pub fn close(&self) {
        // One that stays open is told twice, which does no harm.
        let _ = fs::remove_file(self.file("open.json"));
    }

    fn file(&self, kind: &str) -> PathBuf {
        let name = format!("{}.{kind}", self.session);
        self.folder.join("sessions").join(name)
    }
}

/// A ledger with what a file says since; `None` when the file is not the one that was read.
fn carry_on(mut memory: Memory, source: &mut File, redactor: &Redactor) -> Option<Memory> {
    let from = memory.read.saturating_sub(MARK as u64);
    let mut bytes = Vec::new();
    source.seek(SeekFrom::Start(from)).ok()?;
    source.read_to_end(&mut bytes).ok()?;
    let (before, more) = bytes.split_at_checked((memory.read - from) as usize)?;
    if !memory.continues(before, more) {
        return None;
    }
    memory.follow(more, redactor).ok()?.then_some(memory)
}

/// Reads a whole file that must be a regular one: a pipe would never end.
pub fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular(file)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A transcript to copy.
enum Source<'a> {
    Bytes(&'a [u8]),
    File { path: &'a Path, file: File },
}

impl<'a> Source<'a> {
    fn open(path: &'a Path) -> Result<Source<'a>, NotArchived> {
        match regular(path) {
            Ok(file) => Ok(Source::File { path, file }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(NotArchived::NotFound(path.to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The original extension with its dot, `.txt` where there is none.
    fn extension(&self) -> String {
        match self {
            Source::Bytes(_) => ".json".to_owned(),
            Source::File { path, .. } => match path.extension().and_then(|e| e.to_str()) {
                Some(extension) => format!(".{extension}"),
                None => ".txt".to_owned(),
            },
        }
    }

    fn copy_to(&mut self, target: &mut File, redactor: &Redactor) -> io::Result<u64> {
        let bytes = match self {
            Source::File { file, .. } if redactor.is_off() => io::copy(file, target)?,
            Source::Bytes(bytes) if redactor.is_off() => write(bytes, target)?,
            Source::Bytes(bytes) => write(&redacted(bytes, redactor), target)?,
            Source::File { file, .. } => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                write(&redacted(&bytes, redactor), target)?
            }
        };
        if let Source::File { file, .. } = self
            && let Ok(modified) = file.metadata().and_then(|found| found.modified())
        {
            target.set_modified(modified)?;
        }
        target.sync_all()?;
        Ok(bytes)
    }
}

fn write(bytes: &[u8], target: &mut File) -> io::Result<u64> {
    target.write_all(bytes)?;
    Ok(bytes.len() as u64)
}

/// JSON, or lines of JSON, without secrets.
fn redacted(bytes: &[u8], redactor: &Redactor) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let redacted = redactor.redact_json(&text, &mut Counts::new());
    redacted.into_owned().into_bytes()
}

/// Removes an archive that a later one begins with.
pub fn replace(earlier: &Path, later: &Path) -> io::Result<()> {
    let Ok(bytes) = fs::read(earlier) else {
        return Ok(());
    };
    match earlier != later && read(later)?.starts_with(&bytes) {
        true => fs::remove_file(earlier),
        false => Ok(()),
    }
}

/// Removes what was remembered between two calls and not touched since.
pub fn sweep(hooks: &Path, before: Timestamp) {
    let folders = fs::read_dir(hooks).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path().join("sessions")));
    for file in files.flatten().flatten() {
        let modified = file.metadata().and_then(|found| found.modified());
        let is_old = |at| Timestamp::try_from(at).is_ok_and(|at| at < before);
        if modified.is_ok_and(is_old) {
            // One that stays is drawn again or removed the next time.
            let _ = fs::remove_file(file.path());
        }
    }
}

/// What names an archive wherever the data directory is.
pub fn receipt_of(archive: &Path) -> PackId {
    let mut parts: Vec<_> = archive.components().rev().take(3).collect();
    parts.reverse();
    let place: PathBuf = parts.into_iter().collect();
    PackId(*blake3::hash(place.as_os_str().as_encoded_bytes()).as_bytes())
}

fn regular(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        return File::open(path);
    }
    let message = format!("{} is not a regular file", path.display());
    Err(io::Error::new(ErrorKind::InvalidInput, message))
}

/// The root of the repository around a folder, or the folder itself.
fn repository(folder: &Path) -> PathBuf {
    let mut above = folder.ancestors();
    above
        .find(|path| path.join(".git").exists())
        .unwrap_or(folder)
        .to_owned()
}

/// The longest key that is the path itself.
const LONGEST: usize = 120;

/// A folder's name for a repository: its path with `-` for `/`. Where that could be the name of
/// another path, or is no plain name, a hash tells them apart.
pub(super) fn repository_key(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '.');
    let key: String = text
        .chars()
        .map(|c| if plain(c) && c != '/' { c } else { '-' })
        .collect();
    if !text.is_empty() && text.len() <= LONGEST && text.chars().all(plain) {
        return key;
    }
    let end: Vec<char> = key.chars().rev().take(LONGEST / 2).collect();
    let hash = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
    format!(
        "{}~{}",
        end.iter().rev().collect::<String>(),
        hash.chars().take(16).collect::<String>()
    )
}

fn stamp(at: Timestamp) -> String {
    let at = at.to_zoned(TimeZone::UTC);
    at.strftime("%Y%m%d_%H%M%S_%6f").to_string()
}

/// How many names are tried before giving up.
const TRIES: u32 = 100;

/// Creates a file that was not there; two in one microsecond get a number.
fn create_new(folder: &Path, stem: &str, extension: &str) -> io::Result<(PathBuf, File)> {
    let mut refused = io::Error::from(ErrorKind::AlreadyExists);
    for nth in 0..TRIES {
        let name = match nth {
            0 => format!("{stem}{extension}"),
            nth => format!("{stem}-{nth}{extension}"),
        };
        let path = folder.join(name);
        match private(OpenOptions::new().write(true).create_new(true)).open(&path) {
            Ok(file) => {
                restrict(&path, 0o600)?;
                return Ok((path, file));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

/// Writes a file that appears whole or not at all.
pub(super) fn save(file: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    create_dir(folder)?;
    let mut staged = tempfile::NamedTempFile::new_in(folder)?;
    parts.iter().try_for_each(|part| staged.write_all(part))?;
    staged.persist(file)?;
    Ok(())
}

/// Creates a folder and what is missing above it, each for its owner alone.
pub(super) fn create_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        create_dir(parent)?;
    }
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => restrict(path, 0o700),
    }
}

/// Sets the rights, whatever the umask says.
#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn restrict(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// A new file is never readable by others, not even for a moment.
#[cfg(unix)]
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600)
}

#[cfg(not(unix))]
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}
