//! Transcripts that hooks archive: each is a plain file that appears whole or not at all.
//!
//! A copy is staged beside its place, its sum is written down, and only then it gets its name; file
//! and folder are on disk before it counts. A process that is killed meanwhile leaves a staged file or
//! a sum without an archive, and [`sweep`] takes both away later.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use compact_core::redact::{Counts, Redactor};
use compact_runtime::host::Transcript;
use compact_runtime::port::archive::PackId;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::{regular, stage};
use crate::private::{self, Kind};

const ARCHIVES: &str = "archives";

const SUMS: &str = "sums";

/// What follows `transcript` in the name of an archive that was redacted.
const REDACTED: &str = "-redacted";

/// How a file begins that did not get its name yet.
pub(super) const STAGED: &str = ".staged-";

/// Nobody copies for so long: what was staged before that is left over.
const ABANDONED: Duration = Duration::from_secs(3600);

/// How many names are tried before giving up.
const TRIES: u32 = 100;

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

/// What was written down of an archive when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sum {
    /// The session, as its agent calls it.
    session: String,
    bytes: u64,
    blake3: String,
}

/// An archive that a hook left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookArchive {
    /// Where it is.
    pub path: PathBuf,
    /// The session, as its agent calls it.
    pub session: String,
    /// When it was made.
    pub at: Timestamp,
    /// Whether it is byte for byte what the agent wrote.
    pub exact: bool,
    sum: Option<Sum>,
}

/// What is wrong with an archive.
#[derive(Debug, thiserror::Error)]
pub enum Flaw {
    /// It is there and cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is not what was written.
    #[error("it has {found} bytes and {recorded} were written")]
    Size {
        /// Its size.
        found: u64,
        /// The size it had.
        recorded: u64,
    },
    /// It is as long as it was, and says something else.
    #[error("its checksum does not match")]
    Checksum,
}

/// Copies a transcript into a folder of `session`, byte for byte unless it is to be redacted.
pub(super) fn copy(
    folder: &Path,
    session: &str,
    transcript: &Transcript,
    at: Timestamp,
    redactor: &Redactor,
) -> Result<Archived, NotArchived> {
    let mut source = match transcript {
        Transcript::Missing => return Err(NotArchived::NoPath(session.to_owned())),
        Transcript::Inline(bytes) => Source::Bytes(bytes),
        Transcript::File(path) => Source::open(path)?,
    };
    let archives = folder.join(ARCHIVES);
    private::create_dir(&archives)?;
    private::restrict(&archives, Kind::Dir)?;
    let mut staged = tempfile::Builder::new()
        .prefix(STAGED)
        .tempfile_in(&archives)?;
    let written = source.copy_to(staged.as_file_mut(), redactor)?;
    private::restrict(staged.path(), Kind::File)?;
    let sum = Sum {
        session: session.to_owned(),
        ..written
    };
    let kind = if redactor.is_off() { "" } else { REDACTED };
    let stem = format!(
        "{}_{}_transcript{kind}",
        crate::transcript::plain(session),
        stamp(at)
    );
    let path = publish(staged, &archives, &stem, &source.extension(), &sum)?;
    Ok(Archived {
        path,
        bytes: sum.bytes,
    })
}

/// Gives a staged file a name that was free; two in one microsecond get a number.
fn publish(
    mut staged: NamedTempFile,
    archives: &Path,
    stem: &str,
    extension: &str,
    sum: &Sum,
) -> io::Result<PathBuf> {
    let mut refused = io::Error::from(ErrorKind::AlreadyExists);
    for nth in 0..TRIES {
        let path = archives.join(match nth {
            0 => format!("{stem}{extension}"),
            nth => format!("{stem}-{nth}{extension}"),
        });
        if path.exists() {
            continue;
        }
        write_sum(&path, sum)?;
        match staged.persist_noclobber(&path) {
            Ok(_) => return private::sync_dir(archives).map(|()| path),
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
                (staged, refused) = (error.file, error.error);
            }
            Err(error) => return Err(error.error),
        }
    }
    Err(refused)
}

/// Where the sum of an archive is.
fn sum_of(archive: &Path) -> Option<PathBuf> {
    let folder = archive.parent()?.parent()?;
    let name = archive.file_name()?.to_str()?;
    Some(folder.join(SUMS).join(format!("{name}.json")))
}

fn write_sum(archive: &Path, sum: &Sum) -> io::Result<()> {
    let file = sum_of(archive).ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
    let staged = stage(&file, &[&serde_json::to_vec(sum)?])?;
    staged.as_file().sync_data()?;
    staged.persist(&file)?;
    Ok(())
}

fn read_sum(archive: &Path) -> Option<Sum> {
    let bytes = fs::read(sum_of(archive)?).ok()?;
    serde_json::from_slice(&bytes).ok()
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

    /// Copies all of it, and says what was written.
    fn copy_to(&mut self, target: &mut File, redactor: &Redactor) -> io::Result<Sum> {
        match self {
            Source::Bytes(bytes) if redactor.is_off() => target.write_all(bytes)?,
            Source::Bytes(bytes) => target.write_all(&redacted(bytes, redactor))?,
            Source::File { file, .. } if redactor.is_off() => drop(io::copy(file, target)?),
            Source::File { file, .. } => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                target.write_all(&redacted(&bytes, redactor))?;
            }
        }
        if let Source::File { file, .. } = self
            && let Ok(modified) = file.metadata().and_then(|found| found.modified())
        {
            target.set_modified(modified)?;
        }
        target.sync_all()?;
        target.rewind()?;
        sum(target)
    }
}

/// The sum of what a file holds from where it is read.
fn sum(file: &mut File) -> io::Result<Sum> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(Sum {
        session: String::new(),
        bytes: hasher.count(),
        blake3: hasher.finalize().to_string(),
    })
}

/// JSON, or lines of JSON, without secrets.
fn redacted(bytes: &[u8], redactor: &Redactor) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let redacted = redactor.redact_json(&text, &mut Counts::new());
    redacted.into_owned().into_bytes()
}

/// Everything that hooks archived below their folder.
pub fn archives(hooks: &Path) -> impl Iterator<Item = HookArchive> + use<> {
    files(hooks, ARCHIVES).filter_map(HookArchive::named)
}

/// The files in a folder of each repository.
pub(super) fn files(hooks: &Path, folder: &'static str) -> impl Iterator<Item = PathBuf> + use<> {
    let repositories = fs::read_dir(hooks).into_iter().flatten().flatten();
    let folders = repositories.flat_map(move |found| fs::read_dir(found.path().join(folder)));
    folders.flatten().flatten().map(|entry| entry.path())
}

/// The latest archive of a session in the folder of its repository.
pub(super) fn latest(folder: &Path, session: &str) -> Option<PathBuf> {
    let start = format!("{session}_");
    let archives = folder.join(ARCHIVES);
    let files = fs::read_dir(&archives).ok()?.flatten();
    let is_ours = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(&start);
    let names = files.map(|file| file.file_name()).filter(is_ours);
    Some(archives.join(names.max()?))
}

impl HookArchive {
    /// Reads what a name says: `{session}_{date}_{time}_{micros}_transcript`.
    fn named(path: PathBuf) -> Option<HookArchive> {
        let stem = path.file_stem()?.to_str()?;
        let mut parts = stem.rsplitn(5, '_');
        let kind = parts.next()?.strip_prefix("transcript")?.to_owned();
        let (micros, time, date) = (parts.next()?, parts.next()?, parts.next()?);
        let stamp = format!("{date}{time}.{micros}");
        let at = DateTime::strptime("%Y%m%d%H%M%S.%f", stamp).ok()?;
        let sum = read_sum(&path);
        let session = sum.as_ref().map(|sum| sum.session.clone());
        Some(HookArchive {
            session: session.or(parts.next().map(str::to_owned))?,
            at: at.in_tz("UTC").ok()?.timestamp(),
            exact: !kind.starts_with(REDACTED),
            sum,
            path,
        })
    }

    /// Reads it and holds it against what was written down of it; earlier versions wrote nothing down.
    pub fn check(&self) -> Result<(), Flaw> {
        let found = sum(&mut regular(&self.path)?)?;
        match &self.sum {
            Some(recorded) if recorded.bytes != found.bytes => Err(Flaw::Size {
                found: found.bytes,
                recorded: recorded.bytes,
            }),
            Some(recorded) if recorded.blake3 != found.blake3 => Err(Flaw::Checksum),
            _ => Ok(()),
        }
    }

    /// Removes it with its sum.
    pub fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}

fn remove(archive: &Path) -> io::Result<()> {
    fs::remove_file(archive)?;
    match sum_of(archive).map(fs::remove_file) {
        Some(Err(error)) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes an archive that a later one begins with.
pub fn replace(earlier: &Path, later: &Path) -> io::Result<()> {
    let Ok(bytes) = fs::read(earlier) else {
        return Ok(());
    };
    match earlier != later && super::read(later)?.starts_with(&bytes) {
        true => remove(earlier),
        false => Ok(()),
    }
}

/// Removes what hooks left that were killed while they copied: staged files, and sums of nothing.
pub(super) fn sweep(hooks: &Path) {
    let is_staged = |file: &PathBuf| {
        let name = file.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(STAGED))
    };
    let folders = [ARCHIVES, SUMS, super::SESSIONS];
    let staged = folders.map(|folder| files(hooks, folder).filter(is_staged));
    let orphans = files(hooks, SUMS).filter(|sum| archive_of(sum).is_some_and(|a| !a.exists()));
    for file in staged.into_iter().flatten().chain(orphans) {
        if is_abandoned(&file) {
            // One that stays is removed the next time.
            let _ = fs::remove_file(file);
        }
    }
}

/// The archive that a sum is of.
fn archive_of(sum: &Path) -> Option<PathBuf> {
    let name = sum.file_name()?.to_str()?.strip_suffix(".json")?;
    Some(sum.parent()?.parent()?.join(ARCHIVES).join(name))
}

fn is_abandoned(file: &Path) -> bool {
    let modified = fs::metadata(file).and_then(|found| found.modified());
    let age = modified.ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > ABANDONED)
}

/// What names an archive wherever the data directory is.
pub fn receipt_of(archive: &Path) -> PackId {
    let mut parts: Vec<_> = archive.components().rev().take(3).collect();
    parts.reverse();
    let place: PathBuf = parts.into_iter().collect();
    PackId(*blake3::hash(place.as_os_str().as_encoded_bytes()).as_bytes())
}

fn stamp(at: Timestamp) -> String {
    let at = at.to_zoned(TimeZone::UTC);
    at.strftime("%Y%m%d_%H%M%S_%6f").to_string()
}
