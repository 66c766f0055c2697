//! What the profile `hard-reset` leaves for people: the summarizer's input and the summary, as files.
//!
//! They explain a compaction and are no part of it: one that cannot be written is a warning.

use compact::message::View;
use compact::redact::RedactionBoundary;
use compact::reset::{
    Artifact, DEAD, TranscriptFiles, TranscriptStore, summarizer_input, summary_text,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::app::{App, OpenedTranscript, block_on};
use crate::failure::{Failure, FailureCode};
use crate::output;

/// Where they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArtifactPaths {
    /// What the summarizer was given.
    pub input: Option<String>,
    /// What it gave.
    pub summary: Option<String>,
}

impl ArtifactPaths {
    /// For programs.
    pub(crate) fn to_json(&self) -> Value {
        json!({"summarizer_input": self.input, "summary": self.summary})
    }

    /// For people, one row for each that there is.
    pub(crate) fn rows(&self) -> impl Iterator<Item = [String; 2]> {
        let row = |name: &str, path: &Option<String>| Some([name.to_owned(), path.clone()?]);
        [row("input", &self.input), row("summary", &self.summary)]
            .into_iter()
            .flatten()
    }
}

/// What a summarizer is given under this profile; `None` under others.
pub(crate) fn render_summarizer_input(
    app: &App,
    opened: &OpenedTranscript,
) -> Result<Option<Vec<String>>, Failure> {
    if app.artifact_folder().is_none() {
        return Ok(None);
    }
    let redactor = app.compact().redactor(RedactionBoundary::Summary);
    let conversation = &opened.parsed.conversation;
    Ok(Some(summarizer_input(conversation, None, redactor)))
}

/// Keeps the artifacts of a compaction; `None` under other profiles.
pub(crate) fn write_artifacts(
    app: &App,
    rendered: Option<&[String]>,
    session: &str,
    view: Option<&View>,
) -> Result<Option<ArtifactPaths>, Failure> {
    let (Some(folder), Some(rendered)) = (app.artifact_folder(), rendered) else {
        return Ok(None);
    };
    let store = TranscriptFiles::new(folder);
    let summary = view.map(summary_text);
    let at = app.compact().clock().now();
    block_on(async {
        let input = write_artifact(
            &store,
            session,
            Artifact::SummarizerInput,
            at,
            &rendered.concat(),
        )
        .await;
        let summary = match &summary {
            Some(summary) => write_artifact(&store, session, Artifact::Summary, at, summary).await,
            None => None,
        };
        Ok(Some(ArtifactPaths { input, summary }))
    })
}

async fn write_artifact(
    store: &TranscriptFiles,
    session: &str,
    artifact: Artifact,
    at: Timestamp,
    text: &str,
) -> Option<String> {
    match store.keep_artifact(session, artifact, at, text).await {
        Ok(path) => Some(path),
        Err(error) => {
            let failure = Failure::from_error(FailureCode::Unexpected, &error);
            output::print_stderr(&format!("warning: {}\n", failure.message()));
            None
        }
    }
}

/// A failed compaction under this profile: what the summarizer was given, and whether the session
/// can go on.
pub(crate) fn explain_failure(
    app: &App,
    opened: &OpenedTranscript,
    rendered: Option<&[String]>,
    session: Option<&str>,
    failure: Failure,
) -> Failure {
    if !matches!(
        failure.code(),
        FailureCode::Budget | FailureCode::Summarizer
    ) {
        return failure;
    }
    let named = session.or(opened.parsed.conversation.session_id.as_deref());
    let Ok(Some(artifacts)) = write_artifacts(app, rendered, named.unwrap_or("unnamed"), None)
    else {
        return failure;
    };
    let failure = match artifacts.input {
        Some(path) => failure.add_help(&format!("what the summarizer was given is in {path}")),
        None => failure,
    };
    if opened.tokens() > opened.window.tokens {
        failure.add_help(DEAD)
    } else {
        failure
    }
}
