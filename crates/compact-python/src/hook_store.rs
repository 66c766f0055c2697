//! The shelf of hooks for hooks that run in Python: the archives that `compactctl hook` writes, by the
//! same code, in the same folders.

use std::path::{Path, PathBuf};

use compact::config::ConfigSources;
use compact::hook::{
    ArchivedTranscript, HOOKS_FOLDER, HookArchiveError, HookStore, HookTranscript,
};
use compact::manager::ArchiveMode;
use compact::redact::{RedactionBoundary, RedactionRules, Redactor};
use jiff::Timestamp;
use pyo3::prelude::*;

use crate::failure::{ErrorClass, error_with_causes};

/// What a hook goes by: the folder of all hooks, and what is redacted. Where the configuration is broken,
/// that is everything.
fn hook_settings() -> PyResult<(PathBuf, RedactionRules)> {
    let wrong = |error: &dyn std::error::Error| error_with_causes(ErrorClass::Config, error);
    let (loaded, _) = ConfigSources::discover(None)
        .load_usable()
        .map_err(|error| wrong(&error))?;
    let root = loaded.config.storage.folder();
    let hooks = root.map_err(|error| wrong(&error))?.join(HOOKS_FOLDER);
    Ok((hooks, loaded.config.redaction))
}

/// The folder of the repository around a folder.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over a value")]
pub(crate) fn shelf_folder(repository: PathBuf) -> PyResult<PathBuf> {
    let (hooks, _) = hook_settings()?;
    let shelf = HookStore::for_session(&hooks, Some(&repository), "");
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
        let (_, rules) = hook_settings()?;
        let redactor = rules.redactor(RedactionBoundary::Archive);
        let redactor = redactor.map_err(|error| error_with_causes(ErrorClass::Config, &error))?;
        archive_transcript(&repository, session, transcript, &redactor)
    })
}

/// The same, redacted as an engine redacts its archive.
pub(crate) fn archive_for_engine(
    storing: &ArchiveMode,
    repository: &Path,
    session: &str,
    transcript: Option<PathBuf>,
) -> PyResult<(PathBuf, u64)> {
    if let ArchiveMode::Redacted(redactor) = storing {
        return archive_transcript(repository, session, transcript, redactor);
    }
    let off = RedactionRules {
        enabled: false,
        ..RedactionRules::default()
    };
    let off = Redactor::new(&off).map_err(|error| error_with_causes(ErrorClass::Config, &error))?;
    archive_transcript(repository, session, transcript, &off)
}

fn archive_transcript(
    repository: &Path,
    session: &str,
    transcript: Option<PathBuf>,
    redactor: &Redactor,
) -> PyResult<(PathBuf, u64)> {
    let (hooks, _) = hook_settings()?;
    let shelf = HookStore::for_session(&hooks, Some(repository), session);
    let transcript = transcript.map_or(HookTranscript::Missing, HookTranscript::File);
    match shelf.archive(&transcript, Timestamp::now(), redactor) {
        Ok(ArchivedTranscript { path, bytes }) => Ok((path, bytes)),
        Err(error @ HookArchiveError::Failed(_)) => {
            Err(error_with_causes(ErrorClass::Storage, &error))
        }
        Err(error) => Err(error_with_causes(ErrorClass::NotFound, &error)),
    }
}
