//! What a session writes down and says: its transcript, its artifacts, its events.
//!
//! The store of files is waited for a little and then given up: whoever looks after it is told.

use std::time::Duration;

use compact_core::event::{EventKind, Scope};
use compact_core::redact::Counts;
use compact_core::reset::ResetEvent;
use compact_core::transcript::Kind;
use jiff::Timestamp;
use serde_json::Value;

use super::{HardReset, Pressure};
use crate::manager::{Storing, now};
use crate::port::transcript::{Artifact, TranscriptError};

/// How long a reset waits for one thing that a store of files does.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 5_000 });

impl HardReset {
    /// Appends an event to the transcript, redacted where the archive is.
    pub(super) fn write_down(&self, event: &Value) {
        let Some(store) = &self.store else { return };
        if !Kind::of(event).is_recorded() {
            return;
        }
        let redacted = match &self.manager.storing {
            Storing::Exact => None,
            Storing::Redacted(redactor) => {
                let text = event.to_string();
                serde_json::from_str(&redactor.redact_json(&text, &mut Counts::new())).ok()
            }
        };
        store.append(&self.session_id, redacted.as_ref().unwrap_or(event));
    }

    /// Tells the sinks, and the transcript.
    pub(super) fn say(&self, pressure: &Pressure, event: &ResetEvent) {
        let Ok(Value::Object(fields)) = serde_json::to_value(event) else {
            return;
        };
        self.write_down(&Value::Object(fields.clone()));
        let mut told = self.scope(pressure).event(event.kind(), &now());
        told.detail = fields;
        // The event's own name of the model is the one that the limit was looked up for.
        told.model = told
            .detail
            .shift_remove("model")
            .and_then(|m| m.as_str().map(str::to_owned));
        self.manager.emit(told);
    }

    fn scope(&self, pressure: &Pressure) -> Scope {
        let model = self.conversation.model.as_deref();
        Scope::new(
            &self.session_id,
            model,
            &pressure.decision,
            &self.manager.policy,
        )
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
            .map(|store| store.place(&self.session_id))
    }

    /// The events of the transcript, if it can be read and lacks nothing.
    pub(super) async fn transcript(&self, pressure: &Pressure) -> Option<Vec<Value>> {
        let store = self.store.as_ref()?;
        let read = patient(async {
            store.flush(&self.session_id).await?;
            store.read(&self.session_id).await
        });
        self.or_tell(pressure, read.await)
            .map(|transcript| transcript.events)
    }

    /// Keeps an artifact; where, if it could be kept.
    pub(super) async fn keep(
        &self,
        pressure: &Pressure,
        artifact: Artifact,
        at: Timestamp,
        text: &str,
    ) -> Option<String> {
        let store = self.store.as_ref()?;
        let kept = patient(store.keep(&self.session_id, artifact, at, text)).await;
        self.or_tell(pressure, kept)
    }

    fn or_tell<T>(&self, pressure: &Pressure, result: Result<T, String>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let event = self
                    .scope(pressure)
                    .event(EventKind::TranscriptFailed, &now());
                self.manager.emit(event.with("error", error));
                None
            }
        }
    }
}

async fn patient<T>(work: impl Future<Output = Result<T, TranscriptError>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(told(&error)),
        Err(_) => Err(format!(
            "the transcript's files did not answer within {} ms",
            PATIENCE.as_millis()
        )),
    }
}

/// An error with what caused it.
fn told(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
