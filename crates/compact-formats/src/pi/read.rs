//! Lines to drafts.

use crate::usage::UsageSource;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use compact_core::message::Role;
use serde_json::value::RawValue;

use super::line::PiLine;
use crate::TranscriptScope;
use crate::error::FormatError;
use crate::json::{ItemContext, Members, string_value};
use crate::source::{self, SourceLayout, TranscriptReading};

type PiRow<'s> = source::SourceLine<'s, PiLine<'s>>;

pub(super) fn read(
    source: &[u8],
    scope: TranscriptScope,
) -> Result<TranscriptReading, FormatError> {
    let spans = source::line_spans(source);
    let mut reading = TranscriptReading::new(SourceLayout::Lines {
        lines: Vec::new(),
        live_from: 0,
    });
    let rows: Vec<PiRow<'_>> = source::read_objects(source, &spans, &mut reading.problems)?;
    let known = ["session", "message", "compaction", "model_change"];
    if !rows
        .iter()
        .any(|row| known.contains(&row.value.kind().as_ref()))
    {
        return Err(source::unrecognised_error(source));
    }
    let order: Vec<&PiRow<'_>> = match scope {
        TranscriptScope::Live => live_rows(&rows),
        TranscriptScope::Whole => rows.iter().filter(|row| !row.value.is_copy()).collect(),
    };
    for row in order {
        read_row(source, row, &mut reading)?;
    }
    let head = rows.iter().find(|row| row.value.kind() == "session");
    reading.session_id = head.and_then(|row| row.value.id()).map(String::from);
    reading.layout = SourceLayout::Lines {
        lines: spans,
        live_from: 0,
    };
    Ok(reading)
}

/// Returns the rows of the context: the way to the last line, from its last compaction on.
fn live_rows<'r, 's>(rows: &'r [PiRow<'s>]) -> Vec<&'r PiRow<'s>> {
    let way = path_to_last_row(rows);
    let boundary = way.iter().rposition(|row| row.value.kind() == "compaction");
    let Some((at, boundary)) = boundary.and_then(|at| Some((at, *way.get(at)?))) else {
        return way;
    };
    let (id, index) = boundary.value.first_kept();
    let is_first = |row: &&PiRow<'_>| match (&id, index) {
        (Some(id), _) => row.value.id().as_ref() == Some(id),
        (None, Some(index)) => row.index >= index,
        (None, None) => false,
    };
    let before = way.get(..at).unwrap_or_default();
    let kept = before.iter().position(is_first).unwrap_or(at);
    let kept = before.get(kept..).unwrap_or_default().iter().copied();
    let after = way.get(at + 1..).unwrap_or_default().iter().copied();
    std::iter::once(boundary).chain(kept).chain(after).collect()
}

/// Returns the rows from the root to the last line; all rows where they have no ids.
fn path_to_last_row<'r, 's>(rows: &'r [PiRow<'s>]) -> Vec<&'r PiRow<'s>> {
    let in_tree = |row: &&PiRow<'s>| row.value.id().is_some() && row.value.kind() != "session";
    let parents: HashMap<Cow<'_, str>, Option<Cow<'_, str>>> = rows
        .iter()
        .filter(in_tree)
        .filter_map(|row| Some((row.value.id()?, row.value.parent())))
        .collect();
    let mut here = rows
        .iter()
        .rev()
        .find(in_tree)
        .and_then(|row| row.value.id());
    let mut on_way: HashSet<Cow<'_, str>> = HashSet::new();
    while let Some(id) = here {
        here = parents.get(&id).cloned().flatten();
        if !on_way.insert(id) {
            break;
        }
    }
    let is_on_way = |row: &&PiRow<'s>| match row.value.id() {
        Some(id) if in_tree(row) => on_way.contains(&id),
        _ => true,
    };
    rows.iter().filter(is_on_way).collect()
}

fn read_row(
    source: &[u8],
    row: &PiRow<'_>,
    reading: &mut TranscriptReading,
) -> Result<(), FormatError> {
    let at = ItemContext {
        source,
        offset: row.offset,
    };
    if let Some(model) = string_value(row.value.model_id) {
        reading.model = Some(model.into_owned());
    }
    let Some(said) = row.value.read_content(at)? else {
        return Ok(());
    };
    let mut draft = said.into_draft(row.value.id().map(String::from), row);
    if draft.role == Role::Assistant {
        let message = Members::from_json(row.value.message.map_or("", RawValue::get));
        let usage = message.get("usage");
        draft.meta.usage = usage.and_then(|raw| UsageSource::Pi.read_entry_usage(raw));
        let model = string_value(message.get("model")).map(String::from);
        reading.model = model.or(reading.model.take());
    }
    reading.drafts.push(draft);
    Ok(())
}
