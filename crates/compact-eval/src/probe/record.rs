//! A set of probes on disk: `sessions.json` names transcripts and where they are cut, `ID.json` holds the
//! probes of each. Members that are not needed here (question, gold answer) are passed over.

use std::fs;
use std::path::{Path, PathBuf};

use compact_formats::FormatError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ProbeBudget;
use crate::event;
use crate::metric::{EventVoice, MetricEvent};

/// How many events after a cut the host's own summary may stand.
const SUMMARY_WITHIN: usize = 4;

/// Why a set of probes could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A file that is not there or may not be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// The path that cannot be read.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file that is not the JSON it should be.
    #[error("{path} is not what a set of probes holds")]
    Json {
        /// The file that is wrong.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A transcript that cannot be read up to its cut.
    #[error("{path} is no transcript that can be read up to its cut")]
    Transcript {
        /// The file that is no transcript.
        path: PathBuf,
        /// What is wrong with it.
        source: FormatError,
    },
}

/// A question about a session.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Probe {
    /// What it asks for, such as `decisions` or `state`.
    pub kind: String,
    /// For each element of the answer the texts that show it, any of them.
    pub needles: Vec<Vec<String>>,
}

impl Probe {
    /// Returns the share of elements of which a needle stands in a folded text; `None` without elements.
    pub(super) fn found_share(&self, folded: &str) -> Option<f64> {
        let elements: Vec<_> = self.needles.iter().filter(|n| !n.is_empty()).collect();
        let found = elements.iter().filter(|needles| {
            let mut needles = needles.iter();
            needles.any(|needle| folded.contains(&needle.to_lowercase()))
        });
        (!elements.is_empty()).then(|| found.count() as f64 / elements.len() as f64)
    }
}

/// A session as the set names it.
#[derive(Debug, Deserialize)]
struct SessionRecord {
    id: String,
    file: PathBuf,
    tokens: usize,
    budget: usize,
    cut: Option<CutRecord>,
}

/// Where a transcript ends for its probes: before a line, or before an element of `messages`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(tag = "unit", content = "at", rename_all = "snake_case")]
enum CutRecord {
    Line(usize),
    Message(usize),
}

/// A session up to its cut, with its probes.
#[derive(Clone, Debug)]
pub struct ProbeSession {
    /// The session's name.
    pub id: String,
    /// The transcript up to the cut, in its own format.
    pub transcript: Vec<u8>,
    /// What the model sees there: the events since the last compaction, without system prompts.
    pub events: Vec<MetricEvent>,
    /// The summary that the host wrote at the cut.
    pub host_summary: Option<String>,
    /// Tokens before the cut.
    pub tokens: usize,
    /// The size that the set records.
    pub budget: usize,
    /// The questions.
    pub probes: Vec<Probe>,
}

impl ProbeSession {
    /// Returns the tokens that a method may keep.
    pub fn allowed_tokens(&self, budget: ProbeBudget) -> usize {
        match budget {
            ProbeBudget::Recorded => self.budget,
            ProbeBudget::Share(share) => (self.tokens as f64 * share) as usize,
        }
    }

    fn read(record: SessionRecord, probes: &Path, data: &Path) -> Result<ProbeSession, ProbeError> {
        let path = data.join(&record.file);
        let whole = read_file(&path)?;
        let transcript = cut_transcript(&whole, record.cut, &path)?;
        let before = read_events(&transcript, &path)?;
        let after = read_events(&whole, &path)?;
        let after = after.into_iter().skip(before.len()).take(SUMMARY_WITHIN);
        let mut summaries = after.filter(|e| e.voice == EventVoice::Summary);
        Ok(ProbeSession {
            probes: read_json(&probes.join(format!("{}.json", record.id)))?,
            host_summary: summaries.next().map(|event| event.text),
            events: live_events(before),
            transcript,
            id: record.id,
            tokens: record.tokens,
            budget: record.budget,
        })
    }
}

/// Sessions with their probes.
#[derive(Clone, Debug)]
pub struct ProbeSet {
    /// The sessions, in the order of `sessions.json`.
    pub sessions: Vec<ProbeSession>,
}

impl ProbeSet {
    /// Reads a folder of probes; its transcripts are named relative to `data`.
    pub fn read(folder: &Path, data: &Path) -> Result<ProbeSet, ProbeError> {
        let records: Vec<SessionRecord> = read_json(&folder.join("sessions.json"))?;
        let sessions = records.into_iter();
        let sessions = sessions.map(|record| ProbeSession::read(record, folder, data));
        Ok(ProbeSet {
            sessions: sessions.collect::<Result<_, _>>()?,
        })
    }
}

/// Returns what the model sees of events: those since the last compaction. Hosts send system prompts again.
pub(crate) fn live_events(mut events: Vec<MetricEvent>) -> Vec<MetricEvent> {
    let is_boundary = |event: &MetricEvent| event.voice == EventVoice::Boundary;
    let start = events.iter().rposition(is_boundary).map_or(0, |at| at + 1);
    let mut live = events.split_off(start);
    live.retain(|event| event.voice != EventVoice::System);
    live
}

fn cut_transcript(
    whole: &[u8],
    cut: Option<CutRecord>,
    path: &Path,
) -> Result<Vec<u8>, ProbeError> {
    match cut {
        None => Ok(whole.to_vec()),
        Some(CutRecord::Line(at)) => {
            let lines = whole.split_inclusive(|byte| *byte == b'\n');
            Ok(lines.take(at).flatten().copied().collect())
        }
        Some(CutRecord::Message(at)) => {
            let mut document: Value =
                serde_json::from_slice(whole).map_err(|source| bad_json(path, source))?;
            let messages = document.get_mut("messages").and_then(Value::as_array_mut);
            if let Some(messages) = messages {
                messages.truncate(at);
            }
            Ok(document.to_string().into_bytes())
        }
    }
}

/// Returns the events of a file's first session.
fn read_events(transcript: &[u8], path: &Path) -> Result<Vec<MetricEvent>, ProbeError> {
    let sessions = event::read_transcript(transcript).map_err(|source| ProbeError::Transcript {
        path: path.to_owned(),
        source,
    })?;
    Ok(sessions.into_iter().next().unwrap_or_default())
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ProbeError> {
    serde_json::from_slice(&read_file(path)?).map_err(|source| bad_json(path, source))
}

fn read_file(path: &Path) -> Result<Vec<u8>, ProbeError> {
    fs::read(path).map_err(|source| ProbeError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn bad_json(path: &Path, source: serde_json::Error) -> ProbeError {
    ProbeError::Json {
        path: path.to_owned(),
        source,
    }
}
