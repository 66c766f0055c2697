//! What an agent's summary must keep, and what it lost.
//!
//! The list is the ledger told within so many characters, the user's words first; the proof is the
//! engine's own, against the text that the agent goes on with.

use compact_core::ledger::Ledger;
use compact_core::summarize::{self, Ranking, Style, Summary, Visible};
use compact_core::token::{Chars4, Units};
use compact_core::verify::{self, Anchor};
use compact_formats::{FormatError, Scope, parse};

/// A number of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chars(pub u64);

const KEEP: &str = include_str!("../../templates/host/keep.md");
const STANDING: &str = include_str!("../../templates/host/standing.md");
const LOST: &str = include_str!("../../templates/host/lost.md");

/// What a text shows of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What was worth keeping.
    pub anchors: usize,
    /// Of those, what the text shows.
    pub shown: usize,
    /// The most needed of the rest, as the model is to read it; `None` when nothing is missing.
    pub text: Option<String>,
}

/// What the agent's summarizer is asked to keep; `None` when nothing was said yet.
pub fn must_keep(ledger: &Ledger, most: Chars) -> Option<String> {
    told(ledger, most).map(|record| fill(KEEP, "", &record))
}

/// What the session knows, for a model whose summary is not known yet.
pub fn still_known(ledger: &Ledger, archive: &str, most: Chars) -> Option<String> {
    told(ledger, most).map(|record| fill(STANDING, archive, &record))
}

/// Holds a text against everything worth keeping.
pub fn compare(ledger: &Ledger, visible: &str, archive: &str, most: Chars) -> Loss {
    let ranking = Ranking::of(ledger, Style::TaskState, None);
    let anchors = verify::anchors(ledger, &ranking, &|_| true);
    let shown = verify::shown(&anchors, visible);
    let missing: Vec<&Anchor> = anchors
        .iter()
        .zip(&shown)
        .filter(|(_, shown)| !**shown)
        .map(|(anchor, _)| anchor)
        .collect();
    let record = verify::repair(
        ledger,
        &Summary::default(),
        &missing,
        Units(most.0),
        &Chars4,
    );
    Loss {
        anchors: anchors.len(),
        shown: anchors.len() - missing.len(),
        text: record.map(|record| fill(LOST, archive, &record.text)),
    }
}

/// Everything that the next request would carry of a transcript.
pub fn live_text(transcript: &[u8]) -> Result<String, FormatError> {
    let parsed = parse(bytes::Bytes::copy_from_slice(transcript), None, Scope::Live)?;
    let mut text = String::new();
    for entry in &parsed.conversation.entries {
        for part in entry.blocks.iter().flat_map(|block| block.text_parts()) {
            text.push_str(part);
            text.push('\n');
        }
    }
    Ok(text)
}

fn told(ledger: &Ledger, most: Chars) -> Option<String> {
    let ranking = Ranking::of(ledger, Style::TaskState, None);
    let summary = summarize::render(&summarize::Request {
        ledger,
        ranking: &ranking,
        style: Style::TaskState,
        budget: Units(most.0),
        estimator: &Chars4,
        company: summarize::Company::Alone,
        visible: &Visible::default(),
        prose: "",
    });
    (!summary.text.is_empty()).then_some(summary.text)
}

/// The record goes in last, so that nothing it says is taken for a place to fill.
fn fill(template: &str, archive: &str, record: &str) -> String {
    let text = template.trim_end().replace("{archive}", archive);
    text.replacen("{record}", record, 1)
}
