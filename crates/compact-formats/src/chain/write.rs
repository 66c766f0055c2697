//! Views as chained lines, for any agent that writes its sessions so.
//!
//! An agent says how a line is edited, what a new entry looks like and which furniture stays; the
//! order of lines, boundaries and the chain itself are the same for all.

use std::borrow::Cow;
use std::collections::HashSet;

use compact_core::message::Entry;
use compact_core::view::{View, ViewItem};

use super::{LineChain, line_count, line_json};
use crate::BoundaryStamp;
use crate::edit::EntryEdits;
use crate::error::FormatError;
use crate::json::{ItemContext, quote};
use crate::surrogate::readable_text;
use crate::wire::{DocumentContext, LineWriter, ShownItem};

/// An agent whose sessions are chained lines.
pub(crate) trait ChainedAgent {
    /// Returns a line as it may stand within a view: a boundary there would cut off what stands before it,
    /// so it becomes a message.
    fn as_message<'a>(&self, json: &'a str) -> Cow<'a, str>;

    /// Returns the line with its edits; nothing when nothing is left of it.
    fn edit_line(
        &self,
        at: ItemContext<'_>,
        json: &str,
        edits: EntryEdits<'_>,
    ) -> Result<Option<String>, FormatError>;

    /// Returns a new entry as the members that make each of its lines what it is.
    fn compose_lines(&self, entry: &Entry, model: Option<&str>) -> Vec<String>;

    /// Returns the members of a boundary with this summary.
    fn compose_boundary(&self, summary: &str, stamp: &BoundaryStamp<'_>) -> String;

    /// Returns the names by which furniture may speak of an entry that the view shows.
    fn shown_names<'e>(&self, item: &ViewItem, entry: &'e Entry) -> Vec<&'e str>;

    /// Returns whether a line that is no entry stays, where it may speak of these names only.
    fn keeps_line(&self, at: ItemContext<'_>, json: &str, names: &HashSet<&str>) -> bool;

    /// Returns whether an entry stays in force after a boundary without being repeated.
    fn outlasts_boundary(&self, _entry: &Entry) -> bool {
        false
    }

    /// Returns whether the lines of a session have ids.
    fn has_ids(&self, _page: &DocumentContext<'_>) -> bool {
        true
    }
}

/// Returns the view's lines. Furniture follows the line that it stands after.
pub(crate) fn emit(
    agent: &dyn ChainedAgent,
    page: &DocumentContext<'_>,
    view: &View,
) -> Result<Vec<u8>, FormatError> {
    let mut writer = ChainWriter::new(agent, page, LineChain::new(page.bytes()));
    let furniture = BookkeepingLines::new(agent, page, view);
    furniture.write_until_entry(0, &mut writer);
    for item in &view.items {
        match page.resolve_item(item)? {
            ShownItem::New(entry) => writer.write_new_entry(entry),
            ShownItem::Kept { place, item } => {
                writer.chain.write_line(&agent.as_message(item));
                furniture.write_until_entry(place.line + 1, &mut writer);
            }
            ShownItem::Edited { place, item, edits } => {
                if let Some(line) = writer.edit_line(item, edits)? {
                    writer.chain.write_line(&line);
                    furniture.write_until_entry(place.line + 1, &mut writer);
                }
            }
        }
    }
    Ok(writer.chain.lines.finish(page.bytes()))
}

/// Returns a boundary with the view's summary, and the rest of the view as lines after it.
///
/// The summary of a boundary comes first, so what the view shows before it follows it.
pub(crate) fn append(
    agent: &dyn ChainedAgent,
    page: &DocumentContext<'_>,
    view: &View,
    stamp: &BoundaryStamp<'_>,
) -> Result<Vec<u8>, FormatError> {
    let mut writer = ChainWriter::new(
        agent,
        page,
        LineChain::following_document(page.bytes(), LineWriter::following(page.bytes())),
    );
    writer.chain.timestamp = quote(stamp.timestamp);
    let summary = view.summary();
    let text = summary.map(Entry::plain_text).unwrap_or_default();
    writer.write_new_line(stamp.receipt, &agent.compose_boundary(&text, stamp));
    for item in &view.items {
        let entry = item
            .entry_index()
            .and_then(|i| page.conversation.entries.get(i));
        match (page.resolve_item(item)?, entry) {
            (ShownItem::New(entry), _) if summary.is_some_and(|s| s.id == entry.id) => {}
            (ShownItem::New(entry), _) => writer.write_new_entry(entry),
            (ShownItem::Kept { .. }, Some(entry)) if agent.outlasts_boundary(entry) => {}
            (ShownItem::Kept { item, .. }, Some(entry)) => {
                writer.chain.write_copy(&agent.as_message(item), entry);
            }
            (ShownItem::Edited { item, edits, .. }, Some(entry)) => {
                if let Some(line) = writer.edit_line(item, edits)? {
                    writer.chain.write_copy(&line, entry);
                }
            }
            (_, None) => {}
        }
    }
    Ok(writer.chain.lines.into_lines())
}

struct ChainWriter<'a> {
    agent: &'a dyn ChainedAgent,
    page: &'a DocumentContext<'a>,
    chain: LineChain,
    has_ids: bool,
}

impl<'a> ChainWriter<'a> {
    fn new(agent: &'a dyn ChainedAgent, page: &'a DocumentContext<'a>, chain: LineChain) -> Self {
        ChainWriter {
            agent,
            page,
            chain,
            has_ids: agent.has_ids(page),
        }
    }

    fn edit_line(&self, item: &str, edits: EntryEdits<'_>) -> Result<Option<String>, FormatError> {
        let item = readable_text(item);
        let item = self.agent.as_message(&item);
        self.agent.edit_line(item_context(self.page), &item, edits)
    }

    fn write_new_entry(&mut self, entry: &Entry) {
        if let Some(moment) = self.page.moment_of(entry) {
            moment.clone_into(&mut self.chain.timestamp);
        }
        let model = self.page.conversation.model.as_deref();
        for body in self.agent.compose_lines(entry, model) {
            self.write_new_line(&entry.id.0, &body);
        }
    }

    fn write_new_line(&mut self, name: &str, body: &str) {
        self.chain.write_new_line(name, self.has_ids, body);
    }
}

fn item_context<'a>(page: &DocumentContext<'a>) -> ItemContext<'a> {
    ItemContext {
        source: page.bytes(),
        offset: 0,
    }
}

/// Lines that are no entries, and how to tell which of them stay.
struct BookkeepingLines<'a> {
    agent: &'a dyn ChainedAgent,
    page: &'a DocumentContext<'a>,
    /// Lines that are entries.
    said: HashSet<usize>,
    names: HashSet<&'a str>,
}

impl<'a> BookkeepingLines<'a> {
    fn new(agent: &'a dyn ChainedAgent, page: &'a DocumentContext<'a>, view: &View) -> Self {
        let entries = &page.conversation.entries;
        let shown = view.items.iter().filter_map(|item| {
            let entry = entries.get(item.entry_index()?)?;
            Some(agent.shown_names(item, entry))
        });
        BookkeepingLines {
            agent,
            page,
            said: page.document.places.iter().map(|p| p.line).collect(),
            names: shown.flatten().collect(),
        }
    }

    /// Writes the furniture from a line up to the next entry.
    fn write_until_entry(&self, from: usize, writer: &mut ChainWriter<'_>) {
        for index in (from..line_count(self.page)).take_while(|i| !self.said.contains(i)) {
            let json = line_json(self.page, index);
            if self
                .agent
                .keeps_line(item_context(self.page), json.trim_ascii(), &self.names)
            {
                writer.chain.write_line(json);
            }
        }
    }
}
