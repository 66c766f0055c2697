//! Which stretch of a session each line is on: the one that a boundary opens, or what hangs on none.
//!
//! A boundary is in force while the lines that follow hang on it. A person who rewinds to a line before it goes
//! on with what it closed: the client then loads that, and what hangs on the boundary is in no context.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::line::{ClaudeCodeLine, ClaudeCodeLineKind};
use crate::TranscriptScope;
use crate::json::{Members, string_value};
use crate::source::SourceLine;

pub(super) type ClaudeCodeRow<'s> = SourceLine<'s, ClaudeCodeLine<'s>>;

/// The boundary that opens a stretch, by its place among the rows; none for what hangs on none.
type StretchStart = Option<usize>;

/// The stretches of a session.
#[derive(Default)]
pub(super) struct SessionStretches {
    /// The stretch of every row; empty where the session has no boundary.
    of_rows: Vec<StretchStart>,
    /// The stretch that each boundary closed.
    closed: HashMap<usize, StretchStart>,
    /// The stretch of the last line.
    last: StretchStart,
}

impl SessionStretches {
    pub(super) fn from_rows(rows: &[ClaudeCodeRow<'_>]) -> SessionStretches {
        let mut stretches = SessionStretches::default();
        let is_boundary = |row: &ClaudeCodeRow<'_>| is_boundary(&row.value);
        if !rows.iter().any(is_boundary) {
            return stretches;
        }
        let mut by_uuid: HashMap<Cow<'_, str>, StretchStart> = HashMap::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let line = &row.value;
            let hung_on = if is_boundary(row) {
                line.logical_parent()
            } else {
                line.parent()
            };
            let parent = hung_on.and_then(|uuid| by_uuid.get(&uuid).copied());
            let mut stretch = parent.unwrap_or(stretches.last);
            if is_boundary(row) {
                stretches.closed.insert(at, stretch);
                stretch = Some(at);
                let preserved = preserved_rows(rows, at).map(|(places, _)| places);
                let preserved = preserved.and_then(|places| rows.get(places));
                let uuids = preserved.unwrap_or_default().iter();
                by_uuid.extend(uuids.filter_map(|row| Some((row.value.uuid()?, stretch))));
            }
            by_uuid.extend(line.uuid().map(|uuid| (uuid, stretch)));
            stretches.of_rows.push(stretch);
            if is_boundary(row) || is_said(line) {
                stretches.last = stretch;
            }
        }
        stretches
    }

    /// Returns the boundary that is in force.
    pub(super) fn boundary(&self) -> StretchStart {
        self.last
    }

    /// Returns the rows that the last line goes back to: its stretch alone, or those before it too, each up to the
    /// boundary that closed it.
    pub(super) fn select<'r, 's>(
        &self,
        rows: &'r [ClaudeCodeRow<'s>],
        scope: TranscriptScope,
    ) -> Vec<&'r ClaudeCodeRow<'s>> {
        let mut ends: HashMap<StretchStart, usize> = HashMap::from([(self.last, rows.len())]);
        let mut opened = self.last.filter(|_| scope == TranscriptScope::Whole);
        while let Some(boundary) = opened {
            let closed = self.closed.get(&boundary).copied().flatten();
            ends.insert(closed, boundary);
            opened = closed;
        }
        let is_within = |at: usize| {
            let stretch = self.of_rows.get(at).copied().flatten();
            ends.get(&stretch).is_some_and(|end| at < *end) && Some(at) != self.last
        };
        let rows = rows.iter().enumerate();
        rows.filter(|(at, _)| is_within(*at))
            .map(|(_, row)| row)
            .collect()
    }
}

fn is_boundary(line: &ClaudeCodeLine<'_>) -> bool {
    line.kind() == ClaudeCodeLineKind::Boundary
}

/// Returns true for what is said to the model or by it.
pub(super) fn is_said(line: &ClaudeCodeLine<'_>) -> bool {
    matches!(
        line.kind(),
        ClaudeCodeLineKind::User | ClaudeCodeLineKind::Assistant | ClaudeCodeLineKind::Attachment
    )
}

/// Returns the rows before a boundary that it preserves, which hang on it without being repeated, and the uuid of
/// the line that they follow.
pub(super) fn preserved_rows<'s>(
    rows: &[ClaudeCodeRow<'s>],
    boundary: usize,
) -> Option<(RangeInclusive<usize>, Option<Cow<'s, str>>)> {
    let metadata = rows.get(boundary)?.value.compact_metadata?;
    let segment = Members::from_json(metadata.get()).get("preservedSegment")?;
    let segment = Members::from_json(segment.get());
    let place = |key: &str| {
        let uuid = string_value(segment.get(key))?;
        let before = rows.get(..boundary).unwrap_or_default();
        before
            .iter()
            .position(|row| row.value.uuid().as_ref() == Some(&uuid))
    };
    Some((
        place("headUuid")?..=place("tailUuid")?,
        string_value(segment.get("anchorUuid")),
    ))
}
