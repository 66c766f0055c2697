//! Entries as the index sees them: a text, cut into passages that are found one by one.
//!
//! A passage is a sentence or a line, so that what holds all the words of a question says them in one
//! breath: in a paragraph they meet by chance. Lines of code and short answers stand with those around.

use std::ops::Range;

use compact_core::identity::EntryHash;
use compact_core::message::{Block, Entry, EntryKind, Role};
use compact_core::redact::{RedactionCounts, Redactor};

use super::entry_text::entry_text;
use super::{sentence, term};
use crate::port::index::{EntrySpeaker, IndexedEntry, IndexedPassage};

/// The most bytes of a passage.
const PASSAGE: usize = 240;

/// A sentence or line that is shorter says too little by itself.
const SHORT_PASSAGE: usize = 48;

/// Where an entry stands in its session, and when it was said.
#[derive(Clone, Debug, Default)]
pub(super) struct EntryPlacement {
    /// Its place, when the compaction saw it.
    pub(super) ordinal: Option<u64>,
    /// The place of the other half of an exchange.
    pub(super) partner: Option<u64>,
    /// When it was said, as RFC 3339 in UTC.
    pub(super) said_at: Option<String>,
}

/// What the index holds of an entry; nothing for one that says nothing, or is a summary of ours.
pub(super) fn index_entry(
    entry: &Entry,
    place: EntryPlacement,
    redactor: &Redactor,
) -> Option<IndexedEntry> {
    if matches!(entry.meta.kind, EntryKind::Summary { .. }) {
        return None;
    }
    let text = entry_text(entry);
    let text = redactor
        .redact(&text, &mut RedactionCounts::new())
        .into_owned();
    let passages: Vec<IndexedPassage> = cuts(&text)
        .into_iter()
        .filter_map(|span| index_passage(&text, span))
        .collect();
    (!passages.is_empty()).then(|| IndexedEntry {
        hash: EntryHash::from_entry(entry),
        entry_id: entry.id.clone(),
        ordinal: place.ordinal,
        partner: place.partner,
        said_at: place.said_at,
        role: role(entry),
        voice: speaker_of(entry),
        text,
        passages,
    })
}

fn index_passage(text: &str, span: Range<usize>) -> Option<IndexedPassage> {
    let terms = term::distinct_terms(text.get(span.clone())?);
    (!terms.is_empty()).then_some(IndexedPassage { span, terms })
}

/// A message that carries results speaks for the tool, whatever role the wire gives it.
pub(super) fn role(entry: &Entry) -> Role {
    match entry.has_results() || entry.meta.kind == EntryKind::HostedTool {
        true => Role::Tool,
        false => entry.role,
    }
}

fn speaker_of(entry: &Entry) -> EntrySpeaker {
    let calls = || {
        entry
            .blocks
            .iter()
            .all(|b| matches!(b, Block::ToolCall { .. } | Block::Reasoning { .. }))
    };
    match role(entry) {
        Role::Tool => EntrySpeaker::Tool,
        Role::System | Role::Developer => EntrySpeaker::Host,
        Role::Assistant if calls() => EntrySpeaker::Call,
        Role::Assistant => EntrySpeaker::Model,
        Role::User if entry.meta.kind == EntryKind::Message => EntrySpeaker::User,
        Role::User => EntrySpeaker::Host,
    }
}

/// Passages: sentences and lines, short ones together, long ones cut where a word ends.
pub(super) fn cuts(text: &str) -> Vec<Range<usize>> {
    let mut cuts: Vec<Range<usize>> = Vec::new();
    for piece in sentence::spans(text).flat_map(|span| pieces(text, span)) {
        match cuts.last_mut() {
            Some(last) if belong_together(last, &piece) => last.end = piece.end,
            _ => cuts.push(piece),
        }
    }
    cuts
}

fn belong_together(last: &Range<usize>, next: &Range<usize>) -> bool {
    (last.len() < SHORT_PASSAGE || next.len() < SHORT_PASSAGE) && next.end - last.start <= PASSAGE
}

/// A sentence in pieces of at most [`PASSAGE`] bytes.
fn pieces(text: &str, sentence: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = sentence.start;
    std::iter::from_fn(move || {
        let rest = text
            .get(start..sentence.end)
            .filter(|rest| !rest.is_empty())?;
        let piece = start..start + piece_length(rest);
        start = piece.end;
        Some(piece)
    })
}

fn piece_length(rest: &str) -> usize {
    if rest.len() <= PASSAGE {
        return rest.len();
    }
    let head = rest
        .get(..rest.floor_char_boundary(PASSAGE))
        .unwrap_or(rest);
    head.rfind(' ').map_or(head.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_cover_the_text_and_end_at_line_ends() {
        let text: String = (0..200).map(|n| format!("line {n} of a log\n")).collect();
        let cuts = cuts(&text);
        assert!(cuts.len() > 1);
        let joined: String = cuts.iter().filter_map(|c| text.get(c.clone())).collect();
        assert_eq!(joined, text);
        for cut in &cuts {
            assert!(cut.len() <= PASSAGE && text.get(cut.clone()).unwrap().ends_with('\n'));
        }
    }

    #[test]
    fn a_wall_of_letters_is_cut_between_characters() {
        let text = "ä".repeat(5000);
        let joined: String = cuts(&text)
            .iter()
            .filter_map(|c| text.get(c.clone()))
            .collect();
        assert_eq!(joined, text);
    }

    #[test]
    fn an_entry_is_indexed_with_its_place() {
        let entry = Entry::from_text("1", Role::User, "ports and paths");
        let place = EntryPlacement {
            ordinal: Some(3),
            partner: Some(4),
            said_at: Some("2026-01-02T03:04:05Z".to_owned()),
        };
        let want = IndexedEntry {
            hash: EntryHash::from_entry(&entry),
            entry_id: entry.id.clone(),
            ordinal: Some(3),
            partner: Some(4),
            said_at: place.said_at.clone(),
            role: Role::User,
            voice: EntrySpeaker::User,
            text: "ports and paths".to_owned(),
            passages: vec![IndexedPassage {
                span: 0..15,
                terms: vec!["path".to_owned(), "port".to_owned()],
            }],
        };
        let indexed = super::index_entry(&entry, place, &Redactor::default());
        assert_eq!(indexed, Some(want));
    }

    #[test]
    fn our_own_summaries_and_silence_are_not_indexed() {
        let mut summary = Entry::from_text("1", Role::User, "ports and paths");
        summary.meta.kind = EntryKind::Summary {
            version: 1,
            receipt: None,
        };
        assert_eq!(
            super::index_entry(&summary, EntryPlacement::default(), &Redactor::default()),
            None
        );
        assert_eq!(
            super::index_entry(
                &Entry::from_text("2", Role::User, " -- "),
                EntryPlacement::default(),
                &Redactor::default()
            ),
            None
        );
    }
}
