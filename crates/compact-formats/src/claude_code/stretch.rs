//! Which stretch of a session each line is on: the one that a boundary opens, or what hangs on none.
//!
//! A boundary is in force while the lines that follow hang on it. A person who rewinds to a line before it goes
//! on with what it closed: the client then loads that, and what hangs on the boundary is in no context. Lines
//! before it that a boundary preserves hang on it too. The client may write lines once more as they were; that
//! leads nowhere.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::line::{ClaudeCodeLine, ClaudeCodeLineKind};
use crate::TranscriptScope;
use crate::source::SourceLine;

pub(super) type ClaudeCodeRow<'s> = SourceLine<'s, ClaudeCodeLine<'s>>;

/// The boundary that opens a stretch, by its place among the rows; none for what hangs on none.
type StretchStart = Option<usize>;

/// The stretches of a session.
#[derive(Default)]
pub(super) struct SessionStretches<'s> {
    /// The stretch of every row; empty where the session has no boundary.
    of_rows: Vec<StretchStart>,
    /// The stretch of what hangs on a line.
    by_uuid: HashMap<Cow<'s, str>, StretchStart>,
    /// The stretch that each boundary closed.
    closed: HashMap<usize, StretchStart>,
    /// The stretch of the last line.
    last: StretchStart,
}

impl<'s> SessionStretches<'s> {
    pub(super) fn from_rows(rows: &[ClaudeCodeRow<'s>]) -> SessionStretches<'s> {
        let mut stretches = SessionStretches::default();
        if !rows.iter().any(|row| is_boundary(&row.value)) {
            return stretches;
        }
        for (at, row) in rows.iter().enumerate() {
            match is_boundary(&row.value) {
                true => stretches.open(rows, at),
                false => stretches.add(&row.value),
            }
        }
        stretches
    }

    fn open(&mut self, rows: &[ClaudeCodeRow<'s>], at: usize) {
        self.closed.insert(at, self.last);
        self.last = Some(at);
        self.of_rows.push(self.last);
        let own = rows.get(at).and_then(|row| row.value.uuid());
        let preserved = PreservedRows::find(rows, at).unwrap_or_default();
        let hanging = own.into_iter().chain(preserved.uuids);
        self.by_uuid.extend(hanging.map(|uuid| (uuid, Some(at))));
    }

    fn add(&mut self, line: &ClaudeCodeLine<'s>) {
        let uuid = line.uuid();
        let is_known = uuid
            .as_ref()
            .is_some_and(|uuid| self.by_uuid.contains_key(uuid));
        let parent = line.parent().filter(|_| !is_known);
        let parent = parent.and_then(|parent| self.by_uuid.get(&parent).copied());
        let stretch = parent.unwrap_or(self.last);
        self.of_rows.push(stretch);
        if let Some(uuid) = uuid.filter(|_| !is_known) {
            self.by_uuid.insert(uuid, stretch);
        }
        if is_said(line) {
            self.last = stretch;
        }
    }

    /// Returns the boundary that is in force.
    pub(super) fn boundary(&self) -> StretchStart {
        self.last
    }

    /// Returns the rows that the last line goes back to: its stretch alone, or those before it too, each up to the
    /// boundary that closed it.
    pub(super) fn select<'r>(
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

/// Rows before a boundary that it preserves: they hang on it without being repeated.
#[derive(Default)]
pub(super) struct PreservedRows<'s> {
    /// Their places.
    pub(super) places: Vec<usize>,
    /// The uuid of the line that they follow.
    pub(super) anchor: Option<Cow<'s, str>>,
    /// The uuids of the lines that hang on the boundary with them.
    uuids: Vec<Cow<'s, str>>,
}

/// What a boundary says of the lines that it preserves.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BoundaryMetadata<'a> {
    #[serde(borrow)]
    preserved_segment: Option<PreservedSegment<'a>>,
    /// Takes the place of the segment where there is one.
    #[serde(borrow)]
    preserved_messages: Option<PreservedMessages<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PreservedSegment<'a> {
    #[serde(borrow)]
    head_uuid: Cow<'a, str>,
    #[serde(borrow)]
    tail_uuid: Cow<'a, str>,
    #[serde(borrow)]
    anchor_uuid: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PreservedMessages<'a> {
    #[serde(borrow)]
    anchor_uuid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uuids: Vec<Cow<'a, str>>,
    #[serde(borrow, default)]
    all_uuids: Vec<Cow<'a, str>>,
}

impl<'s> PreservedRows<'s> {
    pub(super) fn find(rows: &[ClaudeCodeRow<'s>], boundary: usize) -> Option<PreservedRows<'s>> {
        let metadata = rows.get(boundary)?.value.compact_metadata?;
        let metadata: BoundaryMetadata<'s> = serde_json::from_str(metadata.get()).ok()?;
        let before = rows.get(..boundary)?;
        if let Some(messages) = metadata.preserved_messages {
            let mut open: HashSet<&str> = messages.uuids.iter().map(AsRef::as_ref).collect();
            let is_kept = |row: &ClaudeCodeRow<'s>, open: &mut HashSet<&str>| {
                row.value.uuid().is_some_and(|uuid| open.remove(&*uuid))
            };
            let places = before.iter().enumerate();
            let places = places.filter(|(_, row)| is_kept(row, &mut open));
            return Some(PreservedRows {
                places: places.map(|(at, _)| at).collect(),
                anchor: messages.anchor_uuid,
                uuids: [messages.uuids, messages.all_uuids].concat(),
            });
        }
        let segment = metadata.preserved_segment?;
        let place = |uuid: &Cow<'_, str>| {
            let mut rows = before.iter();
            rows.position(|row| row.value.uuid().as_ref() == Some(uuid))
        };
        let places: Vec<usize> =
            (place(&segment.head_uuid)?..=place(&segment.tail_uuid)?).collect();
        let rows = places.iter().filter_map(|at| rows.get(*at));
        Some(PreservedRows {
            uuids: rows.filter_map(|row| row.value.uuid()).collect(),
            places,
            anchor: segment.anchor_uuid,
        })
    }
}
