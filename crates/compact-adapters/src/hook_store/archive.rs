//! Transcripts that hooks archive: each is a plain file that appears whole or not at all.
//!
//! A copy is staged beside its place, gets its name, and then its sum is written down; file and folder are on
//! disk before it counts. A process that is killed meanwhile leaves a staged file, which [`remove_leftovers`] takes
//! away later, or an archive without a sum; a sum without an archive says that this was taken away.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use compact_core::redact::{RedactionCounts, Redactor};
use compact_runtime::host::HookTranscript;
use compact_runtime::port::archive::PackId;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::{open_regular, stage};
use crate::leftover;
use crate::private::{self, PathKind};

const ARCHIVES: &str = "archives";

const SUMS: &str = "sums";

/// What follows `transcript` in the name of an archive that was redacted.
const REDACTED: &str = "-redacted";

/// How a file begins that did not get its name yet.
pub(super) const STAGED: &str = ".staged-";

/// How many names are tried before giving up.
const TRIES: u32 = 100;

/// Why there is no archive.
#[derive(Debug, thiserror::Error)]
pub enum HookArchiveError {
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
pub struct ArchivedTranscript {
    /// The path of the archive.
    pub path: PathBuf,
    /// How many bytes it has.
    pub bytes: u64,
}

/// The size and checksum of an archive, recorded when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ArchiveChecksum {
    /// The session, as its agent calls it.
    session: String,
    bytes: u64,
    blake3: String,
}

/// An archive that a hook left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookArchive {
    /// The path of the archive.
    pub path: PathBuf,
    /// The session, as its agent calls it.
    pub session: String,
    /// When it was made.
    pub at: Timestamp,
    /// Whether it is byte for byte what the agent wrote.
    pub exact: bool,
    sum: Option<ArchiveChecksum>,
}

/// A flaw of an archive.
#[derive(Debug, thiserror::Error)]
pub enum HookArchiveFlaw {
    /// It is there and cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is not what was written.
    #[error("it has {found} bytes and {recorded} were written")]
    Size {
        /// The size of the file in bytes.
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
    transcript: &HookTranscript,
    at: Timestamp,
    redactor: &Redactor,
) -> Result<ArchivedTranscript, HookArchiveError> {
    let mut source = match transcript {
        HookTranscript::Missing => return Err(HookArchiveError::NoPath(session.to_owned())),
        HookTranscript::Inline(bytes) => TranscriptSource::Bytes(bytes),
        HookTranscript::File(path) => TranscriptSource::open(path)?,
    };
    let archives = folder.join(ARCHIVES);
    private::create_dir(&archives)?;
    private::restrict_to_owner(&archives, PathKind::Dir)?;
    let mut staged = tempfile::Builder::new()
        .prefix(STAGED)
        .tempfile_in(&archives)?;
    let written = source.copy_to(staged.as_file_mut(), redactor)?;
    private::restrict_to_owner(staged.path(), PathKind::File)?;
    let sum = ArchiveChecksum {
        session: session.to_owned(),
        ..written
    };
    let kind = if redactor.is_off() { "" } else { REDACTED };
    let stem = format!(
        "{}_{}_transcript{kind}",
        crate::transcript::plain_name(session),
        format_timestamp(at)
    );
    let path = publish(staged, &archives, &stem, &source.extension(), &sum)?;
    Ok(ArchivedTranscript {
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
    sum: &ArchiveChecksum,
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
        match staged.persist_noclobber(&path) {
            Ok(_) => {
                // Last, so that a sum without its archive always means that this is gone.
                private::sync_dir(archives)?;
                return write_checksum(&path, sum).map(|()| path);
            }
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
                (staged, refused) = (error.file, error.error);
            }
            Err(error) => return Err(error.error),
        }
    }
    Err(refused)
}

/// Returns where the sum of an archive is.
fn checksum_path(archive: &Path) -> Option<PathBuf> {
    let folder = archive.parent()?.parent()?;
    let name = archive.file_name()?.to_str()?;
    Some(folder.join(SUMS).join(format!("{name}.json")))
}

fn write_checksum(archive: &Path, sum: &ArchiveChecksum) -> io::Result<()> {
    let file = checksum_path(archive).ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
    let staged = stage(&file, &[&serde_json::to_vec(sum)?])?;
    staged.as_file().sync_data()?;
    staged.persist(&file)?;
    Ok(())
}

fn read_checksum(archive: &Path) -> Option<ArchiveChecksum> {
    let bytes = fs::read(checksum_path(archive)?).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// A transcript to copy.
enum TranscriptSource<'a> {
    Bytes(&'a [u8]),
    File { path: &'a Path, file: File },
}

impl<'a> TranscriptSource<'a> {
    fn open(path: &'a Path) -> Result<TranscriptSource<'a>, HookArchiveError> {
        match open_regular(path) {
            Ok(file) => Ok(TranscriptSource::File { path, file }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(HookArchiveError::NotFound(path.to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the original extension with its dot, `.txt` where there is none.
    fn extension(&self) -> String {
        match self {
            TranscriptSource::Bytes(_) => ".json".to_owned(),
            TranscriptSource::File { path, .. } => {
                match path.extension().and_then(|e| e.to_str()) {
                    Some(extension) => format!(".{extension}"),
                    None => ".txt".to_owned(),
                }
            }
        }
    }

    /// Copies all of it, and says what was written.
    fn copy_to(&mut self, target: &mut File, redactor: &Redactor) -> io::Result<ArchiveChecksum> {
        match self {
            TranscriptSource::Bytes(bytes) if redactor.is_off() => target.write_all(bytes)?,
            TranscriptSource::Bytes(bytes) => target.write_all(&redact_bytes(bytes, redactor))?,
            TranscriptSource::File { file, .. } if redactor.is_off() => {
                io::copy(file, target)?;
            }
            TranscriptSource::File { file, .. } => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                target.write_all(&redact_bytes(&bytes, redactor))?;
            }
        }
        if let TranscriptSource::File { file, .. } = self
            && let Ok(modified) = file.metadata().and_then(|found| found.modified())
        {
            target.set_modified(modified)?;
        }
        target.sync_all()?;
        target.rewind()?;
        checksum_file(target)
    }
}

/// Returns the sum of what a file holds from where it is read.
fn checksum_file(file: &mut File) -> io::Result<ArchiveChecksum> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(ArchiveChecksum {
        session: String::new(),
        bytes: hasher.count(),
        blake3: hasher.finalize().to_string(),
    })
}

/// Redacts a JSON document or JSON lines.
fn redact_bytes(bytes: &[u8], redactor: &Redactor) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let redacted = redactor.redact_json(&text, &mut RedactionCounts::new());
    redacted.into_owned().into_bytes()
}

/// Returns everything that hooks archived below their folder.
pub fn list_archives(hooks: &Path) -> impl Iterator<Item = HookArchive> + use<> {
    files_of_repositories(hooks, ARCHIVES).filter_map(HookArchive::from_path)
}

/// Returns the files in a folder of each repository.
pub(super) fn files_of_repositories(
    hooks: &Path,
    folder: &'static str,
) -> impl Iterator<Item = PathBuf> + use<> {
    let repositories = fs::read_dir(hooks).into_iter().flatten().flatten();
    let folders = repositories.flat_map(move |found| fs::read_dir(found.path().join(folder)));
    folders.flatten().flatten().map(|entry| entry.path())
}

/// Returns the latest archive of a session in the folder of its repository.
pub(super) fn find_latest(folder: &Path, session: &str) -> Option<PathBuf> {
    let start = format!("{session}_");
    let archives = folder.join(ARCHIVES);
    let files = fs::read_dir(&archives).ok()?.flatten();
    let is_ours = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(&start);
    let names = files.map(|file| file.file_name()).filter(is_ours);
    Some(archives.join(names.max()?))
}

impl HookArchive {
    /// Reads what a name says: `{session}_{date}_{time}_{micros}_transcript`.
    fn from_path(path: PathBuf) -> Option<HookArchive> {
        let stem = path.file_stem()?.to_str()?;
        let mut parts = stem.rsplitn(5, '_');
        let kind = parts.next()?.strip_prefix("transcript")?.to_owned();
        let (micros, time, date) = (parts.next()?, parts.next()?, parts.next()?);
        let stamp = format!("{date}{time}.{micros}");
        let at = DateTime::strptime("%Y%m%d%H%M%S.%f", stamp).ok()?;
        let sum = read_checksum(&path);
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
    pub fn check(&self) -> Result<(), HookArchiveFlaw> {
        let found = checksum_file(&mut open_regular(&self.path)?)?;
        match &self.sum {
            Some(recorded) if recorded.bytes != found.bytes => Err(HookArchiveFlaw::Size {
                found: found.bytes,
                recorded: recorded.bytes,
            }),
            Some(recorded) if recorded.blake3 != found.blake3 => Err(HookArchiveFlaw::Checksum),
            _ => Ok(()),
        }
    }

    /// Removes it with its sum.
    pub fn remove(&self) -> io::Result<()> {
        remove_with_checksum(&self.path)
    }
}

fn remove_with_checksum(archive: &Path) -> io::Result<()> {
    match checksum_path(archive).map(fs::remove_file) {
        Some(Err(error)) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => fs::remove_file(archive),
    }
}

/// Removes an archive that a later one begins with.
pub fn remove_if_contained(earlier: &Path, later: &Path) -> io::Result<()> {
    let Ok(bytes) = fs::read(earlier) else {
        return Ok(());
    };
    match earlier != later && super::read_regular_file(later)?.starts_with(&bytes) {
        true => remove_with_checksum(earlier),
        false => Ok(()),
    }
}

/// Removes what hooks left that were killed while they copied.
pub(super) fn remove_leftovers(hooks: &Path) {
    let is_staged = |file: &PathBuf| {
        let name = file.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| leftover::is_staged_name(name, STAGED))
    };
    let folders = [ARCHIVES, SUMS, super::SESSIONS];
    let staged = folders.map(|folder| files_of_repositories(hooks, folder).filter(is_staged));
    for file in staged.into_iter().flatten() {
        leftover::remove_if_abandoned(&file);
    }
}

/// Returns the places of archives that are gone, though what was written down of them is there.
pub fn list_lost_archives(hooks: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let sums = files_of_repositories(hooks, SUMS).filter_map(|sum| archive_path(&sum));
    sums.filter(|archive| !archive.exists())
}

/// Returns the archive that a sum is of.
fn archive_path(sum: &Path) -> Option<PathBuf> {
    let name = sum.file_name()?.to_str()?.strip_suffix(".json")?;
    Some(sum.parent()?.parent()?.join(ARCHIVES).join(name))
}

/// Returns what names an archive wherever the data directory is.
pub fn receipt_of(archive: &Path) -> PackId {
    let mut parts: Vec<_> = archive.components().rev().take(3).collect();
    parts.reverse();
    let place: PathBuf = parts.into_iter().collect();
    PackId(*blake3::hash(place.as_os_str().as_encoded_bytes()).as_bytes())
}

fn format_timestamp(at: Timestamp) -> String {
    let at = at.to_zoned(TimeZone::UTC);
    at.strftime("%Y%m%d_%H%M%S_%6f").to_string()
}
