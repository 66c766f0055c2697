//! What a session writes down and says: its transcript, its artifacts, its events.
//!
//! The store of files is waited for a little and then given up: whoever looks after it is told.

use std::time::Duration;

use compact_core::event::{EventKind, EventScope};
use compact_core::redact::RedactionCounts;
use compact_core::reset::{ResetEvent, TranscriptEventKind};
use jiff::Timestamp;
use serde_json::Value;

use super::{HardReset, MeasuredPressure};
use crate::manager::ArchiveMode;
use crate::port::transcript::{Artifact, TranscriptError};

/// How long a reset waits for one thing that a store of files does.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

impl HardReset {
    /// Appends an event to the transcript, redacted where the archive is.
    pub(super) fn write_down(&self, event: &Value) {
        let Some(store) = &self.store else { return };
        if !TranscriptEventKind::from_event(event).is_recorded() {
            return;
        }
        let redacted = match &self.manager.archive_mode {
            ArchiveMode::Exact => None,
            ArchiveMode::Redacted(redactor) => {
                let text = event.to_string();
                serde_json::from_str(&redactor.redact_json(&text, &mut RedactionCounts::new())).ok()
            }
        };
        store.append(&self.session_id, redacted.as_ref().unwrap_or(event));
    }

    /// Tells the sinks, and the transcript.
    pub(super) fn emit_reset_event(&self, pressure: &MeasuredPressure, event: ResetEvent) {
        let Ok(json) = serde_json::to_value(&event) else {
            return;
        };
        self.write_down(&json);
        let scope = EventScope {
            // The event's own name of the model is the one that the limit was looked up for.
            model: Some(event.model().to_owned()),
            // Its reason for the reset is how the tokens were counted.
            cause: None,
            ..self.event_scope(pressure)
        };
        self.manager.emit(&scope, EventKind::Reset(event));
    }

    pub(super) fn event_scope(&self, pressure: &MeasuredPressure) -> EventScope {
        let model = self.conversation.model.as_deref();
        let policy = &self.manager.policy;
        EventScope {
            call: self.call.clone(),
            ..EventScope::new(&self.session_id, model, &pressure.decision, policy)
        }
    }

    /// The model whose limit counts.
    pub(super) fn model(&self) -> String {
        self.conversation
            .model
            .clone()
            .unwrap_or_else(|| "unknown".to_owned())
    }

    /// Where the transcript is.
    pub(super) fn transcript_path(&self) -> Option<String> {
        self.store
            .as_ref()
            .map(|store| store.location(&self.session_id))
    }

    /// The events of the transcript, if it can be read and lacks nothing.
    pub(super) async fn transcript(&self, pressure: &MeasuredPressure) -> Option<Vec<Value>> {
        let store = self.store.as_ref()?;
        let read = with_time_limit(async {
            store.flush(&self.session_id).await?;
            store.read(&self.session_id).await
        });
        self.or_emit_failure(pressure, read.await)
            .map(|transcript| transcript.events)
    }

    /// Keeps an artifact; where, if it could be kept.
    pub(super) async fn keep_artifact(
        &self,
        pressure: &MeasuredPressure,
        artifact: Artifact,
        at: Timestamp,
        text: &str,
    ) -> Option<String> {
        let store = self.store.as_ref()?;
        let kept = with_time_limit(store.keep_artifact(&self.session_id, artifact, at, text)).await;
        self.or_emit_failure(pressure, kept)
    }

    fn or_emit_failure<T>(
        &self,
        pressure: &MeasuredPressure,
        result: Result<T, String>,
    ) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let failed = EventKind::TranscriptFailed { error };
                self.manager.emit(&self.event_scope(pressure), failed);
                None
            }
        }
    }
}

async fn with_time_limit<T>(
    work: impl Future<Output = Result<T, TranscriptError>>,
) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(error_with_cause(&error)),
        Err(_) => Err(format!(
            "the transcript's files did not answer within {} ms",
            PATIENCE.as_millis()
        )),
    }
}

/// An error with what caused it.
fn error_with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
