//! Compacts the transcripts of agents that keep their own, for the agents to resume from.

use bytes::Bytes;
use compact::format::{BoundaryStamp, Format, ParsedTranscript, TranscriptScope};
use compact::manager::{CommittedCompaction, CompactionRequest, Manager, RequestOutcome};
use pyo3::prelude::*;

use crate::engine::run_blocking;
use crate::failure::{ErrorClass, error_with_causes};

/// Appends a boundary and a view to a transcript, and returns it with the receipt as JSON; `None` if there is
/// no need. With a note it compacts whatever the pressure.
pub(crate) fn rewrite_transcript(
    manager: &Manager,
    session_id: Option<&str>,
    source: String,
    format: Format,
    note: Option<&str>,
) -> PyResult<Option<(String, String)>> {
    let source = Bytes::from(source);
    let parsed = compact::format::parse(source.clone(), Some(format), TranscriptScope::Live)
        .map_err(|error| error_with_causes(ErrorClass::Format, &error))?;
    let request = CompactionRequest::from_transcript(&parsed, source)
        .with_session(session_id)
        .with_note(note);
    let compacted = run_blocking(async {
        let job = manager.measure(&request).await?;
        match note.is_some() || job.measured.decision.verdict.is_now() {
            true => Ok(Some(job.compact().await?)),
            false => Ok(None),
        }
    })?;
    match compacted {
        Some(RequestOutcome::Done(commit)) => append_view(&parsed, &commit).map(Some),
        _ => Ok(None),
    }
}

fn append_view(
    parsed: &ParsedTranscript,
    commit: &CommittedCompaction,
) -> PyResult<(String, String)> {
    let receipt = &commit.compaction.receipt;
    let stamp = BoundaryStamp {
        timestamp: commit.receipt.created_at().unwrap_or_default(),
        receipt: &receipt.receipt_id,
        tokens_before: receipt.tokens_before.0,
        tokens_after: receipt.tokens_after.0,
    };
    let document = &parsed.document;
    let bytes = document
        .append(&parsed.conversation, &commit.compaction.view, &stamp)
        .map_err(|error| error_with_causes(ErrorClass::Format, &error))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok((text, commit.receipt.to_string()))
}
