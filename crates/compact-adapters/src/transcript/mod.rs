//! Transcripts as files: `transcript-{session}.jsonl`, one event per line, only ever appended to.
//!
//! One thread writes for the whole store, so lines stand in the order in which they were handed
//! over. A line torn by a crash stays where it is and the next one starts anew. A file belongs to
//! one process at a time. Artifacts stand beside the transcripts, each under a name of its own.

mod name;
mod queue;
#[cfg(test)]
mod tests;
mod writer;

pub use name::plain_name;

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use compact_runtime::port::transcript::{Artifact, Transcript, TranscriptError, TranscriptStore};
use jiff::Timestamp;
use serde_json::Value;

use crate::private;
use crate::waiting::run_waiting;
use queue::WriterQueue;

/// The most names tried for one artifact of one moment.
const MOST_ALIKE: u32 = 1000;

/// Transcripts and artifacts in a directory.
#[derive(Debug)]
pub struct TranscriptFiles {
    dir: PathBuf,
    queue: Arc<WriterQueue>,
}

impl TranscriptFiles {
    /// Transcripts in `dir`, which is made when there is something to write.
    pub fn new(dir: impl Into<PathBuf>) -> TranscriptFiles {
        let dir = dir.into();
        let queue = writer::start_writer(dir.clone());
        TranscriptFiles { dir, queue }
    }

    fn transcript_path(&self, session: &str) -> PathBuf {
        self.dir.join(name::transcript_file_name(session))
    }
}

impl Drop for TranscriptFiles {
    fn drop(&mut self) {
        self.queue.close();
    }
}

#[async_trait]
impl TranscriptStore for TranscriptFiles {
    fn append(&self, session: &str, event: &Value) {
        // A `Value` is always JSON, and JSON has no line break outside of its strings' escapes.
        let mut line = event.to_string().into_bytes();
        line.push(b'\n');
        self.queue.push(session, line);
    }

    async fn flush(&self, session: &str) -> Result<(), TranscriptError> {
        let missing = self.queue.flush(session).await;
        missing.map_or(Ok(()), |missing| {
            Err(TranscriptError::Lost {
                session: session.to_owned(),
                place: self.location(session),
                events: missing.events,
                reason: missing.reason,
            })
        })
    }

    async fn read(&self, session: &str) -> Result<Transcript, TranscriptError> {
        let path = self.transcript_path(session);
        let action = format!("read the transcript {}", path.display());
        run_blocking(action, move || match fs::read(&path) {
            Ok(bytes) => Ok(parse(&bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Transcript::default()),
            Err(error) => Err(error),
        })
        .await
    }

    async fn keep_artifact(
        &self,
        session: &str,
        artifact: Artifact,
        at: Timestamp,
        text: &str,
    ) -> Result<String, TranscriptError> {
        let (dir, text) = (self.dir.clone(), text.to_owned());
        let stem = name::artifact_file_stem(artifact, session, at);
        let action = format!("write {}", dir.join(&stem).with_extension("md").display());
        let kept = run_blocking(action, move || write_artifact(&dir, &stem, &text)).await?;
        Ok(kept.display().to_string())
    }

    fn location(&self, session: &str) -> String {
        self.transcript_path(session).display().to_string()
    }
}

/// Returns every line that is an event; empty lines are where a torn one was closed.
fn parse(bytes: &[u8]) -> Transcript {
    let mut transcript = Transcript::default();
    for line in bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(event @ Value::Object(_)) => transcript.events.push(event),
            _ => transcript.damaged += 1,
        }
    }
    transcript
}

/// Writes a text to the first name of its moment that is free.
fn write_artifact(dir: &Path, stem: &str, text: &str) -> io::Result<PathBuf> {
    private::create_dir(dir)?;
    for n in 1..=MOST_ALIKE {
        let suffix = if n == 1 {
            String::new()
        } else {
            format!("-{n}")
        };
        let path = dir.join(format!("{stem}{suffix}.md"));
        let mut file = match private_options().create_new(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all());
        return match written.and_then(|()| private::sync_dir(dir)) {
            Ok(()) => Ok(path),
            Err(error) => {
                // Half an artifact would pass for a whole one.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        };
    }
    Err(io::Error::new(
        ErrorKind::AlreadyExists,
        "every file name for this moment is taken",
    ))
}

/// Opens for writing; a file that is made belongs to its owner alone from its first moment on.
fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

async fn run_blocking<T: Send + 'static>(
    action: String,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, TranscriptError> {
    let failed = |source| TranscriptError::Store { action, source };
    match run_waiting(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(failed(error.into())),
        Err(error) => Err(failed(error.into())),
    }
}
