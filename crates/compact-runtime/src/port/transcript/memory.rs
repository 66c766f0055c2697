//! Transcripts for programs without storage, and for tests.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;

use super::{Artifact, Transcript, TranscriptError, TranscriptStore};

/// Transcripts and artifacts in memory.
#[derive(Debug, Default)]
pub struct MemoryTranscripts {
    events: Mutex<HashMap<String, Vec<Value>>>,
    artifacts: Mutex<HashMap<String, String>>,
}

impl MemoryTranscripts {
    /// The text of an artifact, by the place that `keep` returned.
    pub fn artifact_text(&self, place: &str) -> Option<String> {
        lock(&self.artifacts).get(place).cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl TranscriptStore for MemoryTranscripts {
    fn append(&self, session: &str, event: &Value) {
        let mut events = lock(&self.events);
        events
            .entry(session.to_owned())
            .or_default()
            .push(event.clone());
    }

    async fn flush(&self, _session: &str) -> Result<(), TranscriptError> {
        Ok(())
    }

    async fn read(&self, session: &str) -> Result<Transcript, TranscriptError> {
        Ok(Transcript {
            events: lock(&self.events).get(session).cloned().unwrap_or_default(),
            damaged: 0,
        })
    }

    async fn keep_artifact(
        &self,
        session: &str,
        artifact: Artifact,
        at: Timestamp,
        text: &str,
    ) -> Result<String, TranscriptError> {
        let mut artifacts = lock(&self.artifacts);
        let place = format!(
            "memory:{}-{session}-{at}-{}",
            artifact.as_str(),
            artifacts.len()
        );
        artifacts.insert(place.clone(), text.to_owned());
        Ok(place)
    }

    fn location(&self, session: &str) -> String {
        format!("memory:transcript-{session}")
    }
}
