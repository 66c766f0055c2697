//! Lines to drafts.

use crate::usage::UsageSource;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use compact_core::message::EntryMeta;

use super::line::ClaudeCodeLineKind;
use super::stretch::{ClaudeCodeRow, PreservedRows, SessionStretches, is_said};
use crate::TranscriptScope;
use crate::edit;
use crate::error::FormatError;
use crate::halves;
use crate::json::{ItemContext, string_value};
use crate::source::{self, EntryDraft, SourceLayout, TranscriptReading};

pub(super) fn read(
    source: &[u8],
    scope: TranscriptScope,
) -> Result<TranscriptReading, FormatError> {
    let spans = source::line_spans(source);
    let mut reading = TranscriptReading::new(SourceLayout::Lines {
        lines: Vec::new(),
        live_from: 0,
    });
    let rows: Vec<ClaudeCodeRow<'_>> = source::read_objects(source, &spans, &mut reading.problems)?;
    if !rows.iter().any(|row| row.value.is_typed()) {
        return Err(source::unrecognised_error(source));
    }
    let stretches = SessionStretches::from_rows(&rows);
    let live = stretches.select(&rows, scope);
    let mut order = rows_in_context(live.iter().copied());
    match (scope, stretches.boundary()) {
        (TranscriptScope::Live, Some(boundary)) => order = with_preserved(boundary, &rows, order),
        (TranscriptScope::Whole, _) => order = without_copies(order),
        _ => {}
    }
    let read = |rows: Range<usize>| read_rows(source, order.get(rows).unwrap_or_default());
    let bytes = order.iter().map(|row| row.json.len()).sum();
    for half in halves::read_halves(0..order.len(), order.len() / 2, bytes, read)? {
        reading.drafts.extend(half.drafts);
        reading.model = half.model.or(reading.model.take());
    }
    reading.session_id = rows
        .iter()
        .rev()
        .find_map(|row| string_value(row.value.session_id))
        .map(String::from);
    let live_from = live.first().map_or(spans.len(), |row| row.index);
    reading.layout = SourceLayout::Lines {
        lines: spans,
        live_from,
    };
    Ok(reading)
}

/// Returns the rows that were said to the model, without the branches that a later prompt rewound.
fn rows_in_context<'r, 's: 'r>(
    rows: impl ExactSizeIterator<Item = &'r ClaudeCodeRow<'s>>,
) -> Vec<&'r ClaudeCodeRow<'s>> {
    let mut places: HashMap<Cow<'_, str>, usize> = HashMap::with_capacity(rows.len());
    let mut order: Vec<(usize, &ClaudeCodeRow<'_>)> = Vec::with_capacity(rows.len());
    let mut prompts: Vec<usize> = Vec::new();
    for (i, row) in rows.enumerate() {
        if row.value.is_prompt() {
            let parent = row
                .value
                .parent()
                .and_then(|parent| places.get(&parent).copied());
            if let Some(parent) = parent.filter(|parent| prompts.last() > Some(parent)) {
                truncate_after(&mut order, |(at, _)| *at <= parent);
                truncate_after(&mut prompts, |at| *at <= parent);
            }
            prompts.push(i);
        }
        if let Some(uuid) = row.value.uuid() {
            places.insert(uuid, i);
        }
        if is_said(&row.value) {
            order.push((i, row));
        }
    }
    order.into_iter().map(|(_, row)| row).collect()
}

fn truncate_after<T>(list: &mut Vec<T>, stays: impl Fn(&T) -> bool) {
    while list.last().is_some_and(|last| !stays(last)) {
        list.pop();
    }
}

/// Lines that a boundary of ours repeats were said before it.
fn without_copies<'r, 's>(order: Vec<&'r ClaudeCodeRow<'s>>) -> Vec<&'r ClaudeCodeRow<'s>> {
    let said: HashSet<Cow<'_, str>> = order.iter().filter_map(|row| row.value.uuid()).collect();
    order
        .into_iter()
        .filter(|row| {
            row.value
                .compacted_from()
                .is_none_or(|from| !said.contains(&from))
        })
        .collect()
}

/// Lines before the boundary that it preserves: they follow its anchor without being repeated.
fn with_preserved<'r, 's>(
    boundary: usize,
    rows: &'r [ClaudeCodeRow<'s>],
    mut live: Vec<&'r ClaudeCodeRow<'s>>,
) -> Vec<&'r ClaudeCodeRow<'s>> {
    let Some(PreservedRows { places, anchor, .. }) = PreservedRows::find(rows, boundary) else {
        return live;
    };
    let preserved: Vec<_> = places.iter().filter_map(|at| rows.get(*at)).collect();
    let preserved = rows_in_context(preserved.into_iter());
    let at = live
        .iter()
        .position(|row| anchor.is_some() && row.value.uuid() == anchor);
    let at = at.map_or(0, |at| at + 1);
    live.splice(at..at, preserved);
    live
}

/// What rows come to.
#[derive(Default)]
struct ReadRows {
    drafts: Vec<EntryDraft>,
    /// The model that the last of them names.
    model: Option<String>,
}

fn read_rows(source: &[u8], rows: &[&ClaudeCodeRow<'_>]) -> Result<ReadRows, FormatError> {
    let mut read = ReadRows::default();
    read.drafts.reserve(rows.len());
    for row in rows {
        read_row(source, row, &mut read)?;
    }
    Ok(read)
}

fn read_row(
    source: &[u8],
    row: &ClaudeCodeRow<'_>,
    reading: &mut ReadRows,
) -> Result<(), FormatError> {
    let at = ItemContext {
        source,
        offset: row.offset,
    };
    let line = &row.value;
    let (role, pieces, message) = line.read_pieces(at)?;
    let kind = line.kind();
    if kind == ClaudeCodeLineKind::Attachment && pieces.is_empty() {
        return Ok(());
    }
    let blocks = edit::into_blocks(pieces);
    let mut meta = EntryMeta {
        kind: line.entry_kind(&blocks),
        refused: line.is_refusal(),
        ..EntryMeta::default()
    };
    if kind == ClaudeCodeLineKind::Assistant {
        meta.group = string_value(message.id).map(String::from);
        meta.usage = message
            .usage
            .and_then(|raw| UsageSource::Anthropic.read_entry_usage(raw));
        let model = string_value(message.model).filter(|model| model != "<synthetic>");
        reading.model = model.map(String::from).or(reading.model.take());
    }
    reading.drafts.push(EntryDraft {
        id: line.uuid().map(String::from),
        role,
        blocks,
        meta,
        place: row.entry_place(),
    });
    Ok(())
}
