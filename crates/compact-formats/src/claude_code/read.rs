//! Lines to drafts.

use crate::usage::UsageSource;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use compact_core::message::Meta;
use serde_json::value::RawValue;

use super::line::{Kind, Line, Message};
use crate::Scope;
use crate::edit;
use crate::error::FormatError;
use crate::json::{At, Members, lenient};
use crate::source::{self, Draft, Layout, Reading};

type Row<'s> = source::Line<'s, Line<'s>>;

pub(super) fn read(source: &[u8], scope: Scope) -> Result<Reading, FormatError> {
    let spans = source::lines(source);
    let mut reading = Reading::new(Layout::Lines {
        lines: Vec::new(),
        live_from: 0,
    });
    let rows: Vec<Row<'_>> = source::objects(source, &spans, &mut reading.problems)?;
    if !rows.iter().any(|row| row.value.is_typed()) {
        return Err(source::unlike(source));
    }
    let boundary = rows
        .iter()
        .rposition(|row| row.value.kind() == Kind::Boundary);
    let live = match (scope, boundary) {
        (Scope::Live, Some(at)) => rows.get(at + 1..).unwrap_or_default(),
        _ => rows.as_slice(),
    };
    let mut order = said(live);
    match (scope, boundary.and_then(|at| rows.get(at))) {
        (Scope::Live, Some(boundary)) => order = with_preserved(boundary, &rows, order),
        (Scope::Whole, _) => order = without_copies(order),
        _ => {}
    }
    for row in order {
        draft(source, row, &mut reading)?;
    }
    reading.session_id = rows
        .iter()
        .rev()
        .find_map(|row| lenient(row.value.session_id))
        .map(String::from);
    let live_from = live.first().map_or(spans.len(), |row| row.index);
    reading.layout = Layout::Lines {
        lines: spans,
        live_from,
    };
    Ok(reading)
}

/// The rows that were said to the model, without the branches that a later prompt rewound.
fn said<'r, 's>(rows: &'r [Row<'s>]) -> Vec<&'r Row<'s>> {
    let mut places: HashMap<Cow<'_, str>, usize> = HashMap::with_capacity(rows.len());
    let mut order: Vec<(usize, &Row<'_>)> = Vec::with_capacity(rows.len());
    let mut prompts: Vec<usize> = Vec::new();
    for (i, row) in rows.iter().enumerate() {
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
        if matches!(
            row.value.kind(),
            Kind::User | Kind::Assistant | Kind::Attachment
        ) {
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
fn without_copies<'r, 's>(order: Vec<&'r Row<'s>>) -> Vec<&'r Row<'s>> {
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
    boundary: &Row<'s>,
    rows: &'r [Row<'s>],
    mut live: Vec<&'r Row<'s>>,
) -> Vec<&'r Row<'s>> {
    let metadata = boundary
        .value
        .compact_metadata
        .map(|raw| Members::of(raw.get()));
    let Some(segment) = metadata.and_then(|members| members.get("preservedSegment")) else {
        return live;
    };
    let segment = Members::of(segment.get());
    let place = |key: &str| {
        let uuid = lenient(segment.get(key))?;
        rows.iter()
            .position(|row| row.index < boundary.index && row.value.uuid().as_ref() == Some(&uuid))
    };
    let (Some(head), Some(tail)) = (place("headUuid"), place("tailUuid")) else {
        return live;
    };
    let preserved = said(rows.get(head..=tail).unwrap_or_default());
    let anchor = lenient(segment.get("anchorUuid"));
    let at = live
        .iter()
        .position(|row| anchor.is_some() && row.value.uuid() == anchor);
    let at = at.map_or(0, |at| at + 1);
    live.splice(at..at, preserved);
    live
}

fn draft(source: &[u8], row: &Row<'_>, reading: &mut Reading) -> Result<(), FormatError> {
    let at = At {
        source,
        offset: row.offset,
    };
    let line = &row.value;
    let (role, pieces) = line.pieces(at)?;
    if line.kind() == Kind::Attachment && pieces.is_empty() {
        return Ok(());
    }
    let blocks = edit::blocks(pieces);
    let mut meta = Meta {
        kind: line.entry_kind(&blocks),
        ..Meta::default()
    };
    if line.kind() == Kind::Assistant {
        let message: Message<'_> = at.read(line.message.map_or("{}", RawValue::get))?;
        meta.group = lenient(message.id).map(String::from);
        meta.usage = message
            .usage
            .and_then(|raw| UsageSource::Anthropic.of_entry(raw));
        let model = lenient(message.model).filter(|model| model != "<synthetic>");
        reading.model = model.map(String::from).or(reading.model.take());
    }
    reading.drafts.push(Draft {
        id: line.uuid().map(String::from),
        role,
        blocks,
        meta,
        place: row.place(),
    });
    Ok(())
}
