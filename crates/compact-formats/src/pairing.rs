//! From drafts to a conversation: unique ids, one result per call, and what is odd about the pairs.

use std::collections::{HashMap, HashSet};

use compact_core::message::{Block, Conversation, Entry, EntryId, Role};

use crate::TranscriptProblem;
use crate::source::{EntryDraft, EntryPlace, SourceLayout, TranscriptReading};

/// A reading with its entries named and paired.
pub(crate) struct PairedTranscript {
    pub(crate) conversation: Conversation,
    pub(crate) places: Vec<EntryPlace>,
    pub(crate) problems: Vec<TranscriptProblem>,
}

/// Names the entries, leaves repeated results out and notes broken pairs.
pub(crate) fn build_conversation(
    mut reading: TranscriptReading,
) -> (PairedTranscript, SourceLayout) {
    let mut problems = std::mem::take(&mut reading.problems);
    let mut drafts = std::mem::take(&mut reading.drafts);
    drop_repeated_results(&mut drafts, &reading.layout, &mut problems);
    let (entries, places) = name_entries(drafts);
    note_broken_pairs(&entries, &places, &reading.layout, &mut problems);
    let conversation = Conversation {
        session_id: reading.session_id,
        model: reading.model,
        entries,
        tools: reading.tools,
    };
    (
        PairedTranscript {
            conversation,
            places,
            problems,
        },
        reading.layout,
    )
}

/// Returns drafts as entries with names, and their places.
pub(crate) fn name_entries(drafts: Vec<EntryDraft>) -> (Vec<Entry>, Vec<EntryPlace>) {
    let mut names = EntryNames {
        taken: (!have_own_places(&drafts)).then(HashSet::new),
    };
    let name = |draft: EntryDraft| {
        let EntryDraft {
            id,
            role,
            blocks,
            meta,
            place,
        } = draft;
        let id = names.unique(id, &place);
        let entry = Entry {
            id,
            role,
            blocks,
            meta,
        };
        (entry, place)
    };
    drafts.into_iter().map(name).unzip()
}

/// True where the wire names no entry and no two are in one place, so that places are names enough.
fn have_own_places(drafts: &[EntryDraft]) -> bool {
    drafts.iter().all(|draft| draft.id.is_none())
        && drafts.is_sorted_by(|one, next| one.place.order() < next.place.order())
}

struct EntryNames {
    /// The names that were given, where two entries may ask for one.
    taken: Option<HashSet<String>>,
}

impl EntryNames {
    /// Returns the wire's id when it is the first of its name, else one made from the place.
    fn unique(&mut self, id: Option<String>, place: &EntryPlace) -> EntryId {
        let from_place = || format!("m{}", place.name());
        let Some(taken) = &mut self.taken else {
            return EntryId(from_place());
        };
        let id = id.filter(|id| !id.is_empty() && !taken.contains(id));
        let mut name = id.unwrap_or_else(from_place);
        while taken.contains(&name) {
            name.push('\'');
        }
        taken.insert(name.clone());
        EntryId(name)
    }
}

/// Drops results that repeat an earlier one. A call id that is used again, as some agents do, opens a new
/// pair; only a result beyond the open calls is a repetition.
fn drop_repeated_results(
    drafts: &mut Vec<EntryDraft>,
    layout: &SourceLayout,
    problems: &mut Vec<TranscriptProblem>,
) {
    let mut open: HashMap<String, usize> = HashMap::new();
    drafts.retain(|draft| {
        let mut repeats = 0;
        for block in &draft.blocks {
            match block {
                Block::ToolCall { id, .. } => *open.entry(id.clone()).or_default() += 1,
                Block::ToolResult { call, .. } => match open.get_mut(call) {
                    Some(0) => {
                        repeats += 1;
                        problems.push(TranscriptProblem {
                            entry: None,
                            line: layout.line_number(&draft.place),
                            message: format!("another result of call {call}; the first one counts"),
                        });
                    }
                    Some(calls) => *calls -= 1,
                    None => {}
                },
                _ => {}
            }
        }
        repeats == 0 || repeats < draft.blocks.len()
    });
}

/// Notes results without a call before them and calls that were passed over.
fn note_broken_pairs(
    entries: &[Entry],
    places: &[EntryPlace],
    layout: &SourceLayout,
    problems: &mut Vec<TranscriptProblem>,
) {
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut note = |entry: usize, message: String| {
        let line = places
            .get(entry)
            .and_then(|place| layout.line_number(place));
        problems.push(TranscriptProblem {
            entry: Some(entry),
            line,
            message,
        });
    };
    for (i, entry) in entries.iter().enumerate() {
        for block in &entry.blocks {
            match block {
                Block::ToolCall { id, .. } => open.entry(id).or_default().push(i),
                Block::ToolResult { call, .. } => match open.get_mut(call.as_str()) {
                    Some(calls) => drop(calls.pop()),
                    None => note(
                        i,
                        format!("result of call {call}, which is not in the context"),
                    ),
                },
                _ => {}
            }
        }
    }
    let latest = latest_message(entries);
    let mut unanswered: Vec<(usize, &str)> = open
        .into_iter()
        .flat_map(|(call, places)| places.into_iter().map(move |at| (at, call)))
        .filter(|(at, _)| *at < latest)
        .collect();
    unanswered.sort_unstable();
    for (at, call) in unanswered {
        note(at, format!("call {call} has no result"));
    }
}

/// Returns where the latest message begins that only results follow: its calls may still run.
fn latest_message(entries: &[Entry]) -> usize {
    let last = entries.iter().rev().find(|entry| entry.role != Role::Tool);
    let group = last.and_then(|entry| entry.meta.group.as_ref());
    let is_part = |entry: &Entry| {
        entry.role == Role::Tool
            || last.is_some_and(|last| last.id == entry.id)
            || (group.is_some() && entry.meta.group.as_ref() == group)
    };
    entries
        .iter()
        .rposition(|entry| !is_part(entry))
        .map_or(0, |at| at + 1)
}
