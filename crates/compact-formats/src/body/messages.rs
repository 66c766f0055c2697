//! Messages that may hold several entries: tool results and a person's words, say.
//!
//! The entries of one message are written together, as the bytes that they were when all of them
//! are shown as they are, and otherwise without the blocks of those that are not.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use compact_core::message::{Block, Entry, EntryKind, EntryMeta, Role};
use compact_core::view::{BlockEdit, ViewItem};

use super::is_beside;
use crate::edit::{self, BlockPiece, EntryEdits};
use crate::error::FormatError;
use crate::json::ItemContext;
use crate::source::{EntryDraft, EntryPlace};
use crate::surrogate::readable_text;
use crate::wire::{DocumentContext, ShownItem};

/// The way in which a provider writes a message.
pub(crate) trait MessageDialect {
    /// Returns the pieces of a message in order.
    fn read_pieces<'a>(
        &self,
        at: ItemContext<'_>,
        json: &'a str,
    ) -> Result<Vec<BlockPiece<'a>>, FormatError>;

    /// Returns the blocks of each entry of a message.
    fn entry_ranges(&self, json: &str, blocks: &[Block]) -> Vec<Range<usize>>;

    /// Returns a text as a part of a message.
    fn text_part(&self, text: &str) -> String;

    /// Returns whether new entries of one side that follow each other are one message.
    fn joins_neighbours(&self) -> bool {
        false
    }

    /// Returns a new entry as a message; nothing when it says nothing. `tools` names the tool of a call.
    fn compose_message(&self, entry: &Entry, tools: &HashMap<&str, &str>) -> Option<String>;
}

/// Returns the blocks of each entry: those that `is_alone` by themselves, and what a person said apart from
/// the results before it.
pub(crate) fn split_into_entries(
    blocks: &[Block],
    is_alone: fn(&Block) -> bool,
    is_said: fn(&Block) -> bool,
) -> Vec<Range<usize>> {
    let mut starts = vec![0];
    for (i, _) in blocks.iter().enumerate().filter(|(_, b)| is_alone(b)) {
        starts.extend([i, i + 1]);
    }
    let is_answer = |block: &Block| matches!(block, Block::ToolResult { .. });
    if let Some(result) = blocks.iter().rposition(is_answer) {
        let after = blocks.get(result + 1..).unwrap_or_default();
        starts.extend(after.iter().position(is_said).map(|at| result + 1 + at));
    }
    // A message without blocks is an entry, too.
    starts.retain(|start| *start == 0 || *start < blocks.len());
    starts.sort_unstable();
    starts.dedup();
    let ends = starts.iter().skip(1).copied().chain([blocks.len()]);
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(a, b)| a..b)
        .collect()
}

/// Returns whether a block answers a call.
pub(crate) fn has_results(blocks: &[Block]) -> bool {
    blocks.iter().any(|b| matches!(b, Block::ToolResult { .. }))
}

/// Returns the entries of a message, one for each range of its blocks; `said` tells who speaks and how.
pub(crate) fn draft_entries(
    mut blocks: Vec<Block>,
    ranges: &[Range<usize>],
    place: &EntryPlace,
    said: &dyn Fn(&[Block]) -> (Role, EntryKind),
) -> Vec<EntryDraft> {
    let draft = |(i, range): (usize, &Range<usize>)| {
        let blocks = blocks.split_off(range.start);
        let (role, kind) = said(&blocks);
        EntryDraft {
            id: None,
            role,
            meta: EntryMeta {
                kind,
                continues: i > 0,
                ..EntryMeta::default()
            },
            blocks,
            place: EntryPlace {
                part: (ranges.len() > 1).then_some(i),
                ..place.clone()
            },
        }
    };
    let mut drafts: Vec<EntryDraft> = ranges.iter().enumerate().rev().map(draft).collect();
    drafts.reverse();
    drafts
}

/// Returns the messages of a view, without what stands beside the list.
pub(crate) fn write_messages<'a>(
    dialect: &'a dyn MessageDialect,
    page: &'a DocumentContext<'a>,
    items: &'a [ViewItem],
) -> Result<Vec<Cow<'a, str>>, FormatError> {
    let mut writer = MessageWriter {
        dialect,
        page,
        messages: Vec::with_capacity(items.len()),
        open: None,
        new: None,
        tools: tools_by_call(page, items),
    };
    for item in items {
        match page.resolve_item(item)? {
            ShownItem::New(entry) if entry.role.is_instruction() => {}
            ShownItem::New(entry) => writer.add_new_entry(entry)?,
            ShownItem::Kept { place, .. } | ShownItem::Edited { place, .. } if is_beside(place) => {
            }
            ShownItem::Kept { place, item } => writer.add_entry(place, item, EntryEdits(&[]))?,
            ShownItem::Edited { place, item, edits } => writer.add_entry(place, item, edits)?,
        }
    }
    writer.close_message()?;
    Ok(writer.messages)
}

/// Returns the tool of every call, by the call's id, when a new entry may have to name it.
fn tools_by_call<'a>(
    page: &DocumentContext<'a>,
    items: &'a [ViewItem],
) -> HashMap<&'a str, &'a str> {
    let new: Vec<&Entry> = items
        .iter()
        .filter_map(|item| match item {
            ViewItem::New(entry) => Some(entry),
            _ => None,
        })
        .collect();
    if !new.iter().any(|entry| entry.has_results()) {
        return HashMap::new();
    }
    let said = page.conversation.entries.iter().chain(new);
    said.flat_map(|entry| &entry.blocks)
        .filter_map(|block| match block {
            Block::ToolCall { id, name, .. } => Some((id.as_str(), name.as_str())),
            _ => None,
        })
        .collect()
}

struct MessageWriter<'a> {
    dialect: &'a dyn MessageDialect,
    page: &'a DocumentContext<'a>,
    messages: Vec<Cow<'a, str>>,
    open: Option<OpenMessage<'a>>,
    /// New entries that are to be one message.
    new: Option<Entry>,
    tools: HashMap<&'a str, &'a str>,
}

/// A message of which some entries have been seen.
struct OpenMessage<'a> {
    line: usize,
    item: &'a str,
    ranges: Vec<Range<usize>>,
    shown: Vec<usize>,
    edits: Vec<(usize, BlockEdit)>,
}

impl<'a> MessageWriter<'a> {
    fn item_context(&self) -> ItemContext<'a> {
        ItemContext {
            source: self.page.bytes(),
            offset: 0,
        }
    }

    fn add_entry(
        &mut self,
        place: &EntryPlace,
        item: &'a str,
        edits: EntryEdits<'_>,
    ) -> Result<(), FormatError> {
        let part = place.part.unwrap_or(0);
        let goes_on = self
            .open
            .as_ref()
            .is_some_and(|open| open.line == place.line && !open.shown.contains(&part))
            && self.new.is_none();
        if !goes_on {
            self.close_message()?;
            self.open = Some(OpenMessage {
                line: place.line,
                item,
                ranges: self.message_ranges(place, item)?,
                shown: Vec::new(),
                edits: Vec::new(),
            });
        }
        if let Some(open) = &mut self.open {
            open.add_part(part, edits);
        }
        Ok(())
    }

    /// Returns the blocks of each entry of a message. Only an entry that is the whole message has no part,
    /// and needs no second reading.
    fn message_ranges(
        &self,
        place: &EntryPlace,
        item: &str,
    ) -> Result<Vec<Range<usize>>, FormatError> {
        if place.part.is_none() {
            return Ok(std::iter::once(0..usize::MAX).collect());
        }
        let item = readable_text(item);
        let blocks = edit::into_blocks(self.dialect.read_pieces(self.item_context(), &item)?);
        Ok(self.dialect.entry_ranges(&item, &blocks))
    }

    fn add_new_entry(&mut self, entry: &Entry) -> Result<(), FormatError> {
        let is_model = |entry: &Entry| entry.role == Role::Assistant;
        if let Some(new) = &mut self.new
            && self.dialect.joins_neighbours()
            && is_model(new) == is_model(entry)
        {
            new.blocks.extend(entry.blocks.iter().cloned());
            return Ok(());
        }
        self.close_message()?;
        self.new = Some(entry.clone());
        Ok(())
    }

    fn close_message(&mut self) -> Result<(), FormatError> {
        if let Some(new) = self.new.take() {
            let message = self.dialect.compose_message(&new, &self.tools);
            self.messages.extend(message.map(Cow::Owned));
        }
        if let Some(open) = self.open.take() {
            let message = open.finish(self.dialect, self.item_context())?;
            self.messages.extend(message);
        }
        Ok(())
    }
}

impl<'a> OpenMessage<'a> {
    fn add_part(&mut self, part: usize, edits: EntryEdits<'_>) {
        let start = self.ranges.get(part).map_or(0, |range| range.start);
        let moved = edits.0.iter().map(|(at, edit)| (start + at, edit.clone()));
        self.edits.extend(moved);
        self.shown.push(part);
    }

    fn finish(
        mut self,
        dialect: &dyn MessageDialect,
        at: ItemContext<'_>,
    ) -> Result<Option<Cow<'a, str>>, FormatError> {
        let hidden = (0..self.ranges.len()).filter(|part| !self.shown.contains(part));
        let dropped = hidden.filter_map(|part| self.ranges.get(part).cloned());
        self.edits
            .extend(dropped.flatten().map(|block| (block, BlockEdit::Drop)));
        if self.edits.is_empty() {
            return Ok(Some(Cow::Borrowed(self.item)));
        }
        let item = readable_text(self.item);
        let pieces = dialect.read_pieces(at, &item)?;
        let part = |text: &str| dialect.text_part(text);
        let edited = edit::apply_edits(&item, &pieces, EntryEdits(&self.edits), &part);
        Ok(edited.map(Cow::Owned))
    }
}
