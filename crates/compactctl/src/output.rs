//! Everything that leaves the process: stdout, stderr and files that appear whole or not at all.
//!
//! A reader that closes its pipe has seen enough: that is no error.

#[cfg(test)]
mod tests;

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use compact::hook::leftover;
use tempfile::NamedTempFile;

use crate::failure::{Failure, FailureCode};

/// How a file begins that did not get its name yet.
const STAGED: &str = ".compactctl-";

/// Prints one line of plain text on stdout.
pub(crate) fn print_line(text: &str) -> Result<(), Failure> {
    print_bytes(format!("{text}\n").as_bytes())
}

/// Prints bytes on stdout as they are.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    ignore_broken_pipe(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// Prints styled words on stdout.
pub(crate) fn print_styled(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout().lock();
    ignore_broken_pipe(
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush()),
    )
}

/// Prints styled words on stderr; if nobody listens there, nobody does.
pub(crate) fn print_stderr(text: &str) {
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

fn ignore_broken_pipe(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::from_error(FailureCode::Unexpected, &error)
                .with_context("cannot write to stdout"))
        }
        _ => Ok(()),
    }
}

/// Where a command's bytes go.
#[derive(Debug)]
pub(crate) enum OutputTarget {
    /// `-`.
    Stdout,
    /// A file.
    File(FilePlace),
    /// A pipe or device: written straight.
    Stream(PathBuf),
}

/// A file that gets its name in one step, once it is whole: so it may be the input itself.
///
/// It is staged only when its bytes are there: a process that is killed at its work leaves nothing behind.
#[derive(Debug)]
pub(crate) struct FilePlace {
    path: PathBuf,
    existing: ExistingFile,
    mode: FileMode,
}

/// The permissions of a file that is written.
#[derive(Debug)]
enum FileMode {
    /// A transcript is its owner's alone.
    Private,
    /// Those of the file that it replaces.
    Replaced(Permissions),
    /// Those of the file that it was made from, as far as the caller's umask grants them.
    Lent(Permissions),
}

/// What becomes of a file that has the name already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ExistingFile {
    /// It is replaced; a link keeps its target, and that is replaced.
    #[default]
    Replaced,
    /// It stays, also if it comes while the bytes are made; nothing lends a new file its permissions.
    Kept,
}

impl OutputTarget {
    /// Opens the place before any work is done, so that a wrong path costs nothing.
    /// `like` lends a new file its permissions, but for that to be run and what the umask withholds.
    pub(crate) fn open(path: &Path, like: Option<&Path>) -> Result<OutputTarget, Failure> {
        if path == Path::new("-") {
            return Ok(OutputTarget::Stdout);
        }
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Err(Failure::usage(
                format!("cannot write to {}: it is a directory", path.display()),
                "name a file",
            )),
            Ok(found) if found.is_file() => {
                let mode = FileMode::Replaced(found.permissions());
                FilePlace::check(path, ExistingFile::Replaced, mode)
            }
            Ok(_) => Ok(OutputTarget::Stream(path)),
            Err(_) => {
                let mode = like.and_then(plain_mode);
                let mode = mode.map_or(FileMode::Private, FileMode::Lent);
                FilePlace::check(path, ExistingFile::Replaced, mode)
            }
        }
    }

    /// Opens a place for a file that is new and its owner's alone.
    pub(crate) fn open_new(path: &Path) -> Result<OutputTarget, Failure> {
        match fs::symlink_metadata(path) {
            Ok(_) => Err(taken_failure(path)),
            Err(_) => FilePlace::check(path.to_owned(), ExistingFile::Kept, FileMode::Private),
        }
    }

    /// Writes the bytes; a file is on disk, under its name, when this returns. What goes to stdout
    /// is handed back.
    pub(crate) fn write(self, bytes: Vec<u8>) -> Result<Option<Vec<u8>>, Failure> {
        match self {
            OutputTarget::Stdout => return Ok(Some(bytes)),
            OutputTarget::Stream(path) => File::options()
                .write(true)
                .open(&path)
                .and_then(|mut file| file.write_all(&bytes))
                .map_err(|error| write_failure(&path, &error))?,
            OutputTarget::File(place) => place.write(&bytes)?,
        }
        Ok(None)
    }
}

impl FilePlace {
    /// Returns the place if a file can be staged there.
    fn check(
        path: PathBuf,
        existing: ExistingFile,
        mode: FileMode,
    ) -> Result<OutputTarget, Failure> {
        let place = FilePlace {
            path,
            existing,
            mode,
        };
        let staged = place.stage().and_then(NamedTempFile::close);
        staged.map_err(|error| write_failure(&place.path, &error))?;
        Ok(OutputTarget::File(place))
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let named = self.stage().and_then(|mut file| {
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            let named = match self.existing {
                ExistingFile::Replaced => file.persist(&self.path),
                ExistingFile::Kept => file.persist_noclobber(&self.path),
            };
            named.map(drop).map_err(|refused| refused.error)
        });
        named.map_err(|error| match (self.existing, error.kind()) {
            (ExistingFile::Kept, ErrorKind::AlreadyExists) => taken_failure(&self.path),
            _ => write_failure(&self.path, &error),
        })
    }

    fn stage(&self) -> io::Result<NamedTempFile> {
        let parent = self.path.parent().filter(|p| !p.as_os_str().is_empty());
        let folder = parent.unwrap_or(Path::new("."));
        leftover::remove_leftovers(folder, |name| leftover::is_staged_name(name, STAGED));
        let mut builder = tempfile::Builder::new();
        builder.prefix(STAGED);
        if let FileMode::Lent(permissions) = &self.mode {
            builder.permissions(permissions.clone());
        }
        let file = builder.tempfile_in(folder)?;
        if let FileMode::Replaced(permissions) = &self.mode {
            file.as_file().set_permissions(permissions.clone())?;
        }
        Ok(file)
    }
}

/// The permissions of a file, but for that to be run.
fn plain_mode(file: &Path) -> Option<Permissions> {
    let found = fs::metadata(file).ok().filter(Metadata::is_file)?;
    Some(without_execution(found.permissions()))
}

#[cfg(unix)]
fn without_execution(mut permissions: Permissions) -> Permissions {
    use std::os::unix::fs::PermissionsExt;
    permissions.set_mode(permissions.mode() & 0o666);
    permissions
}

#[cfg(not(unix))]
fn without_execution(permissions: Permissions) -> Permissions {
    permissions
}

fn taken_failure(path: &Path) -> Failure {
    Failure::usage(
        format!("{} already exists", path.display()),
        "name a new file as output, or leave it out",
    )
}

fn write_failure(path: &Path, error: &io::Error) -> Failure {
    Failure::from_error(FailureCode::Unexpected, error)
        .with_context(&format!("cannot write {}", path.display()))
        .help("choose another file with -o")
}
