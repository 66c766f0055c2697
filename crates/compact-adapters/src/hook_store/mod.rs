//! The shelf of the hooks in the data directory: archived transcripts, and what is remembered between
//! two calls, by repository and session. Everything on it is its owner's alone.
//!
//! ```text
//! hooks/hook.log
//! hooks/-home-ann-shop/archives/{session}_{YYYYMMDD_HHMMSS_micros}_transcript.jsonl
//! hooks/-home-ann-shop/sums/{archive}.json                what an archive is to hold, and whose it is
//! hooks/-home-ann-shop/sessions/{session}.ledger.sealed   where the ledger was left at the last prompt
//! hooks/-home-ann-shop/sessions/{session}.open.json       a compaction whose losses are not told yet
//! ```
//!
//! A ledger is megabytes and is read while a person waits, so it is kept as MessagePack behind its
//! hash; what is not whole is drawn again from the transcript.

mod archive;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use compact_core::redact::Redactor;
use compact_runtime::host::{HookMemory, HookPayload, HookTranscript, MARK_BYTES};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

pub use archive::{
    ArchivedTranscript, HookArchive, HookArchiveError, HookArchiveFlaw, list_archives,
    list_lost_archives, receipt_of, remove_if_contained,
};

use crate::private;
use crate::transcript::plain_name;

const SESSIONS: &str = "sessions";

/// The files of one session of one repository.
#[derive(Debug)]
pub struct HookStore {
    folder: PathBuf,
    session: String,
}

/// A compaction whose losses are not told yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PendingCompaction {
    /// The path of the archived transcript.
    pub archive: PathBuf,
    /// How many summaries the transcript held before.
    pub summaries: u64,
    /// The agent's own summary, once it handed it out.
    pub summary: Option<String>,
    /// The context before, as the provider counted it.
    pub tokens_before: Option<u64>,
    /// Whether a view of ours took the place of the summary, so that nothing is to be told.
    pub is_view: bool,
    /// An earlier compaction that nobody was told the losses of: an agent at work compacts more than once between
    /// two prompts, and Gemini CLI announces a compaction before every request.
    pub earlier: Option<EarlierCompaction>,
}

/// A compaction that another followed before its losses could be told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierCompaction {
    /// The path of the transcript as it was before.
    pub archive: PathBuf,
    /// How many summaries that transcript held.
    pub summaries: u64,
}

impl PendingCompaction {
    /// Returns the archive that holds what may be lost.
    pub fn original(&self) -> &Path {
        self.earlier
            .as_ref()
            .map_or(&self.archive, |earlier| &earlier.archive)
    }

    /// Returns whether a transcript with so many summaries was compacted since.
    pub fn is_done(&self, summaries: u64) -> bool {
        let before = self.earlier.as_ref().map(|earlier| earlier.summaries);
        summaries > before.unwrap_or(self.summaries)
    }

    /// Returns what of it is still to be told when the next compaction of a transcript with so many summaries begins.
    pub fn into_earlier(self, summaries: u64) -> Option<EarlierCompaction> {
        if self.is_view || !self.is_done(summaries) {
            return None;
        }
        let PendingCompaction {
            archive,
            summaries,
            earlier,
            ..
        } = self;
        earlier.or(Some(EarlierCompaction { archive, summaries }))
    }
}

impl HookStore {
    /// Returns the shelf of a call, below the folder of all hooks.
    pub fn for_call(hooks: &Path, call: &HookPayload) -> HookStore {
        HookStore::for_session(hooks, call.folder.as_deref(), &call.session)
    }

    /// Returns the shelf of a session of the repository around a folder.
    pub fn for_session(hooks: &Path, folder: Option<&Path>, session: &str) -> HookStore {
        let key = folder.map(|folder| repository_key(&repository_root(folder)));
        HookStore {
            folder: hooks.join(key.unwrap_or_else(|| "unknown".to_owned())),
            session: session.to_owned(),
        }
    }

    /// Returns where everything of its repository is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Copies a transcript, byte for byte unless it is to be redacted, under a name of its own. It
    /// appears whole or not at all.
    pub fn archive(
        &self,
        transcript: &HookTranscript,
        at: Timestamp,
        redactor: &Redactor,
    ) -> Result<ArchivedTranscript, HookArchiveError> {
        archive::copy(&self.folder, &self.session, transcript, at, redactor)
    }

    /// Returns the latest archive of the session.
    pub fn latest_archive(&self) -> Option<PathBuf> {
        archive::find_latest(&self.folder, &plain_name(&self.session))
    }

    /// Returns the ledger of a file, carried on from the last prompt where the file goes on from there.
    pub fn load_ledger(&self, file: &Path, redactor: &Redactor) -> io::Result<HookMemory> {
        let mut source = open_regular(file)?;
        let known = self.read_saved_ledger();
        if let Some(memory) = known.and_then(|known| continue_ledger(known, &mut source, redactor))
        {
            return Ok(memory);
        }
        source.rewind()?;
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes)?;
        let mut memory = HookMemory::default();
        let read = memory.read_more(&bytes, redactor);
        read.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        Ok(memory)
    }

    /// Keeps a ledger for the next call.
    pub fn save_ledger(&self, memory: &HookMemory) -> io::Result<()> {
        // By their names: fields that are empty are left out, and without names the next ones would take their places.
        let packed = rmp_serde::to_vec_named(memory);
        let packed = packed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        let hash = blake3::hash(&packed);
        write_atomically(
            &self.session_file("ledger.sealed"),
            &[hash.as_bytes(), &*packed],
        )
    }

    /// Returns the ledger as it was kept, if all of it is there.
    fn read_saved_ledger(&self) -> Option<HookMemory> {
        let bytes = fs::read(self.session_file("ledger.sealed")).ok()?;
        let (hash, packed) = bytes.split_first_chunk::<{ blake3::OUT_LEN }>()?;
        let is_whole = blake3::hash(packed) == *hash;
        is_whole
            .then(|| rmp_serde::from_slice(packed).ok())
            .flatten()
    }

    /// Returns the compaction that is not closed yet.
    pub fn pending_compaction(&self) -> Option<PendingCompaction> {
        let bytes = fs::read(self.session_file("open.json")).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Opens a compaction, or says more about it.
    pub fn set_pending(&self, open: &PendingCompaction) -> io::Result<()> {
        write_atomically(
            &self.session_file("open.json"),
            &[&serde_json::to_vec(open)?],
        )
    }

    /// Forgets the compaction that was not closed yet.
    pub fn clear_pending(&self) {
        // One that stays open is told twice, which does no harm.
        let _ = fs::remove_file(self.session_file("open.json"));
    }

    fn session_file(&self, kind: &str) -> PathBuf {
        let name = format!("{}.{kind}", plain_name(&self.session));
        self.folder.join(SESSIONS).join(name)
    }
}

/// Returns a ledger with what a file says since; `None` when the file is not the one that was read.
fn continue_ledger(
    mut memory: HookMemory,
    source: &mut File,
    redactor: &Redactor,
) -> Option<HookMemory> {
    let from = memory.read.saturating_sub(MARK_BYTES as u64);
    let mut bytes = Vec::new();
    source.seek(SeekFrom::Start(from)).ok()?;
    source.read_to_end(&mut bytes).ok()?;
    let (before, more) = bytes.split_at_checked((memory.read - from) as usize)?;
    if !memory.is_continued_by(before, more) {
        return None;
    }
    memory.read_more(more, redactor).ok()?.then_some(memory)
}

/// Reads a whole file that must be a regular one: a pipe would never end.
pub fn read_regular_file(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(file)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Removes what was remembered between two calls and not touched since, and what hooks left over that
/// were killed.
pub fn remove_stale(hooks: &Path, before: Timestamp) {
    archive::remove_leftovers(hooks);
    for file in archive::files_of_repositories(hooks, SESSIONS) {
        let modified = fs::metadata(&file).and_then(|found| found.modified());
        let is_old = |at| Timestamp::try_from(at).is_ok_and(|at| at < before);
        if modified.is_ok_and(is_old) {
            // One that stays is drawn again or removed the next time.
            let _ = fs::remove_file(file);
        }
    }
}

/// Opens a file that can be read to its end. Of what the system only shows as files, some never end: they have no size,
/// and a transcript has one as soon as there is anything to keep.
fn open_regular(path: &Path) -> io::Result<File> {
    let found = fs::metadata(path)?;
    let fault = match (found.is_file(), found.len()) {
        (true, 1..) => return File::open(path),
        (true, 0) => "is empty",
        (false, _) => "is not a regular file",
    };
    let message = format!("{} {fault}", path.display());
    Err(io::Error::new(ErrorKind::InvalidInput, message))
}

/// Returns the root of the repository around a folder, or the folder itself.
fn repository_root(folder: &Path) -> PathBuf {
    let mut above = folder.ancestors();
    above
        .find(|path| path.join(".git").exists())
        .unwrap_or(folder)
        .to_owned()
}

/// The longest key that is the path itself.
const LONGEST: usize = 120;

/// Returns a folder's name for a repository: its path with `-` for `/`. Where that could be the name of
/// another path, or is no plain name, a hash tells them apart.
pub fn repository_key(path: &Path) -> String {
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

/// Writes a file that appears whole or not at all.
pub fn write_atomically(file: &Path, parts: &[&[u8]]) -> io::Result<()> {
    stage(file, parts)?.persist(file)?;
    Ok(())
}

/// Returns a file that waits beside its place for its name.
fn stage(file: &Path, parts: &[&[u8]]) -> io::Result<NamedTempFile> {
    let folder = file.parent().unwrap_or(Path::new("."));
    private::create_dir(folder)?;
    let mut staged = tempfile::Builder::new()
        .prefix(archive::STAGED)
        .tempfile_in(folder)?;
    parts.iter().try_for_each(|part| staged.write_all(part))?;
    Ok(staged)
}
