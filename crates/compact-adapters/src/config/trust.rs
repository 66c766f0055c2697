//! Which files of projects their user trusts.
//!
//! A record is a file of its own in the user's configuration directory, named by the hash of the path
//! that was trusted, and it holds the hash of the content. So two commands never write the same record
//! in halves, a file that changes by a byte is trusted no longer, and a link or a copy elsewhere is
//! another path. A record that others may write is none.

#[cfg(test)]
mod tests;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file::FileText;
use super::source::user_folder;
use crate::private;

/// The folder of records beside the user's own file.
const FOLDER: &str = "trust";

/// The records of one user.
#[derive(Clone, Debug)]
pub struct TrustStore {
    folder: PathBuf,
}

/// A file that the user trusts.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct TrustRecord {
    /// The file, for people.
    file: String,
    /// The hash of its content when it was trusted.
    blake3: String,
}

impl TrustStore {
    /// Returns the records in the user's configuration directory; `None` for a user without a home.
    pub fn of_user() -> Option<TrustStore> {
        Some(TrustStore::new(user_folder()?.join(FOLDER)))
    }

    /// Returns the records in a folder.
    pub fn new(folder: PathBuf) -> TrustStore {
        TrustStore { folder }
    }

    /// Trusts a file with the content that was read of it.
    pub fn record(&self, text: &FileText) -> io::Result<()> {
        let path = own_path(text.path())?;
        let record = TrustRecord {
            file: path.display().to_string(),
            blake3: text.hash(),
        };
        private::create_dir(&self.folder)?;
        private::restrict_to_owner(&self.folder, private::PathKind::Dir)?;
        replace_file(&self.record_path(&path), &serde_json::to_vec(&record)?)?;
        private::sync_dir(&self.folder)
    }

    /// Trusts a file no longer; true when it was trusted. The file itself may be gone.
    pub fn forget(&self, file: &Path) -> io::Result<bool> {
        match fs::remove_file(self.record_path(&own_path(file)?)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns whether exactly this content is trusted at exactly this path.
    pub fn trusts(&self, text: &FileText) -> bool {
        let record = || -> io::Result<TrustRecord> {
            let path = self.record_path(&own_path(text.path())?);
            let folder = fs::metadata(&self.folder)?;
            let record = FileText::read_regular(&path)?;
            if may_be_written_by_others(&folder) || record.may_be_written_by_others() {
                return Err(io::Error::other("other users may write to it"));
            }
            Ok(serde_json::from_slice(record.bytes())?)
        };
        record().is_ok_and(|record| record.blake3 == text.hash())
    }

    fn record_path(&self, file: &Path) -> PathBuf {
        let name = blake3::hash(file.as_os_str().as_encoded_bytes()).to_hex();
        self.folder.join(format!("{name}.json"))
    }
}

/// Returns the path with every link but the last resolved: a link is not the file that it leads to.
fn own_path(file: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(file)?;
    let (Some(folder), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it does not name a file",
        ));
    };
    Ok(fs::canonicalize(folder)?.join(name))
}

/// Writes a private file that appears whole or not at all.
fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let staged = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = write_new(&staged, bytes).and_then(|()| fs::rename(&staged, path));
    if written.is_err() {
        // What is left of it is no record.
        let _ = fs::remove_file(&staged);
    }
    written
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file: File = options.open(path)?;
    private::restrict_to_owner(path, private::PathKind::File)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Returns whether somebody other than its user and the system's may change a file or folder.
#[cfg(unix)]
pub(super) fn may_be_written_by_others(found: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let own = rustix::process::geteuid().as_raw();
    let is_foreign = found.uid() != own && found.uid() != 0;
    is_foreign || found.mode() & 0o002 != 0
}

/// Returns false, since the defaults apply on platforms without Unix permissions.
#[cfg(not(unix))]
pub(super) fn may_be_written_by_others(_found: &Metadata) -> bool {
    false
}
