//! Transcripts on disk as datasets: a folder or a file, each session with its entities.

use std::fs;
use std::path::{Path, PathBuf};

use compact_formats::{FormatError, TranscriptScope, parse};
use compact_runtime::parallel::map_on_all_cores;
use compact_runtime::replay::entity::MinDigits;

use crate::event;
use crate::metric::{MetricEvent, MetricSession};

/// Why a dataset could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A path that is not there or may not be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// The path that cannot be read.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file that is no transcript.
    #[error("{path} is no transcript that can be read")]
    Format {
        /// The file that is not a transcript.
        path: PathBuf,
        /// What is wrong with it.
        source: FormatError,
    },
}

/// A named set of sessions.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The folder's or the file's name.
    pub name: String,
    /// Its sessions, each with the file it came from.
    pub sessions: Vec<(PathBuf, MetricSession)>,
    /// The fewest digits of a number that counts as an entity.
    pub digits: MinDigits,
    /// Files of a folder that are no transcripts.
    pub skipped: Vec<PathBuf>,
}

impl Dataset {
    /// Reads a file, or every transcript in a folder; sessions of fewer tokens are left out. Other
    /// files in a folder are skipped, a file that was named is not.
    pub fn read(
        path: &Path,
        least_tokens: usize,
        min_digits: Option<MinDigits>,
    ) -> Result<Dataset, DatasetError> {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = name.to_string_lossy().into_owned();
        let digits = min_digits.unwrap_or_else(|| usual_digits(&name));
        let files = list_files(path)?;
        let (mut spoken, mut skipped) = (Vec::new(), Vec::new());
        for file in files {
            match read_sessions(&file) {
                Ok(sessions) => spoken.extend(sessions.into_iter().map(|s| (file.clone(), s))),
                Err(DatasetError::Format { .. }) if path.is_dir() => skipped.push(file),
                Err(error) => return Err(error),
            }
        }
        let sessions = map_on_all_cores(&spoken, |(file, events)| {
            (file.clone(), MetricSession::new(events.clone(), digits))
        });
        let sessions = sessions.into_iter();
        Ok(Dataset {
            name,
            digits,
            sessions: sessions
                .filter(|(_, s)| s.total_tokens() >= least_tokens)
                .collect(),
            skipped,
        })
    }

    /// Returns the tokens of all sessions.
    pub fn total_tokens(&self) -> usize {
        self.sessions.iter().map(|(_, s)| s.total_tokens()).sum()
    }
}

/// Returns the fewest digits that count: customer-service sets have three-digit flights and rooms, where
/// coding logs count lines.
fn usual_digits(name: &str) -> MinDigits {
    MinDigits(if name.starts_with("tau") { 3 } else { 4 })
}

fn read_sessions(file: &Path) -> Result<Vec<Vec<MetricEvent>>, DatasetError> {
    let bytes = fs::read(file).map_err(|source| unreadable(file, source))?;
    let broken = |source| DatasetError::Format {
        path: file.to_owned(),
        source,
    };
    let sessions = event::read_transcript(&bytes).map_err(broken)?;
    // Where nothing is said, the readers that let nothing pass tell whether that is all that is wrong.
    if sessions.iter().all(Vec::is_empty) {
        parse(bytes, None, TranscriptScope::Whole).map_err(broken)?;
    }
    Ok(sessions)
}

/// Returns the files below a path in the order of their names, hidden ones left out.
fn list_files(path: &Path) -> Result<Vec<PathBuf>, DatasetError> {
    let found = fs::metadata(path).map_err(|source| unreadable(path, source))?;
    if !found.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|source| unreadable(&folder, source))?;
        for entry in entries {
            let path = entry.map_err(|source| unreadable(&folder, source))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn unreadable(path: &Path, source: std::io::Error) -> DatasetError {
    DatasetError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_says_nothing_is_no_transcript_unless_it_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.json");
        for (text, is_read) in [
            (r#"{"messages":{"a":1}}"#, false),
            (
                r#"[{"role":5,"content":"x"},{"role":"user","content":"y"}]"#,
                false,
            ),
            (r#"[{"role":"user","content":"x"}]"#, true),
        ] {
            fs::write(&file, text).unwrap();
            let read = Dataset::read(&file, 0, None);
            assert_eq!(read.is_ok(), is_read, "{text}");
        }
    }
}
