//! What the profile `hard-reset` leaves for people: the summarizer's input and the summary, as files.
//!
//! They explain a compaction and are no part of it: one that cannot be written is a warning.

use compact_adapters::transcript::TranscriptFiles;
use compact_core::redact::Boundary;
use compact_core::reset::DEAD;
use compact_core::view::View;
use compact_runtime::port::transcript::{Artifact, TranscriptStore};
use compact_runtime::reset::{summarizer_input, summary_text};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::failure::{Code, Failure};
use crate::output;
use crate::world::{Opened, World, block_on};

/// Where they are.
#[derive(Clone, Debug, Default)]
pub struct Artifacts {
    /// What the summarizer was given.
    pub input: Option<String>,
    /// What it gave.
    pub summary: Option<String>,
}

impl Artifacts {
    /// For programs.
    pub fn json(&self) -> Value {
        json!({"summarizer_input": self.input, "summary": self.summary})
    }

    /// For people, one row for each that there is.
    pub fn rows(&self) -> impl Iterator<Item = [String; 2]> {
        let row = |name: &str, path: &Option<String>| Some([name.to_owned(), path.clone()?]);
        [row("input", &self.input), row("summary", &self.summary)]
            .into_iter()
            .flatten()
    }
}

/// What a summarizer is given under this profile; `None` under others.
pub fn told(world: &World, opened: &Opened) -> Result<Option<Vec<String>>, Failure> {
    if world.sessions().is_none() {
        return Ok(None);
    }
    let redactor = world.redactor(Boundary::Summary);
    let conversation = &opened.parsed.conversation;
    Ok(Some(summarizer_input(conversation, None, redactor)))
}

/// Keeps the artifacts of a compaction; `None` under other profiles.
pub fn keep(
    world: &World,
    told: Option<&[String]>,
    session: &str,
    view: Option<&View>,
) -> Result<Option<Artifacts>, Failure> {
    let (Some(folder), Some(told)) = (world.sessions(), told) else {
        return Ok(None);
    };
    let store = TranscriptFiles::new(folder);
    let summary = view.map(summary_text);
    let at = Timestamp::now();
    block_on(async {
        let input = write(
            &store,
            session,
            Artifact::SummarizerInput,
            at,
            &told.concat(),
        )
        .await;
        let summary = match &summary {
            Some(summary) => write(&store, session, Artifact::Summary, at, summary).await,
            None => None,
        };
        Ok(Some(Artifacts { input, summary }))
    })
}

async fn write(
    store: &TranscriptFiles,
    session: &str,
    artifact: Artifact,
    at: Timestamp,
    text: &str,
) -> Option<String> {
    match store.keep(session, artifact, at, text).await {
        Ok(path) => Some(path),
        Err(error) => {
            let failure = Failure::of(Code::Unexpected, &error);
            output::aside(&format!("warning: {}\n", failure.message()));
            None
        }
    }
}

/// A failed compaction under this profile: what the summarizer was given, and whether the session
/// can go on.
pub fn failed(
    world: &World,
    opened: &Opened,
    told: Option<&[String]>,
    session: Option<&str>,
    failure: Failure,
) -> Failure {
    if !matches!(failure.code(), Code::Budget | Code::Summarizer) {
        return failure;
    }
    let named = session.or(opened.parsed.conversation.session_id.as_deref());
    let Ok(Some(artifacts)) = keep(world, told, named.unwrap_or("unnamed"), None) else {
        return failure;
    };
    let failure = match artifacts.input {
        Some(path) => failure.also(&format!("what the summarizer was given is in {path}")),
        None => failure,
    };
    if opened.tokens() > opened.window.tokens {
        failure.also(DEAD)
    } else {
        failure
    }
}
