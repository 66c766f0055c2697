//! What an agent's summary must keep, and what it lost.
//!
//! The list is the ledger told within so many characters, the user's words first; the proof is the
//! engine's own, against the text that the agent goes on with.

use compact_core::ledger::Ledger;
use compact_core::summarize::{self, NameRanking, Style, SummaryBody, VisibleTexts};
use compact_core::token::{Chars4, Units};
use compact_core::verify::{self, Anchor};
use compact_formats::{FormatError, TranscriptScope, parse};

/// A number of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CharCount(pub u64);

const KEEP: &str = include_str!("../../templates/host/keep.md");
const STANDING: &str = include_str!("../../templates/host/standing.md");
const LOST: &str = include_str!("../../templates/host/lost.md");

/// What a text shows of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryLoss {
    /// What was worth keeping.
    pub anchors: usize,
    /// Of those, what the text shows.
    pub shown: usize,
    /// The most needed of the rest, as the model is to read it; `None` when nothing is missing.
    pub text: Option<String>,
}

/// Lists in at most so many characters what the agent's summarizer is to keep; `None` when nothing was
/// said yet.
pub fn must_keep(ledger: &Ledger, most: CharCount) -> Option<String> {
    below(introduction(KEEP, ""), ledger, most)
}

/// Lists in at most so many characters what the session knows, for a model whose summary is not known
/// yet.
pub fn still_known(ledger: &Ledger, archive: &str, most: CharCount) -> Option<String> {
    below(introduction(STANDING, archive), ledger, most)
}

/// Holds a text against everything worth keeping, and puts back what is missing in at most so many
/// characters.
pub fn find_loss(ledger: &Ledger, visible: &str, archive: &str, most: CharCount) -> SummaryLoss {
    let ranking = NameRanking::from_ledger(ledger, Style::TaskState, None);
    let anchors = verify::anchors(ledger, &ranking, &|_| true);
    let shown = verify::shown_anchors(&anchors, visible);
    let missing: Vec<&Anchor> = anchors
        .iter()
        .zip(&shown)
        .filter(|(_, shown)| !**shown)
        .map(|(anchor, _)| anchor)
        .collect();
    let introduction = introduction(LOST, archive);
    let room = room_below(&introduction, most);
    let record = verify::repair(ledger, &SummaryBody::default(), &missing, room, &Chars4);
    SummaryLoss {
        anchors: anchors.len(),
        shown: anchors.len() - missing.len(),
        text: record.map(|record| introduction + &record.text),
    }
}

/// Everything that the next request would carry of a transcript.
pub fn live_text(transcript: &[u8]) -> Result<String, FormatError> {
    let parsed = parse(
        bytes::Bytes::copy_from_slice(transcript),
        None,
        TranscriptScope::Live,
    )?;
    let mut text = String::new();
    for entry in &parsed.conversation.entries {
        for part in entry.blocks.iter().flat_map(|block| block.text_parts()) {
            text.push_str(part);
            text.push('\n');
        }
    }
    Ok(text)
}

/// An introduction with the record of a ledger below it.
fn below(introduction: String, ledger: &Ledger, most: CharCount) -> Option<String> {
    let ranking = NameRanking::from_ledger(ledger, Style::TaskState, None);
    let summary = summarize::render_body(&summarize::RenderRequest {
        ledger,
        ranking: &ranking,
        style: Style::TaskState,
        budget: room_below(&introduction, most),
        estimator: &Chars4,
        company: summarize::SummaryNeighbours::AgentSummary,
        visible: &VisibleTexts::default(),
        prose: "",
    });
    (!summary.text.is_empty()).then(|| introduction + &summary.text)
}

/// The characters that an introduction leaves for the record.
fn room_below(introduction: &str, most: CharCount) -> Units {
    Units(most.0.saturating_sub(introduction.chars().count() as u64))
}

/// What a template says above its record, which is its last word.
fn introduction(template: &str, archive: &str) -> String {
    let words = template.trim_end().trim_end_matches("{record}");
    words.replace("{archive}", archive)
}
