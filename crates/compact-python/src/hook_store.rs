//! Archives transcripts for hooks that run in Python, with the code and in the folders of `compactctl hook`.

use std::path::{Path, PathBuf};

use compact::clock::{Clock, SystemClock};
use compact::config::ConfigSources;
use compact::hook::{
    ArchivedTranscript, HOOKS_FOLDER, HookArchiveError, HookStore, HookTranscript,
};
use compact::manager::ArchiveMode;
use compact::redact::{RedactionBoundary, RedactionRules, Redactor};

use pyo3::prelude::*;

use crate::failure::{ErrorClass, error_with_causes};

/// Loads the folder of all hooks and the redaction rules. If the configuration is broken, the strictest rules
/// apply.
fn hook_settings() -> PyResult<(PathBuf, RedactionRules)> {
    let wrong = |error: &dyn std::error::Error| error_with_causes(ErrorClass::Config, error);
    let (loaded, _) = ConfigSources::discover(None)
        .load_usable()
        .map_err(|error| wrong(&error))?;
    let root = loaded.config.storage.folder();
    let hooks = root.map_err(|error| wrong(&error))?.join(HOOKS_FOLDER);
    Ok((hooks, loaded.config.redaction))
}

/// Returns the hook folder of the repository that contains a folder.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over a value")]
pub(crate) fn hook_folder(repository: PathBuf) -> PyResult<PathBuf> {
    let (hooks, _) = hook_settings()?;
    let store = HookStore::for_session(&hooks, Some(&repository), "");
    Ok(store.folder().to_owned())
}

/// Archives the transcript of a session, redacted as the user's configuration says; returns the path and the
/// size in bytes.
#[pyfunction]
#[pyo3(signature = (repository, session, transcript=None))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over a value")]
pub(crate) fn archive_transcript(
    py: Python<'_>,
    repository: PathBuf,
    session: &str,
    transcript: Option<PathBuf>,
) -> PyResult<(PathBuf, u64)> {
    py.detach(|| {
        let (_, rules) = hook_settings()?;
        let redactor = rules.redactor(RedactionBoundary::Archive);
        let redactor = redactor.map_err(|error| error_with_causes(ErrorClass::Config, &error))?;
        archive_redacted(&repository, session, transcript, &redactor)
    })
}

/// Archives the transcript of a session, redacted as an engine's archive.
pub(crate) fn archive_for_engine(
    storing: &ArchiveMode,
    repository: &Path,
    session: &str,
    transcript: Option<PathBuf>,
) -> PyResult<(PathBuf, u64)> {
    if let ArchiveMode::Redacted(redactor) = storing {
        return archive_redacted(repository, session, transcript, redactor);
    }
    let off = RedactionRules {
        enabled: false,
        ..RedactionRules::default()
    };
    let off = Redactor::new(&off).map_err(|error| error_with_causes(ErrorClass::Config, &error))?;
    archive_redacted(repository, session, transcript, &off)
}

fn archive_redacted(
    repository: &Path,
    session: &str,
    transcript: Option<PathBuf>,
    redactor: &Redactor,
) -> PyResult<(PathBuf, u64)> {
    let (hooks, _) = hook_settings()?;
    let store = HookStore::for_session(&hooks, Some(repository), session);
    let transcript = transcript.map_or(HookTranscript::Missing, HookTranscript::File);
    match store.archive(&transcript, SystemClock.now(), redactor) {
        Ok(ArchivedTranscript { path, bytes }) => Ok((path, bytes)),
        Err(error @ HookArchiveError::Failed(_)) => {
            Err(error_with_causes(ErrorClass::Storage, &error))
        }
        Err(error) => Err(error_with_causes(ErrorClass::NotFound, &error)),
    }
}
