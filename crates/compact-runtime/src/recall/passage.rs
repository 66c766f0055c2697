//! Entries as the index sees them: a text, cut into passages that are found one by one.
//!
//! A passage is about a paragraph, so that one line of a long tool result is found as surely as a
//! short message, and what is shown of it is what was asked for.

use std::ops::Range;

use compact_core::identity::EntryHash;
use compact_core::message::{Block, Entry, EntryKind, Role};
use serde_json::Value;

use super::term;
use crate::port::index::{IndexedEntry, Passage, Voice};

/// The most bytes of a passage.
const PASSAGE: usize = 600;

/// What the index holds of an entry; nothing for one that says nothing, or is a summary of ours.
pub(super) fn indexed(entry: &Entry, ordinal: Option<u64>) -> Option<IndexedEntry> {
    if matches!(entry.meta.kind, EntryKind::Summary { .. }) {
        return None;
    }
    let text = readable(entry);
    let passages: Vec<Passage> = cuts(&text)
        .into_iter()
        .filter_map(|span| passage(&text, span))
        .collect();
    (!passages.is_empty()).then(|| IndexedEntry {
        hash: EntryHash::of(entry),
        entry_id: entry.id.clone(),
        ordinal,
        role: role(entry),
        voice: voice(entry),
        text,
        passages,
    })
}

fn passage(text: &str, span: Range<usize>) -> Option<Passage> {
    let terms = term::distinct(text.get(span.clone())?);
    (!terms.is_empty()).then_some(Passage { span, terms })
}

/// A message that carries results speaks for the tool, whatever role the wire gives it.
pub(super) fn role(entry: &Entry) -> Role {
    match entry.has_results() {
        true => Role::Tool,
        false => entry.role,
    }
}

fn voice(entry: &Entry) -> Voice {
    let calls = || {
        entry
            .blocks
            .iter()
            .all(|b| matches!(b, Block::ToolCall { .. } | Block::Reasoning { .. }))
    };
    match role(entry) {
        Role::Tool => Voice::Tool,
        Role::System | Role::Developer => Voice::Host,
        Role::Assistant if calls() => Voice::Call,
        Role::Assistant => Voice::Model,
        Role::User if entry.meta.kind == EntryKind::Message => Voice::User,
        Role::User => Voice::Host,
    }
}

/// The words of an entry, block by block; arguments as lines, since JSON escapes hide words.
fn readable(entry: &Entry) -> String {
    let mut out = String::new();
    for block in &entry.blocks {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        match block {
            Block::ToolCall {
                name, arguments, ..
            } => {
                out.push_str(name);
                out.push('\n');
                match serde_json::from_str::<Value>(arguments) {
                    Ok(value) => flatten(&value, "", &mut out),
                    Err(_) => out.push_str(arguments),
                }
            }
            other => out.push_str(other.text_parts()[0]),
        }
    }
    out
}

fn flatten(value: &Value, key: &str, out: &mut String) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, v)| flatten(v, key, out)),
        Value::Array(items) => items.iter().for_each(|item| flatten(item, key, out)),
        scalar => {
            if !key.is_empty() {
                out.push_str(key);
                out.push_str(": ");
            }
            match scalar {
                Value::String(text) => out.push_str(text),
                other => out.push_str(&other.to_string()),
            }
            out.push('\n');
        }
    }
}

/// Passages of at most [`PASSAGE`] bytes, cut where a line, a sentence or a word ends.
fn cuts(text: &str) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let mut start = 0;
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let length = cut(rest);
        cuts.push(start..start + length);
        start += length;
    }
    cuts
}

fn cut(rest: &str) -> usize {
    if rest.len() <= PASSAGE {
        return rest.len();
    }
    let head = rest
        .get(..rest.floor_char_boundary(PASSAGE))
        .unwrap_or(rest);
    // A cut in the first half would make crumbs.
    let late = |at: &usize| *at > PASSAGE / 2;
    let after = |mark: &str| head.rfind(mark).map(|at| at + mark.len()).filter(late);
    after("\n\n")
        .or_else(|| after("\n"))
        .or_else(|| after(". "))
        .or_else(|| after(" "))
        .unwrap_or(head.len())
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
    fn escapes_in_arguments_hide_no_words() {
        let mut entry = Entry::text("1", Role::Assistant, "");
        entry.blocks = vec![Block::ToolCall {
            id: "c".to_owned(),
            name: "Write".to_owned(),
            arguments: r#"{"path":"a.rs","content":"one\ntwo"}"#.to_owned(),
        }];
        let indexed = indexed(&entry, Some(3)).unwrap();
        assert_eq!(indexed.text, "Write\npath: a.rs\ncontent: one\ntwo\n");
        assert_eq!((indexed.voice, indexed.ordinal), (Voice::Call, Some(3)));
    }

    #[test]
    fn our_own_summaries_and_silence_are_not_indexed() {
        let mut summary = Entry::text("1", Role::User, "ports and paths");
        summary.meta.kind = EntryKind::Summary {
            version: 1,
            receipt: None,
        };
        assert_eq!(indexed(&summary, None), None);
        assert_eq!(indexed(&Entry::text("2", Role::User, " -- "), None), None);
    }
}
