//! The shelf of hooks for hooks that run in Python: the archives that `compactctl hook` writes, by the
//! same code, in the same folders.

use std::path::{Path, PathBuf};

use compact_adapters::config::Sources;
use compact_adapters::shelf::{Archived, NotArchived, Shelf};
use compact_core::redact::{Boundary, RedactionRules, Redactor};
use compact_runtime::host::Transcript;
use compact_runtime::manager::Storing;
use jiff::Timestamp;
use pyo3::prelude::*;

use crate::failure::{Class, raise};

/// Below the data directory.
const HOOKS: &str = "hooks";

/// What a hook goes by: the folder of all hooks, and what is redacted. Where the configuration is broken,
/// that is everything.
fn terms() -> PyResult<(PathBuf, RedactionRules)> {
    let wrong = |error: &dyn std::error::Error| raise(Class::Config, error);
    let (loaded, _) = Sources::discover(None)
        .load_what_is_whole()
        .map_err(|error| wrong(&error))?;
    let root = loaded.config.storage.folder();
    let hooks = root.map_err(|error| wrong(&error))?.join(HOOKS);
    Ok((hooks, loaded.config.redaction))
}

/// The folder of the repository around a folder.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over a value")]
pub(crate) fn shelf_folder(repository: PathBuf) -> PyResult<PathBuf> {
    let (hooks, _) = terms()?;
    let shelf = Shelf::at(&hooks, Some(&repository), "");
    Ok(shelf.folder().to_owned())
}

/// Archives the transcript of a session, redacted as the user's configuration says: where, and how many
/// bytes.
#[pyfunction]
#[pyo3(signature = (repository, session, transcript=None))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over a value")]
pub(crate) fn shelf_archive(
    py: Python<'_>,
    repository: PathBuf,
    session: &str,
    transcript: Option<PathBuf>,
) -> PyResult<(PathBuf, u64)> {
    py.detach(|| {
        let (_, rules) = terms()?;
        let redactor = rules.redactor(Boundary::Archive);
        let redactor = redactor.map_err(|error| raise(Class::Config, &error))?;
        archive(&repository, session, transcript, &redactor)
    })
}

/// The same, redacted as an engine redacts its archive.
pub(crate) fn archive_as(
    storing: &Storing,
    repository: &Path,
    session: &str,
    transcript: Option<PathBuf>,
) -> PyResult<(PathBuf, u64)> {
    if let Storing::Redacted(redactor) = storing {
        return archive(repository, session, transcript, redactor);
    }
    let off = RedactionRules {
        enabled: false,
        ..RedactionRules::default()
    };
    let off = Redactor::new(&off).map_err(|error| raise(Class::Config, &error))?;
    archive(repository, session, transcript, &off)
}

fn archive(
    repository: &Path,
    session: &str,
    transcript: Option<PathBuf>,
    redactor: &Redactor,
) -> PyResult<(PathBuf, u64)> {
    let (hooks, _) = terms()?;
    let shelf = Shelf::at(&hooks, Some(repository), session);
    let transcript = transcript.map_or(Transcript::Missing, Transcript::File);
    match shelf.archive(&transcript, Timestamp::now(), redactor) {
        Ok(Archived { path, bytes }) => Ok((path, bytes)),
        Err(error @ NotArchived::Failed(_)) => Err(raise(Class::Storage, &error)),
        Err(error) => Err(raise(Class::NotFound, &error)),
    }
}
