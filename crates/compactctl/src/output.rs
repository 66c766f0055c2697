//! Everything that leaves the process: stdout, stderr and files that appear whole or not at all.
//!
//! A reader that closes its pipe has seen enough: that is no error.

#[cfg(test)]
mod tests;

use std::fs::{self, File};
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
    /// A file that is replaced in one step, so it may be the input itself.
    File(Box<StagedFile>),
    /// A pipe or device: written straight.
    Stream(PathBuf),
}

/// A file next to its final place.
#[derive(Debug)]
pub(crate) struct StagedFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl OutputTarget {
    /// Opens the place before any work is done, so that a wrong path costs nothing.
    /// `like` lends its permissions to a new file.
    pub(crate) fn open(path: &Path, like: Option<&Path>) -> Result<OutputTarget, Failure> {
        if path == Path::new("-") {
            return Ok(OutputTarget::Stdout);
        }
        // A link keeps pointing where it did: the file behind it is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Err(Failure::usage(
                format!("cannot write to {}: it is a directory", path.display()),
                "name a file",
            )),
            Ok(found) if !found.is_file() => Ok(OutputTarget::Stream(path)),
            _ => stage_file(path, like),
        }
    }

    /// Writes the bytes; a file is on disk, under its name, when this returns. What goes to stdout
    /// is handed back.
    pub(crate) fn write(self, bytes: Vec<u8>) -> Result<Option<Vec<u8>>, Failure> {
        let (path, result) = match self {
            OutputTarget::Stdout => return Ok(Some(bytes)),
            OutputTarget::Stream(path) => {
                let result = File::options().write(true).open(&path);
                (path, result.and_then(|mut file| file.write_all(&bytes)))
            }
            OutputTarget::File(staged) => staged.write_and_rename(&bytes),
        };
        match result {
            Ok(()) => Ok(None),
            Err(error) => Err(write_failure(&path, &error)),
        }
    }
}

impl StagedFile {
    fn write_and_rename(mut self, bytes: &[u8]) -> (PathBuf, io::Result<()>) {
        let written = self
            .file
            .write_all(bytes)
            .and_then(|()| self.file.as_file().sync_all());
        let result = match written {
            Ok(()) => self.file.persist(&self.path).map(drop).map_err(|e| e.error),
            Err(error) => Err(error),
        };
        (self.path, result)
    }
}

fn stage_file(path: PathBuf, like: Option<&Path>) -> Result<OutputTarget, Failure> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    leftover::remove_leftovers(folder, |name| leftover::is_staged_name(name, STAGED));
    let staged = NamedTempFile::with_prefix_in(STAGED, folder);
    let file = staged.map_err(|error| write_failure(&path, &error))?;
    let model = [Some(path.as_path()), like].into_iter().flatten();
    // Without a file to follow, a transcript is its owner's alone.
    if let Some(found) = model
        .filter_map(|p| fs::metadata(p).ok())
        .find(|m| m.is_file())
    {
        let set = file.as_file().set_permissions(found.permissions());
        set.map_err(|error| write_failure(&path, &error))?;
    }
    Ok(OutputTarget::File(Box::new(StagedFile { path, file })))
}

fn write_failure(path: &Path, error: &io::Error) -> Failure {
    Failure::from_error(FailureCode::Unexpected, error)
        .with_context(&format!("cannot write {}", path.display()))
        .help("choose another file with -o")
}
