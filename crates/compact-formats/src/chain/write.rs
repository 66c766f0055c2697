//! Views as chained lines, for any agent that writes its sessions so.
//!
//! An agent says how a line is edited, what a new entry looks like and which furniture stays; the
//! order of lines, boundaries and the chain itself are the same for all.

use std::borrow::Cow;
use std::collections::HashSet;

use compact_core::message::Entry;
use compact_core::view::{View, ViewItem};

use super::{Chain, count, json};
use crate::Stamp;
use crate::edit::Edits;
use crate::error::FormatError;
use crate::json::{At, quote};
use crate::wire::{LineWriter, Page, Shown};

/// An agent whose sessions are chained lines.
pub(crate) trait Agent {
    /// A line as it may stand within a view: a boundary there would cut off what stands before it,
    /// so it becomes a message.
    fn as_message<'a>(&self, json: &'a str) -> Cow<'a, str>;

    /// The line with its edits; nothing when nothing is left of it.
    fn edited(
        &self,
        at: At<'_>,
        json: &str,
        edits: Edits<'_>,
    ) -> Result<Option<String>, FormatError>;

    /// A new entry as the members that make each of its lines what it is.
    fn compose(&self, entry: &Entry, model: Option<&str>) -> Vec<String>;

    /// The members of a boundary with this summary.
    fn boundary(&self, summary: &str, stamp: &Stamp<'_>) -> String;

    /// The names by which furniture may speak of an entry that the view shows.
    fn names<'e>(&self, item: &ViewItem, entry: &'e Entry) -> Vec<&'e str>;

    /// Whether a line that is no entry stays, where it may speak of these names only.
    fn keeps(&self, at: At<'_>, json: &str, names: &HashSet<&str>) -> bool;

    /// Whether an entry stays in force after a boundary without being repeated.
    fn outlasts_boundary(&self, _entry: &Entry) -> bool {
        false
    }

    /// Whether the lines of a session have ids.
    fn has_ids(&self, _page: &Page<'_>) -> bool {
        true
    }
}

/// The view's lines. Furniture follows the line that it stands after.
pub(crate) fn emit(
    agent: &dyn Agent,
    page: &Page<'_>,
    view: &View,
) -> Result<Vec<u8>, FormatError> {
    let mut writer = Writer::new(agent, page, Chain::new(page.bytes()));
    let furniture = Furniture::new(agent, page, view);
    furniture.write(0, &mut writer);
    for item in &view.items {
        match page.shown(item)? {
            Shown::New(entry) => writer.new_entry(entry),
            Shown::Kept { place, item } => {
                writer.chain.line(&agent.as_message(item));
                furniture.write(place.line + 1, &mut writer);
            }
            Shown::Edited { place, item, edits } => {
                if let Some(line) = writer.edited(item, edits)? {
                    writer.chain.line(&line);
                    furniture.write(place.line + 1, &mut writer);
                }
            }
        }
    }
    Ok(writer.chain.lines.finish(page.bytes()))
}

/// A boundary with the view's summary, and the rest of the view as lines after it.
///
/// The summary of a boundary comes first, so what the view shows before it follows it.
pub(crate) fn append(
    agent: &dyn Agent,
    page: &Page<'_>,
    view: &View,
    stamp: &Stamp<'_>,
) -> Result<Vec<u8>, FormatError> {
    let mut writer = Writer::new(
        agent,
        page,
        Chain::after(page.bytes(), LineWriter::behind(page.bytes())),
    );
    writer.chain.timestamp = quote(stamp.timestamp);
    let summary = view.summary();
    let text = summary.map(Entry::plain_text).unwrap_or_default();
    writer.new_line(stamp.receipt, &agent.boundary(&text, stamp));
    for item in &view.items {
        let entry = item.entry().and_then(|i| page.conversation.entries.get(i));
        match (page.shown(item)?, entry) {
            (Shown::New(entry), _) if summary.is_some_and(|s| s.id == entry.id) => {}
            (Shown::New(entry), _) => writer.new_entry(entry),
            (Shown::Kept { .. }, Some(entry)) if agent.outlasts_boundary(entry) => {}
            (Shown::Kept { item, .. }, Some(entry)) => {
                writer.chain.copy(&agent.as_message(item), entry);
            }
            (Shown::Edited { item, edits, .. }, Some(entry)) => {
                if let Some(line) = writer.edited(item, edits)? {
                    writer.chain.copy(&line, entry);
                }
            }
            (_, None) => {}
        }
    }
    Ok(writer.chain.lines.into_lines())
}

struct Writer<'a> {
    agent: &'a dyn Agent,
    page: &'a Page<'a>,
    chain: Chain,
    has_ids: bool,
}

impl<'a> Writer<'a> {
    fn new(agent: &'a dyn Agent, page: &'a Page<'a>, chain: Chain) -> Self {
        Writer {
            agent,
            page,
            chain,
            has_ids: agent.has_ids(page),
        }
    }

    fn edited(&self, item: &str, edits: Edits<'_>) -> Result<Option<String>, FormatError> {
        let item = self.agent.as_message(item);
        self.agent.edited(at(self.page), &item, edits)
    }

    fn new_entry(&mut self, entry: &Entry) {
        let model = self.page.conversation.model.as_deref();
        for body in self.agent.compose(entry, model) {
            self.new_line(&entry.id.0, &body);
        }
    }

    fn new_line(&mut self, name: &str, body: &str) {
        self.chain.new_line(name, self.has_ids, body);
    }
}

fn at<'a>(page: &Page<'a>) -> At<'a> {
    At {
        source: page.bytes(),
        offset: 0,
    }
}

/// Lines that are no entries, and how to tell which of them stay.
struct Furniture<'a> {
    agent: &'a dyn Agent,
    page: &'a Page<'a>,
    /// Lines that are entries.
    said: HashSet<usize>,
    names: HashSet<&'a str>,
}

impl<'a> Furniture<'a> {
    fn new(agent: &'a dyn Agent, page: &'a Page<'a>, view: &View) -> Self {
        let entries = &page.conversation.entries;
        let shown = view.items.iter().filter_map(|item| {
            let entry = entries.get(item.entry()?)?;
            Some(agent.names(item, entry))
        });
        Furniture {
            agent,
            page,
            said: page.document.places.iter().map(|p| p.line).collect(),
            names: shown.flatten().collect(),
        }
    }

    /// Writes the furniture from a line up to the next entry.
    fn write(&self, from: usize, writer: &mut Writer<'_>) {
        for index in (from..count(self.page)).take_while(|i| !self.said.contains(i)) {
            let json = json(self.page, index);
            if self
                .agent
                .keeps(at(self.page), json.trim_ascii(), &self.names)
            {
                writer.chain.line(json);
            }
        }
    }
}
